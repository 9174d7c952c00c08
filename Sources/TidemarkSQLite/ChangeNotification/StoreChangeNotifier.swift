package import Foundation
public import TidemarkModel

/// Notifies other processes that a store of a container has been written to.
///
/// Each process that writes has a notifier of its own: a file in the container's folder `notifier`, which is locked while the
/// notifier is open. The kernel tells listeners that the file was written to. They then read the history from where they left
/// off. So a notification is a hint, and several may become one. Documentation/Formats/store.md specifies the files.
///
/// ```swift
/// let notifier = try StoreChangeNotifier(container: container, role: .app)
/// notifier.post(transaction: 42, scope: .private)
/// ```
///
/// All functions can be called from any thread.
public final class StoreChangeNotifier: Sendable {
    /// The kind of program that posts notifications, as one word. It shows listeners which program wrote.
    public struct Role: RawRepresentable, Hashable, Sendable {
        /// The word, 1 to 32 lower-case letters and digits of ASCII. It is part of the notifier's file name.
        public let rawValue: String

        /// The program that people use.
        public static let app = Role("app")
        /// An extension of a program, such as a widget or a share extension.
        public static let `extension` = Role("extension")
        /// A command-line tool.
        public static let tool = Role("tool")
        /// A bulk import.
        public static let `import` = Role("import")
        /// A synchronisation with a cloud.
        public static let sync = Role("sync")

        /// - Parameter rawValue: 1 to 32 lower-case letters and digits of ASCII; anything else gives `nil`.
        public init?(rawValue: String) {
            guard (1...32).contains(rawValue.utf8.count), rawValue.utf8.allSatisfy(Self.isPart) else { return nil }
            self.rawValue = rawValue
        }

        private init(_ rawValue: StaticString) { self.rawValue = "\(rawValue)" }

        private static func isPart(_ byte: UInt8) -> Bool {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        }
    }

    private struct State {
        /// The open file; -1 when there is none.
        var descriptor: Int32 = -1
        var name = ""
        var isClosed = false
        /// Every name that the file has had.
        var names: Set<String> = []
        var failures = 0
    }

    /// The kind of program that posts through this notifier.
    public let role: Role
    let folder: URL
    private let state = LockedValue(State())

    /// Opens a notifier in a folder, which may be a container or another folder.
    package init(in place: URL, role: Role) throws(StoreError) {
        self.role = role
        folder = place.appendingPathComponent(StoreChangeNotifier.folderName, isDirectory: true).absoluteURL
        try state.withLock { state throws(StoreError) in try open(&state) }
        do {
            let opened = try Folder(at: folder)
            for entry in try opened.entries()
            where entry.kind == .file && NotifierFileName(entry.name) != nil && !isOwn(entry.name) {
                try opened.removeIfUnlocked(entry.name)
            }
        } catch {
            close()
            throw error
        }
    }

    deinit { close() }

    /// Notifies listeners in other processes that a transaction has been committed.
    ///
    /// It never throws: the commit has succeeded, and a listener that misses this notification finds the transaction in the history.
    /// ``failures`` counts notifications that could not be posted.
    ///
    /// - Complexity: One write of 8 bytes, without waiting for the disk.
    public func post(transaction: Int64, scope: DatabaseScope) {
        state.withLock { state in
            guard !state.isClosed else { return }
            if state.descriptor >= 0, Self.write(transaction, scope, to: state.descriptor), Self.isLinked(state.descriptor) {
                return
            }
            // The folder has been removed, or the disk was full. A listener may still notice a new file.
            closeFile(&state)
            do {
                try open(&state)
                if !Self.write(transaction, scope, to: state.descriptor) { state.failures += 1 }
            } catch {
                state.failures += 1
            }
        }
    }

    /// The number of notifications that reached no listener, because the file could not be written.
    public var failures: Int { state.withLock(\.failures) }

    /// Closes the notifier and removes its file. Later calls of ``post(transaction:scope:)`` do nothing.
    public func close() {
        state.withLock { state in
            state.isClosed = true
            closeFile(&state)
        }
    }

    /// Whether a file name in the folder is, or was, this notifier's.
    func isOwn(_ name: String) -> Bool { state.withLock { $0.names.contains(name) } }

    /// The tries to make a file. Few are needed: another process can remove a new file only between its creation and its lock,
    /// and only while that process removes the files of dead processes.
    private static let attempts = 100

    private func open(_ state: inout State) throws(StoreError) {
        // The folders above it are not made: if the container is gone, nothing may be created in its place.
        guard mkdir(folder.path, 0o700) == 0 || errno == EEXIST else { throw Folder.failure("make the folder", folder.path) }
        let opened = try Folder(at: folder)
        for _ in 0..<Self.attempts {
            let name = NotifierFileName(role: role).text
            state.names.insert(name)
            if let descriptor = try opened.makeLockedFile(name) {
                (state.descriptor, state.name) = (descriptor, name)
                return
            }
            state.names.remove(name)
        }
        throw StoreError(.busy, "every file that was made in \(folder.path) was removed at once; try again")
    }

    private static func write(_ transaction: Int64, _ scope: DatabaseScope, to descriptor: Int32) -> Bool {
        withUnsafeBytes(of: transaction.littleEndian) { bytes in
            pwrite(descriptor, bytes.baseAddress, bytes.count, off_t(NotifierRecord.offset(of: scope))) == bytes.count
        }
    }

    private static func isLinked(_ descriptor: Int32) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_nlink > 0
    }

    private func closeFile(_ state: inout State) {
        guard state.descriptor >= 0 else { return }
        // The name is random and belongs to this notifier, even if another folder is at this path by now.
        unlink(folder.appendingPathComponent(state.name).path)
        _ = Foundation.close(state.descriptor)
        state.descriptor = -1
    }
}

/// The name of a notifier's file: a role, a hyphen, and 128 random bits in hexadecimal.
struct NotifierFileName {
    let role: String
    let text: String

    init(role: StoreChangeNotifier.Role) {
        self.role = role.rawValue
        text = "\(role.rawValue)-\(Hexadecimal.text((0..<16).map { _ in UInt8.random(in: .min ... .max) }))"
    }

    /// Reads a name; `nil` if it is not the name of a notifier's file.
    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, StoreChangeNotifier.Role(rawValue: String(parts[0])) != nil,
            Hexadecimal.isText(parts[1], ofBytes: 16)
        else { return nil }
        role = String(parts[0])
        self.text = text
    }
}

/// The contents of a notifier's file: for each scope the number of the last transaction, 8 bytes, little-endian.
enum NotifierRecord {
    static func offset(of scope: DatabaseScope) -> Int { (scope.rawValue - 1) * 8 }

    static func transactions(_ bytes: Data) -> [DatabaseScope: Int64] {
        let bytes = Array(bytes)
        return DatabaseScope.allCases.reduce(into: [:]) { transactions, scope in
            let offset = offset(of: scope)
            guard bytes.count >= offset + 8 else { return }
            let bits = bytes[offset..<(offset + 8)].reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
            if bits != 0 { transactions[scope] = Int64(bitPattern: bits) }
        }
    }
}

/// The last transactions that a notifier has posted. They are a hint: the file may belong to a dead process, and be behind the
/// history.
package struct NotifierReading: Hashable, Sendable {
    package let name: String
    package let role: String
    package let transactions: [DatabaseScope: Int64]
}

extension StoreChangeNotifier {
    /// The folder with the notifiers of the processes that write.
    package static let folderName = "notifier"

    /// The readings of all notifiers of a container, in the order of their names; empty if there is no folder yet.
    package static func readings(in place: URL) throws(StoreError) -> [NotifierReading] {
        do {
            let folder = try Folder(at: place.appendingPathComponent(folderName, isDirectory: true))
            var readings: [NotifierReading] = []
            for entry in try folder.entries() where entry.kind == .file {
                // A process may end and remove its file at any time.
                guard let name = NotifierFileName(entry.name), let file = try? folder.openFile(entry.name) else { continue }
                let record = try? file.read(upToCount: 8 * DatabaseScope.allCases.count)
                readings.append(
                    NotifierReading(name: name.text, role: name.role, transactions: NotifierRecord.transactions(record ?? Data()))
                )
            }
            return readings
        } catch {
            if error.code == .notFound { return [] }
            throw error
        }
    }

    package func isOwn(_ reading: NotifierReading) -> Bool { isOwn(reading.name) }
}

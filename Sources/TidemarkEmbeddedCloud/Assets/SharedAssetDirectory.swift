package import Foundation
package import TidemarkCloud
import TidemarkModel
import TidemarkSQLite

/// The directory in which the servers of one database keep contents of assets. Each container has a folder in it.
///
/// If a file system is not mounted, its place is an empty directory, or is missing. So the directory has a file, the marker, with
/// an identifier that the database keeps. A directory without the marker is not used, and a missing one is not made. See decision
/// 087.
package final class SharedAssetDirectory: Sendable {
    /// The content of the marker.
    package enum Marker: Hashable, Sendable {
        /// There is none.
        case missing
        /// The marker is empty: an administrator wants to tie the directory to the database that opens it next.
        case unclaimed
        /// The directory belongs to the database with the identifier.
        case of(String)
    }

    /// The marker's name.
    package static let markerName = ".tidemark-assets"

    /// The directory.
    package let folder: URL
    /// The database's identifier; `nil` while it is not known, and then any existing directory is accepted.
    private let identifier = LockedValue<String?>(nil)
    /// The time of the last read of the marker, and its error.
    private let looked = LockedValue<(at: ContinuousClock.Instant, failure: CloudError?)?>(nil)

    /// The time for which reads of contents rely on the last read of the marker.
    private static let lookAge = Duration.seconds(1)
    private static let retryTime = Duration.seconds(10)

    /// Makes an object for a directory, without looking at it.
    package init(_ folder: URL) { self.folder = folder }

    private var marker: URL { folder.appendingPathComponent(Self.markerName) }
    private var name: String { "the directory of assets, \(folder.path)," }

    private func failure(_ what: String) -> CloudError {
        CloudError(.serviceUnavailable, "\(name) \(what)", retryAfter: Self.retryTime)
    }

    // Tying

    /// Sets the database's identifier, which the marker must have from now on.
    package func expect(_ identifier: String) {
        self.identifier.withLock { $0 = identifier }
        looked.withLock { $0 = nil }
    }

    /// Reads the marker.
    ///
    /// - Throws: `CloudError` `serviceUnavailable` where there is no directory, or it can't be read; its sentence says what helps.
    package func readMarker() throws(CloudError) -> Marker {
        let descriptor = open(marker.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            let number = errno
            try checkIsThere()
            guard number == ENOENT else { throw failure("can't be read: \(String(cString: strerror(number)))") }
            return .missing
        }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = read(descriptor, &bytes, bytes.count)
        guard count >= 0 else { throw failure("can't be read: \(String(cString: strerror(errno)))") }
        let text = String(decoding: bytes.prefix(count), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        return text.isEmpty ? .unclaimed : .of(text)
    }

    /// Makes an empty marker, where there is none.
    ///
    /// - Throws: `CloudError` `serviceUnavailable`.
    package func makeMarker() throws(CloudError) { try writeMarker("") }

    /// Writes the identifier of a database into the marker, durably.
    ///
    /// - Throws: `CloudError` `serviceUnavailable`.
    package func writeMarker(_ identifier: String) throws(CloudError) {
        do throws(StoreError) {
            try DurableFile.write(Data(identifier.isEmpty ? "".utf8 : "\(identifier)\n".utf8), to: marker)
        } catch {
            throw failure("can't be written to: \(error.message)")
        }
    }

    /// Returns whether the directory has anything in it except what a new file system has.
    ///
    /// - Throws: `CloudError` `internalError`.
    package func hasContents() throws(CloudError) -> Bool {
        try CloudDirectory.names(in: folder).contains { !$0.hasPrefix(".") && $0 != "lost+found" }
    }

    // Checking

    /// Checks that the directory is there and that this process may write to it.
    ///
    /// - Throws: `CloudError` `serviceUnavailable`, whose sentence says which of the two it is and what helps.
    package func checkIsWritable() throws(CloudError) {
        try checkIsThere()
        guard access(folder.path, R_OK | W_OK | X_OK) != 0 else { return }
        guard errno != EROFS else { throw failure("can't be written to: its file system is mounted for reading alone") }
        throw failure(
            "can't be written to by the user \(NSUserName()): give it to that user, such as with 'chown \(NSUserName()) \(folder.path)'"
        )
    }

    private func checkIsThere() throws(CloudError) {
        var status = stat()
        guard stat(folder.path, &status) == 0 else {
            let number = errno
            guard number == ENOENT else { throw failure("can't be looked at: \(String(cString: strerror(number)))") }
            throw failure("is not there. Is the file system mounted? A new one is made with 'mkdir \(folder.path)'")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw failure("is a file") }
    }

    /// Checks that the directory is the one of the database, by reading the marker.
    ///
    /// - Throws: `CloudError` `serviceUnavailable`.
    package func check() throws(CloudError) {
        var found: CloudError?
        do throws(CloudError) {
            try look()
        } catch {
            found = error
        }
        let failure = found
        looked.withLock { $0 = (at: ContinuousClock.now, failure: failure) }
        if let failure { throw failure }
    }

    /// As ``check()``; within a second after a read of the marker, that result counts.
    ///
    /// - Throws: `CloudError` `serviceUnavailable`.
    package func checkOften() throws(CloudError) {
        let now = ContinuousClock.now
        guard let last = looked.withLock({ $0 }), now - last.at < Self.lookAge else { return try check() }
        if let failure = last.failure { throw failure }
    }

    private func look() throws(CloudError) {
        let expected = identifier.withLock { $0 }
        let found = try readMarker()
        guard let expected, found != .of(expected) else { return }
        throw mismatch(found)
    }

    /// The error of an empty directory without a database, where the database names contents.
    package var emptiness: CloudError {
        failure(
            "is empty, and the database names contents. Is the file system mounted? Where the contents are lost, make an empty file with 'touch \(marker.path)', and start again"
        )
    }

    /// Makes the error of a directory that belongs to another database or to none.
    ///
    /// - Parameter found: The content of its marker.
    package func mismatch(_ found: Marker) -> CloudError {
        switch found {
        case .of:
            failure(
                "belongs to another database, as its file \(Self.markerName) says. Name the directory of this one; or, to take this one, empty that file and start again"
            )
        case .missing, .unclaimed:
            failure(
                "lacks the file \(Self.markerName) that this database's directory has. Is the file system mounted? Where the contents were moved here by hand, copy that file, too, or make an empty one with 'touch \(marker.path)' and start again"
            )
        }
    }

    /// Makes a folder in the directory, and never the directory itself.
    ///
    /// - Throws: ``StoreError``.
    func make(_ folder: URL) throws(StoreError) { try Folder.make(folder, mode: 0o700, below: self.folder) }
}

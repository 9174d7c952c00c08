import CTideCore
package import Foundation

/// Detects that a write-ahead log has lost commits which the index beside it still lists; see `tide_log.h`.
package struct LogExamination {
    private let path: String
    private let state: tide_log_state

    /// Examines the log of a database. It has to run before SQLite opens the database, since that builds the index again.
    ///
    /// - Returns: `nil` when no commit is lost, or no loss is known.
    /// - Throws: ``StoreError`` `io` when the log, or the index beside it, can't be read; `outOfMemory`. SQLite would report an
    ///   unreadable log, but it builds an unreadable index again, and then nothing knows of the loss any more.
    /// - Complexity: Reads the log once.
    package init?(of path: String) throws(StoreError) {
        var state = tide_log_state()
        try checked { tide_log_examine(path, &state, &$0) }
        guard tide_log_has_loss(&state) else { return nil }
        (self.path, self.state) = (path, state)
    }

    /// The problem and its remedy.
    package var message: String {
        """
        \(path)-wal is damaged after page \(state.whole) of \(state.committed) that were committed: what was saved last is lost. Restore a \
        backup, or synchronise the container once more
        """
    }

    /// Reports commits that a log has lost, before SQLite opens the database for writing and overwrites them. The damaged log is
    /// copied to a file beside it, and the opening fails. The next opening goes on with the commits that are left.
    ///
    /// Under the lock of writes.
    ///
    /// - Throws: ``StoreError`` `corrupt`, once for each damaged log; `io` when the log can't be examined; `diskFull` or
    ///   `io` when it can't be copied.
    package static func checkBeforeWriting(_ path: String) throws(StoreError) {
        guard let lost = try LogExamination(of: path), !lost.state.is_in_use else { return }
        let copy = URL(fileURLWithPath: path).deletingLastPathComponent().appendingPathComponent(lost.copyName)
        guard access(copy.path, F_OK) != 0 else { return }
        try lost.keep(at: copy)
        throw StoreError(
            .corrupt,
            "\(lost.message). \(copy.path) is a copy of the damaged log. To go on with what is left, open the store again")
    }

    /// Prevents a copy or a move of a container whose log has lost commits that were not reported yet. If a copy of the damaged
    /// log lies beside the database, the loss was reported.
    ///
    /// - Throws: ``StoreError`` `corrupt`; `io` when the log can't be examined.
    package static func checkBeforeCopying(_ path: String) throws(StoreError) {
        guard let lost = try LogExamination(of: path) else { return }
        let copy = URL(fileURLWithPath: path).deletingLastPathComponent().appendingPathComponent(lost.copyName)
        guard access(copy.path, F_OK) != 0 else { return }
        throw StoreError(
            .corrupt,
            "\(lost.message). To go on with what is left, open the container for writing once: that keeps a copy of the damaged log"
        )
    }

    /// The names of the copies of damaged logs in a folder.
    package static func copies(in url: URL) throws(StoreError) -> [String] {
        try Folder(at: url, followsLink: true).entries().filter { $0.kind == .file && $0.name.hasPrefix(prefix) }.map(\.name)
    }

    private static let prefix = "damaged-log-of-"

    /// Whether a file name is that of a copy of a damaged log.
    package static func isCopy(_ name: String) -> Bool { name.hasPrefix(prefix) }

    private var copyName: String {
        "\(Self.prefix)\(URL(fileURLWithPath: path).lastPathComponent)-\(String(state.salt, radix: 16))"
    }

    private func keep(at copy: URL) throws(StoreError) {
        let folder = try Folder(at: copy.deletingLastPathComponent(), followsLink: true)
        let log = try folder.openFile(URL(fileURLWithPath: path).lastPathComponent + "-wal")
        let (temporary, descriptor) = try folder.makeTemporaryFile(for: copy.lastPathComponent, mode: 0o600)
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            while let bytes = try log.read(upToCount: 1 << 20), !bytes.isEmpty { try file.write(contentsOf: bytes) }
            try DurableFile.synchronize(file, path: copy.path)
            try folder.rename(temporary, to: copy.lastPathComponent)
            try folder.synchronize()
        } catch {
            // The caller gets the first error. A temporary file that stays is in nobody's way.
            try? folder.remove(temporary)
            throw StoreError(error, doing: "copy the damaged log \(path)-wal to \(copy.path)")
        }
        // The open file holds the lock until it has its name.
        withExtendedLifetime(file) {}
    }
}

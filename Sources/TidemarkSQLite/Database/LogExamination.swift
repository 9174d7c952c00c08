import CTideCore
package import Foundation

/// Finds out that a write-ahead log has lost commits, while the index beside it still knows of them; see `tide_log.h`.
package struct LogExamination {
    private let path: String
    private let state: tide_log_state

    /// Examines the log of a database, whose index the next process to open the database builds again.
    ///
    /// - Returns: `nil` when nothing is lost, or nothing is known of it.
    /// - Complexity: Reads the log once.
    package init?(of path: String) {
        var state = tide_log_state()
        // What can't be read SQLite finds out for itself, and says so.
        guard (try? checked { tide_log_examine(path, &state, &$0) }) != nil, tide_log_has_loss(&state) else { return nil }
        (self.path, self.state) = (path, state)
    }

    /// What is wrong, and what helps.
    package var message: String {
        """
        \(path)-wal is damaged after page \(state.whole) of \(state.committed) that were committed: what was saved last is lost. Restore a \
        backup, or synchronise the container once more
        """
    }

    /// Makes sure that nobody opens a database for writing without being told of commits that its log has lost: SQLite would write over
    /// them. The damaged log is copied to a file beside it, and the opening fails; the next one goes on with what is left.
    ///
    /// Under the lock of writes.
    ///
    /// - Throws: ``StoreError`` `corrupt`, once for each damaged log; `diskFull` or `io` when it can't be copied.
    package static func checkBeforeWriting(_ path: String) throws(StoreError) {
        guard let lost = LogExamination(of: path), !lost.state.is_in_use else { return }
        let copy = URL(fileURLWithPath: path).deletingLastPathComponent().appendingPathComponent(lost.copyName)
        guard access(copy.path, F_OK) != 0 else { return }
        try lost.keep(at: copy)
        throw StoreError(
            .corrupt,
            "\(lost.message). \(copy.path) is a copy of the damaged log. To go on with what is left, open the store again")
    }

    /// Makes sure that no copy is taken for the whole container, and no move removes a log, where the log has lost commits of which nobody
    /// was told yet. Where the damaged log was kept beside the database, the loss is known.
    ///
    /// - Throws: ``StoreError`` `corrupt`.
    package static func checkBeforeCopying(_ path: String) throws(StoreError) {
        guard let lost = LogExamination(of: path) else { return }
        let copy = URL(fileURLWithPath: path).deletingLastPathComponent().appendingPathComponent(lost.copyName)
        guard access(copy.path, F_OK) != 0 else { return }
        throw StoreError(
            .corrupt,
            "\(lost.message). To go on with what is left, open the container for writing once: that keeps a copy of the damaged log"
        )
    }

    /// The copies of damaged logs in a folder.
    package static func copies(in url: URL) throws(StoreError) -> [String] {
        try Folder(at: url, followsLink: true).entries().filter { $0.kind == .file && $0.name.hasPrefix(prefix) }.map(\.name)
    }

    private static let prefix = "damaged-log-of-"

    /// Tells by its name whether a file is a copy of a damaged log.
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
            try file.synchronize()
            try folder.rename(temporary, to: copy.lastPathComponent)
            try folder.synchronize()
        } catch {
            // The caller gets the first error; a temporary file that stays has a name of its own.
            try? folder.remove(temporary)
            throw StoreError(error, doing: "copy the damaged log \(path)-wal to \(copy.path)")
        }
        // Locked until it has its name.
        withExtendedLifetime(file) {}
    }
}

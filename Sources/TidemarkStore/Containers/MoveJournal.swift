package import Foundation
package import TidemarkSQLite

/// The journal in the target of a move while it is no valid container: `moving-from.json`. Specified in
/// Documentation/Formats/move.md.
///
/// The source alone says whether the move has happened. The renaming of one file there is the moment of the move: before it the
/// source is the container, and after it the target.
package struct MoveJournal: Codable, Equatable {
    package enum Step: String, Codable {
        /// Files are being copied.
        case copying
        /// All files are copied and durable, and are read again.
        case copied
        /// The copy is whole and has a description. It is the container as soon as the source says so.
        case verified
        /// The source is to be the container again.
        case rollingBack
    }

    package static let file = "moving-from.json"
    static let version = 1

    package var version = Self.version
    /// Identifies the move.
    package let move: UUID
    /// The container's identity.
    package let identity: UUID
    package let from: String
    package var to: String
    package let began: String
    /// Whether the move has made the target's folder.
    package let madeFolder: Bool
    package var step: Step

    /// The journal in a folder; `nil` when there is none.
    package static func read(in url: URL) throws(StoreError) -> MoveJournal? {
        let file = url.appendingPathComponent(Self.file)
        struct Version: Decodable { let version: Int }
        guard let version = try DurableFile.read(Version.self, from: file)?.version else { return nil }
        guard version <= Self.version else {
            throw StoreError(
                .newerFormat,
                "\(file.path) has version \(version); this version of Tidemark reads up to \(Self.version). Update Tidemark")
        }
        return try DurableFile.read(MoveJournal.self, from: file)
    }

    package func write(in url: URL, replaces: Bool = true) throws(StoreError) {
        try DurableFile.write(self, to: url.appendingPathComponent(Self.file), replaces: replaces)
    }

    package func remove(in url: URL) throws(StoreError) { try DurableFile.remove(Self.file, in: url) }

    /// Checks that a folder is not the copy of a move that has not happened.
    ///
    /// - Throws: ``StoreError`` `incompleteCopy`.
    /// - Complexity: A look-up of one file, which usually does not exist.
    static func checkCounts(_ url: URL) throws(StoreError) {
        guard let journal = try read(in: url) else { return }
        let source = URL(fileURLWithPath: journal.from)
        let notice = try MovedNotice(in: source)
        if let notice, notice.moved.move == journal.move {
            // The moving process may have been killed before the notice was durable, and later saves here rely on it.
            return try Folder(at: source, followsLink: true).synchronize()
        }
        if let notice {
            throw StoreError(
                .incompleteCopy,
                "\(url.path) is the copy of a move that was given up: the container has moved to \(notice.moved.to). To remove it: "
                    + "`tidemark store move \(journal.from) \(journal.to) --rollback`")
        }
        let remedy = """
            To finish the move: `tidemark store move \(journal.from) \(journal.to)`; to undo it, add --rollback
            """
        guard access(source.path, F_OK) == 0 else {
            throw StoreError(
                .incompleteCopy,
                "\(url.path) is the copy of a move from \(journal.from), which is not to be seen from here, so whether it counts can't "
                    + "be told. Put that back in its place; if it is gone for good, "
                    + "`tidemark store move \(journal.from) \(url.path) --finish` makes the copy count if it is whole")
        }
        throw StoreError(
            .incompleteCopy, "\(url.path) is the copy of a move that is not done: the container is at \(journal.from). \(remedy)")
    }

    package init(
        move: UUID, identity: UUID, from: String, to: String, began: String, madeFolder: Bool, step: Step
    ) {
        self.move = move
        self.identity = identity
        self.from = from
        self.to = to
        self.began = began
        self.madeFolder = madeFolder
        self.step = step
    }
}

/// The notice of a move. After the move it is the `container.json` at the old place. Before, it is `moving-to.json` there, which
/// becomes that file.
///
/// It has no `identity` where a description has it, so a program that knows nothing of moves does not take it for a container.
package struct MovedNotice: Codable, Equatable {
    package struct Moved: Codable, Equatable {
        package let move: UUID
        package let to: String
        package let began: String
        /// The old files stay until the move is finished explicitly.
        package let keepsSource: Bool
        /// The description that `container.json` had before.
        package let container: ContainerDirectory.Description

        package init(
            move: UUID, to: String, began: String, keepsSource: Bool, container: ContainerDirectory.Description
        ) {
            self.move = move
            self.to = to
            self.began = began
            self.keepsSource = keepsSource
            self.container = container
        }
    }

    package static let draft = "moving-to.json"

    package var format = ContainerDirectory.format
    package let moved: Moved

    package init(_ moved: Moved) { self.moved = moved }

    /// The notice in a folder; `nil` when there is none, as in a container that has not moved.
    package init?(in url: URL, file: String = "container.json") throws(StoreError) {
        guard let data = try DurableFile.data(of: url.appendingPathComponent(file)),
            let notice = try? JSONDecoder().decode(MovedNotice.self, from: data)
        else { return nil }
        self = notice
    }

    /// Throws if the data of a `container.json` is the notice of a move.
    static func check(_ data: Data, at url: URL) throws(StoreError) {
        guard let notice = try? JSONDecoder().decode(MovedNotice.self, from: data) else { return }
        throw StoreError(.moved, "the container that was at \(url.path) has moved to \(notice.moved.to); open it there")
    }
}

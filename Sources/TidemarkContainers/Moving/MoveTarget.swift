import Foundation
import TidemarkSQLite
import TidemarkStore

/// The state of the place to which a container is to move.
enum MoveTarget {
    case absent
    /// A folder with nothing in it.
    case empty
    /// The container was here before, and has moved away.
    case vacated
    /// This move was begun before and interrupted.
    case begun(MoveJournal)
    /// The place has something that must stay; with the reason.
    case occupied(String)

    init(_ places: MovePlaces, identity: UUID) throws(StoreError) {
        let target = places.target
        var status = stat()
        guard stat(target.path, &status) == 0 else {
            self = .absent
            return
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            self = .occupied("\(target.path) is a file")
            return
        }
        if let journal = try MoveJournal.read(in: target) {
            self =
                journal.identity == identity && journal.from == places.source.path
                ? .begun(journal) : .occupied("\(target.path) is the copy of another move, from \(journal.from)")
            return
        }
        let contents = try ContainerContents(of: target)
        if let notice = try MovedNotice(in: target) {
            self = Self.left(target, notice: notice, contents: contents, identity: identity)
            return
        }
        guard access(target.appendingPathComponent(ContainerContents.description).path, F_OK) != 0 else {
            // A container that can't be opened counts as another container.
            let there = try? ContainerDirectory(openingAt: target)
            self = .occupied(
                there?.description.identity == identity
                    ? "\(target.path) holds a copy of the same container, which no move has made"
                    : "\(target.path) holds another container")
            return
        }
        self =
            contents.isEmpty
            ? .empty : .occupied("\(target.path) holds other files, \((contents.others + contents.own)[0]) among them")
    }

    /// Returns the state of a folder from which a container has moved.
    private static func left(_ target: URL, notice: MovedNotice, contents: ContainerContents, identity: UUID) -> MoveTarget {
        if notice.moved.container.identity != identity {
            return .occupied("\(target.path) is where another container was before it moved")
        }
        if contents.isMore {
            return .occupied(
                """
                \(target.path) still holds the old files of the move to \(notice.moved.to); delete them with \
                `tidemark store move \(target.path) \(notice.moved.to) --finish`
                """)
        }
        return contents.others.isEmpty
            ? .vacated : .occupied("\(target.path) holds other files, \(contents.others[0]) among them")
    }
}

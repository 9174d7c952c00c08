import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// The plan of a move: what it would do, and the reasons against it.
public struct MovePlan: Hashable, Sendable, Encodable {
    /// The state of a move.
    public enum State: String, Hashable, Sendable, Encodable {
        /// Nothing has happened yet.
        case new
        /// The move was interrupted before the target became the container; ``StoreMover/run(progress:)`` goes on with it.
        case begun
        /// The container is at the target. Its old files still exist: the next run deletes them, or they are kept until
        /// ``StoreMover/finish()``.
        case switched
        /// The container is at the target, and its old files are gone.
        case done
    }

    /// A store's database file.
    public struct Store: Hashable, Sendable, Encodable {
        /// The name of the file in the container's folder, such as `private.sqlite`.
        public let name: String
        /// The bytes of a copy of the database.
        public let bytes: Int64
    }

    /// The path of the container's folder before the move.
    public let from: String
    /// The path of the container's folder after the move.
    public let to: String
    /// The state of the move.
    public let state: State
    /// The database files that would be copied; empty when the state is `switched` or `done`.
    public let stores: [Store]
    /// The number of assets that the stores name; 0 when the state is `switched` or `done`.
    public let assets: Int
    /// Bytes of the stores' assets and of those of quarantined records, copied or not; 0 when the state is `switched` or `done`.
    public let assetBytes: Int64
    /// The bytes that would be copied. Assets that stay on their file system get a hard link, and are not counted.
    public let bytes: Int64
    /// The free bytes at the target.
    public let free: Int64
    /// The reasons why the container can't be moved now, one sentence each; empty when it can.
    public let reasonsAgainst: [String]
    /// The names of files in the container's folder that are not the container's, and stay there.
    public let staying: [String]

    /// Makes the plan of a move that has not happened yet.
    init(_ places: MovePlaces, copy: ContainerCopy, target: MoveTarget) throws(StoreError) {
        (from, to) = (places.source.path, places.target.path)
        stores = copy.snapshots.map { Store(name: "\($0.scope.name).sqlite", bytes: $0.bytes) }
        (assets, assetBytes) = (copy.assets.count, copy.assetBytes)
        staying = try ContainerContents(of: places.source).others.filter { !$0.hasPrefix(".") }
        if case .begun = target { state = .begun } else { state = .new }
        if Self.isOneFileSystem(copy.source.assets, places.target) {
            // The assets get hard links.
            bytes = copy.databaseBytes
        } else {
            let there = try AssetFiles(in: places.target.appendingPathComponent("assets")).ids.map(Self.size).reduce(0, +)
            bytes = copy.databaseBytes + max(0, copy.assetBytes - there)
        }
        free = MovePlaces.freeBytes(at: places.target)
        reasonsAgainst = Self.reasonsAgainst(places, target: target, stores: stores, bytes: bytes, free: free)
    }

    /// Makes the plan of a move that has happened.
    init(_ places: MovePlaces, notice: MovedNotice) throws(StoreError) {
        (from, to) = (places.source.path, places.target.path)
        let contents = try ContainerContents(of: places.source)
        let isReleased = try MoveJournal.read(in: places.target) == nil
        state = contents.isMore || !isReleased ? .switched : .done
        (stores, assets, assetBytes, bytes, free) = ([], 0, 0, 0, MovePlaces.freeBytes(at: places.target))
        reasonsAgainst = []
        staying = contents.others.filter { !$0.hasPrefix(".") }
    }

    /// Makes sure that nothing speaks against the move.
    ///
    /// - Throws: ``StoreError`` `cannotMove`; `diskFull` when missing space is the only reason.
    func check() throws(StoreError) {
        guard let reason = reasonsAgainst.first else { return }
        throw StoreError(free < bytes && reasonsAgainst.count == 1 ? .diskFull : .cannotMove, reason)
    }

    private static func reasonsAgainst(
        _ places: MovePlaces, target: MoveTarget, stores: [Store], bytes: Int64, free: Int64
    ) -> [String] {
        var reasons: [String] = []
        if case .occupied(let reason) = target { reasons.append("\(reason); name a place where nothing is") }
        let folder = MovePlaces.nearest(places.target)
        if access(folder.path, W_OK | X_OK) != 0 {
            reasons.append("\(folder.path) can't be written: \(String(cString: strerror(errno)))")
        }
        if access(places.source.path, W_OK | X_OK) != 0 {
            reasons.append("\(places.source.path) can't be written, so it could not say where the container is then")
        }
        for name in stores.map(\.name) + ["assets"] {
            var status = stat()
            let path = places.source.appendingPathComponent(name).path
            guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK else { continue }
            reasons.append("\(path) is a symbolic link; put what it stands for in its place")
        }
        if free < bytes {
            reasons.append("\(folder.path) has \(free) bytes free, and the container needs \(bytes); make room there")
        }
        return reasons
    }

    private static func isOneFileSystem(_ assets: URL, _ target: URL) -> Bool {
        var (one, other) = (stat(), stat())
        return stat(assets.path, &one) == 0 && stat(MovePlaces.nearest(target).path, &other) == 0 && one.st_dev == other.st_dev
    }

    /// The size that is part of an asset's identifier.
    private static func size(_ id: String) -> Int64 {
        let parts = id.split(separator: "-")
        return parts.count > 1 ? Int64(parts[1]) ?? 0 : 0
    }
}

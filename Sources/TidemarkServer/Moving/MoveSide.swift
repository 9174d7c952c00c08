import Foundation
import TidemarkCloudEngine

/// The source or the target of a move.
protocol MoveSide: Sendable {
    /// The place, for messages.
    var name: String { get }
    /// Reads the containers without their rows.
    func containers() async throws -> [MovedContainer]
    /// Reads the secrets with which the server signs, by their file names in a directory.
    func secrets() async throws -> [String: Data]
    /// Reads some rows, in the side's own order.
    ///
    /// - Parameters:
    ///   - container: `nil` for a table of the whole cloud.
    ///   - place: The row after which to continue, from the last call; `nil` for the beginning.
    /// - Returns: The rows, and the place of the last one; `nil` where no more follow.
    func rows(
        of table: MovedTable, in container: MovedContainer?, after place: MovedRow?, limit: Int
    ) async throws -> (rows: [MovedRow], last: MovedRow?)
    /// Counts rows.
    func count(of table: MovedTable, in container: MovedContainer?) async throws -> Int
    /// Returns the storage of a container's assets.
    func assets(of container: MovedContainer) -> any AssetStorage
    /// Returns a text that identifies the state of the rows, by containers.
    func stamp() async throws -> String
    /// Checks that no other process uses it.
    func checkIsUnused() async throws
    /// Closes it.
    func close() async
}

/// The target of a move.
protocol MoveTarget: MoveSide {
    /// Returns the state of a move; `nil` where none has begun, and the place is empty.
    ///
    /// - Throws: ``MoveError`` `occupied` where the place has anything else.
    func state() async throws -> MoveState?
    /// Begins a move, or stores its state.
    func save(_ state: MoveState) async throws
    /// Makes containers without rows.
    func make(_ containers: [MovedContainer]) async throws
    /// Replaces the secrets.
    func write(secrets: [String: Data]) async throws
    /// Writes rows, and stores the state of the move, in one transaction where that is possible. Otherwise, writing rows a second
    /// time has no effect.
    func write(_ rows: [MovedRow], to table: MovedTable, in container: MovedContainer?, _ state: MoveState) async throws
    /// Makes the place a usable cloud.
    func finish(_ state: MoveState) async throws
}

/// The state of a move, stored in its target.
struct MoveState: Hashable, Codable, Sendable {
    /// Identifies the source.
    var source: String
    /// Identifies the state of the source.
    var stamp: String
    /// The sums of the moved rows, by path and table.
    var sums: [String: RowSum] = [:]
    /// Tables that are moved completely.
    var complete: Set<String> = []
    /// In the table that is being moved, the row after which to continue.
    var place: MovedRow?
    /// Containers whose assets are moved completely.
    var assetsOf: Set<String> = []
    /// Damaged or missing contents, by container.
    var problems: [String: [String]] = [:]
    /// Whether the move is done.
    var isDone = false
}

/// The reason why a cloud can't be moved.
struct MoveError: Error {
    enum Code: Sendable {
        /// The source has no cloud.
        case missing
        /// The target has something else.
        case occupied
        /// Another process uses one of the places.
        case busy
        /// The source has changed since the move began.
        case changed
        /// The target's rows differ from the source's.
        case different
        /// A file can't be written.
        case io
    }

    let code: Code
    let message: String

    init(_ code: Code, _ message: String) { (self.code, self.message) = (code, message) }
}

import Foundation
import TidemarkCloudEngine

/// Where a cloud is that is moved, or where it comes to.
protocol MoveSide: Sendable {
    /// The place, for messages.
    var name: String { get }
    /// Reads the containers, but for their rows.
    func containers() async throws -> [MovedContainer]
    /// Reads the secrets that the server signs with, by their names in a directory.
    func secrets() async throws -> [String: Data]
    /// Reads some rows, in an order of its own.
    ///
    /// - Parameters:
    ///   - container: `nil` for a table of the whole cloud.
    ///   - place: Behind which row to go on, as the last call said; `nil` for the first.
    /// - Returns: The rows, and the place of the last; `nil` where there are no more.
    func rows(
        of table: MovedTable, in container: MovedContainer?, after place: MovedRow?, limit: Int
    ) async throws -> (rows: [MovedRow], last: MovedRow?)
    /// Counts rows.
    func count(of table: MovedTable, in container: MovedContainer?) async throws -> Int
    /// The contents of a container's assets.
    func assets(of container: MovedContainer) -> any AssetStorage
    /// Says what tells one state of the rows from another, by containers.
    func stamp() async throws -> String
    /// Makes sure that nobody else uses it.
    func checkIsUnused() async throws
    /// Lets go of it.
    func close() async
}

/// Where a cloud comes to.
protocol MoveTarget: MoveSide {
    /// Returns how far a move has come; `nil` where none has begun, and the place is empty.
    ///
    /// - Throws: ``MoveError`` `occupied` where there is something else.
    func state() async throws -> MoveState?
    /// Begins a move, or notes how far it has come.
    func save(_ state: MoveState) async throws
    /// Makes containers without rows.
    func make(_ containers: [MovedContainer]) async throws
    /// Replaces the secrets.
    func write(secrets: [String: Data]) async throws
    /// Writes rows, and notes how far the move has come, in one transaction where that is possible; otherwise rows that are written again
    /// make no difference.
    func write(_ rows: [MovedRow], to table: MovedTable, in container: MovedContainer?, _ state: MoveState) async throws
    /// Makes the place a cloud that can be used.
    func finish(_ state: MoveState) async throws
}

/// How far a move has come. It lies with what has been moved.
struct MoveState: Hashable, Codable, Sendable {
    /// What tells the source from other clouds.
    var source: String
    /// What tells the state of the source from others.
    var stamp: String
    /// By path and table, what has been moved.
    var sums: [String: RowSum] = [:]
    /// Tables that are moved as a whole.
    var complete: Set<String> = []
    /// Of the table that is being moved, behind which row to go on.
    var place: MovedRow?
    /// Containers whose assets are moved as a whole.
    var assetsOf: Set<String> = []
    /// Contents that were damaged or missing, by containers.
    var problems: [String: [String]] = [:]
    /// Whether all is done.
    var isDone = false
}

/// Why a cloud can't be moved.
struct MoveError: Error {
    enum Code: Sendable {
        /// There is no cloud.
        case missing
        /// The target holds something else.
        case occupied
        /// Others use one of the places.
        case busy
        /// The source is not what it was when the move began.
        case changed
        /// What has arrived is not what went.
        case different
        /// A file can't be written.
        case io
    }

    let code: Code
    let message: String

    init(_ code: Code, _ message: String) { (self.code, self.message) = (code, message) }
}

import GRDB
import TidemarkStore

/// Writes and reads the book's file, on a thread of its own.
actor AccessLedger {
    private nonisolated let executor = StoreExecutor(label: "tidemark.access")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private let database: SharedDatabase

    init(_ database: SharedDatabase) { self.database = database }

    /// Writes in one transaction, durable when this returns.
    func write<Result: Sendable>(_ body: @Sendable (Database) throws -> Result) throws(AccessError) -> Result {
        do {
            return try database.write(body)
        } catch {
            throw AccessError(storage: error)
        }
    }

    func read<Result: Sendable>(_ body: @Sendable (Database) throws -> Result) throws(AccessError) -> Result {
        do {
            return try database.reader.read(body)
        } catch {
            throw AccessError(storage: error)
        }
    }
}

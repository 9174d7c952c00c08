import GRDB
import TidemarkSQLite

/// Writes and reads the file of the credential store, on a thread of its own.
actor CredentialWriter {
    private nonisolated let executor = StoreExecutor(label: "tidemark.access")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private let database: SharedDatabase

    init(_ database: SharedDatabase) { self.database = database }

    /// Writes in one transaction, durable when this returns.
    func write<Result: Sendable>(_ body: @Sendable (Database) throws -> Result) throws(CredentialError) -> Result {
        do {
            return try database.write(body)
        } catch {
            throw CredentialError(storage: error)
        }
    }

    /// Empties the write-ahead log of the file, where nothing is in the way.
    func tryToEmptyLog() -> Bool { database.tryToEmptyLog() }

    func read<Result: Sendable>(_ body: @Sendable (Database) throws -> Result) throws(CredentialError) -> Result {
        do {
            return try database.reader.read(body)
        } catch {
            throw CredentialError(storage: error)
        }
    }
}

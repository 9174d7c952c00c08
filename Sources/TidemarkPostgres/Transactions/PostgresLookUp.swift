import TidemarkModel

/// Looks up rows for many callers with one statement: keys that are asked for before the statement is sent go with it.
///
/// A caller's reply comes from a statement that began after the call. So the reply has everything that was committed before the
/// call, by any server. Nothing is cached, so nothing has to be invalidated.
final class PostgresLookUp<Group: Hashable & Sendable, Key: Hashable & Sendable, Found: Sendable>: Sendable {
    /// What one statement looks up.
    ///
    /// `@unchecked`: it is changed under the lock of the state until its statement is made, and not after that.
    private final class Batch: @unchecked Sendable {
        var keys: Set<Key> = []
        var callers: [CheckedContinuation<Result<Found, PostgresError>, Never>] = []
    }

    private let database: PostgresDatabase
    private let command: @Sendable (Group, [Key]) -> PostgresCommand
    private let found: @Sendable (PostgresRows) throws(PostgresError) -> Found
    /// The batches that are not sent yet.
    private let open = LockedValue<[Group: Batch]>([:])
    private let keysMost: Int

    /// - Parameters:
    ///   - keysMost: Keys that one statement looks up at the most.
    ///   - command: Makes the statement for keys of a group.
    ///   - found: Makes the result from the rows. All callers of the statement get it.
    init(
        _ database: PostgresDatabase, keysMost: Int = 500, command: @escaping @Sendable (Group, [Key]) -> PostgresCommand,
        found: @escaping @Sendable (PostgresRows) throws(PostgresError) -> Found
    ) {
        (self.database, self.keysMost, self.command, self.found) = (database, keysMost, command, found)
    }

    /// Returns what a statement has found for some keys, and for other callers' keys in the group.
    ///
    /// - Parameter keys: May be empty, for a caller that only needs what comes with every reply.
    func found(for keys: [Key], in group: Group) async throws(PostgresError) -> Found {
        try await database.reading { () throws(PostgresError) in
            let result = await withCheckedContinuation { continuation in
                let new: Batch? = open.withLock { open in
                    if let batch = open[group], batch.keys.count + keys.count <= keysMost {
                        batch.keys.formUnion(keys)
                        batch.callers.append(continuation)
                        return nil
                    }
                    let batch = Batch()
                    batch.keys.formUnion(keys)
                    batch.callers.append(continuation)
                    open[group] = batch
                    return batch
                }
                if let new { database.batcher.send { [self] in query(new, group) } }
            }
            return try result.get()
        }
    }

    private func query(_ batch: Batch, _ group: Group) -> PostgresQueryBatcher.Query {
        let keys = open.withLock { open in
            if open[group] === batch { open[group] = nil }
            return Array(batch.keys)
        }
        return PostgresQueryBatcher.Query(command: command(group, keys)) { [found] result in
            let answer: Result<Found, PostgresError>
            do throws(PostgresError) {
                answer = .success(try found(try result.get()))
            } catch {
                answer = .failure(error)
            }
            for caller in batch.callers { caller.resume(returning: answer) }
        }
    }
}

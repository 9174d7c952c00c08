import TidemarkModel

/// A step from one version of the tables to the next.
package struct PostgresMigration: Sendable {
    /// The version that the step leads to. The first step has 1.
    package let number: Int
    /// What the step does, for people who read the table of versions.
    package let name: String
    /// The oldest version whose servers may go on after the step. A step that only adds repeats the number of the step before. A
    /// step that removes what older servers use has its own number.
    package let oldestUser: Int
    /// The statements, which run in one transaction. So `CREATE INDEX CONCURRENTLY`, which can't, is not among them.
    package let statements: [String]

    package init(_ number: Int, _ name: String, oldestUser: Int, _ statements: [String]) {
        (self.number, self.name, self.oldestUser, self.statements) = (number, name, oldestUser, statements)
    }
}

/// Brings the tables of a component to their newest version. A database may have several components, whose versions count apart.
///
/// Any number of servers may migrate at once. Each step is a transaction under an advisory lock, and a server that gets the lock
/// later finds the step done. A server that dies in a step leaves the tables as they were before it.
package struct PostgresMigrations: Sendable {
    /// By ``PostgresMigration/number``, from 1 on without gaps.
    package let steps: [PostgresMigration]
    /// Whose tables the steps make, such as `accounts`.
    package let component: String
    /// How long a server waits for another one that migrates, and how long it tries to get the tables of a step.
    package var lockTimeout = Duration.seconds(600)
    /// How long a statement of a step waits for a table in one try. Requests of servers that are at work wait behind it.
    package var tableLockTimeout = Duration.seconds(2)
    /// How long a step leaves the tables to requests before it tries again.
    package var pause = Duration.seconds(1)

    /// How long a statement of a step may take, including its wait for the lock.
    package var stepTimeout = Duration.seconds(3600)

    /// The number of the advisory lock: "tidemark" in ASCII.
    static let lock: Int64 = 0x7469_6465_6d61_726b

    /// - Parameters:
    ///   - steps: All steps of the component there have ever been.
    ///   - component: Whose tables they make.
    package init(_ steps: [PostgresMigration], of component: String = "records") {
        precondition(steps.map(\.number) == Array(1..<(steps.count + 1)), "the steps have the numbers from 1 on")
        (self.steps, self.component) = (steps, component)
    }

    /// Runs the steps that are missing.
    ///
    /// - Returns: The version of the tables, which may be newer than the last step.
    /// - Throws: `PostgresError`:
    ///   - `newerVersion` where this version may not use the tables any more.
    ///   - `lockTimeout` where another server migrates for too long, or a transaction holds a table for too long.
    ///   - `unsupported` for a database without Tidemark's tables, where something else has the name of one. Nothing is written
    ///     then.
    @discardableResult
    package func run(on database: PostgresDatabase) async throws -> Int {
        // Mostly nothing is to be done. A standby can find that out, too.
        let found = try await database.read { [self] transaction in try version(transaction) }
        if let found, found.number >= steps.count {
            try check(found, database)
            return found.number
        }
        var unknownCommits = 0
        var (begun, isRepeated) = (ContinuousClock.now, false)
        while true {
            let left = max(.milliseconds(1), lockTimeout - (ContinuousClock.now - begun))
            let options = PostgresTransactionOptions(
                .readCommitted, isReadOnly: false, lockTimeout: left, statementTimeout: stepTimeout)
            let pausesFirst = isRepeated
            let version: Version
            do {
                version = try await database.transaction(options) { [self] transaction in
                    try step(transaction, pausesFirst: pausesFirst)
                }
                (begun, isRepeated) = (ContinuousClock.now, false)
            } catch let error as PostgresError where error.code == .lockTimeout {
                guard ContinuousClock.now - begun < lockTimeout else {
                    throw PostgresError(
                        .lockTimeout,
                        "the \(component) of the \(database.configuration.address.name) can't be migrated: for \(lockTimeout) another server has migrated, or transactions have held the tables. End those that pg_stat_activity shows, and start again",
                        state: error.state)
                }
                isRepeated = true
                continue
            } catch let error as PostgresError where error.code == .commitUnknown && unknownCommits < 3 {
                // The table of versions tells whether the step was committed.
                unknownCommits += 1
                continue
            }
            guard version.number < steps.count else {
                try check(version, database)
                return version.number
            }
        }
    }

    /// Runs the next step, if one is missing.
    ///
    /// - Parameter pausesFirst: Whether the last try could not lock its tables. The pause is under the advisory lock, so that
    ///   servers that migrate in turn leave the tables to requests as well.
    private func step(_ transaction: PostgresTransaction, pausesFirst: Bool) throws -> Version {
        try transaction.query("SELECT pg_advisory_xact_lock($1)", Self.lock)
        if pausesFirst { try transaction.query("SELECT pg_sleep($1)", pause / .seconds(1)) }
        // While a statement waits for the lock of a table, all later statements wait behind it, also those that read.
        try transaction.query("SELECT set_config('lock_timeout', $1, true)", "\(tableLockTimeout.milliseconds)")
        let found: Version
        if let version = try version(transaction) {
            found = version
        } else {
            // A foreign table with the name of a later component's would stop the migration halfway, so all components are
            // checked.
            try checkNothingElse(transaction, of: PostgresVersions.known + [self])
            found = Version(number: 0, oldestUser: 0)
            try transaction.enqueue(Self.table)
        }
        guard found.number < steps.count else { return found }
        let step = steps[found.number]
        for statement in step.statements { try transaction.enqueue(statement) }
        try transaction.query(
            "INSERT INTO tidemark_migrations (component, number, name, oldest_user) VALUES ($1, $2, $3, $4)", component,
            Int64(step.number), step.name, Int64(step.oldestUser))
        return Version(number: step.number, oldestUser: max(found.oldestUser, step.oldestUser))
    }

    /// Makes sure that nothing of others has the name of a table, an index or a sequence of components.
    ///
    /// - Throws: `PostgresError` `unsupported`, or what the statement throws.
    private func checkNothingElse(
        _ transaction: PostgresTransaction, of components: [PostgresMigrations]
    ) throws(PostgresError) {
        let names = components.flatMap { $0.steps.flatMap { $0.statements.compactMap(Self.relation(madeBy:)) } }
        let rows = try transaction.query(
            """
            SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = current_schema() AND c.relname::text = ANY($1) ORDER BY c.relname
            """, Array(Set(names)))
        var others: [String] = []
        for row in rows { others.append(try row.value(0)) }
        guard !others.isEmpty else { return }
        let more = others.count > 5 ? " and \(others.count - 5) more" : ""
        throw PostgresError(
            .unsupported,
            "the \(transaction.name) has tables of something else (\(others.prefix(5).joined(separator: ", "))\(more)); give Tidemark a database or a schema of its own"
        )
    }

    /// The name of the table, the index or the sequence that a statement makes; `nil` for any other statement.
    static func relation(madeBy statement: String) -> String? {
        let words = statement.split(maxSplits: 4) { $0.isWhitespace || $0 == "(" }
        guard words.first == "CREATE",
            let kind = words.prefix(3).firstIndex(where: { ["TABLE", "INDEX", "SEQUENCE"].contains($0) }), kind + 1 < words.count
        else { return nil }
        return String(words[kind + 1])
    }

    private struct Version: Sendable {
        let number, oldestUser: Int
    }

    private static let table = """
        CREATE TABLE tidemark_migrations (
            component text NOT NULL, number int8 NOT NULL, name text NOT NULL, oldest_user int8 NOT NULL,
            applied timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (component, number))
        """

    /// The version of the tables; `nil` where no component has any.
    private func version(_ transaction: PostgresTransaction) throws(PostgresError) -> Version? {
        // to_regclass may remember, from before the wait for the lock, that there is no such table.
        let isThere: Bool = try transaction.query(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = 'tidemark_migrations')"
        )[0].value(0)
        guard isThere else { return nil }
        let row = try transaction.query(
            "SELECT coalesce(max(number), 0), coalesce(max(oldest_user), 0) FROM tidemark_migrations WHERE component = $1",
            component
        )[0]
        return Version(number: Int(try row.value(0, as: Int64.self)), oldestUser: Int(try row.value(1, as: Int64.self)))
    }

    private func check(_ version: Version, _ database: PostgresDatabase) throws(PostgresError) {
        guard version.oldestUser > steps.count else { return }
        throw PostgresError(
            .newerVersion,
            "the \(database.configuration.address.name) was migrated to version \(version.number) of its \(component) by a newer Tidemark, and this one knows \(steps.count). Install the newer one here as well"
        )
    }
}

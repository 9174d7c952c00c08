import TestServers
import TestSupport
import Testing
import TidemarkCloudEngine
import TidemarkTesting

/// Goal: a cloud with its rows in PostgreSQL fulfils the contract. Method: all checks of the contract, each in a container of its
/// own.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct PostgresContractTests {
    @Test(arguments: CloudContract.checks)
    func `a cloud over PostgreSQL fulfils the contract`(check: CloudContract.Check) async throws {
        let (fixture, name) = try await SharedRecords.shared.next()
        try await check.run(try await EmbeddedCloudSubject(postgres: fixture, name: name))
    }

    @Test(arguments: CloudContract.checks)
    func `a cloud whose transactions are each rolled back once, and run again, fulfils the contract`(
        check: CloudContract.Check
    ) async throws {
        let (fixture, name) = try await SharedRecords.shared.next()
        let development = RepeatingCloudStorage(try await fixture.storage(of: name, .development))
        let production = RepeatingCloudStorage(try await fixture.storage(of: name, .production))
        try await check.run(
            try EmbeddedCloudSubject { _, environment in environment == .development ? development : production })
    }

    @Test(arguments: [1, 50, 5_000])
    func `the pages of sorted queries are what sorting gives, in PostgreSQL`(frequent: Int) async throws {
        let (fixture, name) = try await SharedRecords.shared.next()
        let storage = try await fixture.storage(of: name)
        try await SortedQueries(frequent: frequent) { _, _ in storage }.run()
    }

    @Test(arguments: AnswerStorageContract.all)
    func `answers in PostgreSQL end by age and order`(check: StorageCheck<any CloudStorage>) async throws {
        let (fixture, name) = try await SharedRecords.shared.next()
        try await check.run(try await fixture.storage(of: name))
    }
}

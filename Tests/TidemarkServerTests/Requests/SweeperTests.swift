import Foundation
import GRDB
import Logging
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkServer

/// Goal: a server removes leftovers by itself, and reports it.
@Suite(.timeLimit(.minutes(30))) struct SweeperTests {
    /// The results of the sweeps.
    private final class Course: Sendable {
        private let outcomes: LockedValue<[Result<EmbeddedCloud.Sweep, any Error>]>

        init(_ outcomes: [Result<EmbeddedCloud.Sweep, any Error>]) { self.outcomes = LockedValue(outcomes) }

        var isOver: Bool { outcomes.withLock { $0.isEmpty } }
        func next() throws -> EmbeddedCloud.Sweep {
            let outcome = outcomes.withLock { outcomes -> Result<EmbeddedCloud.Sweep, any Error> in
                outcomes.isEmpty ? .failure(CancellationError()) : outcomes.removeFirst()
            }
            return try outcome.get()
        }
    }

    @Test func `a sweep reports removals and errors, and the next sweep runs all the same`() async {
        struct Broken: Error {}
        let (metrics, log) = (ServerMetrics(), StubbedServer.Log())
        let logger = Logger(label: "test") { _ in
            LogfmtHandler(level: .error) { line in log.lines.withLock { $0.append(line) } }
        }
        let course = Course([
            .success(.init(removed: 2)), .failure(Broken()),
            .success(.init(removed: 3, failure: CloudError(.internalError, "container a: damaged"))),
        ])
        let (ends, told) = AsyncStream<Void>.makeStream()
        let sweeper = Sweeper(
            metrics, logger,
            rest: {
                guard course.isOver else { return }
                told.finish()
                throw CancellationError()
            }, sweep: { try course.next() })
        sweeper.begin()
        sweeper.begin()
        for await _ in ends {}
        sweeper.end()
        let text = metrics.text(bodies: 0)
        #expect(text.contains("\ntidemark_leftover_assets_removed_total 5\n"))
        #expect(text.contains("\ntidemark_sweeps_failed_total 2\n"))
        let lines = log.lines.withLock { $0 }
        #expect(lines.count == 2 && lines.last?.contains("container a: damaged") == true)
    }

    /// The file of a content that no record names, and that no client has asked for since yesterday.
    private func leftover(
        of fixture: FaultyCloudFixture, in container: String = FaultyCloudFixture.container
    ) async throws -> String {
        let (account, zone) = (try await fixture.id("anna@example.org"), CloudZoneID("Journal"))
        let database = try fixture.cloud.database(.private, of: container, account: account)
        try await database.modifyZones(saving: [zone], deleting: [])
        let content = Data("left".utf8)
        let asset = AssetDigest.asset(of: content)
        _ = try await database.upload(content, of: asset, at: 0, in: zone)
        let user = try #require(try await database.account().userRecordName)
        let file = fixture.directory.appendingPathComponent(
            "containers/\(container)/development/assets/\(user)/\(asset.digest.prefix(2))/\(asset.digest)"
        ).path
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -26 * 3_600)], ofItemAtPath: file)
        return file
    }

    @Test func `a running server sweeps the containers that it serves`() async throws {
        let fixture = try FaultyCloudFixture()
        let access = try CredentialStore(at: fixture.directory)
        try await access.addContainer(FaultyCloudFixture.container)
        // The container that is not served comes first.
        let other = try await leftover(of: fixture, in: "aaa.example.other")
        let served = try await leftover(of: fixture)
        let server = try await ListeningServer.started(over: fixture.directory)
        #expect(try await eventually { !FileManager.default.fileExists(atPath: served) })
        #expect(FileManager.default.fileExists(atPath: other))
        withExtendedLifetime(server) {}
    }

    @Test func `a sweep removes contents and returns the error although the subscriptions can't be read`() async throws {
        let fixture = try FaultyCloudFixture()
        let access = try CredentialStore(at: fixture.directory)
        try await access.addContainer(FaultyCloudFixture.container)
        let file = try await leftover(of: fixture)
        let subscriptions = try SubscriptionStore(at: fixture.directory)
        let database = try DatabaseQueue(path: fixture.directory.appendingPathComponent("subscriptions.sqlite").path)
        try await database.write { db in try db.execute(sql: "DROP TABLE subscriptions") }
        let sweep = try await Sweeper.sweepServed(fixture.cloud, access, subscriptions)
        #expect(sweep.removed == 1 && !FileManager.default.fileExists(atPath: file))
        #expect(sweep.failure?.reason.contains("no such table") == true, "\(String(describing: sweep.failure))")
    }

    @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"))
    func `a server that is older than its database removes nothing`() async throws {
        let (scratch, postgres) = (try Scratch(), try PostgresServer.shared())
        try FileManager.default.createDirectory(at: scratch["assets"], withIntermediateDirectories: true)
        let name = try postgres.makeDatabase()
        let opened = try await OpenedDatabase(
            ServerConfiguration.Database(address: postgres.address(name), assets: .directory(scratch["assets"])))
        let (cloud, access) = try opened.administered()
        #expect(try await Sweeper.sweepServed(cloud, access).failure == nil)
        try postgres.sql(
            "INSERT INTO tidemark_migrations (component, number, name, oldest_user) VALUES ('records', 99, 'of later', 99)",
            in: name)
        let error = await #expect(throws: CredentialError.self) { _ = try await Sweeper.sweepServed(cloud, access) }
        #expect(error?.message.contains("a newer Tidemark has migrated the records") == true, "\(error?.message ?? "")")
        await opened.close()
    }
}

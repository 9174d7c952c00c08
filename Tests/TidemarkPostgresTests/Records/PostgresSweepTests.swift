import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkPostgres

/// Goal: one of several servers looks for what nobody needs, once in a period, and leaves no owner out. Method: two servers'
/// clouds over one database and the same contents; SQL that lets time pass.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct PostgresSweepTests {
    private static let container = "iCloud.org.example.journal"
    private static let period = Duration.seconds(3_600)

    /// The cloud of a server, and what has to be closed.
    ///
    /// - Parameter assets: The contents of assets; `nil` for a directory in the folder.
    private func cloud(
        _ records: RecordsFixture, _ folder: URL, _ assets: (any AssetStorage)? = nil
    ) async throws -> (EmbeddedCloud, PostgresListener) {
        let database = try records.fixture.other()
        let listener = try PostgresListener(database.configuration)
        let backend = try await PostgresCloudBackend(database, listener: listener) { container, environment in
            assets
                ?? EmbeddedCloud.sharedAssets(
                    in: folder.appendingPathComponent("assets/\(container)/\(environment.rawValue)", isDirectory: true))
        }
        return (EmbeddedCloud(in: backend, folder: folder), listener)
    }

    @Test func `the server whose turn it is removes contents that no record names, and the others look for none`() async throws {
        let (records, scratch) = (try await RecordsFixture(), try Scratch())
        let (one, listener) = try await cloud(records, scratch.url)
        let (two, other) = try await cloud(records, scratch.url)
        let account = try await one.addAccount("anna@example.org")
        try await one.open(Self.container, environment: .development)
        let (owner, zone) = (try one.database(.private, of: Self.container, account: account.id), CloudZoneID("Journal"))
        try await owner.modifyZones(saving: [zone], deleting: [])
        let content = Data("left".utf8)
        _ = try await owner.upload(content, of: AssetDigest.asset(of: content), at: 0, in: zone)
        let later = Date(timeIntervalSinceNow: 25.5 * 3_600)
        func removed(by cloud: EmbeddedCloud, at time: Date) async -> Int {
            let sweep = await cloud.sweepLeftovers(of: [Self.container], at: time, every: Self.period)
            #expect(sweep.failure == nil, "\(sweep.failure?.reason ?? "")")
            return sweep.removed
        }
        #expect(await removed(by: one, at: Date()) == 0)
        #expect(await removed(by: two, at: later) == 0)
        #expect(await removed(by: one, at: later) == 0)
        // A period later.
        try await records.fixture.sql("UPDATE tidemark_containers SET swept = swept - 3600000000")
        #expect(await removed(by: two, at: later) == 1)
        for listener in [listener, other] { await listener.close() }
    }

    private static func cancelCurrentTask() { withUnsafeCurrentTask { $0?.cancel() } }

    @Test func `a sweep that ends with its server goes on with that owner at another one, and the next begins with the first`()
        async throws
    {
        let (records, scratch) = (try await RecordsFixture(), try Scratch())
        let seen = LockedValue<[String]>([])
        let ending = LockedValue<String?>("_b")
        let assets = MemoryAssetStorage(
            ["_c": [:], "_a": [:], "_b": [:]],
            onSweep: { owner in
                seen.withLock { $0.append(owner) }
                // Its server ends.
                if ending.withLock({ $0 == owner }) { Self.cancelCurrentTask() }
            })
        let (one, listener) = try await cloud(records, scratch.url, assets)
        let (two, other) = try await cloud(records, scratch.url, assets)
        try await one.open(Self.container, environment: .development)
        /// The owners whose contents a server looks at when it is time to sweep.
        func owners(seenBy cloud: EmbeddedCloud) async -> [String] {
            _ = await Task { await cloud.sweepLeftovers(of: [Self.container], every: Self.period) }.value
            return seen.withLock { names in
                defer { names = [] }
                return names
            }
        }
        #expect(await owners(seenBy: one) == ["_a", "_b"])
        ending.withLock { $0 = nil }
        // The first server may still be at work.
        #expect(await owners(seenBy: two).isEmpty)
        // A quarter of an hour later.
        try await records.fixture.sql("UPDATE tidemark_containers SET sweep_renewed = sweep_renewed - 900000000")
        #expect(await owners(seenBy: two) == ["_b", "_c"])
        #expect(await owners(seenBy: one).isEmpty)
        // A period later.
        try await records.fixture.sql("UPDATE tidemark_containers SET swept = swept - 3600000000")
        #expect(await owners(seenBy: one) == ["_a", "_b", "_c"])
        for listener in [listener, other] { await listener.close() }
    }

    @Test func `one server has the turn to sweep while it renews it, and a clock that was set back blocks nobody`()
        async throws
    {
        let records = try await RecordsFixture()
        let storages = [try await records.storage(), try await records.storage(on: try records.fixture.other())]
        func claims() async throws -> [SweepClaim] {
            try await withThrowingTaskGroup(of: SweepClaim?.self) { group in
                for number in 0..<8 { group.addTask { try await storages[number % 2].claimSweep(every: Self.period) } }
                return try await group.reduce(into: [SweepClaim]()) { all, claim in
                    if let claim { all.append(claim) }
                }
            }
        }
        func set(_ change: String) async throws { try await records.fixture.sql("UPDATE tidemark_containers SET \(change)") }
        let first = try await claims()
        #expect(first.count == 1 && first.first?.last == nil)
        var claim = try #require(first.first)
        claim.last = "_a"
        let renewed = try #require(try await storages[0].renewSweep(claim))
        #expect(renewed.last == "_a")
        #expect(try await claims().isEmpty)
        // Its server says nothing for a quarter of an hour.
        try await set("sweep_renewed = sweep_renewed - 900000000")
        let next = try await claims()
        #expect(next.map(\.last) == ["_a"])
        #expect(try await storages[0].renewSweep(renewed) == nil)
        try await storages[0].endSweep(renewed)
        #expect(try await claims().isEmpty)
        try await storages[1].endSweep(try #require(next.first))
        #expect(try await claims().isEmpty)
        try await set("swept = swept - 3600000000")
        let later = try await claims()
        #expect(later.count == 1 && later.first?.last == nil)
        try await set("sweep_renewed = sweep_renewed + 86400000000")
        let behind = try await claims()
        #expect(behind.count == 1)
        try await storages[1].endSweep(try #require(behind.first))
        try await set("swept = swept + 86400000000")
        #expect(try await claims().count == 1)
        #expect(try await claims().isEmpty)
        // Another environment is swept by itself.
        #expect(try await records.storage(.production).claimSweep(every: Self.period) != nil)
    }
}

import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: a sweep does not keep writes waiting for long, and removes no content that a record needs by then. Method: contents in
/// memory, and a storage of rows that counts the requests of each transaction.
@Suite(.timeLimit(.minutes(30))) struct SweepTests {
    /// How many requests each transaction has waited for.
    private final class Requests: Sendable {
        private let counts = LockedValue<[Int]>([])

        func begin() { counts.withLock { $0.append(0) } }
        func add() { counts.withLock { $0[$0.count - 1] += 1 } }
        var most: Int { counts.withLock { $0.max() ?? 0 } }
        var all: Int { counts.withLock { $0.reduce(0, +) } }
    }

    /// Rows whose transactions are counted.
    private struct CountedStorage: CloudStorage {
        let storage: any CloudStorage
        let requests: Requests

        var key: [UInt8] { storage.key }
        var began: Int64 { storage.began }
        var commonChanges: Int64 { storage.commonChanges }

        func read<Answer: Sendable>(
            _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
        ) async throws(CloudError) -> Answer { try await storage.read(body) }

        func write<Answer: Sendable>(
            owners: WrittenOwners, _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
        ) async throws(CloudError) -> Answer {
            try await storage.write(owners: owners) { [requests] rows throws(CloudError) -> Answer in
                requests.begin()
                return try body(rows)
            }
        }

        func readInline<Answer>(
            _ body: (any CloudTransaction) throws(CloudError) -> Answer
        ) throws(CloudError) -> Answer? { try storage.readInline(body) }
    }

    private let tenants = try! Tenants()

    private static var aDayAhead: Date { Date(timeIntervalSinceNow: 26 * 3_600) }

    /// Some contents, in the order of their digests.
    private static func contents(_ numbers: Range<Int>) -> [CloudAsset] {
        numbers.map { AssetDigest.asset(of: Data("content \($0)".utf8)) }.sorted { $0.digest < $1.digest }
    }

    /// Times of contents, which are later than the beginning of the rows.
    private static func times(_ contents: [CloudAsset]) -> [String: Date] {
        Dictionary(uniqueKeysWithValues: contents.map { ($0.digest, Date(timeIntervalSinceNow: 1)) })
    }

    /// Adds the rows of contents that an owner has uploaded.
    private static func add(_ contents: [CloudAsset], of owner: String, to storage: any CloudStorage) async throws {
        try await storage.write(owners: [owner]) { rows throws(CloudError) in
            for asset in contents {
                try rows.addAsset(asset, owner: owner, payer: owner)
                try rows.addUsed(asset.size + StoredUpload.overhead, by: owner)
            }
        }
    }

    private static func engine(over storage: any CloudStorage, _ requests: Requests) -> CloudEngine {
        CloudEngine(
            storage: CountedStorage(storage: storage, requests: requests), limits: CloudLimits(), environment: .development,
            now: Timestamp.now, random: EmbeddedCloud.systemRandom, lanes: QueryLanes())
    }

    @Test func `a transaction of a sweep waits for few contents, and the sweep removes all unneeded ones`() async throws {
        let (owner, requests, storage) = ("_anna", Requests(), try tenants.inner().engine.storage)
        let (unnamed, strays) = (Self.contents(0..<45), Self.contents(100..<145))
        try await Self.add(unnamed, of: owner, to: storage)
        let assets = MemoryAssetStorage(
            [owner: Self.times(unnamed + strays)],
            onRequest: { _ in
                requests.add()
                return true
            })
        let engine = Self.engine(over: storage, requests)
        #expect(try await engine.sweep(owner, assets, at: Self.aDayAhead) == 90)
        // Each stray takes two requests: a question and a removal.
        #expect(requests.all == 180 && requests.most == 40)
        #expect(assets.contents(of: owner).isEmpty)
        let (left, used) = try await storage.read { rows throws(CloudError) in
            (try rows.assets(Set(unnamed.map(\.digest)), owner: owner), try rows.used(by: owner))
        }
        #expect(left.isEmpty && used == 0)
    }

    @Test func `if the asset storage stops answering, an owner waits for one content more, and the rest is removed later`()
        async throws
    {
        let (owner, requests, storage) = ("_anna", Requests(), try tenants.inner().engine.storage)
        let unnamed = Self.contents(0..<45)
        try await Self.add(unnamed, of: owner, to: storage)
        let silent = LockedValue<CloudAsset?>(unnamed[25])
        let assets = MemoryAssetStorage(
            [owner: Self.times(unnamed)],
            onRequest: { asset in
                requests.add()
                return silent.withLock { $0 != asset }
            })
        let engine = Self.engine(over: storage, requests)
        #expect(try await engine.sweep(owner, assets, at: Self.aDayAhead) == 25)
        #expect(requests.all == 26 + 25)
        #expect(assets.contents(of: owner) == Set(unnamed[25...].map(\.digest)))
        silent.withLock { $0 = nil }
        #expect(try await engine.sweep(owner, assets, at: Self.aDayAhead) == 20)
        #expect(assets.contents(of: owner).isEmpty)
    }

    @Test func `a content stays if a record comes to name it while a sweep looks at it`() async throws {
        let (database, storage) = (try await tenants.journal("anna"), try tenants.inner().engine.storage)
        let owner = try #require(try await database.account().userRecordName)
        let unnamed = Self.contents(0..<25)
        try await Self.add(unnamed, of: owner, to: storage)
        let failure = LockedValue<String?>(nil)
        let assets = MemoryAssetStorage(
            [owner: Self.times(unnamed)],
            onLook: { [tenants] in
                let record = tenants.record("a", ["image": .asset(unnamed[3])])
                do {
                    try await tenants.save([record], to: database)
                } catch {
                    failure.withLock { $0 = "\(error)" }
                }
            })
        let engine = Self.engine(over: storage, Requests())
        #expect(try await engine.sweep(owner, assets, at: Self.aDayAhead) == 24)
        let told = failure.withLock { $0 }
        #expect(told == nil)
        #expect(assets.contents(of: owner) == [unnamed[3].digest])
        let there = try await storage.read { rows throws(CloudError) in
            try rows.assets(Set(unnamed.map(\.digest)), owner: owner)
        }
        #expect(there == [unnamed[3].digest: unnamed[3].size])
    }

    @Test func `a sweep of very many contents asks whether to go on, and ends if not`() async throws {
        let (owner, storage) = ("_anna", try tenants.inner().engine.storage)
        let looks = LockedValue(0)
        // All contents are young.
        let assets = MemoryAssetStorage(
            [owner: Self.times(Self.contents(0..<4_500))], onLook: { looks.withLock { $0 += 1 } })
        let engine = Self.engine(over: storage, Requests())
        for (answers, expected) in [(0, 3), (1, 5), (9, 6)] {
            looks.withLock { $0 = 0 }
            let asked = LockedValue(0)
            let goesOn: @Sendable () async throws(CloudError) -> Bool = {
                asked.withLock { number in
                    number += 1
                    return number <= answers
                }
            }
            #expect(try await engine.sweep(owner, assets, at: Date(), while: goesOn) == 0)
            // It asks once for the rows, and once for each page of a thousand.
            let count = looks.withLock { $0 }
            #expect(count == expected)
        }
    }

    @Test func `a client that asks for many contents keeps the owner's writes waiting for few of them at a time`() async throws {
        let (owner, requests, storage) = ("_anna", Requests(), try tenants.inner().engine.storage)
        let contents = Self.contents(0..<45)
        try await Self.add(Array(contents.dropLast()), of: owner, to: storage)
        // All contents are old, so each is about to be removed.
        let old = contents.dropLast().map { ($0.digest, Date(timeIntervalSince1970: 1_000_000)) }
        let assets = MemoryAssetStorage(
            [owner: Dictionary(uniqueKeysWithValues: old)],
            onRequest: { _ in
                requests.add()
                return true
            })
        let missing = try await Self.engine(over: storage, requests)
            .missingAssets(
                contents, in: Tenants.zone, assets, CloudEngine.Caller(user: owner, scope: .private, quota: .max))
        #expect(missing == [contents[44]: 0])
        #expect(requests.all == 44 && requests.most == 20)
    }
}

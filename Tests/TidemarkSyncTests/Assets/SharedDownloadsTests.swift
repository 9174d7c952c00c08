import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkContainers
import TidemarkModel
import TidemarkStore
import TidemarkTransfer

@testable import TidemarkSync

/// Goal: the transfers of a container's two stores don't remove each other's folder of downloads, and one transfer fetches a
/// content once. Method: transfers by themselves, in a given order or at once.
@Suite(.timeLimit(.minutes(30))) struct SharedDownloadsTests {
    private let scratch: Scratch
    private let cloud: TestCloud
    private let container: ContainerDirectory
    /// The cloud's contents, in the zone of a device.
    private let assets: [CloudAsset]
    private let contents: [Data]
    private let zone = CloudZoneID(SyncConfiguration().zoneName)

    private var folder: URL { container.url.appendingPathComponent(ContainerContents.downloads, isDirectory: true) }

    init() async throws {
        scratch = try Scratch()
        cloud = try await TestCloud(scratch)
        contents = (0..<6).map { Picture.png($0) }
        assets = contents.map { AssetDigest.asset(of: $0) }
        for (index, content) in contents.enumerated() { try scratch.write(content, to: "pictures/\(index).png") }
        try scratch.writeLines(
            contents.indices.map { #"{"id": "r\#($0)", "image": "pictures/\#($0).png"}"# }, to: "manifest.jsonl")
        let source = scratch["a.tidemark"]
        _ = try await BulkImport(
            source: .file(scratch["manifest.jsonl"]), into: source, options: .destination { $0.assetFields = ["image"] }
        ).run()
        let device = try Device(source, database: cloud.database())
        guard try await device.engine.sync().isComplete else { throw CocoaError(.featureUnsupported) }
        container = try ContainerDirectory(openingOrCreatingAt: scratch["b.tidemark"])
    }

    private func transfer(_ scope: StoreScope) throws -> AssetTransfer {
        let store = try RecordStore(container: container, scope: scope, notifier: nil)
        return AssetTransfer(store: store, database: try cloud.database())
    }

    /// Fetches contents, and returns whether all of them are files of the container afterwards.
    private func fetches(_ numbers: [Int], with transfer: AssetTransfer) async throws -> Bool {
        let wanted = Set(numbers.map { assets[$0] })
        let names = try await transfer.download(wanted, zone: zone, limits: CloudLimits()) { _ in }.names
        for number in numbers {
            guard let name = names[assets[number].digest],
                try Data(contentsOf: AssetFiles.url(of: name, in: container.assets)) == contents[number]
            else { return false }
        }
        return true
    }

    /// Fetches contents one by one, and ends the use of the folder after each.
    private func fetchEach(_ numbers: [Int], with transfer: AssetTransfer) async throws {
        for number in numbers {
            #expect(try await fetches([number], with: transfer))
            await transfer.close()
        }
    }

    private var isThere: Bool { FileManager.default.fileExists(atPath: folder.path) }

    @Test func `a transfer continues when that of the other store ends, and the last one removes the folder`() async throws {
        let (own, shared) = (try transfer(.private), try transfer(.shared))
        #expect(try await fetches([0], with: own))
        #expect(try await fetches([1], with: shared))
        await shared.close()
        #expect(isThere)
        #expect(try await fetches([2], with: own))
        // The other transfer starts again, and is the last.
        #expect(try await fetches([3], with: shared))
        await own.close()
        #expect(isThere)
        #expect(try await fetches([4], with: shared))
        await shared.close()
        #expect(!isThere)
        // No use of the folder is left.
        await shared.close()
        #expect(try await fetches([5], with: own))
        #expect(isThere)
        await own.close()
        #expect(!isThere)
    }

    @Test func `two transfers at once fetch all contents`() async throws {
        for _ in 0..<4 {
            let (own, shared) = (try transfer(.private), try transfer(.shared))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (transfer, numbers) in [(own, [0, 1, 2]), (shared, [3, 4, 5])] {
                    group.addTask { try await fetchEach(numbers, with: transfer) }
                }
                try await group.waitForAll()
            }
            #expect(!isThere)
        }
    }

    @Test func `a content that two callers ask for at once is fetched once`() async throws {
        let store = try RecordStore(container: container, scope: .private, notifier: nil)
        let database = RecordingDatabase(try cloud.database())
        let transfer = AssetTransfer(store: store, database: database, policy: .onDemand)
        let names = try await transfer.download([assets[0]], zone: zone, limits: CloudLimits()) { _ in }.names
        await transfer.close()
        let content = try #require(try await store.remoteAssets(Set(names.values)).first)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                group.addTask { try await transfer.bring(content, zones: [zone], limits: CloudLimits()) { _ in } }
            }
            try await group.waitForAll()
        }
        #expect(database.downloads.count == 1)
        #expect(try Data(contentsOf: AssetFiles.url(of: content.id, in: container.assets)) == contents[0])
    }
}

import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
import TidemarkTransfer

/// Two devices of one person: the maker makes records with pictures, the viewer fetches them without contents.
struct LazyDevices {
    let scratch: Scratch
    let cloud: TestCloud
    let maker: Device
    let viewer: Device
    /// The viewer's requests to the cloud.
    let database: RecordingDatabase
    /// The maker's requests to the cloud.
    let makersDatabase: RecordingDatabase

    /// - Parameter assets: Which contents are fetched with the viewer's records.
    init(_ assets: AssetDownloads = .onDemand, policy: MergePolicy = .mergeByPropertyObjectTrump) async throws {
        scratch = try Scratch()
        cloud = try await TestCloud(scratch)
        makersDatabase = RecordingDatabase(try cloud.database())
        database = RecordingDatabase(try cloud.database())
        var configuration = SyncConfiguration()
        configuration.mergePolicy = { _ in policy }
        maker = try Device(scratch["maker.tidemark"], database: makersDatabase, configuration: configuration)
        configuration.assets = assets
        viewer = try Device(scratch["viewer.tidemark"], database: database, configuration: configuration)
    }

    /// Saves a record with a picture on a device, in a transaction that stores the picture.
    static func save(_ picture: Data, as name: String, on device: Device, caption: String = "made") async throws {
        let blobs = try BlobStore(container: device.container)
        let workers = try IngestWorkers(store: blobs, root: device.container.url, count: 1)
        let blob = try picture.withUnsafeBytes { try workers.ingest($0, name: "the picture") }
        try blobs.sync()
        try await device.store.applySaving(
            name, ["image": .asset(blob.id), "caption": .string(caption)], blobs: [blob])
        blobs.close()
    }

    /// Synchronises the maker, then the viewer.
    func sync() async throws {
        #expect(try await maker.engine.sync().isComplete)
        #expect(try await viewer.engine.sync().isComplete)
    }

    var access: AssetAccess { AssetAccess(viewer.container, engines: [viewer.engine], stores: [viewer.store]) }

    func asset(_ name: String, on device: Device? = nil) throws -> String {
        guard case .asset(let id)? = try (device ?? viewer).records()[name]?["image"] else {
            throw StoreError(.notFound, "\(name) has no picture")
        }
        return id
    }

    func isHere(_ id: String) -> Bool { AssetFiles.isHere(id, in: viewer.container.assets) }

    func content(_ id: String) throws -> Data { try Data(contentsOf: AssetFiles.url(of: id, in: viewer.container.assets)) }

    func verified() throws -> VerificationReport {
        let report = try StoreVerification(of: viewer.container).run()
        #expect(report.problems == [])
        return report
    }

    static func picture(_ number: Int, bytes: Int = 0) -> Data {
        Picture.png(number) + Data((0..<bytes).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) })
    }
}

extension RecordStore {
    fileprivate func applySaving(_ name: String, _ values: [String: FieldValue], blobs: [BlobStore.Blob]) throws {
        let schema = RecordTypeSchema(
            name: "Destination", fields: values.sorted { $0.key < $1.key }.map { .init(name: $0.key, type: $0.value.type) })
        _ = try save(
            [
                RecordEdit(
                    record: RecordName(type: "Destination", name: name), base: .any, values: values, fields: Set(values.keys))
            ], schemas: [schema], blobs: blobs, author: Device.author, policy: { _ in .mergeByPropertyObjectTrump },
            check: { _ in })
    }
}

import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkContainers
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
import TidemarkTesting
import TidemarkTransfer

/// Goal: pictures are uploaded before their records, once, and continue after an interruption. Method: real files through a real
/// cloud, which fails in between.
@Suite(.timeLimit(.minutes(30))) struct AssetSyncTests {
    /// Pictures of some MB that differ, as records of a container.
    private func importing(_ scratch: Scratch, into container: URL, pictures: [Data]) async throws {
        for (index, picture) in pictures.enumerated() { try scratch.write(picture, to: "pictures/\(index).png") }
        try scratch.writeLines(
            pictures.indices.map { #"{"id": "r\#($0)", "image": "pictures/\#($0).png"}"# }, to: "manifest.jsonl")
        _ = try await BulkImport(
            source: .file(scratch["manifest.jsonl"]), into: container, options: .destination { $0.assetFields = ["image"] }
        ).run()
    }

    private func large(_ number: Int, bytes: Int) -> Data {
        Picture.png(number) + Data((0..<bytes).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) })
    }

    @Test func `pictures arrive unchanged, and equal ones are uploaded once`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        try await importing(
            scratch, into: scratch["a.tidemark"],
            pictures: (0..<6).map { Picture.png($0) } + [Picture.png(1), large(9, bytes: 9_000_000)])
        let recording = RecordingDatabase(try cloud.database())
        let a = try Device(scratch["a.tidemark"], database: recording)
        #expect(try await a.engine.sync().isComplete)
        // The six small pictures have a piece each, the large one has three.
        #expect(recording.uploads == 6 + 3)
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        #expect(try await b.engine.sync().isComplete)
        #expect(try b.records() == a.records())
        #expect(try StoreVerification(of: b.container).run().problems.isEmpty)
        for record in try b.records().values {
            guard case .asset(let id) = record["image"] else { continue }
            let (one, other) = (a.store.file(of: id), b.store.file(of: id))
            #expect(try Data(contentsOf: #require(one)) == Data(contentsOf: #require(other)))
        }
        #expect(!FileManager.default.fileExists(atPath: b.container.url.appendingPathComponent("downloads").path))
        // A known picture is not uploaded again.
        try await a.set("again", ["image": try a.records()["r3"]?["image"]])
        #expect(try await a.engine.sync().isComplete)
        #expect(recording.uploads == 6 + 3)
    }

    @Test func `a content that can't be fetched does not keep other records away, and is fetched later`() async throws {
        let devices = try await LazyDevices(.all)
        try await LazyDevices.save(LazyDevices.picture(1), as: "picture", on: devices.maker)
        try await devices.maker.set("note", ["caption": .string("without a picture")])
        #expect(try await devices.maker.engine.sync().isComplete)
        // As with a server that redirects to a forbidden address.
        devices.database.downloadsFail(with: .permissionFailure)
        let report = try await devices.viewer.engine.sync()
        #expect(report.deferred == 1)
        #expect(try devices.viewer.records().keys.sorted() == ["note", "picture"])
        #expect(try devices.viewer.records()["picture"]?["image"] == nil)
        devices.database.downloadsFail(with: nil)
        #expect(try await devices.viewer.engine.sync().deferred == 0)
        #expect(try devices.viewer.records().keys.sorted() == ["note", "picture"])
        #expect(try devices.isHere(devices.asset("picture")))
    }

    @Test func `a content that can't be fetched is reported with its field and the reason, until it is fetched`() async throws {
        let devices = try await LazyDevices(.all)
        try await LazyDevices.save(LazyDevices.picture(1), as: "picture", on: devices.maker)
        #expect(try await devices.maker.engine.sync().isComplete)
        let content = AssetDigest.asset(of: LazyDevices.picture(1))
        let user = try #require(try await devices.cloud.database().account().userRecordName)
        let folder = "cloud/containers/\(TestCloud.container)/development/assets/\(user)"
        let place = "\(folder)/\(content.digest.prefix(2))/\(content.digest)"
        try FileManager.default.moveItem(at: devices.scratch[place], to: devices.scratch["lost"])
        #expect(try await devices.viewer.engine.sync().deferred == 1)
        let deferred = try #require(try devices.viewer.reader().deferredRecords().first)
        #expect(deferred.name == "picture" && deferred.reason == .asset)
        let missing = try deferred.missingContents()
        #expect(missing.map(\.field) == ["image"] && missing.map(\.code) == [.assetNotAvailable])
        #expect(missing.first?.reason == "the asset \(content.digest) is not there")
        // The reason is that of the last try, and not a field of the record.
        devices.database.downloadsFail(with: .permissionFailure)
        #expect(try await devices.viewer.engine.sync().deferred == 1)
        let again = try #require(try devices.viewer.reader().deferredRecords().first)
        #expect(try again.missingContents().map(\.code) == [.permissionFailure])
        #expect(try again.missingContents().first?.reason == "as it was told")
        devices.database.downloadsFail(with: nil)
        try FileManager.default.moveItem(at: devices.scratch["lost"], to: devices.scratch[place])
        #expect(try await devices.viewer.engine.sync().isComplete)
        #expect(try devices.viewer.reader().deferredRecords().isEmpty)
        #expect(try devices.viewer.records() == devices.maker.records())
    }

    @Test func `a content of the cloud's limit is uploaded, and one with a byte more is not sent`() async throws {
        let devices = try await LazyDevices(.all)
        let picture = LazyDevices.picture(1, bytes: 1000)
        try await LazyDevices.save(picture, as: "r", on: devices.maker)
        var limits = CloudLimits()
        limits.bytesPerAsset = Int64(picture.count) - 1
        devices.makersDatabase.announces(limits)
        #expect(try await devices.maker.engine.sync().exported == 0)
        #expect(try devices.maker.reader().syncIssues(record: "r").first?.code == "assetNotAvailable")
        #expect(devices.makersDatabase.uploads == 0)
        limits.bytesPerAsset = Int64(picture.count)
        devices.makersDatabase.announces(limits)
        try await devices.maker.set("r", ["caption": .string("again")])
        try await devices.sync()
        #expect(devices.makersDatabase.uploads == 1)
        #expect(try devices.isHere(devices.asset("r")))
    }

    @Test func `an interrupted upload or download continues where it was`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        try await importing(scratch, into: scratch["a.tidemark"], pictures: [large(1, bytes: 17_000_000)])
        let faulty = FaultyDatabase(try cloud.database(), plan: FaultPlan(seed: 3))
        let recording = RecordingDatabase(faulty)
        let a = try Device(scratch["a.tidemark"], database: recording)
        // Account, zone, first page; the missing contents; two pieces are uploaded, the third fails.
        let down = Array(repeating: CloudFault.networkUnavailable, count: 100)
        faulty.inject([.slow, .slow, .slow, .slow, .slow, .slow] + down)
        let first = try await a.engine.sync(patience: .zero)
        #expect(first.outbox.pending == 1)
        faulty.calm()
        let before = recording.uploads
        #expect(try await a.engine.sync().isComplete)
        #expect(recording.uploads < before + 5, "\(before) and \(recording.uploads)")
        let other = FaultyDatabase(try cloud.database(), plan: FaultPlan(seed: 4))
        let b = try Device(scratch["b.tidemark"], database: other)
        other.inject([.slow, .slow, .slow, .slow, .slow, .lostReply] + down)
        _ = try await b.engine.sync(patience: .zero)
        let parts = try FileManager.default.contentsOfDirectory(
            atPath: b.container.url.appendingPathComponent("downloads").path)
        #expect(parts.count == 1)
        other.calm()
        #expect(try await b.engine.sync().isComplete)
        #expect(try b.records() == a.records())
        #expect(try StoreVerification(of: b.container).run().problems.isEmpty)
    }

    @Test func `a download with a wrong content is not stored, and is repeated`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let content = Picture.png(1)
        try await importing(scratch, into: scratch["a.tidemark"], pictures: [content])
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        #expect(try await a.engine.sync().isComplete)
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        let downloads = b.container.url.appendingPathComponent("downloads")
        try FileManager.default.createDirectory(at: downloads, withIntermediateDirectories: true)
        try Data(repeating: 7, count: content.count).write(
            to: downloads.appendingPathComponent(AssetDigest.asset(of: content).digest))
        #expect(try await b.engine.sync().isComplete)
        guard case .asset(let id) = try #require(b.records()["r0"]?["image"]) else { throw CocoaError(.coderInvalidValue) }
        #expect(try Data(contentsOf: #require(b.store.file(of: id))) == content)
    }

    @Test func `a damaged picture is not sent, other records are, and it is sent once it is whole again`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        try await importing(scratch, into: scratch["a.tidemark"], pictures: (0..<3).map { Picture.png($0) })
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        guard case .asset(let id)? = try a.records()["r1"]?["image"], let file = a.store.file(of: id) else { return }
        let whole = try Data(contentsOf: file)
        var damaged = whole
        damaged[20] ^= 1
        chmod(file.path, 0o600)
        try damaged.write(to: file)
        let report = try await a.engine.sync()
        #expect(report.exported == 2)
        #expect(try a.reader().syncIssues(record: "r1").first?.code == "assetNotAvailable")
        try whole.write(to: file)
        try await a.set("r1", ["caption": .string("again")])
        #expect(try await a.engine.sync().isComplete)
    }

    @Test func `an upload that was interrupted between its last piece and its end is finished`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        try await importing(scratch, into: scratch["a.tidemark"], pictures: [Picture.png(1)])
        let database = try cloud.database()
        let a = try Device(scratch["a.tidemark"], database: database)
        guard case .asset(let id)? = try a.records()["r0"]?["image"], let file = a.store.file(of: id) else { return }
        let user = try #require(try await database.account().userRecordName)
        let folder = "cloud/containers/\(TestCloud.container)/development/assets/\(user)/uploads"
        try scratch.write(Data(contentsOf: file), to: "\(folder)/\(AssetDigest.asset(of: Data(contentsOf: file)).digest)")
        #expect(try await a.engine.sync().isComplete)
    }

    /// A device that uploads a picture of 2,500,000 bytes in three pieces; something happens before each of them.
    private func upload(
        _ happens: @escaping @Sendable (_ offset: Int64, _ content: Data, _ cloud: any CloudDatabase, _ part: URL) async -> Void
    ) async throws -> (sent: Int, arrived: Data?) {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let content = large(1, bytes: 2_500_000)
        try await importing(scratch, into: scratch["a.tidemark"], pictures: [content])
        let database = try cloud.database()
        let recording = RecordingDatabase(database)
        var limits = CloudLimits()
        limits.bytesPerAssetPiece = 1_000_000
        recording.announces(limits)
        let user = try #require(try await database.account().userRecordName)
        let digest = AssetDigest.asset(of: content).digest
        let part = scratch["cloud/containers/\(TestCloud.container)/development/assets/\(user)/uploads/\(digest)"]
        recording.beforeUpload { await happens($0, content, database, part) }
        let a = try Device(scratch["a.tidemark"], database: recording)
        #expect(try await a.engine.sync(patience: .zero).isComplete)
        #expect(try a.reader().syncIssues(record: "r0") == [])
        let b = try Device(scratch["b.tidemark"], database: database)
        #expect(try await b.engine.sync().isComplete)
        guard case .asset(let id)? = try b.records()["r0"]?["image"] else { return (recording.uploads, nil) }
        return (recording.uploads, try b.store.file(of: id).map { try Data(contentsOf: $0) })
    }

    @Test(arguments: [1_000_000, 1_300_000, 2_400_000])
    func `pieces without an answer may arrive after the device asks for the offset`(_ count: Int) async throws {
        let (sent, arrived) = try await upload { offset, content, cloud, _ in
            guard offset == 0 else { return }
            for start in stride(from: 0, to: count, by: 1_000_000) {
                let piece = content[start..<min(count, start + 1_000_000)]
                let asset = AssetDigest.asset(of: content)
                _ = try? await cloud.upload(piece, of: asset, at: Int64(start), in: CloudZoneID("TidemarkZone"))
            }
        }
        #expect(arrived == large(1, bytes: 2_500_000))
        #expect(sent == (count > 1_500_000 ? 2 : 3))
    }

    @Test func `a cloud that has lost pieces of an upload gets them again`() async throws {
        let isLost = LockedValue(false)
        let (sent, arrived) = try await upload { offset, _, _, part in
            guard offset == 1_000_000, !isLost.withLock({ $0 }) else { return }
            isLost.withLock { $0 = true }
            try? FileManager.default.removeItem(at: part)
        }
        #expect(isLost.withLock { $0 })
        #expect(arrived == large(1, bytes: 2_500_000))
        #expect(sent == 5)
    }

    @Test func `downloads of one store are not removed when the container's other store is set aside`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let content = large(1, bytes: 9_000_000)
        try await importing(scratch, into: scratch["a.tidemark"], pictures: [content])
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        #expect(try await a.engine.sync().isComplete)
        let recording = RecordingDatabase(try cloud.database())
        let b = try Device(scratch["b.tidemark"], database: recording)
        let other = try RecordStore(container: b.container, scope: .shared, notifier: nil, now: SyncEnvironment.system.now)
        let downloads = b.container.url.appendingPathComponent("downloads")
        let names = LockedValue<[[String]]>([])
        recording.beforeDownload { piece in
            guard piece.offset > 0 else { return }
            // The shared store has a partial download, too, from an account before.
            _ = try? Data(count: 8).write(to: downloads.appendingPathComponent("\(piece.digest).shared"))
            try? await other.wipe()
            names.withLock { $0.append((try? FileManager.default.contentsOfDirectory(atPath: downloads.path)) ?? []) }
        }
        #expect(try await b.engine.sync().isComplete)
        let digest = AssetDigest.asset(of: content).digest
        #expect(names.withLock(\.self) == [[digest], [digest]])
        #expect(recording.downloads.count { $0.offset == 0 } == 1)
        guard case .asset(let id)? = try b.records()["r0"]?["image"] else { throw CocoaError(.coderInvalidValue) }
        #expect(try Data(contentsOf: #require(b.store.file(of: id))) == content)
    }

    @Test func `a store that is set aside removes its partial downloads`() async throws {
        let scratch = try Scratch()
        let device = try Device(scratch["a.tidemark"], database: await TestCloud(scratch).database())
        let downloads = device.container.url.appendingPathComponent("downloads")
        try FileManager.default.createDirectory(at: downloads, withIntermediateDirectories: true)
        for name in ["abc", "abc.shared"] { try Data(count: 8).write(to: downloads.appendingPathComponent(name)) }
        try await device.store.wipe()
        #expect(try FileManager.default.contentsOfDirectory(atPath: downloads.path) == ["abc.shared"])
    }
}

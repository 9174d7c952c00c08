import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkCloud
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: a record whose content is not here can be used like any other, and its content is fetched on request. Method: two
/// devices over one cloud, one of which fetches records without contents.
@Suite(.timeLimit(.minutes(30))) struct OnDemandAssetTests {
    @Test func `a record without its content is not damaged, and an edit of it neither loses nor sends the content`() async throws
    {
        let devices = try await LazyDevices()
        for number in 0..<3 {
            try await LazyDevices.save(LazyDevices.picture(number), as: "r\(number)", on: devices.maker)
        }
        try await devices.sync()
        #expect(devices.database.downloads == [])
        #expect(try devices.viewer.records().count == 3)
        #expect(try !devices.isHere(devices.asset("r1")))
        let report = try devices.verified()
        #expect(report.notDownloaded == 3 && report.assets == 3)
        #expect(report.notDownloadedBytes == (0..<3).reduce(0) { $0 + Int64(LazyDevices.picture($1).count) })

        let before = try devices.maker.records()
        try await devices.viewer.set("r1", ["caption": .string("edited without the picture")])
        #expect(try await devices.viewer.engine.sync().exported == 1)
        #expect(devices.database.uploads == 0 && devices.database.downloads == [])
        _ = try await devices.maker.engine.sync()
        var expected = before
        expected["r1"]?["caption"] = .string("edited without the picture")
        #expect(try devices.maker.records() == expected)
        // A whole record that is sent again names its content, too.
        try await devices.viewer.set("copy", ["image": .asset(devices.asset("r2"))])
        #expect(try await devices.viewer.engine.sync().isComplete)
        #expect(devices.database.uploads == 0)
        _ = try await devices.maker.engine.sync()
        #expect(try devices.asset("copy", on: devices.maker) == devices.asset("r2", on: devices.maker))
        #expect(try StoreVerification(of: devices.maker.container).run().problems == [])
        _ = try devices.verified()
    }

    @Test func `contents up to a size are fetched with their records, and others are not`() async throws {
        let devices = try await LazyDevices(.upTo(bytes: 10_000))
        try await LazyDevices.save(LazyDevices.picture(1), as: "small", on: devices.maker)
        try await LazyDevices.save(LazyDevices.picture(2, bytes: 20_000), as: "large", on: devices.maker)
        try await devices.sync()
        #expect(try devices.isHere(devices.asset("small")) && !devices.isHere(devices.asset("large")))
        #expect(try devices.verified().notDownloaded == 1)
    }

    @Test func `a content above the cloud's limit is left out of its record until the limit is raised`() async throws {
        let devices = try await LazyDevices()
        let picture = LazyDevices.picture(1, bytes: 1000)
        try await LazyDevices.save(picture, as: "r", on: devices.maker)
        #expect(try await devices.maker.engine.sync().isComplete)
        var limits = CloudLimits()
        limits.bytesPerAsset = Int64(picture.count) - 1
        devices.database.announces(limits)
        #expect(try await devices.viewer.engine.sync().deferred == 1)
        #expect(try devices.viewer.reader().deferredRecords().map(\.reason) == [.asset])
        #expect(try devices.viewer.records()["r"]?["image"] == nil && devices.verified().notDownloaded == 0)
        limits.bytesPerAsset = Int64(picture.count)
        devices.database.announces(limits)
        #expect(try await devices.viewer.engine.sync().isComplete)
        #expect(try !devices.isHere(devices.asset("r")) && devices.verified().notDownloaded == 1)
        #expect(devices.database.downloads == [])
    }

    @Test func `a content is fetched on request, once, and unchanged`() async throws {
        let devices = try await LazyDevices()
        let picture = LazyDevices.picture(1, bytes: 9_000_000)
        try await LazyDevices.save(picture, as: "r", on: devices.maker)
        try await devices.sync()
        let id = try devices.asset("r")
        let bytes = LockedValue<[Int64]>([])
        try await devices.access.download([id], priority: .userInitiated) { done in bytes.withLock { $0.append(done.bytes) } }
        #expect(try devices.content(id) == picture)
        #expect(bytes.withLock { $0 == $0.sorted() && $0.last == Int64(picture.count) && $0.count > 2 })
        #expect(try devices.asset("r") == id)
        let report = try devices.verified()
        #expect(report.notDownloaded == 0)
        // Each byte was requested once, and none behind the end.
        #expect(devices.database.downloads.reduce(0) { $0 + $1.count } == picture.count)
        let fetched = devices.database.downloads.count
        try await devices.access.download([id], priority: .userInitiated, progress: nil)
        #expect(devices.database.downloads.count == fetched)
        #expect(!FileManager.default.fileExists(atPath: devices.viewer.container.url.path + "/downloads/\(id)"))
        // The kind of image is known by now.
        #expect(try devices.viewer.reader().asset(id).pathExtension == "png")
    }

    @Test func `a cancelled download continues where it stopped`() async throws {
        let devices = try await LazyDevices()
        let picture = LazyDevices.picture(1, bytes: 17_000_000)
        try await LazyDevices.save(picture, as: "r", on: devices.maker)
        try await devices.sync()
        let id = try devices.asset("r")
        let (third, reached) = AsyncStream.makeStream(of: Void.self)
        let (release, go) = AsyncStream.makeStream(of: Void.self)
        let count = LockedValue(0)
        devices.database.beforeDownload { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            guard number == 3 else { return }
            reached.yield()
            for await _ in release { break }
        }
        let access = devices.access
        let download = Task { try await access.download([id], priority: .userInitiated, progress: nil) }
        for await _ in third { break }
        download.cancel()
        await #expect(throws: CancellationError.self) { try await download.value }
        go.yield()
        devices.database.beforeDownload(nil)
        #expect(!devices.isHere(id))
        try await access.download([id], priority: .userInitiated, progress: nil)
        #expect(try devices.content(id) == picture)
        // No piece before the third was fetched again.
        let offsets = devices.database.downloads.map(\.offset)
        #expect(offsets.count { $0 == 0 } == 1, "\(offsets)")
        _ = try devices.verified()
    }

    @Test func `two requests for one content share its transfer, which continues if one of them is cancelled`() async throws {
        let devices = try await LazyDevices()
        try await LazyDevices.save(LazyDevices.picture(1), as: "r", on: devices.maker)
        try await devices.sync()
        let id = try devices.asset("r")
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (release, go) = AsyncStream.makeStream(of: Void.self)
        devices.database.beforeDownload { _ in
            begin.yield()
            for await _ in release { break }
        }
        let access = devices.access
        let first = Task { try await access.download([id], priority: .utility, progress: nil) }
        for await _ in begun { break }
        let second = Task { try await access.download([id], priority: .userInitiated, progress: nil) }
        // The second request joins once it has asked the store, which it does before it can be cancelled below.
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        devices.database.beforeDownload(nil)
        go.finish()
        try await second.value
        #expect(devices.isHere(id))
        #expect(devices.database.downloads.count <= 2)
    }

    @Test func `a person's request does not wait for prefetches`() async throws {
        let devices = try await LazyDevices()
        for number in 0..<8 { try await LazyDevices.save(LazyDevices.picture(number), as: "r\(number)", on: devices.maker) }
        try await devices.sync()
        let ids = try (0..<8).map { try devices.asset("r\($0)") }
        let digests = Dictionary(
            try await devices.viewer.store.remoteAssets(Set(ids)).map { ($0.sha256, $0.id) }, uniquingKeysWith: { $1 })
        let (asked, ask) = AsyncStream.makeStream(of: String.self)
        let (release, go) = AsyncStream.makeStream(of: Void.self)
        let wanted = ids[7]
        devices.database.beforeDownload { download in
            ask.yield(download.digest)
            // Prefetches wait until the content that the person waits for has arrived.
            if digests[download.digest] != wanted { for await _ in release { break } }
        }
        let access = devices.access
        let prefetch = Task { try await access.download(Set(ids.dropLast()), priority: .utility, progress: nil) }
        var hanging = 0
        for await _ in asked {
            hanging += 1
            if hanging == 3 { break }
        }
        try await access.download([wanted], priority: .userInitiated, progress: nil)
        #expect(devices.isHere(wanted))
        #expect(ids.dropLast().allSatisfy { !devices.isHere($0) })
        devices.database.beforeDownload(nil)
        go.finish()
        try await prefetch.value
        #expect(ids.allSatisfy { devices.isHere($0) })
    }

    @Test func `a person's request for a content that waits as a prefetch is served before the prefetches end`() async throws {
        let devices = try await LazyDevices()
        for number in 0..<8 { try await LazyDevices.save(LazyDevices.picture(number), as: "r\(number)", on: devices.maker) }
        try await devices.sync()
        let ids = try (0..<8).map { try devices.asset("r\($0)") }
        let digests = Dictionary(
            try await devices.viewer.store.remoteAssets(Set(ids)).map { ($0.sha256, $0.id) }, uniquingKeysWith: { $1 })
        let (asked, ask) = AsyncStream.makeStream(of: String.self)
        let (release, go) = AsyncStream.makeStream(of: Void.self)
        let wanted = LockedValue<String?>(nil)
        devices.database.beforeDownload { download in
            ask.yield(download.digest)
            if digests[download.digest] != wanted.withLock(\.self) { for await _ in release { break } }
        }
        let access = devices.access
        let prefetch = Task { try await access.download(Set(ids), priority: .utility, progress: nil) }
        var hanging: Set<String> = []
        for await digest in asked {
            if let id = digests[digest] { hanging.insert(id) }
            if hanging.count == 3 { break }
        }
        let waiting = try #require(ids.first { !hanging.contains($0) })
        wanted.withLock { $0 = waiting }
        try await access.download([waiting], priority: .userInitiated, progress: nil)
        #expect(devices.isHere(waiting))
        devices.database.beforeDownload(nil)
        go.finish()
        try await prefetch.value
    }

    @Test func `a content that a synchronisation has registered for coming records is not removed`() async throws {
        let devices = try await LazyDevices(.upTo(bytes: 10_000))
        try await LazyDevices.save(LazyDevices.picture(1), as: "small", on: devices.maker)
        try await LazyDevices.save(LazyDevices.picture(2, bytes: 20_000), as: "large", on: devices.maker)
        _ = try await devices.maker.engine.sync()
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (release, go) = AsyncStream.makeStream(of: Void.self)
        devices.database.beforeDownload { _ in
            begin.yield()
            for await _ in release { break }
        }
        let engine = devices.viewer.engine
        let sync = Task { try await engine.sync() }
        for await _ in begun { break }
        let cleaning = AssetCleaning(devices.viewer.container, stores: [devices.viewer.store])
        await #expect(throws: StoreError(.busy, "")) { try await cleaning.removeUnnamed() }
        devices.database.beforeDownload(nil)
        go.finish()
        _ = try await sync.value
        #expect(try devices.verified().notDownloaded == 1)
        try await devices.access.download([devices.asset("large")], priority: .userInitiated, progress: nil)
        #expect(try devices.content(devices.asset("large")) == LazyDevices.picture(2, bytes: 20_000))
    }

    @Test func `a content stays if its record was edited or deleted since it was chosen to be evicted`() async throws {
        let devices = try await LazyDevices(.all)
        for number in 0..<3 { try await LazyDevices.save(LazyDevices.picture(number), as: "r\(number)", on: devices.maker) }
        try await devices.sync()
        let ids = try (0..<3).map { try devices.asset("r\($0)") }
        try await devices.viewer.set("r0", ["caption": .string("edited, and not sent")])
        try await devices.viewer.delete("r1")
        let removal = try await AssetCleaning(devices.viewer.container, stores: [devices.viewer.store]).evict(Set(ids))
        #expect(removal.assets == 1 && removal.kept == 2 && removal.bytes == Int64(LazyDevices.picture(2).count))
        #expect(ids.map { devices.isHere($0) } == [true, true, false])
    }

    @Test func `a content that the cloud has lost is told apart from a cloud that is away`() async throws {
        let devices = try await LazyDevices()
        for name in ["gone", "there"] {
            try await LazyDevices.save(LazyDevices.picture(name.count), as: name, on: devices.maker)
        }
        try await devices.sync()
        let (gone, there) = (try devices.asset("gone"), try devices.asset("there"))
        devices.database.downloadsFail(with: .networkUnavailable)
        await #expect(throws: CloudError(.networkUnavailable, "")) {
            try await devices.access.download([there], priority: .userInitiated, progress: nil)
        }
        devices.database.downloadsFail(with: nil)
        try await devices.maker.delete("gone")
        _ = try await devices.maker.engine.sync()
        // A lost content does not prevent others from being fetched.
        do {
            try await devices.access.download([gone, there], priority: .userInitiated, progress: nil)
            Issue.record("it has come")
        } catch let error as CloudError {
            #expect(error.code == .assetNotAvailable && error.reason.contains(gone))
        }
        #expect(devices.isHere(there) && !devices.isHere(gone))
        await #expect(throws: StoreError(.notFound, "")) {
            try await devices.access.download(["no asset"], priority: .userInitiated, progress: nil)
        }
        // The record is deleted here as well, and history names a content that was never here, which is no damage.
        _ = try await devices.viewer.engine.sync()
        #expect(try devices.verified().notDownloaded == 1)
    }

    @Test func `a content that is not here, replaced here and changed elsewhere is merged like any other value`() async throws {
        let devices = try await LazyDevices(policy: .mergeByPropertyStoreTrump)
        for name in ["both", "theirs", "mine"] {
            try await LazyDevices.save(LazyDevices.picture(1), as: name, on: devices.maker)
        }
        try await devices.sync()
        try await LazyDevices.save(LazyDevices.picture(2), as: "both", on: devices.maker, caption: "made")
        try await LazyDevices.save(LazyDevices.picture(3), as: "theirs", on: devices.maker, caption: "made")
        _ = try await devices.maker.engine.sync()
        try await LazyDevices.save(LazyDevices.picture(4), as: "both", on: devices.viewer, caption: "made")
        try await LazyDevices.save(LazyDevices.picture(5), as: "mine", on: devices.viewer, caption: "made")
        try await devices.viewer.set("theirs", ["caption": .string("edited")])
        #expect(try await devices.viewer.engine.sync().isComplete)
        _ = try await devices.maker.engine.sync()
        _ = try await devices.viewer.engine.sync()
        // Only the record whose picture both devices have replaced was in conflict.
        #expect(try devices.viewer.reader().conflicts(limit: 10).map(\.record) == ["both"])
        func contents(_ device: Device) async throws -> [String: String] {
            var digests: [String: String] = [:]
            for name in ["both", "theirs", "mine"] {
                let id = try devices.asset(name, on: device)
                digests[name] = try await device.store.remoteAssets([id]).first?.sha256
            }
            return digests
        }
        let digest = { (number: Int) in AssetDigest.asset(of: LazyDevices.picture(number)).digest }
        #expect(try await contents(devices.maker) == ["both": digest(2), "theirs": digest(3), "mine": digest(5)])
        #expect(try await contents(devices.viewer) == contents(devices.maker))
        _ = try devices.verified()
    }

    @Test
    func `a content that is here as a file, and was never sent, is recognised when a record with it arrives`() async throws {
        let devices = try await LazyDevices()
        let picture = LazyDevices.picture(1)
        try await LazyDevices.save(picture, as: "mine", on: devices.viewer)
        try await LazyDevices.save(picture, as: "theirs", on: devices.maker)
        #expect(try await devices.maker.engine.sync().isComplete)
        #expect(try await devices.viewer.engine.sync().isComplete)
        #expect(try devices.asset("theirs") == devices.asset("mine"))
        #expect(try devices.verified().notDownloaded == 0)
        #expect(devices.database.downloads == [])
    }

    @Test func `a content that arrives damaged is refused, and a damaged file is found and evicted`() async throws {
        let devices = try await LazyDevices()
        try await LazyDevices.save(LazyDevices.picture(1), as: "r", on: devices.maker)
        try await devices.sync()
        let id = try devices.asset("r")
        // The partial file of an interrupted download is not the beginning of the content.
        let digest = AssetDigest.asset(of: LazyDevices.picture(1)).digest
        try FileManager.default.createDirectory(
            at: devices.viewer.container.url.appendingPathComponent("downloads"), withIntermediateDirectories: true)
        try Data("something else".utf8).write(to: devices.viewer.container.url.appendingPathComponent("downloads/\(digest)"))
        try await devices.access.download([id], priority: .userInitiated, progress: nil)
        #expect(try devices.content(id) == LazyDevices.picture(1))
        let file = AssetFiles.url(of: id, in: devices.viewer.container.assets)
        var damaged = try Data(contentsOf: file)
        damaged[10] ^= 1
        try damaged.write(to: file)
        #expect(try StoreVerification(of: devices.viewer.container).run().problems.map(\.kind) == [.assetDamaged])
        #expect(try await devices.access.evict([id]).assets == 1)
        try await devices.access.download([id], priority: .userInitiated, progress: nil)
        #expect(try devices.content(id) == LazyDevices.picture(1))
        _ = try devices.verified()
    }

    @Test func `a damaged file that gets a content's name during its download is replaced`() async throws {
        let devices = try await LazyDevices()
        let picture = LazyDevices.picture(1)
        try await LazyDevices.save(picture, as: "r", on: devices.maker)
        try await devices.sync()
        let id = try devices.asset("r")
        let place = AssetFiles.url(of: id, in: devices.viewer.container.assets)
        devices.database.beforeDownload { _ in
            try? FileManager.default.createDirectory(at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
            try? Data(repeating: 7, count: picture.count).write(to: place)
        }
        try await devices.access.download([id], priority: .userInitiated, progress: nil)
        #expect(try devices.content(id) == picture)
        #expect(try devices.verified().notDownloaded == 0)
    }

    @Test func `a content that does not match its identifier never gets its name`() async throws {
        let devices = try await LazyDevices()
        let contents = [Data(repeating: 1, count: 5_000), Data(repeating: 2, count: 5_000)]
        for (number, content) in contents.enumerated() {
            try await LazyDevices.save(content, as: "r\(number)", on: devices.maker)
        }
        #expect(try await devices.maker.engine.sync().isComplete)
        let id = try devices.asset("r0", on: devices.maker)
        let access = AssetAccess(devices.maker.container, engines: [devices.maker.engine], stores: [devices.maker.store])
        #expect(try await access.evict([id]).assets == 1)
        // The store's list is damaged: the content has the SHA-256 of the other one.
        let other = AssetDigest.asset(of: contents[1]).digest
        try await DatabaseQueue(path: devices.maker.container.store(.private).path).write { db in
            try db.execute(sql: "UPDATE tide_assets SET sha256 = ? WHERE id = ?", arguments: [other, id])
        }
        let folder = AssetFiles.url(of: id, in: devices.maker.container.assets).deletingLastPathComponent()
        rmdir(folder.path)
        #expect(!FileManager.default.fileExists(atPath: folder.path))
        await #expect(throws: StoreError(.corrupt, "")) {
            try await access.download([id], priority: .userInitiated, progress: nil)
        }
        // Its folder was not made either.
        #expect(!FileManager.default.fileExists(atPath: folder.path))
        #expect(!AssetFiles.isHere(id, in: devices.maker.container.assets))
    }

    @Test func `a backup has the contents that are here, and does not report the others as damage`() async throws {
        let devices = try await LazyDevices()
        for number in 0..<2 { try await LazyDevices.save(LazyDevices.picture(number), as: "r\(number)", on: devices.maker) }
        try await devices.sync()
        try await devices.access.download([devices.asset("r0")], priority: .userInitiated, progress: nil)
        let copy = devices.scratch["copy.tidemark"]
        #expect(try ContainerBackup(of: devices.viewer.container, to: copy).run().assets == 1)
        let report = try StoreVerification(of: ContainerDirectory(openingAt: copy)).run()
        #expect(report.problems == [] && report.notDownloaded == 1 && report.assets == 2)
        let moved = devices.scratch["moved.tidemark"]
        devices.viewer.engine.close()
        _ = try StoreMover(from: devices.viewer.container.url, to: moved).run()
        let after = try StoreVerification(of: ContainerDirectory(openingAt: moved)).run()
        #expect(after.problems == [] && after.notDownloaded == 1)
    }
}

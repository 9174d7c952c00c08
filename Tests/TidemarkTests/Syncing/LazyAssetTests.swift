import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkCloud
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: a program has records without their contents, downloads these on request, and keeps within a limit. Method: containers
/// of people over a real cloud.
@Suite(.timeLimit(.minutes(30))) struct LazyAssetTests {
    private let scratch: Scratch
    private let fixture: TwoUserFixture

    init() throws {
        scratch = try Scratch()
        fixture = try TwoUserFixture(scratch)
    }

    private static func picture(_ number: Int) -> Data { Picture.png(number) }

    private func destination(_ name: String, _ number: Int) -> Destination {
        var destination = Destination(name, caption: name)
        destination.image = Asset(data: Self.picture(number))
        return destination
    }

    /// Synchronises once, with or without contents.
    @discardableResult
    private func sync(
        _ person: Person, _ assets: AssetDownloads = .onDemand, limit: Int64? = nil
    ) async throws -> SyncReport {
        var configuration = SyncConfiguration()
        (configuration.assets, configuration.assetLimit) = (assets, limit)
        let sync = try await person.container.sync(with: person.databases, configuration: configuration)
        defer { sync.close() }
        let report = try await sync.sync()
        #expect(report.isComplete, "\(report)")
        return report
    }

    /// A kind of container that can download contents.
    private func connected<Result: Sendable>(
        _ person: Person, _ body: @Sendable (PersistentContainer) async throws -> Result
    ) async throws -> Result {
        let sync = try await person.container.sync(with: person.databases)
        defer { sync.close() }
        return try await body(person.container)
    }

    private func image(_ person: Person, _ name: String) async throws -> Asset {
        try #require(try await person.container.fetch(Destination.self, named: name)?.image)
    }

    /// Marks a content as used at a time in the past: the greater the age, the earlier.
    private func use(_ person: Person, _ name: String, _ age: Int) async throws {
        let file = try #require(try await image(person, name).fileURL)
        let times = [timespec(tv_sec: 1_700_000_000 + age, tv_nsec: 0), timespec(tv_sec: 0, tv_nsec: (1 << 30) - 2)]
        #expect(utimensat(AT_FDCWD, file.path, times, 0) == 0)
    }

    private func verify(_ person: Person) throws -> VerificationReport {
        let report = try StoreVerification(of: person.container.directory).run()
        #expect(report.problems == [])
        return report
    }

    @Test func `an asset says whether it is here, a download gets its bytes, and listeners are notified`() async throws {
        let (anna, phone) = (try await fixture.person("anna"), try await fixture.person("anna", device: "2"))
        try await anna.container.save(destination("a", 1))
        try await sync(anna)
        try await sync(phone)
        let image = try await image(phone, "a")
        #expect(!image.isDownloaded && image.size == Self.picture(1).count)
        #expect(throws: StoreError(.notDownloaded, "")) { try image.data() }
        // No engine synchronises the container now.
        await #expect(throws: StoreError(.notDownloaded, "")) { try await phone.container.download(image) }
        var heard = phone.container.downloadedAssets().makeAsyncIterator()
        let record = try #require(try await phone.container.fetch(Destination.self, named: "a"))
        let progress = LockedValue(AssetProgress())
        try await connected(phone) { container in
            try await container.downloadAssets(of: [record]) { done in progress.withLock { $0 = done } }
        }
        #expect(await heard.next() == image)
        #expect(image.isDownloaded)
        #expect(try image.data() == Self.picture(1))
        #expect(progress.withLock { $0.assets == 1 && $0.totalAssets == 1 && $0.bytes == $0.totalBytes })
        // It equals the asset of the device that made it, though their identifiers differ.
        #expect(try await image == self.image(anna, "a"))
        #expect(image.identifier != (try await self.image(anna, "a").identifier))
        let reader = ErrorLanguage.$override.withValue(.german) {
            (StoreError(.notDownloaded, "x").errorDescription, StoreError(.notDownloaded, "x").recoverySuggestion)
        }
        #expect(reader.0?.contains("Cloud") == true && reader.1?.contains("herunterladen") == true)
    }

    @Test func `an edit of a record without its content keeps the content, here and elsewhere`() async throws {
        let (anna, phone) = (try await fixture.person("anna"), try await fixture.person("anna", device: "2"))
        try await anna.container.save(destination("a", 1))
        try await sync(anna)
        try await sync(phone)
        var edited = try #require(try await phone.container.fetch(Destination.self, named: "a"))
        edited.caption = "edited"
        try await phone.container.save(edited)
        #expect(try phone.container.history().changes(ofRecord: "a").contains { $0.fields.map(\.field) == ["caption"] })
        try await sync(phone)
        try await sync(anna)
        #expect(try await anna.captions() == ["a": "edited"])
        #expect(try await image(anna, "a").data() == Self.picture(1))
        // Saving the same picture as a file changes nothing, and the content is here then.
        edited.image = Asset(data: Self.picture(1))
        #expect(try await phone.container.save(edited).counts.isUnchanged)
        #expect(try await image(phone, "a").isDownloaded)
        #expect(try verify(phone).notDownloaded == 0)
    }

    @Test func `a limit evicts contents that the cloud has, the least recently used first, and keeps new ones`() async throws {
        let anna = try await fixture.person("anna")
        for number in 0..<4 { try await anna.container.save(destination("r\(number)", number)) }
        try await sync(anna)
        // They are used in another order than they were made in.
        for (age, name) in ["r2", "r0", "r3", "r1"].enumerated() { try await use(anna, name, age) }
        try await anna.container.save(destination("new", 9))
        let sizes = (0..<4).map { Int64(Self.picture($0).count) }
        // Room for the new one and for two of the others.
        let limit = Int64(Self.picture(9).count) + sizes[3] + sizes[1]
        try await sync(anna, limit: limit)
        var here: [String] = []
        for name in ["r0", "r1", "r2", "r3", "new"] where try await image(anna, name).isDownloaded { here.append(name) }
        #expect(here == ["r1", "r3", "new"])
        #expect(try verify(anna).notDownloaded == 2)
        // A content that was read counts as used. The verification has read them, too.
        for (age, name) in ["r3", "r1"].enumerated() { try await use(anna, name, age) }
        _ = try await image(anna, "r3").data()
        #expect(try await connected(anna) { try await $0.evict(to: limit - 1) }.assets == 1)
        #expect(try await image(anna, "r3").isDownloaded)
        #expect(try await !image(anna, "r1").isDownloaded)
        // It is downloaded again as it was, under its name.
        let image = try await image(anna, "r0")
        try await connected(anna) { try await $0.download(image) }
        #expect(try image.data() == Self.picture(0))
        _ = try verify(anna)
    }

    @Test func `a content that the cloud does not have stays, even if its eviction is requested`() async throws {
        let anna = try await fixture.person("anna")
        try await anna.container.save([destination("sent", 1), destination("again", 2)])
        try await sync(anna)
        // The content was sent once, and a record that was not sent names it.
        var other = Destination("other", caption: "other")
        other.image = try await image(anna, "again")
        try await anna.container.save([other, destination("unsent", 3)])
        let images = [try await image(anna, "sent"), try await image(anna, "again"), try await image(anna, "unsent")]
        let removal = try await connected(anna) { try await $0.evict(images) }
        #expect(removal.assets == 1 && removal.kept == 2)
        #expect(images.map(\.isDownloaded) == [false, true, true])
        // A content that only history names stays, because the cloud has removed it.
        for name in ["again", "other"] { try await anna.container.delete(Destination.self, named: name) }
        try await sync(anna)
        let all = try await connected(anna) { try await $0.evict(to: 0) }
        #expect(images.map(\.isDownloaded) == [false, true, false])
        #expect(all.assets == 1)
        _ = try verify(anna)
    }

    @Test func `an undo restores a content that history names, after an eviction of everything`() async throws {
        let anna = try await fixture.person("anna")
        try await anna.container.save(destination("a", 1))
        try await sync(anna)
        let saved = try await anna.container.save(destination("a", 2))
        try await sync(anna)
        _ = try await connected(anna) { try await $0.evict(to: 0) }
        #expect(try await anna.container.removeUnusedAssets().assets == 0)
        try await anna.container.undo(transaction: try #require(saved.transactions[.private]))
        #expect(try await image(anna, "a").data() == Self.picture(1))
        try await sync(anna)
        let phone = try await fixture.person("anna", device: "2")
        try await sync(phone, .all)
        #expect(try await image(phone, "a").data() == Self.picture(1))
        _ = try verify(anna)
    }

    @Test func `contents that neither records nor history name are removed when history is purged`() async throws {
        let anna = try await fixture.person("anna")
        let container = anna.container
        try await container.save([destination("a", 1), destination("b", 2)])
        let (first, second) = (try await image(anna, "a"), try await image(anna, "b"))
        try await container.delete(Destination.self, named: "a")
        try await container.purgeHistory(olderThan: .zero, keepingAtLeast: .zero)
        // The last transaction is always kept, and it names the first one.
        #expect(first.isDownloaded && second.isDownloaded)
        try await container.save(Destination("c", caption: "c"))
        #expect(try await container.removeUnusedAssets(isDryRun: true).assets == 0)
        try await container.purgeHistory(olderThan: .zero, keepingAtLeast: .zero)
        #expect(!first.isDownloaded && second.isDownloaded)
        #expect(try verify(anna).assets == 1)
        // A record that is saved with it would have no content.
        var late = Destination("late", caption: "late")
        late.image = first
        await #expect(throws: StoreError(.notFound, "")) { try await container.save(late) }
        late.image = second
        try await container.save(late)
        #expect(try await image(anna, "late").data() == Self.picture(2))
    }

    @Test func `nothing is removed while other processes stage files`() async throws {
        let anna = try await fixture.person("anna")
        let blobs = try BlobStore(container: anna.container.directory)
        await #expect(throws: StoreError(.busy, "")) { try await anna.container.removeUnusedAssets() }
        blobs.close()
    }

    @Test func `pictures are saved while contents are removed, and neither waits long for the other`() async throws {
        let anna = try await fixture.person("anna")
        let container = anna.container
        let saves = Task {
            for number in 0..<40 {
                try await container.save(destination("s\(number)", number))
                try await container.delete(Destination.self, named: "s\(number)")
                try await container.purgeHistory(olderThan: .zero, keepingAtLeast: .zero)
            }
        }
        for _ in 0..<40 {
            do {
                _ = try await container.removeUnusedAssets()
            } catch let error as StoreError where error.code == .busy {
                // The save comes first; unused contents are removed the next time.
            }
        }
        try await saves.value
        let last = try await container.save(destination("last", 1))
        #expect(last.counts.inserted == 1)
        _ = try verify(anna)
    }

    @Test func `a participant fetches shared records without contents, and downloads these`() async throws {
        let (anna, ben) = (try await fixture.person("anna"), try await fixture.person("ben"))
        let senja = destination("senja", 1)
        try await anna.container.save(senja)
        try await sync(anna)
        // The record moves into the zone of its share while its content is not here.
        _ = try await connected(anna) { try await $0.evict(to: 0) }
        let (_, link) = try await anna.share(
            try #require(try await anna.container.fetch(Destination.self, named: "senja")), with: ben)
        try await sync(anna)
        #expect(try await !image(anna, "senja").isDownloaded)
        _ = try await ben.container.acceptInvitation(link, in: ben.databases)
        try await sync(ben)
        let image = try await image(ben, "senja")
        #expect(!image.isDownloaded)
        var edited = try #require(try await ben.container.fetch(Destination.self, named: "senja"))
        edited.caption = "of Ben"
        try await ben.container.save(edited)
        try await sync(ben)
        try await connected(ben) { try await $0.download(image) }
        #expect(try image.data() == Self.picture(1))
        #expect(try await connected(ben) { try await $0.evict(to: 0) }.assets == 1)
        try await sync(anna)
        #expect(try await anna.captions() == ["senja": "of Ben"])
        // It is downloaded from its current zone.
        let own = try await self.image(anna, "senja")
        try await connected(anna) { try await $0.download(own) }
        #expect(try own.data() == Self.picture(1))
        _ = (try verify(anna), try verify(ben))
    }

    @Test func `records without contents are set aside at sign-out, restored, and downloaded again`() async throws {
        let anna = try await fixture.person("anna")
        try await anna.container.save(destination("a", 1))
        try await sync(anna)
        _ = try await connected(anna) { try await $0.evict(to: 0) }
        var edited = try #require(try await anna.container.fetch(Destination.self, named: "a"))
        edited.caption = "not sent"
        try await anna.container.save(edited)
        let engine = try await anna.container.syncEngine(with: anna.databases.private)
        let quarantine = try #require(try await engine.signOut())
        #expect(try StoreVerification(of: quarantine.container(in: anna.container.directory)).run().problems == [])
        #expect(try await anna.captions() == [:])
        engine.close()
        try await sync(anna)
        let again = try await anna.container.syncEngine(with: anna.databases.private)
        try await again.restore(quarantine)
        again.close()
        try await sync(anna)
        #expect(try await anna.captions() == ["a": "not sent"])
        let image = try await image(anna, "a")
        #expect(!image.isDownloaded)
        try await connected(anna) { try await $0.download(image) }
        #expect(try image.data() == Self.picture(1))
        _ = try verify(anna)
    }

    @Test func `a download says that no account is signed in`() async throws {
        let anna = try await fixture.person("anna")
        try await anna.container.save(destination("a", 1))
        try await sync(anna)
        _ = try await connected(anna) { try await $0.evict(to: 0) }
        let image = try await image(anna, "a")
        var configuration = SyncConfiguration()
        configuration.accountState = { AccountState(isSignedIn: false) }
        let sync = try await anna.container.sync(with: anna.databases, configuration: configuration)
        defer { sync.close() }
        do {
            try await anna.container.download(image)
            Issue.record("it has come")
        } catch let failure as ContainerEvent.Failure {
            #expect(failure.code == SyncErrorCode.noAccount)
        }
    }

    @Test func `a container that synchronises by itself keeps within its limit`() async throws {
        let anna = try await fixture.person("anna")
        var configuration = SyncConfiguration()
        configuration.assetLimit = 0
        anna.container.startSyncing(with: anna.databases, configuration: configuration)
        try await anna.container.save(destination("a", 1))
        let image = try await image(anna, "a")
        #expect(try await eventually { !image.isDownloaded })
        try await anna.container.download(image)
        #expect(try image.data() == Self.picture(1))
        await anna.container.stopSyncing()
        _ = try verify(anna)
    }
}

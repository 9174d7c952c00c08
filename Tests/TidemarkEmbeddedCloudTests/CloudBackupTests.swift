import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: a backup of a cloud in use is whole, and is restored as a whole or not at all. Method: backups while records and assets
/// come and go, restored and compared; and every fault that a backup may have.
@Suite(.timeLimit(.minutes(30))) struct CloudBackupTests {
    private let scratch = try! Scratch()
    private let container = "iCloud.org.example.journal"
    private let zone = CloudZoneID("Journal")

    private func owner(_ cloud: EmbeddedCloud) async throws -> EmbeddedDatabase {
        let account = try await cloud.addAccount("anna@example.org").id
        let owner = try cloud.database(.private, of: container, account: account)
        try await owner.modifyZones(saving: [zone], deleting: [])
        return owner
    }

    private func put(_ name: String, _ text: String, _ owner: EmbeddedDatabase) async throws {
        let content = Data(text.utf8)
        let asset = AssetDigest.asset(of: content)
        _ = try await owner.upload(content, of: asset, at: 0, in: zone)
        let record = CloudRecord(
            CloudRecordID(name, in: zone), type: "Picture", fields: ["image": .asset(asset), "text": .string(text)])
        _ = try await owner.modify(ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.forceReplace, record)]))
    }

    /// Every record with the content of its asset.
    private func contents(_ owner: EmbeddedDatabase) async throws -> [String: String] {
        var found: [String: String] = [:]
        var token: CloudToken?
        while true {
            let page = try await owner.zoneChanges(zone, since: token, limit: nil, desiredKeys: nil)
            #expect(page.failed.isEmpty)
            for case .saved(let record) in page.changes {
                guard case .asset(let asset) = record.fields["image"], case .string(let text) = record.fields["text"] else {
                    continue
                }
                let data = try await owner.download(asset, in: zone, from: 0, count: 1_000)
                #expect(data == Data(text.utf8))
                found[record.id.recordName] = text
            }
            token = page.token
            if !page.moreComing { return found }
        }
    }

    @Test func `a cloud whose containers can't be listed does not count as empty`() async throws {
        let url = scratch["cloud"]
        let account: StoredAccount
        do {
            let cloud = try EmbeddedCloud(at: url)
            let owner = try await owner(cloud)
            try await put("r", "kept", owner)
            account = try #require(await cloud.account("anna@example.org"))
        }
        let (containers, aside) = (url.appendingPathComponent("containers"), url.appendingPathComponent("aside"))
        try FileManager.default.moveItem(at: containers, to: aside)
        // Opening it as a folder fails, for every user.
        try Data().write(to: containers)
        let cloud = try EmbeddedCloud(at: url)
        await #expect(throws: CloudError.self) { try await cloud.removeIfUnused(account) }
        await #expect(throws: CloudError.self) { try await cloud.removeWithData(account) }
        await #expect(throws: CloudError.self) { try await cloud.usage(of: account) }
        await #expect(throws: CloudError.self) { try await cloud.forEachItem(of: account) { _, _ in } }
        await #expect(throws: CloudError.self) { try await cloud.reportDamage() }
        #expect(throws: StoreError.self) { try CloudBackup(of: url, to: scratch["backup"]).run() }
        #expect(throws: StoreError.self) { try CloudVerification(of: url).run() }
        #expect(!FileManager.default.fileExists(atPath: scratch["backup"].path))
        #expect(try await cloud.account(id: account.id) != nil)
    }

    @Test func `a backup that is made while records and assets come and go is whole, and so is its restoration`() async throws {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let owner = try await owner(cloud)
        for number in 0..<40 { try await put("r\(number)", "first \(number)", owner) }
        let writing = Task {
            var round = 0
            while !Task.isCancelled {
                round += 1
                for number in 0..<40 where !Task.isCancelled { try await put("r\(number)", "round \(round) of \(number)", owner) }
            }
        }
        for number in 0..<5 {
            let manifest = try CloudBackup(of: scratch["cloud"], to: scratch["backup-\(number)"]).run()
            #expect(manifest.problems == [] && manifest.records == 40 && manifest.assets >= 40)
        }
        writing.cancel()
        try? await writing.value
        for number in 0..<5 {
            let summary = try CloudRestoration(of: scratch["backup-\(number)"], to: scratch["restored-\(number)"]).run()
            #expect(summary.records == 40 && summary.problems == [])
            let restored = try EmbeddedCloud(at: scratch["restored-\(number)"])
            #expect(try await contents(self.owner(restored)).count == 40)
        }
        // Contents that could not be removed during the backup are removed later.
        _ = await cloud.sweepLeftovers(at: Date(timeIntervalSinceNow: 25.5 * 3_600))
        #expect(try await contents(owner).count == 40)
    }

    @Test func `a content that a backup names stays until it is copied`() async throws {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let owner = try await owner(cloud)
        try await put("a", "first", owner)
        let user = try #require(try await owner.account().userRecordName)
        let digest = AssetDigest.asset(of: Data("first".utf8)).digest
        let file = scratch["cloud/containers/\(container)/development/\(CloudDirectory.asset(digest, owner: user))"]
        let lock = try StoreLock(at: CloudDirectory(url: scratch["cloud"]).backupLock)
        try lock.acquire(shared: false, timeout: .zero)
        try await put("a", "second", owner)
        #expect(FileManager.default.fileExists(atPath: file.path))
        // The lock is exclusive: of two backups at a time, each would release contents that the other needs.
        lock.release()
        try await put("b", "first", owner)
        try await put("b", "second", owner)
        #expect(!FileManager.default.fileExists(atPath: file.path))
    }

    @Test
    func `a zone that was deleted and made again has another incarnation, and a purged one does not make devices compare`()
        async throws
    {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let owner = try await owner(cloud)
        func name() async throws -> CloudIncarnationName {
            let page = try await owner.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil)
            return CloudIncarnationName(try #require(page.incarnation))
        }
        try await put("a", "first", owner)
        let first = try await name()
        #expect(first.text == first.database)
        try await owner.modifyZones(saving: [], deleting: [zone])
        try await owner.modifyZones(saving: [zone], deleting: [])
        let remade = try await name()
        #expect((remade.database, remade.remade, remade.purged) == (first.database, 1, 0))
        #expect(remade.isToBeCompared(with: first))
        #expect(!remade.isToBeCompared(with: remade))
        // A client that compares learns what was deleted since, even without a token.
        try await put("gone", "gone", owner)
        _ = try await owner.modify(
            ModifyRecordsRequest(zone: zone, operations: [.delete(CloudRecordID("gone", in: zone))]))
        let page = try await owner.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil)
        #expect(page.changes.contains { if case .deleted(let it) = $0 { it.id.recordName == "gone" } else { false } })
        try await owner.purgeZone(zone)
        try await owner.modifyZones(saving: [zone], deleting: [])
        let purged = try await name()
        #expect((purged.remade, purged.purged) == (1, 1))
        #expect(!purged.isToBeCompared(with: first))
        #expect(!purged.isToBeCompared(with: remade))
        #expect(CloudIncarnationName(purged.text) == purged)
    }

    @Test func `after a restoration tokens have expired, and the cloud has another incarnation`() async throws {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let owner = try await owner(cloud)
        try await put("a", "first", owner)
        try await put("gone", "gone", owner)
        _ = try await owner.modify(
            ModifyRecordsRequest(zone: zone, operations: [.delete(CloudRecordID("gone", in: zone))]))
        _ = try CloudBackup(of: scratch["cloud"], to: scratch["backup"]).run()
        let before = try await owner.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil)
        let database = try await owner.databaseChanges(since: nil, limit: nil)
        #expect(before.changes.count == 1)
        _ = try CloudRestoration(of: scratch["backup"], to: scratch["restored"]).run()
        let restored = try EmbeddedCloud(at: scratch["restored"])
        let again = try await self.owner(restored)
        await #expect(throws: CloudError(.changeTokenExpired, "")) {
            try await again.zoneChanges(zone, since: before.token, limit: nil, desiredKeys: nil)
        }
        await #expect(throws: CloudError(.changeTokenExpired, "")) {
            try await again.databaseChanges(since: database.token, limit: nil)
        }
        let after = try await again.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil)
        #expect(after.incarnation != before.incarnation && after.incarnation != nil)
        // A deleted record can be told apart from a lost one.
        #expect(after.changes.contains { if case .deleted(let it) = $0 { it.id.recordName == "gone" } else { false } })
        #expect(after.changes.contains(before.changes[0]))
        #expect(try await again.databaseChanges(since: nil, limit: nil).incarnation == after.incarnation)
    }

    @Test func `a restoration replaces a cloud only on request, and never one in use`() async throws {
        do {
            let cloud = try EmbeddedCloud(at: scratch["cloud"])
            let owner = try await owner(cloud)
            try await put("a", "first", owner)
            _ = try CloudBackup(of: scratch["cloud"], to: scratch["backup"]).run()
            #expect(throws: StoreError(.cannotMove, "")) {
                try CloudBackup(of: scratch["cloud"], to: scratch["backup"]).run()
            }
            #expect(throws: StoreError(.cannotMove, "")) {
                try CloudBackup(of: scratch["cloud"], to: scratch["cloud/backup"]).run()
            }
            #expect(throws: StoreError(.cannotMove, "")) {
                try CloudRestoration(of: scratch["backup"], to: scratch["cloud"]).run()
            }
            #expect(throws: StoreError(.busy, "")) {
                try CloudRestoration(of: scratch["backup"], to: scratch["cloud"], replaces: true).run()
            }
            try await put("a", "second", owner)
            withExtendedLifetime(cloud) {}
        }
        try scratch.write("mine", to: "other/file")
        #expect(throws: StoreError(.cannotMove, "")) {
            try CloudRestoration(of: scratch["backup"], to: scratch["other"], replaces: true).run()
        }
        #expect(throws: StoreError(.notFound, "")) { try CloudRestoration(of: scratch["nothing"], to: scratch["new"]).run() }
        #expect(!FileManager.default.fileExists(atPath: scratch["new"].path))
    }

    @Test func `a copy that can't be read is not a backup, and in a cloud in use it is a problem`() async throws {
        do {
            let cloud = try EmbeddedCloud(at: scratch["cloud"])
            try await put("r", "text", owner(cloud))
        }
        let accounts = scratch["cloud/accounts.sqlite"]
        try FileManager.default.removeItem(at: accounts)
        // Opening it as a file fails for every user, as on a broken disk.
        try FileManager.default.createDirectory(at: accounts, withIntermediateDirectories: false)
        #expect(try CloudVerification(of: scratch["cloud"]).run().problems.map(\.kind) == [.database])
        let error = #expect(throws: StoreError.self) { try CloudVerification(ofCopy: scratch["cloud"]).run() }
        #expect(error?.code == .io)
        #expect(error?.message.contains("cannot examine the copy of accounts.sqlite") == true)
    }

    @Test func `a damaged backup is refused, and on request its whole parts are restored`() async throws {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let owner = try await owner(cloud)
        for name in ["a", "b"] { try await put(name, "content of \(name)", owner) }
        _ = try CloudBackup(of: scratch["cloud"], to: scratch["backup"]).run()
        let user = try #require(try await owner.account().userRecordName)
        let path = "containers/\(container)/development/"
        let digest = AssetDigest.asset(of: Data("content of a".utf8)).digest
        let asset = scratch["backup/" + path + CloudDirectory.asset(digest, owner: user)]
        // The backup has the cloud's content under a second name.
        try FileManager.default.removeItem(at: asset)
        try Data("content of A".utf8).write(to: asset)
        let error = #expect(throws: StoreError.self) {
            try CloudRestoration(of: scratch["backup"], to: scratch["new"]).run()
        }
        #expect(error?.code == .corrupt && error?.message.contains(digest) == true)
        let left = try FileManager.default.contentsOfDirectory(atPath: scratch.url.path).filter { $0.contains("new") }
        #expect(left == [])
        let summary = try CloudRestoration(of: scratch["backup"], to: scratch["new"], acceptsDamage: true).run()
        #expect(summary.problems.map(\.kind) == [.asset] && summary.records == 2)

        let database = scratch["backup/" + path + "records.sqlite"]
        var bytes = try Data(contentsOf: database)
        bytes[bytes.count / 2] ^= 1
        try bytes.write(to: database)
        #expect(throws: StoreError(.corrupt, "")) { try CloudRestoration(of: scratch["backup"], to: scratch["newer"]).run() }
        for text in [
            "{", #"{"format":9}"#,
            #"{"format":1,"createdAt":"2026-01-01T00:00:00Z","files":[{"path":"../x.sqlite","bytes":1,"sha256":"a"}],"containers":0,"records":0,"assets":0,"bytes":0,"problems":[]}"#,
        ] {
            try scratch.write(text, to: "backup/backup.json")
            #expect(throws: StoreError.self, "\(text)") {
                try CloudRestoration(of: scratch["backup"], to: scratch["newer"]).run()
            }
        }
        #expect(!FileManager.default.fileExists(atPath: scratch["newer"].path))
    }

    @Test func `a restoration names a database that it could open only for reading`() async throws {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        try await put("a", "first", owner(cloud))
        _ = try CloudBackup(of: scratch["cloud"], to: scratch["backup"]).run()
        let database = scratch["backup/containers/\(container)/development/records.sqlite"]
        var bytes = try Data(contentsOf: database)
        // The header says that a later version of SQLite writes the file differently: this version only reads it, for every user.
        bytes[18] = 3
        try bytes.write(to: database)
        let error = #expect(throws: CloudError.self) {
            try CloudRestoration(of: scratch["backup"], to: scratch["new"], acceptsDamage: true).run()
        }
        let reason = "records.sqlite: the database, or the log beside it, could be opened for reading only"
        #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
        #expect(!FileManager.default.fileExists(atPath: scratch["new"].path))
    }

    @Test func `leftovers of a killed backup are removed by the next one`() async throws {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        try await put("a", "first", try await owner(cloud))
        try scratch.write("half", to: ".backup.unfinished/containers/x/development/records.sqlite")
        _ = try CloudBackup(of: scratch["cloud"], to: scratch["backup"]).run()
        let names = Set(try FileManager.default.contentsOfDirectory(atPath: scratch.url.path))
        #expect(names == ["cloud", "backup"])
        #expect(!FileManager.default.fileExists(atPath: scratch["backup/containers/x"].path))
    }
}

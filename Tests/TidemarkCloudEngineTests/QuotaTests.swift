import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: an account never stores more than its quota, in requests at once and in all databases. Method: uploads side by side;
/// usage that is counted with each change, compared with usage that is counted from the rows.
@Suite(.timeLimit(.minutes(30))) struct QuotaTests {
    private func content(_ number: Int, _ count: Int) -> Data {
        Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ number) })
    }

    @Test func `uploads at the same time together stay within the quota`() async throws {
        let tenants = try Tenants()
        let database = try await tenants.journal("anna", quota: 1_000_000)
        let contents = (0..<30).map { content($0, 300_000) }
        let assets = contents.map { AssetDigest.asset(of: $0) }
        // All first pieces are sent at once.
        let begun: [Int] = await withTaskGroup(of: Int?.self, returning: [Int].self) { group in
            for number in contents.indices {
                group.addTask {
                    let piece = contents[number].prefix(200_000)
                    return try? await database.upload(piece, of: assets[number], at: 0, in: Tenants.zone) > 0 ? number : nil
                }
            }
            var begun: [Int] = []
            for await number in group { if let number { begun.append(number) } }
            return begun
        }
        #expect(begun.count == 3)
        let user = try #require(database.user)
        let parts = tenants.scratch["cloud/containers/\(Tenants.container)/development/assets/\(user)/uploads"]
        #expect(try FileManager.default.contentsOfDirectory(atPath: parts.path).count == 3)
        for number in begun {
            _ = try await database.upload(contents[number].suffix(100_000), of: assets[number], at: 200_000, in: Tenants.zone)
        }
        let used = try #require(try await database.account().used)
        #expect((900_000...1_000_000).contains(used))
        // No room stays reserved for the stored contents.
        let account = try #require(try await tenants.cloud.account("anna@example.org"))
        #expect(try await tenants.cloud.usage(of: account).map(\.reserved) == [0])
    }

    @Test func `whole contents that arrive at the same time together stay within the quota`() async throws {
        let tenants = try Tenants()
        let database = try await tenants.journal("anna", quota: 1_000_000)
        let contents = (0..<30).map { content($0, 300_000) }
        let taken: Int = await withTaskGroup(of: Bool.self, returning: Int.self) { group in
            for (number, content) in contents.enumerated() {
                let asset = AssetDigest.asset(of: content)
                group.addTask {
                    do {
                        if number.isMultiple(of: 2) {
                            _ = try await database.upload(content, of: asset, at: 0, in: Tenants.zone)
                        } else {
                            let file = try tenants.scratch.write(content, to: "incoming-\(number)")
                            try await database.adopt(file, asset, in: Tenants.zone)
                        }
                        return true
                    } catch {
                        #expect((error as? CloudError)?.code == .quotaExceeded)
                        return false
                    }
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(taken == 3)
        let used = try #require(try await database.account().used)
        #expect(used <= 1_000_000)
        let user = try #require(database.user)
        let assetStorage = tenants.scratch["cloud/containers/\(Tenants.container)/development/assets/\(user)"]
        let files = try FileManager.default.subpathsOfDirectory(atPath: assetStorage.path).filter { $0.utf8.count == 67 }
        #expect(files.count == 3)
    }

    @Test func `records in the public database count for their author`() async throws {
        let tenants = try Tenants()
        let anna = try await tenants.database("anna", .public, quota: 100_000)
        let ben = try await tenants.database("ben", .public)
        let text = CloudValue.string(String(repeating: "x", count: 40_000))
        func record(_ name: String) -> CloudRecord { tenants.record(name, ["text": text], in: .default) }
        try await tenants.save([record("a"), record("b")], to: anna, zone: .default)
        await #expect(throws: CloudError(.quotaExceeded, "")) {
            try await tenants.save([record("c")], to: anna, zone: .default)
        }
        try await tenants.save([record("c")], to: ben, zone: .default)
        func used(_ database: EmbeddedDatabase) async throws -> Int64 { try #require(try await database.account().used) }
        var (annas, bens) = (try await used(anna), try await used(ben))
        #expect((80_000...81_000).contains(annas) && (40_000...41_000).contains(bens))
        let picture = content(1, 60_000)
        let asset = AssetDigest.asset(of: picture)
        await #expect(throws: CloudError(.quotaExceeded, "")) { try await anna.upload(picture, of: asset, at: 0, in: .default) }
        #expect(try await anna.room(in: .default) < 20_000)
        _ = try await ben.upload(picture, of: asset, at: 0, in: .default)
        bens = try await used(ben)
        #expect((100_000...101_000).contains(bens))
        for (name, database) in [("a", anna), ("b", anna), ("c", ben)] {
            let outcome = try await tenants.outcome(.delete(CloudRecordID(name, in: .default)), database, zone: .default)
            guard case .deleted(let deleted) = outcome, deleted.recordName == name else {
                Issue.record("\(name): \(outcome)")
                continue
            }
        }
        annas = try await used(anna)
        #expect(annas < 300)
        _ = try await anna.upload(picture, of: asset, at: 0, in: .default)
    }

    @Test func `names, deleted records and kept answers count`() async throws {
        let tenants = try Tenants()
        let database = try await tenants.journal("anna", quota: 50_000)
        var made = 0
        // Records without a field, with long names, made and deleted.
        let error = await #expect(throws: CloudError.self) {
            for round in 0..<100 {
                let names = (0..<20).map { String(repeating: "n", count: 200) + "\(round)-\($0)" }
                try await tenants.save(names.map { tenants.record($0) }, to: database)
                made += names.count
                for name in names { _ = try await tenants.outcome(.delete(CloudRecordID(name, in: Tenants.zone)), database) }
            }
        }
        #expect(error?.code == .quotaExceeded)
        #expect((100..<250).contains(made), "\(made) records with names of 200 bytes were made in 50,000 bytes")
        // With a full account, requests that change nothing are done, but their answers are not stored.
        try await tenants.cloud.update(with(try await tenants.cloud.account("anna@example.org"), quota: 1))
        let used = try #require(try await database.account().used)
        for number in 0..<5 {
            _ = try await database.modify(
                ModifyRecordsRequest(
                    zone: Tenants.zone, operations: [.delete(CloudRecordID("absent", in: Tenants.zone))],
                    clientToken: "t\(number)"))
        }
        #expect(try await database.account().used == used)
        try await tenants.cloud.update(with(try await tenants.cloud.account("anna@example.org"), quota: .max))
        _ = try await database.modify(
            ModifyRecordsRequest(
                zone: Tenants.zone, operations: [.delete(CloudRecordID("absent", in: Tenants.zone))], clientToken: "kept"))
        let more = try #require(try await database.account().used)
        #expect(more > used)
    }

    private func with(_ account: StoredAccount?, quota: Int64) throws -> StoredAccount {
        var account = try #require(account)
        account.quota = quota
        return account
    }

    @Test func `the usage counted with each change is the usage counted from the rows`() async throws {
        let tenants = try Tenants()
        var random = Randomness("what is counted")
        let owner = try await tenants.journal("anna")
        let databases = [
            (owner, Tenants.zone), (try await tenants.database("anna", .public), CloudZoneID.default),
            (try await tenants.database("ben", .public), CloudZoneID.default), (try await tenants.journal("ben"), Tenants.zone),
        ]
        let share = try await owner.createShare(in: Tenants.zone, coverage: .zone, title: "Journal", publicPermission: .none)
        for round in 0..<150 {
            let (database, zone) = databases.randomElement(using: &random)!
            let prefix = database.account ?? ""
            let name = "\(prefix.prefix(4))\(Int.random(in: 0..<12, using: &random))"
            switch Int.random(in: 0..<8, using: &random) {
            case 0, 1:
                _ = try await database.modify(
                    ModifyRecordsRequest(
                        zone: zone, operations: [.delete(CloudRecordID(name, in: zone))], clientToken: "t\(round)"))
            case 2:
                let piece = content(Int.random(in: 0..<6, using: &random), 500)
                let asset = AssetDigest.asset(of: piece)
                _ = try await database.upload(piece, of: asset, at: 0, in: zone)
                _ = try await tenants.outcome(
                    RecordOperation(.forceReplace, tenants.record(name, ["image": .asset(asset)], in: zone)), database, zone: zone
                )
            case 3:
                let other = CloudZoneID("Other")
                guard database.scope == .private else { continue }
                try await database.modifyZones(saving: [other], deleting: [])
                try await tenants.save([tenants.record("x", in: other)], to: database, zone: other)
                if Bool.random(using: &random) { try await database.modifyZones(saving: [], deleting: [other]) }
            case 4:
                _ = try await owner.changeShare(share.id, [.setTitle(String(repeating: "t", count: round + 1))])
            default:
                var fields: [String: CloudValue] = ["text": .string(String(repeating: "x", count: round))]
                if Bool.random(using: &random) {
                    fields["of"] = .reference(CloudReference("\(prefix.prefix(4))0", action: .deleteSelf))
                }
                _ = try await tenants.outcome(
                    RecordOperation(.forceReplace, tenants.record(name, fields, in: zone)), database, zone: zone)
            }
        }
        for recount in try await tenants.cloud.recountUsage() { #expect(recount.corrected.isEmpty, "\(recount.corrected)") }
        // A wrong number is corrected.
        let user = try #require(owner.user)
        let right = try #require(try await owner.account().used)
        try await tenants.inner().engine.storage.write(owners: [user]) { rows throws(CloudError) in try rows.addUsed(7, by: user)
        }
        let corrected = try await tenants.cloud.recountUsage().flatMap(\.corrected)
        #expect(
            corrected.map(\.key) == [user] && corrected.map(\.value.found) == [right]
                && corrected.map(\.value.counted) == [right + 7])
        #expect(try await owner.account().used == right)
    }

    @Test func `an account can be filled to the last byte, and one byte more is refused`() async throws {
        func used(quota: Int64) async throws -> Int64? {
            let tenants = try Tenants()
            let database = try await tenants.journal("anna", quota: quota)
            try await tenants.save([tenants.record("a", ["text": .string(String(repeating: "x", count: 1_000))])], to: database)
            return try await database.account().used
        }
        let needed = try #require(try await used(quota: .max))
        #expect(try await used(quota: needed) == needed)
        await #expect(throws: CloudError(.quotaExceeded, "")) { try await used(quota: needed - 1) }
    }
}

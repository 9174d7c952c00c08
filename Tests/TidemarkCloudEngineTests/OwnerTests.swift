import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: the data of different owners are independent, and a participant of several owners misses nothing. Method: several
/// accounts of one container, whose changes are counted; tokens at each point of a random run; one owner's tags sent to another.
@Suite(.timeLimit(.minutes(30))) struct OwnerTests {
    private func tag(_ outcome: RecordOutcome) throws -> String {
        guard case .saved(let record) = outcome else { throw CloudError(.internalError, "\(outcome)") }
        return try #require(record.changeTag)
    }

    private func shared(
        _ owner: EmbeddedDatabase, with participant: EmbeddedDatabase, in zone: CloudZoneID = Tenants.zone
    ) async throws -> CloudShare {
        let share = try await owner.createShare(in: zone, coverage: .zone, title: "t", publicPermission: .readWrite)
        _ = try await participant.acceptLink(try await owner.makeLink(to: share.id, for: nil).token)
        return share
    }

    @Test func `each owner's changes are counted separately, and the public database has no such count`() async throws {
        let tenants = try Tenants()
        let (anna, ben) = (try await tenants.journal("anna"), try await tenants.journal("ben"))
        try await tenants.save((0..<20).map { tenants.record("a\($0)") }, to: anna)
        let annas = try tag(try await tenants.outcome(.save(tenants.record("a")), anna))
        let bens = try tag(try await tenants.outcome(.save(tenants.record("a")), ben))
        // Saving the zone was the first change of each owner.
        #expect(anna.change(of: annas) == 22 && ben.change(of: bens) == 2)

        let open = try await tenants.database("ben", .public)
        var last: Int64 = 0
        for number in 1...3 {
            let record = tenants.record("p\(number % 2)", ["n": .int64(Int64(number))], in: .default)
            let saved = try tag(try await tenants.outcome(RecordOperation(.forceReplace, record), open, zone: .default))
            // Each number is greater than the last by a random amount.
            let change = try #require(open.change(of: saved))
            #expect((1...65_536).contains(change - last))
            last = change
        }
        let queue = try DatabaseQueue(path: tenants.file.path)
        let counted = try await queue.read { db in
            try Row.fetchAll(db, sql: "SELECT name, change FROM owners").reduce(into: [String: Int64]()) { $0[$1[0]] = $1[1] }
        }
        try queue.close()
        #expect(counted == [try #require(anna.user): 22, try #require(ben.user): 2, "": 0])
    }

    @Test func `a tag of one owner is unknown at another, and does not make the other's rows look restored`() async throws {
        let tenants = try Tenants()
        let (anna, ben) = (try await tenants.journal("anna"), try await tenants.journal("ben"))
        try await tenants.save((0..<50).map { tenants.record("a\($0)") }, to: anna)
        let annas = try tag(try await tenants.outcome(.save(tenants.record("x")), anna))
        let bens = try tag(try await tenants.outcome(.save(tenants.record("x")), ben))
        let before = try await ben.databaseChanges(since: nil, limit: nil)
        for (name, code) in [("x", CloudError.Code.serverRecordChanged), ("missing", .unknownItem)] {
            var record = tenants.record(name, ["n": .int64(1)])
            record.changeTag = annas
            guard case .failed(let error) = try await tenants.outcome(.save(record), ben) else {
                Issue.record("saved by the tag of another owner")
                continue
            }
            #expect(error.code == code)
        }
        let after = try await ben.databaseChanges(since: before.token, limit: nil)
        #expect(after.incarnation == before.incarnation && after.changed.isEmpty)
        var record = tenants.record("x", ["n": .int64(1)])
        record.changeTag = bens
        _ = try tag(try await tenants.outcome(.save(record), ben))
    }

    @Test func `a participant of many owners is told each change once, with any token and any size of page`() async throws {
        let tenants = try Tenants()
        let guest = try await tenants.database("guest", .shared)
        var owners: [EmbeddedDatabase] = []
        var random = Randomness("a participant of many owners")
        for number in 0..<5 {
            let owner = try await tenants.journal("owner\(number)")
            // The owners' change numbers are far apart.
            try await tenants.save((0..<number * 30).map { tenants.record("r\($0)") }, to: owner)
            owners.append(owner)
        }
        let empty = try await guest.databaseChanges(since: nil, limit: nil)
        #expect(empty.changed.isEmpty && !empty.moreComing)
        var shares: [CloudShare] = []
        for owner in owners { shares.append(try await shared(owner, with: guest)) }

        func pages(since token: CloudToken?, limit: Int) async throws -> (changed: [String], deleted: [String], token: CloudToken)
        {
            var (changed, deleted, token, count): ([String], [String], CloudToken?, Int) = ([], [], token, 0)
            while true {
                let page = try await guest.databaseChanges(since: token, limit: limit)
                changed += page.changed.map(\.ownerName)
                deleted += page.deleted.map(\.ownerName)
                token = page.token
                count += 1
                if !page.moreComing || count > 50 { return (changed, deleted, page.token) }
            }
        }
        let users = try owners.map { try #require($0.user) }
        for limit in [1, 2, 5] {
            #expect(try await pages(since: nil, limit: limit).changed.sorted() == users.sorted())
            #expect(try await pages(since: empty.token, limit: limit).changed.sorted() == users.sorted())
        }
        // The owners that changed since each token, to compare with what the cloud tells.
        var tokens: [(token: CloudToken, changed: Set<String>)] = []
        for step in 0..<40 {
            if step % 4 == 0 { tokens.append((try await pages(since: tokens.last?.token, limit: 2).token, [])) }
            let number = Int.random(in: 0..<owners.count, using: &random)
            try await tenants.save([tenants.record("s\(step)")], to: owners[number])
            for index in tokens.indices { tokens[index].changed.insert(users[number]) }
            let known = tokens.randomElement(using: &random)!
            let told = try await pages(since: known.token, limit: Int.random(in: 1...3, using: &random))
            #expect(told.changed.sorted() == known.changed.sorted() && told.deleted.isEmpty)
            #expect(try await pages(since: told.token, limit: 3).changed.isEmpty)
        }
        // A client with a token is told once of a zone that is no longer shared; a client without a token is not.
        let last = try await pages(since: nil, limit: 3).token
        try await owners[2].deleteShare(shares[2].id)
        let gone = try await pages(since: last, limit: 1)
        #expect(gone.deleted == [users[2]] && gone.changed.isEmpty)
        #expect(try await pages(since: gone.token, limit: 1).deleted.isEmpty)
        let all = try await pages(since: nil, limit: 5)
        #expect(all.changed.count == 4 && all.deleted.isEmpty)
        #expect(try await guest.zones().map(\.ownerName).sorted() == users.filter { $0 != users[2] }.sorted())
    }

    @Test func `a link leads to the share of its own owner, though both owners count their shares alike`() async throws {
        let tenants = try Tenants()
        let guest = try await tenants.database("guest", .shared)
        let desired = DesiredShare(title: nil, publicPermission: .readOnly, participants: nil)
        var shares: [(owner: EmbeddedDatabase, record: CloudRecord)] = []
        for name in ["anna", "ben"] {
            let owner = try await tenants.journal(name)
            shares.append((owner, try await owner.createShare(desired, of: nil, ifTag: nil, in: Tenants.zone)))
        }
        #expect(shares[0].record.id.recordName == shares[1].record.id.recordName)
        for (owner, record) in shares {
            let token = try #require(record.share?.shortGUID)
            let opened = try await guest.resolveLink(token)
            #expect(opened.share.id.zone.ownerName == owner.user)
            #expect(
                try await guest.resolveLinkedRecords(token, fetchesRoot: false, rootKeys: nil).metadata.share.shortGUID == token)
        }
    }

    @Test func `a public record whose deletion takes others' records along frees the room of those others`() async throws {
        let tenants = try Tenants()
        let (anna, ben) = (try await tenants.database("anna", .public), try await tenants.database("ben", .public))
        try await tenants.save([tenants.record("a", in: .default)], to: anna, zone: .default)
        let content = Data("picture of Ben".utf8)
        let asset = AssetDigest.asset(of: content)
        _ = try await ben.upload(content, of: asset, at: 0, in: .default)
        let reference = CloudReference("a", action: .deleteSelf)
        try await tenants.save(
            [tenants.record("b", ["of": .reference(reference), "image": .asset(asset)], in: .default)], to: ben, zone: .default)
        let before = try #require(try await ben.account().used)
        let outcome = try await tenants.outcome(.delete(CloudRecordID("a", in: .default)), anna, zone: .default)
        guard case .deleted = outcome else { throw CloudError(.internalError, "\(outcome)") }
        let after = try #require(try await ben.account().used)
        #expect(after < before - Int64(content.count) - StoredUpload.overhead)
        guard case .failure(let error) = try await ben.lookup(["b"], in: .default, desiredKeys: nil)[0] else {
            throw CloudError(.internalError, "b is there")
        }
        #expect(error.code == .unknownItem)
        for recount in try await tenants.cloud.recountUsage() { #expect(recount.corrected.isEmpty, "\(recount.corrected)") }
    }
}

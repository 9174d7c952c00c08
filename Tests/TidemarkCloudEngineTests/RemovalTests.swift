import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: a request that removes many records holds the database no longer than other requests; the rest is removed later, also
/// after the process has ended. Method: a cloud that removes nothing by itself, looked at in between; its removal steps; the same
/// directory opened again.
@Suite(.timeLimit(.minutes(30))) struct RemovalTests {
    private let count = 1_800

    private func reference(_ name: String) -> CloudValue { .reference(CloudReference(name, action: .deleteSelf)) }

    /// A zone with a record, and many that depend on it.
    private func family(_ tenants: Tenants) async throws -> EmbeddedDatabase {
        let database = try await tenants.journal("anna")
        try await tenants.save([tenants.record("parent", ["n": .int64(0)])], to: database)
        try await tenants.save((0..<count).map { tenants.record("c\($0)", ["of": reference("parent")]) }, to: database)
        return database
    }

    private func delete(_ name: String, _ tenants: Tenants, _ database: EmbeddedDatabase) async throws {
        let id = CloudRecordID(name, in: Tenants.zone)
        let outcome = try await tenants.outcome(.delete(id), database)
        guard case .deleted(let deleted) = outcome, deleted.recordName == name else {
            Issue.record("\(name): \(outcome)")
            return
        }
    }

    private func isThere(_ name: String, _ database: EmbeddedDatabase) async throws -> Bool {
        (try? await database.lookup([name], in: Tenants.zone, desiredKeys: nil)[0].get()) != nil
    }

    @Test func `a record with many dependents is deleted at once, and its dependents in steps`() async throws {
        let tenants = try Tenants(removesByItself: false)
        let database = try await family(tenants)
        let before = try await changes(tenants, database)
        try await delete("parent", tenants, database)
        #expect(try await !isThere("parent", database))
        var gone = try await tenants.changes(database, since: before)
        #expect(gone.deleted.count == CloudEngine.removedAtOnce + 1)
        // Another opening of the directory continues the removal.
        let steps = try await Tenants(tenants.scratch, removesByItself: false).finishRemovals()
        #expect(steps == 3)
        let rest = try await tenants.changes(database, since: gone.token)
        gone.deleted += rest.deleted
        #expect(rest.saved.isEmpty)
        #expect(Set(gone.deleted) == Set(["parent"] + (0..<count).map { "c\($0)" }) && gone.deleted.count == count + 1)
        #expect(try await tenants.finishRemovals() == 0)
        #expect(try await tenants.cloud.recountUsage().flatMap(\.corrected).isEmpty)
    }

    @Test func `a damaged dependent is removed with the others, also after devices were told of the damage`() async throws {
        let tenants = try Tenants(removesByItself: false)
        let database = try await family(tenants)
        try await delete("parent", tenants, database)
        let damaged = "c\(count - 1)"
        try DamagedRows.flip(in: tenants.file, record: damaged)
        // The first fetch records the damage as another change, which the next fetch returns.
        _ = try await tenants.changes(database)
        let error = await #expect(throws: CloudError.self) {
            try await database.lookup([damaged], in: Tenants.zone, desiredKeys: nil)[0].get()
        }
        #expect(error?.code == .recordDamaged)
        _ = try await tenants.finishRemovals()
        let gone = await #expect(throws: CloudError.self) {
            try await database.lookup([damaged], in: Tenants.zone, desiredKeys: nil)[0].get()
        }
        #expect(gone?.code == .unknownItem)
        #expect(try await tenants.changes(database).saved.isEmpty)
        #expect(try await tenants.cloud.recountUsage().flatMap(\.corrected).isEmpty)
    }

    private func changes(_ tenants: Tenants, _ database: EmbeddedDatabase) async throws -> CloudToken {
        try await tenants.changes(database).token
    }

    @Test func `a cloud that is opened finishes the removals that were left`() async throws {
        let tenants = try Tenants(removesByItself: false)
        let database = try await family(tenants)
        try await delete("parent", tenants, database)
        let again = try Tenants(tenants.scratch)
        _ = try again.inner()
        let engine = try tenants.inner().engine
        var isLeft = true
        for _ in 0..<3_000 where isLeft {
            isLeft = try await engine.storage.read { rows throws(CloudError) in try rows.ownerOfNextRemoval() != nil }
            if isLeft { try await Task.sleep(for: .milliseconds(20)) }
        }
        #expect(!isLeft)
        #expect(try await tenants.changes(database).saved.isEmpty)
    }

    @Test func `dependents of dependents are removed too, and records made since the deletion stay`() async throws {
        let tenants = try Tenants(removesByItself: false)
        let database = try await tenants.journal("anna")
        try await tenants.save([tenants.record("p")], to: database)
        try await tenants.save((0..<600).map { tenants.record("c\($0)", ["of": reference("p")]) }, to: database)
        try await tenants.save((0..<600).map { tenants.record("g\($0)", ["of": reference("c\($0)")]) }, to: database)
        try await tenants.save((0..<600).map { tenants.record("u\($0)", ["of": reference("g0")]) }, to: database)
        try await tenants.save([tenants.record("stranger", ["of": reference("q")])], to: database)
        try await delete("p", tenants, database)
        try await tenants.save(
            [tenants.record("p", ["n": .int64(1)]), tenants.record("new", ["of": reference("p")])], to: database)
        _ = try await tenants.finishRemovals()
        #expect(Set(try await tenants.changes(database).saved.map(\.id.recordName)) == ["p", "new", "stranger"])
        #expect(try await tenants.cloud.recountUsage().flatMap(\.corrected).isEmpty)
    }

    @Test func `a dependent that is not removed yet does not exist for a client that writes`() async throws {
        let tenants = try Tenants(removesByItself: false)
        let database = try await family(tenants)
        let tag = try await database.lookup(["c\(count - 1)"], in: Tenants.zone, desiredKeys: nil)[0].get().changeTag
        try await tenants.save([tenants.record("below", ["of": reference("c\(count - 1)")])], to: database)
        try await delete("parent", tenants, database)
        #expect(try await isThere("c\(count - 1)", database))
        var edit = tenants.record("c\(count - 1)", ["n": .int64(1)])
        edit.changeTag = tag
        #expect(
            try await tenants.outcome(RecordOperation(.update, edit), database) == .failed(CloudError(.unknownItem, "")))
        for name in ["c\(count - 1)", "below"] { #expect(try await !isThere(name, database), "\(name)") }
        // A record that is made with the name of a removed dependent is another record.
        try await tenants.save([tenants.record("c\(count - 2)", ["n": .int64(2)])], to: database)
        _ = try await tenants.finishRemovals()
        #expect(try await tenants.changes(database).saved.map(\.id.recordName) == ["c\(count - 2)"])
    }

    @Test func `children lose their parent in steps, and a new record of the parent's name has no children`() async throws {
        let tenants = try Tenants(removesByItself: false)
        let database = try await tenants.journal("anna")
        try await tenants.save([tenants.record("top")], to: database)
        try await tenants.save(
            (0..<count).map {
                var record = tenants.record("c\($0)", ["n": .int64(1)])
                record.parent = "top"
                return record
            }, to: database)
        try await delete("top", tenants, database)
        let again = RecordOperation(.create, tenants.record("top"))
        guard case .failed(let error) = try await tenants.outcome(again, database) else {
            Issue.record("a record was made with others still below its name")
            return
        }
        #expect(error.code == .zoneBusy && error.retryAfter == .seconds(1))
        #expect(try await tenants.finishRemovals() == 3)
        guard case .saved = try await tenants.outcome(again, database) else {
            Issue.record("the record can't be made")
            return
        }
        let saved = try await tenants.changes(database).saved
        #expect(
            saved.count == count + 1
                && saved.allSatisfy { $0.parent == nil && ($0.id.recordName == "top" || $0.fields == ["n": .int64(1)]) })
    }

    @Test func `a zone with many records is gone at once, and can be made again once its records are removed`() async throws {
        let tenants = try Tenants(removesByItself: false)
        let database = try await family(tenants)
        try await database.modifyZones(saving: [], deleting: [Tenants.zone])
        await #expect(throws: CloudError(.zoneNotFound, "")) { try await isThereOrThrows("c1", database) }
        await #expect(throws: CloudError(.zoneBusy, "")) { try await database.modifyZones(saving: [Tenants.zone], deleting: []) }
        #expect(try await tenants.finishRemovals() == 3)
        #expect(try await database.account().used == 0)
        try await database.modifyZones(saving: [Tenants.zone], deleting: [])
        #expect(try await tenants.changes(database).saved.isEmpty)
    }

    private func isThereOrThrows(_ name: String, _ database: EmbeddedDatabase) async throws -> Bool {
        try await !database.lookup([name], in: Tenants.zone, desiredKeys: nil).isEmpty
    }

    @Test func `a participant of a hierarchy deletes no more records than a request may hold`() async throws {
        let tenants = try Tenants(removesByItself: false)
        let owner = try await tenants.journal("anna")
        try await tenants.save([tenants.record("root")], to: owner)
        var parent = tenants.record("parent", ["n": .int64(0)])
        parent.parent = "root"
        try await tenants.save([parent], to: owner)
        try await tenants.save(
            (0..<600).map {
                var record = tenants.record("c\($0)", ["of": reference("parent")])
                record.parent = "root"
                return record
            }, to: owner)
        let share = try await owner.createShare(
            in: Tenants.zone, coverage: .hierarchy(root: "root"), title: nil, publicPermission: .readWrite)
        let link = try await owner.makeLink(to: share.id, for: nil)
        let ben = try await tenants.database("ben", .shared)
        _ = try await ben.acceptLink(link.token)
        let theirs = CloudZoneID(Tenants.zone.zoneName, owner: try #require(owner.user))
        let outcome = try await tenants.outcome(.delete(CloudRecordID("parent", in: theirs)), ben, zone: theirs)
        #expect(outcome == .failed(CloudError(.limitExceeded, "")))
        #expect(try await isThere("parent", owner))
        try await delete("parent", tenants, owner)
        _ = try await tenants.finishRemovals()
        #expect(try await tenants.changes(owner).saved.count == 2)
    }
}

import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// Goal: a share becomes the desired share as a whole, or stays as it was. Method: desired shares that fail at their last step,
/// and many at once that start from the same state.
@Suite(.timeLimit(.minutes(30))) struct DesiredShareTests {
    private let scratch = try! Scratch()
    private let zone = CloudZoneID("Journal")

    private func owner() async throws -> EmbeddedDatabase {
        let cloud = try EmbeddedCloud(inMemoryBeside: scratch["cloud"], now: { 1 })
        let account = try await cloud.addAccount("anna@example.org").id
        let owner = try cloud.database(.private, of: "iCloud.org.example.journal", account: account)
        try await owner.modifyZones(saving: [zone], deleting: [])
        _ = try await owner.modify(
            ModifyRecordsRequest(
                zone: zone, operations: [RecordOperation(.create, CloudRecord(CloudRecordID("root", in: zone), type: "Note"))]))
        return owner
    }

    private func desired(_ title: String? = nil, _ lookUps: UserLookUp?...) -> DesiredShare {
        DesiredShare(
            title: title, publicPermission: ShareParticipant.Permission.none,
            participants: lookUps.map {
                .init(
                    id: nil, identity: UserIdentity(lookUp: $0), role: .privateUser, permission: .readOnly, isRemoved: false)
            })
    }

    @Test func `a share that can't be made as desired leaves no trace, and the next try makes it`() async throws {
        let owner = try await owner()
        let before = try await owner.currentToken(of: zone)
        let ben = UserLookUp.emailAddress("ben@example.org")
        await #expect(throws: CloudError(.invalidArguments, "")) {
            try await owner.createShare(desired("One", ben, nil), of: "root", ifTag: nil, in: zone)
        }
        await #expect(throws: CloudError(.serverRecordChanged, "")) {
            try await owner.createShare(desired("One", ben), of: "root", ifTag: "1", in: zone)
        }
        #expect(try await owner.shares(in: zone).isEmpty)
        #expect(try await owner.shareAudit(in: zone, after: nil).isEmpty)
        #expect(try await owner.currentToken(of: zone) == before)
        let made = try await owner.createShare(desired("One", ben), of: "root", ifTag: nil, in: zone)
        #expect(made.share?.participants.map(\.role) == [.owner, .privateUser])
        #expect(made.share?.title == "One" && made.share?.shortGUID != nil)
    }

    @Test func `a change that can't be made as a whole changes nothing`() async throws {
        let owner = try await owner()
        let made = try await owner.createShare(desired("One"), of: "root", ifTag: nil, in: zone)
        await #expect(throws: CloudError(.invalidArguments, "")) {
            try await owner.changeShare(made.id, to: desired("Two", .emailAddress("ben@example.org"), nil), ifTag: nil)
        }
        #expect(try await owner.lookup([made.id.recordName], in: zone, desiredKeys: nil)[0].get() == made)
    }

    @Test func `a share that names more people than a share can have is refused before they are compared`() async throws {
        let owner = try await owner()
        let most = try await owner.limits()
        let made = try await owner.createShare(desired("One"), of: "root", ifTag: nil, in: zone)
        let many = max(most.operationsPerRequest, 1 + most.participantsPerShare) + 1
        var desired = desired("Two")
        let lookUp = UserLookUp.emailAddress("ben@example.org")
        desired.participants = (0..<many).map { _ in
            .init(id: nil, identity: UserIdentity(lookUp: lookUp), role: .privateUser, permission: .readOnly, isRemoved: false)
        }
        await #expect(throws: CloudError(.limitExceeded, "")) { try await owner.changeShare(made.id, to: desired, ifTag: nil) }
        await #expect(throws: CloudError(.limitExceeded, "")) {
            try await owner.createShare(desired, of: "none", ifTag: nil, in: zone)
        }
        #expect(try await owner.lookup([made.id.recordName], in: zone, desiredKeys: nil)[0].get() == made)
    }

    @Test func `a share with more people than the limit allows can be written back with another title`() async throws {
        let container = "iCloud.org.example.journal"
        let cloud = try EmbeddedCloud(at: scratch["many"])
        let account = try await cloud.addAccount("anna@example.org").id
        let owner = try cloud.database(.private, of: container, account: account)
        try await owner.modifyZones(saving: [zone], deleting: [])
        let people = (1...6).map { UserLookUp.emailAddress("p\($0)@example.org") }
        var desired = desired("One")
        desired.participants = people.map {
            .init(id: nil, identity: UserIdentity(lookUp: $0), role: .privateUser, permission: .readOnly, isRemoved: false)
        }
        let made = try await owner.createShare(desired, of: nil, ifTag: nil, in: zone)
        var limits = CloudLimits()
        (limits.operationsPerRequest, limits.participantsPerShare) = (2, 2)
        let narrow = try EmbeddedCloud(at: scratch["many"], limits: limits).database(.private, of: container, account: account)
        desired.title = "Two"
        let changed = try await narrow.changeShare(made.id, to: desired, ifTag: nil)
        #expect(changed.share?.title == "Two")
        #expect(changed.share?.participants.count == 7)
    }

    @Test func `a request may name as many people as the share has and the limit adds, and no more`() async throws {
        var limits = CloudLimits()
        (limits.operationsPerRequest, limits.participantsPerShare) = (2, 2)
        let cloud = try EmbeddedCloud(at: scratch["few"], limits: limits)
        let account = try await cloud.addAccount("anna@example.org").id
        let owner = try cloud.database(.private, of: "iCloud.org.example.journal", account: account)
        try await owner.modifyZones(saving: [zone], deleting: [])
        func naming(_ count: Int, _ title: String) -> DesiredShare {
            // Naming the owner invites nobody.
            let anna = DesiredShare.Participant(
                id: nil, identity: UserIdentity(lookUp: .emailAddress("anna@example.org")), role: .owner, permission: .readWrite,
                isRemoved: false)
            var wanted = desired(title, .emailAddress("ben@example.org"))
            wanted.participants?.append(contentsOf: Array(repeating: anna, count: count - 1))
            return wanted
        }
        // A new share has its owner, and this limit allows two more.
        await #expect(throws: CloudError(.limitExceeded, "")) {
            try await owner.createShare(naming(4, "One"), of: nil, ifTag: nil, in: zone)
        }
        let made = try await owner.createShare(naming(3, "One"), of: nil, ifTag: nil, in: zone)
        #expect(made.share?.participants.map(\.role) == [.owner, .privateUser])
        await #expect(throws: CloudError(.limitExceeded, "")) {
            try await owner.changeShare(made.id, to: naming(5, "Two"), ifTag: nil)
        }
        #expect(try await owner.changeShare(made.id, to: naming(4, "Two"), ifTag: nil).share?.title == "Two")
    }

    @Test func `a call makes no more changes than a request has operations, and titles have at most 10,000 bytes`() async throws {
        var limits = CloudLimits()
        limits.operationsPerRequest = 2
        let cloud = try EmbeddedCloud(at: scratch["few"], limits: limits)
        let account = try await cloud.addAccount("anna@example.org").id
        let owner = try cloud.database(.private, of: "iCloud.org.example.journal", account: account)
        try await owner.modifyZones(saving: [zone], deleting: [])
        let made = try await owner.createShare(desired("One"), of: nil, ifTag: nil, in: zone)
        let longest = String(repeating: "t", count: 10_000)
        #expect(try await owner.changeShare(made.id, [.setTitle("Two"), .setTitle(longest)]).title == longest)
        for changes in [[ShareChange.setTitle("3"), .setTitle("4"), .setTitle("5")], [.setTitle(longest + "t")]] {
            await #expect(throws: CloudError(.limitExceeded, "")) { try await owner.changeShare(made.id, changes) }
        }
        #expect(try await owner.lookup([made.id.recordName], in: zone, desiredKeys: nil)[0].get().share?.title == longest)
    }

    @Test func `a waiting invitation is made again after a person was removed in a later call, not in the same call`()
        async throws
    {
        let owner = try await owner()
        let (ben, eve) = (UserLookUp.emailAddress("ben@example.org"), UserLookUp.emailAddress("eve@example.org"))
        func inviting(_ lookUp: UserLookUp) -> ShareChange { .invite(lookUp, role: .privateUser, permission: .readOnly) }
        let made = try await owner.createShare(desired("One", eve), of: "root", ifTag: nil, in: zone)
        let id = try #require(made.share?.participants.first { $0.role != .owner }?.id)
        /// Makes changes, and returns how many entries the log of the share gets.
        func entries(_ changes: ShareChange...) async throws -> Int {
            let before = try await owner.shareAudit(in: zone, after: nil).count
            _ = try await owner.changeShare(made.id, changes)
            return try await owner.shareAudit(in: zone, after: nil).count - before
        }
        #expect(try await entries(inviting(ben), .remove(participant: id)) == 2)
        #expect(try await entries(inviting(ben)) == 0)
        #expect(try await entries(inviting(eve)) == 1)
        #expect(try await entries(.remove(participant: id)) == 1)
        #expect(try await entries(inviting(ben)) == 1)
        #expect(try await entries(inviting(ben)) == 0)
    }

    @Test func `people are recognised by every spelling of their address and number`() async throws {
        let owner = try await owner()
        let made = try await owner.createShare(
            desired("One", .emailAddress("Ben@Example.org"), .phoneNumber("+46 8 123 456")), of: "root", ifTag: nil, in: zone)
        let before = try #require(made.share?.participants)
        let again = try await owner.changeShare(
            made.id, to: desired("One", .phoneNumber("+468123456"), .emailAddress("ben@example.ORG")), ifTag: nil)
        #expect(again.share?.participants == before && before.count == 3)
    }

    @Test func `of many changes of a share by the same tag only one succeeds`() async throws {
        let owner = try await owner()
        let made = try await owner.createShare(desired("One"), of: "root", ifTag: nil, in: zone)
        let tag = try #require(made.changeTag)
        let desiredShares = (0..<20).map { desired("Title \($0)") }
        let outcomes = await withTaskGroup(of: Result<CloudRecord, CloudError>.self) { group in
            for desired in desiredShares {
                group.addTask {
                    do throws(CloudError) {
                        return .success(try await owner.changeShare(made.id, to: desired, ifTag: tag))
                    } catch {
                        return .failure(error)
                    }
                }
            }
            var outcomes: [Result<CloudRecord, CloudError>] = []
            for await outcome in group { outcomes.append(outcome) }
            return outcomes
        }
        var (saved, refused): ([CloudRecord], [CloudError]) = ([], [])
        for outcome in outcomes {
            switch outcome {
            case .success(let record): saved.append(record)
            case .failure(let error): refused.append(error)
            }
        }
        #expect(saved.count == 1 && refused.count == 19)
        // Each refused client learns what the share is now.
        #expect(refused.allSatisfy { $0.code == .serverRecordChanged && $0.serverRecord == saved.first })
        await #expect(throws: CloudError(.serverRecordChanged, "")) { try await owner.deleteShare(made.id, ifTag: tag) }
        try await owner.deleteShare(made.id, ifTag: try #require(saved.first?.changeTag))
        #expect(try await owner.shares(in: zone).isEmpty)
    }
}

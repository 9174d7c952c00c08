import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// Goal: a share becomes the desired share, or stays what it was. Method: desired shares that fail at the last of their steps, and many
/// at once that know the same state.
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

    @Test func `a share that can't be made as it is wished for leaves no trace, and the next try makes it`() async throws {
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

    @Test func `a change that can't be made whole changes nothing`() async throws {
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

    @Test func `a share that has more people than are taken at once can be written back as it was told`() async throws {
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

    @Test func `a share may name as many as it has and as many more as it can have, and nobody else`() async throws {
        var limits = CloudLimits()
        (limits.operationsPerRequest, limits.participantsPerShare) = (1, 3)
        let cloud = try EmbeddedCloud(at: scratch["limits"], limits: limits)
        let account = try await cloud.addAccount("anna@example.org").id
        let owner = try cloud.database(.private, of: "iCloud.org.example.journal", account: account)
        try await owner.modifyZones(saving: [zone], deleting: [])
        let made = try await owner.createShare(desired("One"), of: nil, ifTag: nil, in: zone)
        let anna = try #require(made.share?.participants.first)
        var desired = desired("Two", .emailAddress("ben@example.org"), .emailAddress("carla@example.org"))
        // The owner is named twice, as clients may that write back what they were told.
        for _ in 0..<2 {
            desired.participants?.append(
                .init(id: anna.id, identity: anna.identity, role: .owner, permission: .readWrite, isRemoved: false))
        }
        #expect(try await owner.changeShare(made.id, to: desired, ifTag: nil).share?.participants.count == 3)
        // Three are known by now, so three more may be named: six, and not seven.
        let entry = try #require(desired.participants?.last)
        desired.participants? += [entry, entry]
        desired.title = "Three"
        #expect(try await owner.changeShare(made.id, to: desired, ifTag: nil).share?.title == "Three")
        desired.participants?.append(entry)
        await #expect(throws: CloudError(.limitExceeded, "")) { try await owner.changeShare(made.id, to: desired, ifTag: nil) }
    }

    @Test func `people are found again by any way to write their address`() async throws {
        let owner = try await owner()
        let made = try await owner.createShare(
            desired("One", .emailAddress("Ben@Example.org"), .phoneNumber("+46 8 123 456")), of: "root", ifTag: nil, in: zone)
        let before = try #require(made.share?.participants)
        let again = try await owner.changeShare(
            made.id, to: desired("One", .phoneNumber("+468123456"), .emailAddress("ben@example.ORG")), ifTag: nil)
        #expect(again.share?.participants == before && before.count == 3)
    }

    @Test func `of those who change or delete a share by the same tag one is heard`() async throws {
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
        // Each learns what the share is now.
        #expect(refused.allSatisfy { $0.code == .serverRecordChanged && $0.serverRecord == saved.first })
        await #expect(throws: CloudError(.serverRecordChanged, "")) { try await owner.deleteShare(made.id, ifTag: tag) }
        try await owner.deleteShare(made.id, ifTag: try #require(saved.first?.changeTag))
        #expect(try await owner.shares(in: zone).isEmpty)
    }
}

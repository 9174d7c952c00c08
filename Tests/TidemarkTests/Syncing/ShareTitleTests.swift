import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkCloud

/// Goal: a share has the title of its root record, and an invitation is accepted as soon as the container is open. Method:
/// containers of two people over a real cloud.
@Suite(.timeLimit(.minutes(30))) struct ShareTitleTests {
    struct Trip: Tidemark.Record, Identifiable, Equatable {
        var id: String
        var name: String
        static var shareTitle: KeyPath<Trip, String>? { \.name }
    }

    private let scratch: Scratch
    private let fixture: TwoUserFixture

    init() throws {
        scratch = try Scratch()
        fixture = try TwoUserFixture(scratch)
    }

    private func invitation(
        _ share: Share, from anna: Person, to ben: Person
    ) async throws -> String {
        let changed = try await anna.container.updateParticipants(
            of: share, [.invite(.emailAddress(ben.email), role: .privateUser, permission: .readWrite)], in: anna.databases)
        let invited = changed.participants.first { $0.identity.lookUp == .emailAddress(ben.email) }
        return try await anna.container.makeLink(to: changed, for: invited?.id, in: anna.databases).token
    }

    private func titles(_ person: Person) async throws -> [String?] { try await person.container.fetchShares().map(\.title) }

    @Test func `the title of a share follows its root record, whichever person edits it`() async throws {
        let (anna, ben) = (try await fixture.person("anna"), try await fixture.person("ben"))
        try await anna.container.save([Trip(id: "norway", name: "Norway"), Trip(id: "other", name: "Other")])
        let share = try await anna.container.share(Trip(id: "norway", name: "Norway"), in: anna.databases)
        #expect(share.title == "Norway")
        try await anna.sync()
        let link = try await invitation(share, from: anna, to: ben)
        try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        #expect(try await titles(ben) == ["Norway"])

        try await anna.container.save(Trip(id: "norway", name: "Norway in May"))
        try await anna.sync()
        #expect(try await titles(anna) == ["Norway in May"])
        try await ben.sync()
        #expect(try await titles(ben) == ["Norway in May"])
        // A record that is not the root does not change the title.
        try await anna.container.save(Trip(id: "other", name: "Others"))
        try await anna.sync()
        #expect(try await titles(anna) == ["Norway in May"])
        // The owner's device sets the title after a participant's edit.
        try await ben.container.save(Trip(id: "norway", name: "Lofoten"))
        try await ben.sync()
        try await anna.sync()
        #expect(try await titles(anna) == ["Lofoten"])
        try await ben.sync()
        #expect(try await titles(ben) == ["Lofoten"])
    }

    @Test func `an invitation is accepted before the container's own synchronisation runs, or while it runs`() async throws {
        let (anna, ben) = (try await fixture.person("anna"), try await fixture.person("ben"))
        try await anna.container.save([Trip(id: "norway", name: "Norway"), Trip(id: "iceland", name: "Iceland")])
        try await anna.sync()
        let share = try await anna.container.share(Trip(id: "norway", name: "Norway"), in: anna.databases)
        try await anna.sync()
        let sync = try await ben.container.sync(with: ben.databases)
        try await ben.container.acceptInvitation(try await invitation(share, from: anna, to: ben), in: ben.databases)
        #expect(try await sync.sync().isComplete)
        sync.close()
        #expect(try await ben.container.fetch(Trip.self, named: "norway")?.name == "Norway")

        let late = try await fixture.person("carl")
        late.container.startSyncing(with: late.databases)
        try await late.container.acceptInvitation(try await invitation(share, from: anna, to: late), in: late.databases)
        #expect(try await titles(late) == ["Norway"])
        await late.container.stopSyncing()
    }
}

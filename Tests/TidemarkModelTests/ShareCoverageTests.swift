import Testing
import TidemarkModel

/// Goal: the share that covers a record is chosen in the same way for any order of the shares. Method: the shares of a zone in
/// all orders.
@Suite(.timeLimit(.minutes(30))) struct ShareCoverageTests {
    private static func share(
        _ name: String, root: String? = nil, _ permission: ShareParticipant.Permission = .readWrite
    ) -> Share {
        let user = ShareParticipant(
            id: "p1", identity: UserIdentity(userRecordName: "ben"), role: .privateUser, permission: permission,
            acceptanceStatus: .accepted)
        return Share(
            scope: .shared, zone: ZoneName("zone", owner: "anna"), name: name, root: root, participants: [user], currentUser: user
        )
    }

    private static let whole = share("whole", .readOnly)
    private static let (a, b, c) = (share("a", root: "a"), share("b", root: "b", .readOnly), share("c", root: "c"))

    private func names(_ shares: [Share]) -> [String?] {
        let coverages = [shares, shares.reversed()].map { ShareCoverage($0) }
        #expect(coverages[0] == coverages[1])
        return ["a", "b", "x"].map { coverages[0].share(of: $0)?.name }
    }

    @Test func `without shares no record is covered`() { #expect(names([]) == [nil, nil, nil]) }

    @Test func `the share of the whole zone comes before those of hierarchies`() {
        #expect(names([Self.a, Self.whole, Self.b]) == ["whole", "whole", "whole"])
        #expect(ShareCoverage([Self.a, Self.whole]).roots.isEmpty)
    }

    @Test func `a root is covered by its own share, and other records by the only one, or the one that allows least`() {
        #expect(names([Self.a]) == ["a", "a", "a"])
        #expect(names([Self.a, Self.b, Self.c]) == ["a", "b", "b"])
        #expect(names([Self.c, Self.a]) == ["a", "a", "a"])
    }

    @Test func `of shares that allow the same, the one with the least name covers the record`() {
        #expect(names([Self.share("y", root: "b"), Self.share("x", root: "b")]) == ["x", "x", "x"])
    }
}

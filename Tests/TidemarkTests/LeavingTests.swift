import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkCloud
import TidemarkModel
import TidemarkSync

/// Goal: a continuous synchronisation tells shares that were left from shares that were accepted. Method: a container that keeps
/// synchronising while zones come and go.
@Suite(.timeLimit(.minutes(30))) struct LeavingTests {
    @Test func `a share that is accepted after another one was left arrives, and stays`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (anna, ben) = (try await place.person("anna"), try await place.person("ben"))
        let carl = try await place.person("carl")
        var links: [String] = []
        for (person, name) in [(anna, "senja"), (carl, "lofoten")] {
            let record = Destination(name, caption: "of \(person.container.author)")
            try await person.container.save(record)
            links.append(try await person.share(record, with: ben).link)
            try await person.sync()
        }
        try await ben.container.acceptInvitation(links[0], in: ben.databases)
        let sync = try await ben.container.sync(with: ben.databases)
        defer { sync.close() }
        #expect(try await sync.sync().isComplete)
        #expect(try await ben.captions() == ["senja": "of anna"])
        try await ben.container.leave(try #require(try await ben.container.fetchShares().first), in: ben.databases)
        try await ben.container.acceptInvitation(links[1], in: ben.databases)
        for _ in 0..<2 {
            #expect(try await sync.sync().isComplete)
            #expect(try await ben.captions() == ["lofoten": "of carl"])
        }
        #expect(try await ben.container.fetchShares().map(\.title) == ["Shared"])
    }
}

import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkEmbeddedCloud

/// Goal: a program signs its container out, and restores the records that were set aside. Method: typed records over one cloud,
/// and the public API only.
@Suite(.timeLimit(.minutes(30))) struct AccountTests {
    private let scratch: Scratch
    private let cloud: EmbeddedCloud

    init() throws {
        scratch = try Scratch()
        cloud = try EmbeddedCloud(at: scratch["cloud"])
    }

    private func journal() throws -> PersistentContainer {
        try PersistentContainer(directory: ContainerDirectory(openingOrCreatingAt: scratch["a.tidemark"]), author: "test")
    }

    private func database(_ email: String) async throws -> EmbeddedDatabase {
        try cloud.database(.private, of: "iCloud.org.example.journal", account: await cloud.addAccount(email).id)
    }

    /// A container with one record that is in the cloud and was edited since; no engine synchronises it.
    private func edited(_ journal: PersistentContainer) async throws {
        try await journal.save(Destination("senja", caption: "Senja"))
        let engine = try await journal.syncEngine(with: database("anna@example.org"))
        #expect(try await engine.sync().isComplete)
        engine.close()
        var senja = Destination("senja", caption: "edited")
        senja.image = Asset(data: Picture.png(1))
        try await journal.save(senja)
    }

    @Test func `pending changes are set aside when an account signs out, and restored for that account only`() async throws {
        let journal = try journal()
        try await edited(journal)
        let token = try journal.historyToken()
        let quarantine = try #require(try await journal.signOut())
        #expect((quarantine.records, quarantine.pending) == (1, 1))
        #expect(try journal.quarantines() == [quarantine])
        #expect(try await journal.fetch(Destination.self, named: "senja") == nil)
        // An earlier token is of no use any more, and its follower gets an error.
        var changes = journal.changes(since: token).makeAsyncIterator()
        await #expect(throws: StoreError(.historyTokenExpired, "")) { try await changes.next() }

        do {
            let engine = try await journal.syncEngine(with: database("ben@example.org"))
            #expect(try await engine.sync().isComplete)
            await #expect(throws: StoreError(.anotherAccount, "")) { try await journal.restore(quarantine) }
            try await engine.signOut()
            engine.close()
        }
        let engine = try await journal.syncEngine(with: database("anna@example.org"))
        #expect(try await engine.sync().imported == 1)
        let result = try await journal.restore(quarantine)
        #expect(result.counts.updated == 1)
        #expect(try journal.quarantines() == [])
        let senja = try await journal.fetch(Destination.self, named: "senja")
        #expect(senja?.caption == "edited")
        #expect(try senja?.image?.data() == Picture.png(1))
        #expect(try await engine.sync().exported == 1)
    }

    @Test func `an engine can sign out and restore as well`() async throws {
        let journal = try journal()
        try await edited(journal)
        let engine = try await journal.syncEngine(with: database("anna@example.org"))
        // The engine synchronises the container, so the container itself can't sign out.
        await #expect(throws: ContainerEvent.Failure.self) { try await journal.signOut() }
        let quarantine = try #require(try await engine.signOut(reason: "for a test"))
        #expect(quarantine.reason == "for a test")
        #expect(try await engine.sync().imported == 1)
        #expect(try await engine.restore(quarantine, options: .keepingQuarantine).updated == 1)
        #expect(try journal.quarantines() == [quarantine])
        try journal.discard(quarantine)
        #expect(try journal.quarantines() == [])
        #expect(try await engine.sync().exported == 1)
    }

    @Test func `records of an account that has signed out are kept or deleted on request`() async throws {
        let journal = try journal()
        try await edited(journal)
        #expect(try await journal.signOut(.keep) == nil)
        #expect(try await journal.fetch(Destination.self, named: "senja")?.caption == "edited")
        // The same account continues where it was.
        do {
            let engine = try await journal.syncEngine(with: database("anna@example.org"))
            let report = try await engine.sync()
            #expect((report.imported, report.exported) == (0, 1))
            engine.close()
        }
        #expect(try await journal.signOut(.delete) == nil)
        #expect(try await journal.fetch(Destination.self, named: "senja") == nil)
        #expect(try journal.quarantines() == [])
    }
}

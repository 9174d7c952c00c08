import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkContainers
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: the account decides whether a container is synchronised, and no account gets another's records. Method: each state of
/// the table, and real containers whose accounts come and go.
@Suite(.timeLimit(.minutes(30))) struct AccountTests {
    private struct State: CustomTestStringConvertible, Sendable {
        let state: AccountState
        let codes: [Int]
        var testDescription: String { "signed in \(state.isSignedIn), drive \(state.driveIsOn), app \(state.appIsOn)" }
    }

    private static let table = [
        State(state: .init(isSignedIn: true, driveIsOn: true, appIsOn: true), codes: []),
        State(state: .init(isSignedIn: true, driveIsOn: true, appIsOn: false), codes: [134400]),
        State(state: .init(isSignedIn: true, driveIsOn: false, appIsOn: true), codes: []),
        State(state: .init(isSignedIn: true, driveIsOn: false, appIsOn: false), codes: [134405, 134400]),
        State(state: .init(isSignedIn: false), codes: [134400]),
    ]

    @Test(arguments: table)
    private func `setting up succeeds or fails by the account's state, and pending changes are sent afterwards`(
        _ it: State
    ) async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let box = Box(it.state)
        var configuration = SyncConfiguration()
        configuration.accountState = { box.value }
        let a = try Device(scratch["a.tidemark"], database: cloud.database(), configuration: configuration)
        try await a.set("senja", ["caption": .string("Senja")])
        let report = try await a.engine.sync()
        let events = try a.reader().events().map(\.event)
        #expect(events.filter { $0.kind == .setup }.compactMap(\.failure?.code) == it.codes)
        if it.codes.isEmpty {
            #expect(report.isComplete)
            #expect(events.contains { $0.kind == .export && $0.succeeded })
        } else {
            #expect(report.failure?.code == it.codes[0])
            // There is no import and no export afterwards.
            #expect(events.allSatisfy { $0.kind == .setup })
            #expect(try a.reader().outbox().pending == 1)
            box.value = AccountState(isSignedIn: true)
            #expect(try await a.engine.sync().exported == 1)
        }
    }

    @Test func `an account that is temporarily unavailable deletes nothing and sends nothing`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        try await a.set("senja", ["caption": .string("Senja")])
        _ = try await a.engine.sync()
        var account = cloud.account
        account.status = .temporarilyUnavailable
        try await cloud.cloud.update(account)
        try await a.set("lofoten", ["caption": .string("Lofoten")])
        let report = try await a.engine.sync(patience: .zero)
        #expect(report.failure?.code == 134400)
        #expect(try a.records().count == 2)
        #expect(try a.container.quarantines().isEmpty)
        account.status = .available
        try await cloud.cloud.update(account)
        #expect(try await a.engine.sync().isComplete)
    }

    @Test func `switching an account off stops its synchronisation, and switching it on resumes it`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let time = Box(Timestamp.now())
        var environment = SyncEnvironment.system
        environment.now = {
            time.value += 1_000_000
            return time.value
        }
        let box = Box(AccountState(isSignedIn: true))
        var configuration = SyncConfiguration()
        configuration.accountState = { box.value }
        let recording = RecordingDatabase(try cloud.database())
        let a = try Device(
            scratch["a.tidemark"], database: recording, configuration: configuration, environment: environment)
        for index in 0..<1000 { try await a.set("r\(index % 10)", ["caption": .string("\(index)")]) }
        recording.refusesMore(than: 3)
        recording.afterRequest(1) { box.value = AccountState(isSignedIn: true, appIsOn: false) }
        let report = try await a.engine.sync()
        #expect(report.failure?.code == 134400)
        #expect(recording.sent.count <= 6)
        // Records left by the stopped export don't count as refused.
        let exports = try a.reader().events().map(\.event).filter { $0.kind == .export && $0.failure == nil }
        #expect(!exports.isEmpty && exports.allSatisfy { $0.end != nil && $0.totalRecords == nil }, "\(exports)")
        box.value = AccountState(isSignedIn: true)
        #expect(try await a.engine.sync().isComplete)
        #expect(Set(recording.sent).count == 10)
    }

    @Test
    func `unsynchronised changes are set aside when an account signs out, and restored when it signs in again`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let other = try await cloud.cloud.addAccount("ben@example.org")
        let theirs = try cloud.cloud.database(.private, of: TestCloud.container, account: other.id)
        let url = scratch["a.tidemark"]
        do {
            let a = try Device(url, database: cloud.database())
            try await a.set("senja", ["caption": .string("Senja"), "rating": .int64(1)])
            try await a.set("gone", ["caption": .string("gone")])
            _ = try await a.engine.sync()
            try await a.set("senja", ["caption": .string("edited")])
            try await a.set("new", ["caption": .string("new")])
            try await a.delete("gone")
        }
        try await Device.gone(url)
        // Another device goes on in the meantime.
        let elsewhere = try Device(scratch["elsewhere.tidemark"], database: cloud.database())
        _ = try await elsewhere.engine.sync()
        try await elsewhere.set("senja", ["rating": .int64(2)])
        _ = try await elsewhere.engine.sync()

        do {
            let a = try Device(url, database: theirs)
            try await a.set("later", ["caption": .string("of nobody")])
            let report = try await a.engine.sync()
            #expect(report.isComplete)
            // The other account gets none of the records.
            #expect(try StoreVerification(of: a.container).run().problems.isEmpty)
            #expect(try a.records().isEmpty)
            let zone = CloudZoneID("TidemarkZone")
            let page = try await theirs.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil)
            #expect(page.changes.isEmpty)
            let quarantine = try #require(try a.container.quarantines().first)
            #expect(quarantine.records == 3)
            #expect(quarantine.pending == 4)
        }
        try await Device.gone(url)
        do {
            let a = try Device(url, database: cloud.database())
            _ = try await a.engine.sync()
            #expect(try a.records().keys.sorted() == ["gone", "senja"])
            let quarantine = try #require(try a.container.quarantines().first)
            let store = a.store
            _ = try await store.restore(
                quarantine, all: false, author: "test", policy: { _ in .mergeByPropertyObjectTrump })
            try a.container.discard(quarantine)
            #expect(try await a.engine.sync().isComplete)
            let records = try a.records()
            #expect(
                records == [
                    "senja": ["caption": .string("edited"), "rating": .int64(2)], "new": ["caption": .string("new")],
                    "later": ["caption": .string("of nobody")],
                ])
            #expect(try a.container.quarantines().isEmpty)
            _ = try await elsewhere.engine.sync()
            #expect(try elsewhere.records() == a.records())
        }
    }

    @Test(arguments: [MergePolicy.mergeByPropertyObjectTrump, .mergeByPropertyStoreTrump, .overwrite, .rollback])
    func `a record that was deleted and made again before it was set aside is restored`(
        policy: MergePolicy
    ) async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let elsewhere = try Device(scratch["elsewhere.tidemark"], database: cloud.database())
        try await a.set("senja", ["caption": .string("Senja"), "rating": .int64(1)])
        _ = try await a.engine.sync()
        _ = try await elsewhere.engine.sync()
        try await elsewhere.set("senja", ["rating": .int64(2)])
        _ = try await elsewhere.engine.sync()
        try await a.delete("senja")
        try await a.set("senja", ["caption": .string("made again")])
        let quarantine = try #require(try await a.engine.signOut())
        #expect(quarantine.pending == 2)
        _ = try await a.engine.sync()
        #expect(try a.records() == ["senja": ["caption": .string("Senja"), "rating": .int64(2)]])
        _ = try await a.engine.restore(quarantine, policy: policy)
        _ = try await a.engine.sync()
        // If the other device's edit wins over the deletion, both copies are merged field by field.
        let rating: [String: FieldValue] = policy.name == "mergeByPropertyObjectTrump" ? ["rating": .int64(2)] : [:]
        #expect(try a.records() == ["senja": rating.merging(["caption": .string("made again")]) { $1 }])
        _ = try await elsewhere.engine.sync()
        #expect(try elsewhere.records() == a.records())
    }

    @Test(arguments: [SignInChoice.merge, .apart, .delete, .ask])
    func `records that are here when an account signs in are merged, kept apart, deleted or asked about`(
        _ choice: SignInChoice
    ) async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let elsewhere = try Device(scratch["elsewhere.tidemark"], database: cloud.database())
        try await elsewhere.set("theirs", ["caption": .string("theirs")])
        _ = try await elsewhere.engine.sync()
        var configuration = SyncConfiguration()
        configuration.signIn = choice
        let a = try Device(scratch["a.tidemark"], database: cloud.database(), configuration: configuration)
        try await a.set("mine", ["caption": .string("mine")])
        let report = try await a.engine.sync()
        let names = try a.records().keys.sorted()
        switch choice {
        case .merge: #expect(names == ["mine", "theirs"])
        case .apart:
            #expect(names == ["theirs"])
            #expect(try a.container.quarantines().map(\.records) == [1])
        case .delete:
            #expect(names == ["theirs"])
            #expect(try a.container.quarantines().isEmpty)
        case .ask:
            #expect(names == ["mine"])
            #expect(report.failure?.code == 134406)
        }
        _ = try await elsewhere.engine.sync()
        #expect(try elsewhere.records().count == (choice == .merge ? 2 : 1))
    }
}

/// A value that changes while other tasks read it.
final class Box<Value: Sendable>: Sendable {
    private let state: LockedValue<Value>
    init(_ value: Value) { state = LockedValue(value) }
    var value: Value {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}

import Foundation
import GRDB
import TestSupport
import Testing
import Tidemark
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: the reported permissions of a record are those that the rules give for the share that covers it, as the store has it at
/// one moment, for one record, for a query and for all; changes of permissions are notified. Method: stores whose zones and
/// shares are written in SQL, as a synchronisation leaves them; whole reports compared with the rules.
@Suite(.timeLimit(.minutes(30))) struct PermissionReporterTests {
    private let scratch: Scratch
    private static let anna = ShareParticipant.named("Anna", .owner)

    init() throws { scratch = try Scratch() }

    /// A container whose records have their names as captions.
    private func open(private own: [String] = [], shared: [String] = []) async throws -> PersistentContainer {
        if !shared.isEmpty { try await scratch.receive(shared.map { Destination($0, caption: $0) }) }
        let journal = try scratch.journal()
        try await journal.save(own.map { Destination($0, caption: $0) })
        return journal
    }

    private func places(_ scope: StoreScope) throws -> SharedPlaces { try SharedPlaces(scratch.container, scope) }

    private static func zone(_ number: Int64, of owner: String? = "_Anna") -> ZoneName { ZoneName("Z\(number)", owner: owner) }

    private static func share(
        _ zone: ZoneName, _ name: String = "share", root: String? = nil, public: ShareParticipant.Permission = .none,
        to user: ShareParticipant?, scope: StoreScope = .shared
    ) -> Share {
        Share(
            scope: scope, zone: zone, name: name, root: root, title: name, publicPermission: `public`,
            participants: [.named("Bob", .privateUser), anna] + (user.map { [$0] } ?? []), currentUser: user)
    }

    private func collect(_ report: PermissionReport) async throws -> [String: RecordPermission] {
        var all: [String: RecordPermission] = [:]
        for try await permission in report {
            #expect(all.updateValue(permission, forKey: permission.record.name) == nil)
        }
        return all
    }

    // The rules

    private struct Cell {
        let user: ShareParticipant
        let publicPermission: ShareParticipant.Permission
        let isRoot, isHierarchy: Bool
    }

    @Test func `in every state of a share each person's report follows the rules`() async throws {
        var cells: [Cell] = []
        for role in ShareParticipant.Role.allCases {
            for permission in ShareParticipant.Permission.allCases {
                for acceptance in ShareParticipant.AcceptanceStatus.allCases {
                    for publicPermission in ShareParticipant.Permission.allCases {
                        for (isRoot, isHierarchy) in [(false, false), (true, true), (false, true)] {
                            cells.append(
                                Cell(
                                    user: .named("Me", role, permission, acceptance), publicPermission: publicPermission,
                                    isRoot: isRoot, isHierarchy: isHierarchy))
                        }
                    }
                }
            }
        }
        let journal = try await open(shared: cells.indices.map { "r\($0)" })
        try places(.shared).change { db in
            for (index, cell) in cells.enumerated() {
                let (id, zone) = (Int64(index + 2), Self.zone(Int64(index)))
                try db.execute(sql: "INSERT INTO tide_zones VALUES (?, ?, ?)", arguments: [id, zone.owner, zone.name])
                try db.execute(sql: "UPDATE Destination SET _zone = ? WHERE _key = ?", arguments: [id, "r\(index)"])
                let root = cell.isHierarchy ? (cell.isRoot ? "r\(index)" : "elsewhere") : nil
                try SharedPlaces.note(
                    db, Self.share(zone, root: root, public: cell.publicPermission, to: cell.user), of: id)
            }
        }
        let told = try await collect(journal.permissions.report())
        #expect(told.count == cells.count && cells.count == 960)
        for (index, cell) in cells.enumerated() {
            let it = try #require(told["r\(index)"])
            let actor = SharePolicy.Actor.participant(cell.user.role, cell.user.permission, cell.user.acceptanceStatus)
            let target = SharePolicy.Target(
                scope: .shared, isShared: true, publicPermission: cell.publicPermission, isRoot: cell.isRoot)
            func may(_ operation: SharePolicy.Operation) -> ShareDecision {
                SharePolicy.decide(operation, on: target, by: actor)
            }
            #expect(it.canRead == may(.read).isAllowed && it.canEdit == may(.update).isAllowed, "\(cell)")
            #expect(it.canDelete == may(.delete).isAllowed && it.canShare == may(.share).isAllowed, "\(cell)")
            for operation in SharePolicy.Operation.allCases { #expect(it.decision(for: operation) == may(operation)) }
            let remedy = may(.update).remedy.map { "; \($0.text)" } ?? ""
            #expect(it.reason == may(.update).reason + remedy)
            #expect(it.role == cell.user.role && it.permission == cell.user.permission)
            #expect(it.acceptanceStatus == cell.user.acceptanceStatus && it.isShared && it.share == "share")
            #expect(it.zone == Self.zone(Int64(index)) && it.scope == .shared && it.owner == Self.anna.identity)
            // One by one the reports are the same.
            if index % 37 == 0 { #expect(try await journal.permissions.permission(of: it.record) == it) }
        }
    }

    @Test func `an attempt ends as the report says`() async throws {
        var random = Randomness("permissions told and met")
        let users = (0..<60).map { _ in
            ShareParticipant.named(
                "Me", .allCases.randomElement(using: &random)!, .allCases.randomElement(using: &random)!,
                Int.random(in: 0..<3, using: &random) == 0 ? .allCases.randomElement(using: &random)! : .accepted)
        }
        let names = users.indices.map { "r\($0)" } + ["unknown", "nobody's"]
        let journal = try await open(shared: names)
        let places = try places(.shared)
        for (index, user) in users.enumerated() {
            let (id, zone) = (Int64(index + 2), Self.zone(Int64(index)))
            try places.zone(id, zone, records: ["r\(index)"])
            for number in 0..<Int.random(in: 1...3, using: &random) {
                let root = ["r\(index)", "elsewhere", nil].randomElement(using: &random)!
                var user = user
                if number > 0 { user.permission = .allCases.randomElement(using: &random)! }
                try places.note(Self.share(zone, "share \(number)", root: root, public: .readWrite, to: user), of: id)
                if root == nil { break }
            }
        }
        try places.zone(1000, Self.zone(1000), records: ["unknown"])
        let told = try await collect(journal.permissions.report())
        #expect(told.count == names.count && Set(told.values.map(\.canEdit)).count == 2)
        for name in names {
            let it = try #require(told[name])
            func tried(_ body: () async throws -> Void) async throws -> Bool {
                do {
                    try await body()
                    return true
                } catch is PermissionDenied {
                    return false
                }
            }
            let isEdited = try await tried { try await journal.save(Destination(name, caption: "edited")) }
            #expect(isEdited == it.canEdit, "\(name): \(it.reason)")
            let isDeleted = try await tried { try await journal.delete(Destination.self, named: name) }
            #expect(isDeleted == it.canDelete, "\(name): \(it.reason)")
        }
        // A record in no zone of another user was never shared.
        #expect(told["nobody's"]?.reason == "no cloud has it yet" && told["nobody's"]?.isShared == false)
    }

    @Test func `the user's own records belong to the user, in a cloud or not, shared or not`() async throws {
        let journal = try await open(private: ["new", "clean", "shared"])
        let places = try places(.private)
        try places.zone(2, Self.zone(2, of: nil), records: ["shared"])
        try places.note(Self.share(Self.zone(2, of: nil), to: Self.anna, scope: .private), of: 2)
        try places.change { db in
            try db.execute(sql: "UPDATE Destination SET _tag = 't', _pending = NULL WHERE _key <> 'new'")
        }
        let told = try await collect(journal.permissions.report())
        #expect(
            told.mapValues(\.reason) == [
                "new": "no cloud has it yet", "clean": "it is in your own database", "shared": "the owner may",
            ])
        for it in told.values {
            #expect(it.isOwner && it.canRead && it.canEdit && it.canDelete && it.scope == .private)
            #expect(it.role == .owner && it.permission == .readWrite && it.acceptanceStatus == .accepted)
        }
        #expect(told.mapValues(\.canShare) == ["new": true, "clean": true, "shared": false])
        #expect(told.mapValues(\.isShared) == ["new": false, "clean": false, "shared": true])
        #expect(told["shared"]?.decision(for: .share).rule == .alreadyShared)
        #expect(told["shared"]?.zone == ZoneName("Z2") && told["clean"]?.zone == .default)
        #expect(told["shared"]?.owner == Self.anna.identity && told["clean"]?.owner == nil)
    }

    @Test func `a record is covered by its zone's share, or the share of which it is the root, or the only one, or the weakest`()
        async throws
    {
        let journal = try await open(shared: ["whole", "root a", "root b", "child", "root c", "other", "nobody's", "strange"])
        let places = try places(.shared)
        let (write, read) = (ShareParticipant.named("Me", .privateUser), ShareParticipant.named("Me", .privateUser, .readOnly))
        try places.zone(2, Self.zone(2), records: ["whole"])
        try places.note(Self.share(Self.zone(2), "a hierarchy", root: "whole", to: read), of: 2)
        try places.note(Self.share(Self.zone(2), "the zone", to: write), of: 2)
        try places.zone(3, Self.zone(3), records: ["root a", "root b", "child"])
        try places.note(Self.share(Self.zone(3), "a", root: "root a", to: write), of: 3)
        try places.note(Self.share(Self.zone(3), "b", root: "root b", to: read), of: 3)
        try places.zone(4, Self.zone(4), records: ["root c", "other"])
        try places.note(Self.share(Self.zone(4), "c", root: "root c", to: write), of: 4)
        try places.zone(5, Self.zone(5), records: ["nobody's"])
        try places.zone(6, Self.zone(6), records: ["strange"])
        try places.note(Self.share(Self.zone(6), to: nil), of: 6)
        let told = try await collect(journal.permissions.report())
        #expect(
            told.compactMapValues(\.share) == [
                "whole": "the zone", "root a": "a", "root b": "b", "child": "b", "root c": "c", "other": "c", "strange": "share",
            ])
        #expect(
            told.mapValues { $0.decision(for: .delete).rule } == [
                "whole": .readWrite, "root a": .rootIsTheOwners, "root b": .readOnly, "child": .readOnly,
                "root c": .rootIsTheOwners,
                "other": .readWrite, "nobody's": .stranger, "strange": .stranger,
            ])
        #expect(told.values.allSatisfy { $0.isShared })
        #expect(told["nobody's"]?.owner == UserIdentity(userRecordName: "_Anna"))
        #expect(told["nobody's"]?.reason == "it is not shared with this person; ask the owner for an invitation")
    }

    // Which records

    /// Two stores with all kinds of zones and shares.
    private func fill() async throws -> PersistentContainer {
        let journal = try await open(private: ["own", "both"], shared: ["theirs", "locked", "gone"])
        let places = try places(.shared)
        try places.zone(2, Self.zone(2), records: ["theirs"])
        try places.note(Self.share(Self.zone(2), to: .named("Me", .privateUser)), of: 2)
        try places.zone(3, Self.zone(3), records: ["locked"])
        try places.note(Self.share(Self.zone(3), to: .named("Me", .privateUser, .readOnly)), of: 3)
        try places.zone(4, Self.zone(4), records: ["gone"])
        try places.note(Self.share(Self.zone(4), to: .named("Me", .privateUser, .readWrite, .removed)), of: 4)
        // A name that another user and this user both have.
        try places.change { db in
            try db.execute(
                sql: """
                    INSERT INTO Destination (_key, _zone, _version, _digest, caption, details, createdAt)
                    SELECT 'both', 3, _version, _digest, 'both', '', 0 FROM Destination LIMIT 1
                    """)
        }
        return journal
    }

    @Test func `filters choose editable, read-only, owned and shared records`() async throws {
        let journal = try await fill()
        func names(_ filter: PermissionFilter?) async throws -> [String] {
            var names: [String] = []
            for try await it in journal.permissions.report(only: filter) {
                names.append(it.record.name)
                if let filter { #expect(filter.includes(it)) }
            }
            return names
        }
        #expect(try await names(nil) == ["own", "both", "theirs", "locked", "gone", "both"])
        #expect(try await names(.editable) == ["own", "both", "theirs"])
        #expect(try await names(.readOnly) == ["locked", "both"])
        #expect(try await names(.owned) == ["own", "both"])
        #expect(try await names(.shared) == ["theirs", "locked", "gone", "both"])
    }

    @Test func `a report of a query covers the records that it finds`() async throws {
        let journal = try await fill()
        struct Visit: Tidemark.Record {
            var id: String
            var recordName: String { id }
            var stars = 1
        }
        try await journal.save(Visit(id: "visit"))
        let permissions = journal.permissions
        let found = try await collect(permissions.report(on: Destination.self, where: .field("caption").begins(with: "lo")))
        #expect(found.mapValues(\.canEdit) == ["locked": false])
        let named = try await collect(permissions.report(on: Destination.self, where: .field("id") == "own", only: .owned))
        #expect(Array(named.keys) == ["own"])
        let text = try await collect(
            permissions.report(on: Destination.self, where: .sql("_zone > ? -- all of others", 1), only: .editable))
        #expect(Array(text.keys) == ["theirs"])
        #expect(Array(try await collect(permissions.report(on: "Visit")).keys) == ["visit"])
        #expect(try await collect(permissions.report(on: "Nothing")).isEmpty)
        await #expect(throws: StoreError(.sql, "")) {
            try await collect(permissions.report(on: Destination.self, where: .sql("nonsense >")))
        }
        await #expect(throws: StoreError(.schema, "")) {
            try await collect(permissions.report(on: Destination.self, where: .field("nonsense") == 1))
        }
    }

    @Test func `one record is reported from the store in which a fetch finds it, or from the given one`() async throws {
        let journal = try await fill()
        let permissions = journal.permissions
        let both = RecordName(type: "Destination", name: "both")
        #expect(try await permissions.permission(of: both)?.scope == .private)
        #expect(try await permissions.permission(of: both, in: Self.zone(3))?.permission == .readOnly)
        #expect(try await permissions.permission(of: both, in: Self.zone(2)) == nil)
        #expect(try await permissions.permissions(named: "both").map(\.zone) == [.default, Self.zone(3)])
        #expect(try await permissions.permissions(named: "both", type: "Visit").isEmpty)
        #expect(try await permissions.permission(of: Destination("theirs", caption: ""))?.canEdit == true)
        #expect(try await permissions.permission(of: Destination("none", caption: "")) == nil)
        #expect(try await permissions.permission(of: RecordName(type: "Nothing", name: "own")) == nil)
    }

    @Test func `names of every form are reported unchanged`() async throws {
        // With a 0, which the second one does not have.
        let uuid = "5F0C9D5E-6A4B-4E0E-9A3F-1D2C3B4A5F60"
        // Some are as long as the bytes of a UUID.
        let names = [
            uuid, uuid.lowercased().replacingOccurrences(of: "0", with: "1"), "sixteen bytes  !", "seventeen bytes U", "å",
            "a,\"b\"",
        ]
        let journal = try await open(private: names)
        var told: [String] = []
        for try await it in journal.permissions.report() { told.append(it.record.name) }
        #expect(told == names)
        #expect(try await journal.permissions.permissions(named: uuid.lowercased()).map(\.record.name) == [uuid])
    }

    @Test func `every kind of container returns the same reports`() async throws {
        let journal = try await fill()
        let expected = try await Self.list(journal.permissions.report())
        #expect(expected.count == 6)
        let reading = try ReadOnlyContainer(directory: ContainerDirectory(openingAt: scratch.container))
        #expect(try await Self.list(reading.permissions.report()) == expected)
        let snapshot = try journal.snapshot()
        try places(.shared).note(Self.share(Self.zone(3), to: .named("Me", .privateUser)), of: 3)
        #expect(try await Self.list(snapshot.permissions.report()) == expected)
        let locked = RecordName(type: "Destination", name: "locked")
        #expect(try await snapshot.permissions.permission(of: locked)?.canEdit == false)
        #expect(try await reading.permissions.permission(of: locked)?.canEdit == true)
        for try await _ in try await snapshot.permissions.changes() { Issue.record("a snapshot does not change") }
    }

    private static func list(_ report: PermissionReport) async throws -> [RecordPermission] {
        var all: [RecordPermission] = []
        for try await permission in report { all.append(permission) }
        return all
    }

    // While it changes

    @Test func `a report shows one moment to its end, and the next report the next moment`() async throws {
        let journal = try await open(shared: (0..<5000).map { "r\($0)" })
        let places = try places(.shared)
        try places.zone(2, Self.zone(2))
        try places.zone(3, Self.zone(3))
        try places.note(Self.share(Self.zone(2), to: .named("Me", .privateUser)), of: 2)
        try places.note(Self.share(Self.zone(3), to: .named("Me", .privateUser)), of: 3)
        // Zone 3 comes at the end.
        try places.change { db in try db.execute(sql: "UPDATE Destination SET _zone = CASE WHEN _id > 4990 THEN 3 ELSE 2 END") }
        var report = journal.permissions.report().makeAsyncIterator()
        let first = try await report.next()
        #expect(first?.canEdit == true)
        #expect(try await journal.permissions.permission(of: RecordName(type: "Destination", name: "r4999"))?.canEdit == true)
        for zone in [2, 3] as [Int64] {
            try places.note(Self.share(Self.zone(zone), to: .named("Me", .privateUser, .readOnly)), of: zone)
        }
        try places.change { db in
            try db.execute(sql: "UPDATE Destination SET _zone = 3 WHERE _id > 4000; DELETE FROM Destination WHERE _id = 5000")
        }
        var seen = 1
        while let it = try await report.next() {
            #expect(it.canEdit && it.zone == Self.zone(seen >= 4990 ? 3 : 2))
            seen += 1
        }
        #expect(seen == 5000)
        let now = try await collect(journal.permissions.report())
        #expect(now.count == 4999 && now.values.allSatisfy { !$0.canEdit } && now["r4500"]?.zone == Self.zone(3))
        #expect(try await journal.permissions.permission(of: RecordName(type: "Destination", name: "r4998"))?.canEdit == false)
    }

    @Test func `reports and look-ups never mix two states while shares change`() async throws {
        let journal = try await open(shared: (0..<3000).map { "r\($0)" })
        let places = try places(.shared)
        for zone in 2...4 as ClosedRange<Int64> { try places.zone(zone, Self.zone(zone)) }
        var random = Randomness("permissions while shares change")
        // In each state all zones have the same permission, and the records are distributed anew.
        let permissions = (0..<60).map { _ in Bool.random(using: &random) }
        func write(_ number: Int) throws {
            try places.change { db in
                try db.execute(sql: "UPDATE Destination SET _zone = 2 + (_id + ?) % 3", arguments: [number])
                for zone in 2...4 as ClosedRange<Int64> {
                    let user = ShareParticipant.named("\(number)", .privateUser, permissions[number] ? .readWrite : .readOnly)
                    var share = Self.share(Self.zone(zone), "share \(number)", to: user)
                    share.title = "\(number)"
                    try db.execute(sql: "DELETE FROM tide_shares WHERE zone = ?", arguments: [zone])
                    try SharedPlaces.note(db, share, of: zone)
                }
            }
        }
        try write(0)
        let reporter = journal.permissions
        let isWritten = LockedValue(false)
        async let writing: Void = Task.detached {
            defer { isWritten.withLock { $0 = true } }
            for number in 1..<permissions.count { try write(number) }
        }.value
        var (last, isLast) = (0, false)
        while !isLast {
            isLast = isWritten.withLock { $0 }
            let all = try await Self.list(reporter.report())
            #expect(all.count == 3000)
            let share = try #require(all.first?.share)
            let number = try #require(Int(share.dropFirst("share ".count)))
            #expect(all.allSatisfy { $0.share == share && $0.canEdit == permissions[number] }, "\(share)")
            #expect(all.enumerated().allSatisfy { $1.zone == Self.zone(Int64(2 + ($0 + 1 + number) % 3)) }, "\(share)")
            #expect(number >= last)
            let one = try #require(try await reporter.permission(of: all[7].record))
            let its = try #require(one.share.flatMap { Int($0.dropFirst("share ".count)) })
            #expect(its >= number && one.canEdit == permissions[its] && one.zone == Self.zone(Int64(2 + (8 + its) % 3)))
            last = number
        }
        try await writing
        #expect(last == permissions.count - 1)
    }

    @Test func `the stream of changes ends with an error when a store can't be read any longer`() async throws {
        let journal = try await fill()
        var changes = try await journal.permissions.changes().makeAsyncIterator()
        try await journal.save(Destination("another", caption: "another"))
        #expect(try await changes.next()?.hasRecords == true)
        let shared = try ContainerDirectory(openingAt: scratch.container).store(.shared)
        try DatabaseQueue.execute(shared, "DROP TABLE tide_shares")
        try await journal.save(Destination("a third", caption: "a third"))
        await #expect(throws: (any Error).self) { try await changes.next() }
    }

    @Test func `listeners are notified of changed shares and records, of this process and of others`() async throws {
        let journal = try await fill()
        let reading = try ReadOnlyContainer(directory: ContainerDirectory(openingAt: scratch.container))
        var here = try await journal.permissions.changes().makeAsyncIterator()
        var there = try await reading.permissions.changes().makeAsyncIterator()
        // The tables count, even if the permissions were read in the meantime; a save posts to the notifier.
        try places(.shared).note(Self.share(Self.zone(3), to: .named("Me", .privateUser)), of: 3)
        try places(.shared).change { db in try db.execute(sql: "DELETE FROM tide_shares WHERE zone = 4") }
        try places(.private).zone(2, Self.zone(2, of: nil))
        try await journal.save(Destination("another", caption: "another"))
        let expected = PermissionChange(zones: [Self.zone(2, of: nil), Self.zone(3), Self.zone(4)], hasRecords: true)
        #expect(try await here.next() == expected)
        #expect(try await there.next() == expected)
        // Another process.
        let set = try await Tool().run(["records", "set", scratch.container.path, "own", "caption=theirs"])
        #expect(set.status == 0, "\(set.errors)")
        #expect(try await here.next() == PermissionChange(zones: [], hasRecords: true))
        #expect(try await there.next() == PermissionChange(zones: [], hasRecords: true))
        // Another process changes only a share.
        let directory = try ContainerDirectory(openingAt: scratch.container)
        let other = try RecordStore(
            container: directory, scope: .shared, notifier: try StoreChangeNotifier(container: directory, role: .sync))
        let known = try #require(try await other.shares().first { $0.zone == Self.zone(3) })
        try await other.note(
            Self.share(Self.zone(3), to: .named("Me", .privateUser, .readOnly)), insteadOf: known)
        #expect(try await here.next() == PermissionChange(zones: [Self.zone(3)], hasRecords: false))
        #expect(try await there.next() == PermissionChange(zones: [Self.zone(3)], hasRecords: false))
    }

    // What can't be

    @Test func `an invalid zone or share is reported as an error, and not ignored`() async throws {
        let journal = try await fill()
        let places = try places(.shared)
        func expectDamage(_ text: String) async {
            let error = await #expect(throws: StoreError.self) { try await collect(journal.permissions.report()) }
            #expect(error?.code == .corrupt && error?.message.contains(text) == true, "\(error?.message ?? "none")")
        }
        try places.change { db in try db.execute(sql: "UPDATE tide_shares SET participant = '{' WHERE zone = 3") }
        await expectDamage("the share share of the zone Z3 has a wrong form")
        await #expect(throws: StoreError(.corrupt, "")) { try await journal.permissions.permissions(named: "locked") }
        // Other records can still be reported.
        #expect(try await journal.permissions.permissions(named: "theirs").count == 1)
        try places.change { db in
            try db.execute(sql: "UPDATE tide_shares SET participant = '', public_permission = 9 WHERE zone = 3")
        }
        await expectDamage("the share share of the zone Z3 has a wrong form")
        try places.change { db in try db.execute(sql: "DELETE FROM tide_zones WHERE id = 3") }
        await expectDamage("has records in the zone 3, and no such zone")
        try places.change { db in
            try db.execute(sql: "UPDATE Destination SET _zone = 2, _key = x'00' WHERE _zone = 3 AND _key = 'both'")
        }
        try places.change { db in try db.execute(sql: "UPDATE Destination SET _zone = 2 WHERE _zone = 3") }
        await expectDamage("has no key that can be one")
    }
}

import TestSupport
import Testing
import TidemarkModel
import TidemarkStore
import TidemarkSync

/// Goal: each change from the cloud is planned by the rules of decisions 017 (edit times), 020 (zones), 028 (damage) and 031 (a
/// restored cloud). Method: tables of facts and plans, without a store.
@Suite(.timeLimit(.minutes(30))) struct RemoteChangePlannerTests {
    private static let policies: [MergePolicy] = [
        .error, .latestEdit, .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .overwrite, .rollback,
    ]
    private static let fields = ["caption", "rating"]

    private static func time(_ microseconds: Int64, _ device: String = "here") -> EditTime {
        EditTime(microseconds: microseconds, device: device)
    }

    /// A local record of two fields.
    private static func local(
        _ values: [Value], pending: [Bool] = [true, true], tag: String? = "1", times: EditTimes = EditTimes(),
        stored: RowTimes? = nil, ancestor: [Value]? = ["old", 1]
    ) -> LocalRecord {
        LocalRecord(
            type: "Destination", name: "senja", fields: fields, values: values.map(\.field), isPending: pending, tag: tag,
            stored: stored, times: times, ancestor: ancestor?.map(\.field))
    }

    private static func remote(_ values: [Value], tag: String = "2", edited: EditTimes? = nil) -> RemoteVersion {
        RemoteVersion(tag: tag, values: values.map(\.field), edited: edited)
    }

    private static func context(time: Int64 = 1_000_000_000, mayMove: Bool = false) -> RemoteChangeContext {
        RemoteChangeContext(device: "here", time: time, mayMove: mayMove)
    }

    private static func planner(_ policy: MergePolicy) -> RemoteChangePlanner { RemoteChangePlanner { _ in policy } }

    /// The values after a merge; `nil` if a person has to decide.
    private static func merged(
        _ policy: MergePolicy, _ local: LocalRecord, _ remote: RemoteVersion, as relation: RemoteChangePlan.Relation = .edit,
        in context: RemoteChangeContext = context()
    ) throws -> [Value]? {
        guard case .write(let plan) = try planner(policy).merge(local, with: remote, as: relation, in: context) else {
            return nil
        }
        var values = remote.values
        for edit in plan.edits { values[edit.field] = edit.value }
        return values.map { Value($0) }
    }

    // Rows, by their tags

    @Test func `a row with the same tag that lacks a value of the record is applied again`() {
        for (isPending, plan) in [(false, RemoteChangePlan.Row.write), (true, .merge)] {
            let row = RemoteChangePlan.KnownRow(tag: "1", isPending: isPending, lacksValues: true)
            for occasion in [ImportOccasion.page, .answer] {
                #expect(Self.planner(.latestEdit).plan(for: row, tag: "1", occasion: occasion) == plan)
            }
        }
    }

    @Test(arguments: [
        // A page or an answer with the known tag changes nothing, with or without pending edits.
        (ImportOccasion.page, "1" as String?, false, RemoteChangePlan.Row.skip), (.page, "1", true, .skip),
        (.answer, "1", true, .skip),
        // A record with another tag is written, or merged if there are pending edits.
        (.page, "0", false, .write), (.page, "0", true, .merge), (.answer, "0", false, .write), (.page, nil, true, .merge),
        // A deferred version that is not the newest is looked up; the newest is applied.
        (.deferred, "0", false, .lookUp), (.deferred, "0", true, .lookUp), (.deferred, "1", false, .write),
        (.deferred, "1", true, .merge),
        // A record that was looked up, or resolved by a person, is applied whatever its tag.
        (.lookUp, "1", false, .write), (.lookUp, "1", true, .merge), (.resolved, "1", true, .merge),
    ])
    func `the tag and the occasion decide about a record whose row is here`(
        _ occasion: ImportOccasion, _ tag: String?, _ isPending: Bool, _ plan: RemoteChangePlan.Row
    ) {
        let planner = Self.planner(.error)
        #expect(planner.plan(for: .init(tag: tag, isPending: isPending), tag: "1", occasion: occasion) == plan)
    }

    @Test func `after a restoration of the cloud every record that the cloud had is compared`() {
        let planner = Self.planner(.error)
        for (tag, isPending, plan) in [
            ("1", false, .compare), ("1", true, .compare), (nil, true, .compare), (nil, false, .write),
        ]
            as [(String?, Bool, RemoteChangePlan.Row)]
        {
            #expect(
                planner.plan(for: .init(tag: tag, isPending: isPending, comparesAll: true), tag: "1", occasion: .page) == plan)
        }
        // Equal values with another tag are written, because later requests name the tag.
        #expect(planner.isUpToDate([.string("a"), .int64(1)], tag: "2", isPending: false, with: Self.remote(["a", 1])))
        #expect(!planner.isUpToDate([.string("a"), .int64(1)], tag: "1", isPending: false, with: Self.remote(["a", 1])))
        #expect(!planner.isUpToDate([.string("a"), .int64(1)], tag: "2", isPending: true, with: Self.remote(["a", 1])))
        #expect(!planner.isUpToDate([.string("a"), nil], tag: "2", isPending: false, with: Self.remote(["a", 1])))
    }

    // Merges

    @Test(arguments: policies.filter { if case .overwrite = $0 { false } else { $0.name != "rollback" } })
    func `a field that one side changed takes that side`(_ policy: MergePolicy) throws {
        let values = try Self.merged(policy, Self.local(["mine", 1], pending: [true, false]), Self.remote(["old", 5]))
        #expect(values == ["mine", 5])
    }

    @Test func `a field that both sides changed is resolved by the policy`() throws {
        let mine = Self.local(["mine", 1], pending: [true, false], times: EditTimes(fields: ["caption": Self.time(20)]))
        let theirs = Self.remote(["theirs", 1], edited: EditTimes(fields: ["caption": Self.time(10, "there")]))
        #expect(try Self.merged(.latestEdit, mine, theirs) == ["mine", 1])
        #expect(try Self.merged(.mergeByPropertyObjectTrump, mine, theirs) == ["mine", 1])
        #expect(try Self.merged(.mergeByPropertyStoreTrump, mine, theirs) == ["theirs", 1])
        #expect(try Self.merged(.overwrite, mine, theirs) == ["mine", 1])
        #expect(try Self.merged(.rollback, mine, theirs) == ["theirs", 1])
        guard case .unresolved(let fields) = try Self.planner(.error).merge(mine, with: theirs, as: .edit, in: Self.context())
        else {
            Issue.record("the policy 'error' leaves a conflict to a person")
            return
        }
        #expect(fields == ["caption"])
    }

    @Test func `the later edit by time counts as later, and no clock counts as more than five minutes ahead`() throws {
        let (now, minute): (Int64, Int64) = (1_000_000_000, 60_000_000)
        func winner(local: Int64, remote: Int64) throws -> Value? {
            try Self.merged(
                .latestEdit, Self.local(["mine", 1], times: EditTimes(otherwise: Self.time(local))),
                Self.remote(["theirs", 1], edited: EditTimes(otherwise: Self.time(remote, "there"))),
                in: Self.context(time: now))?[0]
        }
        #expect(try winner(local: 10, remote: 9) == "mine")
        #expect(try winner(local: 9, remote: 10) == "theirs")
        // Both count as five minutes ahead: the greater name of the device wins, which is "there".
        #expect(try winner(local: now + 90 * minute, remote: now + 6 * minute) == "theirs")
    }

    @Test func `equal values with a later edit here send only their time`() throws {
        let local = Self.local(
            ["same", 1], pending: [true, false], times: EditTimes(otherwise: Self.time(5), fields: ["caption": Self.time(20)]),
            stored: RowTimes(cloud: EditTimes(otherwise: Self.time(5))))
        let remote = Self.remote(
            ["same", 1], edited: EditTimes(otherwise: Self.time(5), fields: ["caption": Self.time(10, "there")]))
        guard case .write(let plan) = try Self.planner(.latestEdit).merge(local, with: remote, as: .edit, in: Self.context())
        else {
            Issue.record("equal values are no conflict")
            return
        }
        #expect(plan.edits.isEmpty && plan.renewals == [0] && plan.conflicts.isEmpty)
        #expect(plan.edited.here["caption"] == Self.time(20) && plan.edited.cloud("caption") == Self.time(10, "there"))
    }

    @Test func `without a common ancestor, fields that differ are in conflict`() throws {
        let local = Self.local(["mine", 1], ancestor: nil)
        #expect(try Self.merged(.error, local, Self.remote(["theirs", 1])) == nil)
        #expect(try Self.merged(.mergeByPropertyObjectTrump, local, Self.remote(["theirs", 1])) == ["mine", 1])
    }

    @Test func `a record that another device made again does not clear fields that were edited here`() throws {
        // The cloud has no tag of the local record; the other device has set only the caption.
        let local = Self.local(
            ["mine", 7], tag: nil, times: EditTimes(otherwise: Self.time(20)),
            stored: RowTimes(cloud: EditTimes(otherwise: Self.time(1))), ancestor: ["old", 1])
        let remote = Self.remote(["old", nil], edited: EditTimes(otherwise: Self.time(30, "there")))
        #expect(try Self.merged(.mergeByPropertyStoreTrump, local, remote) == ["mine", 7])
    }

    // Deletions

    @Test func `a deletion in the cloud deletes a record without edits, and ends the conflict of a new record`() {
        let planner = Self.planner(.error)
        #expect(planner.plan(forDeletionOf: .init(tag: "1", isPending: false)) == .delete)
        #expect(planner.plan(forDeletionOf: .init(tag: "1", isPending: true)) == .merge)
        #expect(planner.plan(forDeletionOf: .init(tag: nil, isPending: true, isNew: true)) == .endConflict)
        #expect(planner.plan(forDeletionOf: .init(tag: nil, isPending: true, isNew: false)) == .merge)
    }

    @Test func `an edit meets a deletion in the cloud`() throws {
        let edited = Self.local(["mine", 1], pending: [true, false])
        for policy in [.mergeByPropertyObjectTrump, .latestEdit, .overwrite] as [MergePolicy] {
            guard case .sendAgain(let conflicts) = try Self.planner(policy).plan(forDeletionOf: edited) else {
                Issue.record("\(policy.name) keeps the edit")
                continue
            }
            #expect(conflicts.count == 1 && conflicts.first?.field == nil)
        }
        for policy in [.mergeByPropertyStoreTrump, .rollback] as [MergePolicy] {
            guard case .delete = try Self.planner(policy).plan(forDeletionOf: edited) else {
                Issue.record("\(policy.name) takes the deletion")
                continue
            }
        }
        #expect(try Self.planner(.error).plan(forDeletionOf: edited) == .unresolved)
        // A record without edits is deleted under every policy, without a conflict.
        for policy in Self.policies {
            #expect(try Self.planner(policy).plan(forDeletionOf: Self.local(["old", 1])) == .delete([]))
        }
    }

    @Test func `an edit in the cloud meets a deletion made here`() throws {
        let name = RecordName(type: "Destination", name: "senja")
        func plan(_ policy: MergePolicy, _ values: [Value], ancestor: [Value]?) throws -> RemoteChangePlan.Restoration {
            try Self.planner(policy).plan(
                forDeleted: name, fields: Self.fields, ancestor: ancestor?.map(\.field), edited: Self.remote(values))
        }
        for policy in [.mergeByPropertyObjectTrump, .latestEdit, .overwrite] as [MergePolicy] {
            guard case .restore(let conflicts) = try plan(policy, ["theirs", 1], ancestor: ["old", 1]) else {
                Issue.record("\(policy.name) keeps the edit")
                continue
            }
            #expect(conflicts.count == 1)
        }
        for policy in [.mergeByPropertyStoreTrump, .rollback] as [MergePolicy] {
            guard case .deleteAgain = try plan(policy, ["theirs", 1], ancestor: ["old", 1]) else {
                Issue.record("\(policy.name) takes the deletion")
                continue
            }
        }
        #expect(try plan(.error, ["theirs", 1], ancestor: ["old", 1]) == .unresolved)
        for policy in Self.policies { #expect(try plan(policy, ["old", 1], ancestor: ["old", 1]) == .deleteAgain([])) }
        // An edit of a field that the type here can't hold counts as an edit.
        let hidden = RemoteVersion(tag: "2", values: Self.remote(["old", 1]).values, edited: nil, isWhole: false)
        func hiddenPlan(_ policy: MergePolicy) throws -> RemoteChangePlan.Restoration {
            try Self.planner(policy).plan(
                forDeleted: name, fields: Self.fields, ancestor: (["old", 1] as [Value]).map(\.field), edited: hidden)
        }
        guard case .restore = try hiddenPlan(.latestEdit), case .deleteAgain = try hiddenPlan(.rollback) else {
            Issue.record("a hidden edit goes by the policy")
            return
        }
        #expect(try hiddenPlan(.error) == .unresolved)
    }

    @Test func `a pending deletion keeps out the deleted version, and no other record`() {
        let planner = Self.planner(.error)
        func plan(
            _ deleted: String?, isOfType: Bool = true, mayMove: Bool = false, isMove: Bool = false,
            _ occasion: ImportOccasion = .page
        ) -> RemoteChangePlan.Deleted {
            planner.plan(
                for: .init(tag: deleted, isOfType: isOfType, mayMove: mayMove), tag: "2", occasion: occasion, isMove: { isMove })
        }
        #expect(plan("2") == .keep && plan("1") == .merge)
        // A person has decided.
        #expect(plan("2", .resolved) == .merge)
        // The name belongs to another type by now, or the record has moved.
        #expect(plan("1", isOfType: false) == .restore)
        #expect(plan("1", mayMove: true, isMove: true) == .restore && plan("1", mayMove: true) == .merge)
        // In a store whose names stay in their zones no move is looked up.
        #expect(plan("1", isMove: true) == .merge)
        // A deferred version may be older than the deleted one.
        #expect(plan("2", .deferred) == .keep && plan("3", .deferred) == .lookUp)
    }

    @Test func `after a restoration of the cloud a record is deleted again if its last edit was earlier`() {
        let planner = Self.planner(.latestEdit)
        #expect(planner.deletesAgain(EditTimes(otherwise: Self.time(9)), deleted: 10))
        #expect(!planner.deletesAgain(EditTimes(otherwise: Self.time(9), fields: ["a": Self.time(11)]), deleted: 10))
        #expect(!planner.deletesAgain(nil, deleted: 10) && !planner.deletesAgain(EditTimes(), deleted: 10))
    }

    @Test func `a record of another type keeps its name while it has unsent edits`() {
        #expect(Self.planner(.error).blocksName(true) && !Self.planner(.error).blocksName(false))
    }

    @Test func `records with equal keys are merged under every policy`() {
        #expect(Self.planner(.error).uniqueKeyPolicy("Destination").name == MergePolicy.latestEdit.name)
        #expect(Self.planner(.rollback).uniqueKeyPolicy("Destination").name == MergePolicy.rollback.name)
    }

    // Copies in two zones

    @Test func `of two copies the zone of the last move wins, and both devices choose the same`() {
        typealias Copy = RemoteChangePlan.ZoneCopy
        let planner = Self.planner(.error)
        func copy(_ zone: String, moved: Int64? = nil, isDefault: Bool = false) -> Copy {
            Copy(isDefaultZone: isDefault, zone: zone, moved: moved.map { Self.time($0) })
        }
        let pairs: [(home: Copy, other: Copy)] = [
            (copy("a", moved: 2), copy("b", moved: 1)), (copy("a", moved: 1), copy("b")),
            // Without times a shared zone comes before the default zone, and otherwise the lesser name.
            (copy("z"), copy("_default", isDefault: true)), (copy("a"), copy("b")),
        ]
        for (home, other) in pairs {
            #expect(planner.isHome(home, insteadOf: other))
            #expect(!planner.isHome(other, insteadOf: home))
        }
    }

    @Test func `a copy without a value takes the other copy's, unless a device has cleared the field`() throws {
        func merged(cleared: EditTime?) throws -> [Value] {
            let times = EditTimes(otherwise: Self.time(1), fields: cleared.map { ["rating": $0] } ?? [:])
            let local = Self.local(["same", nil], times: times, ancestor: nil)
            let plan = try Self.planner(.latestEdit).merge(
                copy: Self.remote(["same", 5], edited: EditTimes(otherwise: Self.time(2, "there"))), into: local,
                in: Self.context())
            guard case .write(let changes, _, _) = plan else { return [] }
            var values = local.values
            for change in changes { values[change.field] = change.value }
            return values.map { Value($0) }
        }
        #expect(try merged(cleared: nil) == ["same", 5])
        #expect(try merged(cleared: Self.time(3)) == ["same", nil])
    }

    @Test func `a copy without edits of its own is never left to a person`() throws {
        let local = Self.local(["mine", 1], ancestor: nil)
        #expect(try Self.merged(.error, local, Self.remote(["theirs", 1]), as: .copy(isEdited: false)) != nil)
        #expect(try Self.merged(.error, local, Self.remote(["theirs", 1]), as: .copy(isEdited: true)) == nil)
    }
}

/// A field's value, or `nil`, as a literal.
private struct Value: Equatable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByNilLiteral {
    let field: FieldValue?

    init(_ field: FieldValue?) { self.field = field }
    init(stringLiteral value: String) { field = .string(value) }
    init(integerLiteral value: Int64) { field = .int64(value) }
    init(nilLiteral: ()) { field = nil }
}

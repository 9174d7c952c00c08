import Testing
import TidemarkModel

/// Goal: each merge policy resolves conflicts as documented, and the common rules hold for all policies. Method: one conflict
/// under each; then all small cases.
@Suite(.timeLimit(.minutes(30))) struct MergeTests {
    private static let ancestor: [String: FieldValue] = ["caption": .string("a"), "rating": .int64(1), "details": .string("d")]
    private static let local: [String: FieldValue] = ["caption": .string("mine"), "rating": .int64(2), "details": .string("d")]
    private static let store: [String: FieldValue] = [
        "caption": .string("theirs"), "rating": .int64(1), "details": .string("new"),
    ]

    private func merge(_ policy: MergePolicy, localTime: Int64 = 2, storeTime: Int64 = 1) throws -> [String: FieldValue]? {
        let merge = RecordMerge(
            type: "Destination", record: "senja", ancestor: RecordVersion(Self.ancestor),
            local: RecordVersion(Self.local, times: ["caption": EditTime(microseconds: localTime, device: "a")]),
            store: RecordVersion(Self.store, times: ["caption": EditTime(microseconds: storeTime, device: "b")]))
        return try merge.run(policy).values
    }

    private func caption(_ caption: String) -> [String: FieldValue] {
        ["caption": .string(caption), "rating": .int64(2), "details": .string("new")]
    }

    @Test func `error reports the record with its three versions`() {
        let error = #expect(throws: RecordMerge.Unresolved.self) { _ = try merge(.error) }
        #expect(error?.fields == ["caption"])
        #expect(error?.ancestor?.values == Self.ancestor)
        #expect(error?.local?.values == Self.local)
        #expect(error?.store?.values == Self.store)
    }

    @Test func `store trump takes the store's value of the field, and one-sided changes of both`() throws {
        #expect(try merge(.mergeByPropertyStoreTrump) == caption("theirs"))
    }

    @Test func `object trump takes the local value of the field, and one-sided changes of both`() throws {
        #expect(try merge(.mergeByPropertyObjectTrump) == caption("mine"))
    }

    @Test func `overwrite takes the whole local record`() throws {
        #expect(try merge(.overwrite) == Self.local)
    }

    @Test func `rollback takes the whole record of the store`() throws {
        #expect(try merge(.rollback) == Self.store)
    }

    @Test func `latest edit takes the later edit of the field, ties by device`() throws {
        #expect(try merge(.latestEdit, localTime: 2, storeTime: 1) == caption("mine"))
        #expect(try merge(.latestEdit, localTime: 1, storeTime: 2) == caption("theirs"))
        #expect(try merge(.latestEdit, localTime: 1, storeTime: 1) == caption("theirs"))
    }

    @Test func `a custom rule decides, for all fields or for some`() throws {
        let rule = MergeRule { conflict in
            guard case .string(let mine) = conflict.local, case .string(let theirs) = conflict.store else { return nil }
            return .string("\(mine)+\(theirs)")
        }
        #expect(try merge(.custom(rule)) == caption("mine+theirs"))
        #expect(try merge(.custom(.byField(["caption": .mergeByPropertyStoreTrump]))) == caption("theirs"))
        #expect(try merge(.custom(.byField(["details": .mergeByPropertyStoreTrump]))) == caption("mine"))
        let error = #expect(throws: RecordMerge.Unresolved.self) { _ = try merge(.custom(.byField(["caption": .error]))) }
        #expect(error?.fields == ["caption"])
        #expect(error?.store?.values == Self.store)
    }

    @Test func `a clock that runs more than five minutes ahead counts as five minutes ahead`() {
        let now: Int64 = 1_000_000_000
        let ahead = EditTime(microseconds: now + 3_600_000_000, device: "a")
        #expect(ahead.clamped(to: now).microseconds == now + 300_000_000)
        #expect(EditTime(microseconds: 5, device: "a").clamped(to: now).microseconds == 5)
    }

    @Test(arguments: [
        ("mergeByPropertyObjectTrump", true), ("latestEdit", true), ("overwrite", true), ("mergeByPropertyStoreTrump", false),
        ("rollback", false),
    ])
    func `an edit that the deleter has not seen brings the record back, or the deletion wins, by policy`(
        name: String, stays: Bool
    ) throws {
        let policy = try #require(MergePolicy(name: name))
        let ancestor = RecordVersion(Self.ancestor)
        let edited = RecordVersion(Self.local)
        let atTheEditor = RecordMerge(type: "D", record: "r", ancestor: ancestor, local: edited, store: nil)
        let atTheDeleter = RecordMerge(type: "D", record: "r", ancestor: ancestor, local: nil, store: edited)
        for merge in [atTheEditor, atTheDeleter] {
            let (values, conflicts) = try merge.run(policy)
            #expect(values == (stays ? edited.values : nil))
            #expect(conflicts.count == 1)
            #expect(throws: RecordMerge.Unresolved.self) { _ = try merge.run(.error) }
        }
    }

    /// A record of two fields, each without a value or with one of two.
    private static let versions: [[String: FieldValue]] = [nil, 1, 2].flatMap { (a: Int64?) in
        [nil, 1, 2].map { (b: Int64?) in
            var values: [String: FieldValue] = [:]
            if let a { values["a"] = .int64(a) }
            if let b { values["b"] = .int64(b) }
            return values
        }
    }

    private func everyCase(
        _ body: (_ ancestor: RecordVersion, _ one: RecordVersion, _ other: RecordVersion) throws -> Void
    ) rethrows {
        for ancestor in Self.versions {
            for one in Self.versions {
                for other in Self.versions {
                    try body(
                        RecordVersion(ancestor),
                        RecordVersion(
                            one,
                            times: Dictionary(uniqueKeysWithValues: ["a", "b"].map { ($0, .init(microseconds: 1, device: "x")) })),
                        RecordVersion(
                            other,
                            times: Dictionary(uniqueKeysWithValues: ["a", "b"].map { ($0, .init(microseconds: 1, device: "y")) }))
                    )
                }
            }
        }
    }

    @Test func `the latest edit gives the same result from both sides`() throws {
        try everyCase { ancestor, one, other in
            let here = try RecordMerge(type: "D", record: "r", ancestor: ancestor, local: one, store: other).run(.latestEdit)
            let there = try RecordMerge(type: "D", record: "r", ancestor: ancestor, local: other, store: one).run(.latestEdit)
            #expect(here.values == there.values)
        }
    }

    @Test func `object trump on one side is store trump on the other`() throws {
        try everyCase { ancestor, one, other in
            let here = try RecordMerge(type: "D", record: "r", ancestor: ancestor, local: one, store: other)
                .run(.mergeByPropertyObjectTrump)
            let there = try RecordMerge(type: "D", record: "r", ancestor: ancestor, local: other, store: one)
                .run(.mergeByPropertyStoreTrump)
            #expect(here.values == there.values)
        }
    }

    @Test func `a field that one side changed takes that side's value, under every policy that merges by field`() throws {
        let policies: [MergePolicy] = [.error, .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .latestEdit]
        everyCase { ancestor, one, other in
            for policy in policies {
                let merge = RecordMerge(type: "D", record: "r", ancestor: ancestor, local: one, store: other)
                guard let values = try? merge.run(policy).values else { continue }
                for field in ["a", "b"] where one.values[field] == ancestor.values[field] {
                    #expect(values[field] == other.values[field])
                }
                for field in ["a", "b"] where other.values[field] == ancestor.values[field] {
                    #expect(values[field] == one.values[field])
                }
            }
        }
    }

    @Test func `every value that is dropped is in the log`() throws {
        let policies: [MergePolicy] = [
            .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .latestEdit, .overwrite, .rollback,
        ]
        try everyCase { ancestor, one, other in
            for policy in policies {
                let (values, log) = try RecordMerge(type: "D", record: "r", ancestor: ancestor, local: one, store: other).run(
                    policy)
                for field in ["a", "b"] {
                    let result = values?[field]
                    for side in [one, other] where side.values[field] != ancestor.values[field] && side.values[field] != result {
                        #expect(log.contains { $0.field == field })
                    }
                }
            }
        }
    }

    private static let policies: [MergePolicy] = [
        .error, .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .overwrite, .rollback, .latestEdit,
        .custom(MergeRule { $0.ancestor }), .custom(.byField(["a": .error])),
    ]

    @Test func `values in the order of their fields are merged as values by name, under every policy`() throws {
        let fields = ["a", "b"]
        func inOrder(_ version: RecordVersion) -> [FieldValue?] { fields.map { version.values[$0] } }
        everyCase { ancestor, one, other in
            for (policy, before) in Self.policies.flatMap({ [($0, ancestor as RecordVersion?), ($0, nil)] }) {
                let byName = Result {
                    try RecordMerge(type: "D", record: "r", ancestor: before, local: one, store: other).run(policy)
                }
                let byPlace = Result {
                    try FieldMerge(type: "D", record: "r", fields: fields).run(
                        policy, ancestor: before.map(inOrder), local: inOrder(one), store: inOrder(other),
                        times: { (nil, one.times[fields[$0]], other.times[fields[$0]]) })
                }
                switch (byName, byPlace) {
                case (.success(let byName), .success(let byPlace)):
                    var values = inOrder(other)
                    for (field, value) in byPlace.edits {
                        #expect(values[field] != value)
                        values[field] = value
                    }
                    #expect(fields.map { byName.values?[$0] } == values)
                    #expect(byName.conflicts == byPlace.conflicts)
                case (.failure(let byName as RecordMerge.Unresolved), .failure(let byPlace as FieldMerge.Unresolved)):
                    #expect(byName.fields == byPlace.fields)
                default: Issue.record("\(byName) and \(byPlace)")
                }
            }
        }
    }

    private static let weighing: [MergePolicy] = [
        .latestEdit, .error, .custom(.byField([:], otherwise: .latestEdit)), .custom(.byField(["a": .latestEdit])),
    ]
    private static let notWeighing: [MergePolicy] = [
        .mergeByPropertyObjectTrump, .mergeByPropertyStoreTrump, .overwrite, .rollback, .custom(MergeRule { $0.local }),
        .custom(.byField(["b": .latestEdit])),
    ]

    /// A field on both sides, the times of its edits, and the result of the merge.
    private func merge(
        _ policy: MergePolicy, ancestor: Int64??, local: Int64?, store: Int64?,
        times: (ancestor: Int64?, local: Int64?, store: Int64?)
    ) throws -> (edits: [FieldMerge.Edit], renewals: [Int], conflicts: [MergeConflict]) {
        func time(_ moment: Int64?) -> EditTime? { moment.map { EditTime(microseconds: $0, device: "x") } }
        return try FieldMerge(type: "D", record: "r", fields: ["a"]).run(
            policy, ancestor: ancestor.map { [$0.map { .int64($0) }] }, local: [local.map { .int64($0) }],
            store: [store.map { .int64($0) }],
            times: { _ in (time(times.ancestor), time(times.local), time(times.store)) })
    }

    @Test func `an equal value that the local side edited later is renewed, if times count`() throws {
        for (ancestor, value) in [(1, 2), (nil, 2), (.some(nil), 2), (1, nil)] as [(Int64??, Int64?)] {
            for (policies, isRenewed) in [(Self.weighing, true), (Self.notWeighing, false)] {
                for policy in policies {
                    func renewals(_ local: Int64?, _ store: Int64?) throws -> [Int] {
                        let merged = try merge(
                            policy, ancestor: ancestor, local: value, store: value, times: (1, local, store))
                        #expect(merged.edits.isEmpty && merged.conflicts.isEmpty)
                        return merged.renewals
                    }
                    #expect(try renewals(3, 2) == (isRenewed ? [0] : []), "\(policy.name)")
                    #expect(try renewals(3, nil) == (isRenewed ? [0] : []), "\(policy.name)")
                    #expect(try renewals(2, 2) == [])
                    #expect(try renewals(2, 3) == [])
                    #expect(try renewals(nil, 2) == [])
                }
            }
        }
        // Neither side has edited it, or only the other side.
        #expect(try merge(.latestEdit, ancestor: 1, local: 1, store: 1, times: (1, 1, 1)).renewals == [])
        #expect(try merge(.latestEdit, ancestor: 1, local: 1, store: 1, times: (2, 2, 1)).renewals == [])
    }

    @Test func `a field that was changed and changed back counts as edited if times count`() throws {
        func value(_ policy: MergePolicy, local: (Int64, at: Int64), store: (Int64, at: Int64), since: Int64? = 1) throws -> Int64
        {
            let merged = try merge(
                policy, ancestor: 1, local: local.0, store: store.0, times: (since, local.at, store.at))
            guard case .int64(let value)? = merged.edits.first?.value else { return store.0 }
            return value
        }
        for isWeighed in [true, false] {
            let policy: MergePolicy = .custom(.byField(["a": isWeighed ? .latestEdit : .mergeByPropertyObjectTrump]))
            #expect(try value(policy, local: (1, at: 3), store: (2, at: 2)) == (isWeighed ? 1 : 2))
            #expect(try value(policy, local: (2, at: 2), store: (1, at: 3)) == (isWeighed ? 1 : 2))
            #expect(try value(policy, local: (1, at: 2), store: (2, at: 3)) == 2)
            #expect(try value(policy, local: (2, at: 3), store: (1, at: 2)) == 2)
            // An edit that followed one whose clock ran ahead.
            #expect(try value(policy, local: (2, at: 3), store: (1, at: 9), since: 9) == 2)
            // The time of the edit before is unknown.
            #expect(try value(policy, local: (1, at: 3), store: (2, at: 2), since: nil) == 2)
        }
        #expect(throws: FieldMerge.Unresolved.self) { _ = try value(.error, local: (1, at: 3), store: (2, at: 2)) }
        // A record that was made again has a time for each field; fields without a value are not edits.
        let made = try merge(.latestEdit, ancestor: .some(nil), local: 2, store: nil, times: (1, 2, 3))
        #expect(made.edits.count == 1 && made.conflicts.isEmpty)
    }

    @Test func `another encoding of the same characters is an edit`() throws {
        let (one, other) = ("\u{e9}t\u{e9}", "e\u{301}te\u{301}")
        let merge = RecordMerge(
            type: "D", record: "r", ancestor: RecordVersion(["a": .string(one)]), local: RecordVersion(["a": .string(other)]),
            store: RecordVersion(["a": .string(one)]))
        guard case .string(let value) = try merge.run(.error).values?["a"] else { throw RecordMergeHasNoValue() }
        #expect(Array(value.utf8) == Array(other.utf8))
    }

    private struct RecordMergeHasNoValue: Error {}
}

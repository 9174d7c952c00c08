import Foundation
import TidemarkCloud
import TidemarkModel

extension CloudContract {
    static func child(
        _ name: String, of parent: String?, _ fields: [String: CloudValue] = ["n": .int64(1)], in zone: CloudZoneID = zone
    ) -> CloudRecord {
        var child = record(name, fields, in: zone)
        child.parent = parent
        return child
    }

    /// Makes a zone with the hierarchy `root` – `leaf`, `branch` – `twig`, which is shared with Ben. `above` is the parent of
    /// `root`. Outside of the hierarchy are `secret` – `under`.
    static func tree(
        _ subject: any Subject, _ permission: ShareParticipant.Permission = .readWrite
    ) async throws -> (owner: any SharingDatabase, ben: any SharingDatabase, zone: CloudZoneID, share: CloudShare) {
        let (owner, theirs) = try await sharedJournal(subject, ["above", "secret"])
        for (name, parent) in [
            ("root", "above"), ("leaf", "root"), ("branch", "root"), ("twig", "branch"), ("under", "secret"),
        ] { try await save(child(name, of: parent), .create, to: owner) }
        let share = try await owner.createShare(
            in: zone, coverage: .hierarchy(root: "root"), title: "Tree", publicPermission: .none)
        return (owner, try await join(subject, share, of: owner, ben, permission), theirs, share)
    }

    private static func told(_ changes: [ZoneChanges.Change]) -> Set<String> {
        Set(names(changes).map { $0.hasPrefix("Share-") ? "share" : $0 })
    }

    static let hierarchies: [Check] = [
        Check("of a hierarchy that is shared nobody sees more than the root, what hangs below, and the share") { subject in
            let (owner, ben, theirs, share) = try await tree(subject)
            try expect(share.id.recordName.wholeMatch(of: #/Share-[0-9A-F-]{36}/#) != nil, share.id.recordName)
            try equal(told(try await allChanges(in: ben, zone: theirs).changes), ["root", "leaf", "branch", "twig", "share"])
            try equal(
                told(try await allChanges(in: ben, limit: 1, zone: theirs).changes), ["root", "leaf", "branch", "twig", "share"])
            for name in ["root", "leaf", "branch", "twig", share.id.recordName] {
                try expect(try await lookup(name, in: ben, zone: theirs) != nil, "\(name) is not seen")
            }
            // Records outside of the hierarchy look like missing ones.
            let answers = try await ben.lookup(["secret", "nothing", "above", "under"], in: theirs, desiredKeys: nil)
            try equal(Set(answers.map { "\($0)" }).count, 1)
            // The parent of the root is not visible.
            try equal(try await lookup("root", in: ben, zone: theirs)?.parent, nil)
            try equal(try await lookup("root", in: owner)?.parent, "above")
            try equal(try await lookup("twig", in: ben, zone: theirs)?.parent, "branch")
            try equal(try await ben.shares(in: theirs).map(\.coverage), [.hierarchy(root: "root")])
            for (field, type) in [("recordName", "Destination"), ("n", "Destination")] {
                try await subject.index(field, of: type)
            }
            func found(_ filters: [CloudQuery.Filter], in database: any CloudDatabase) async throws -> Set<String> {
                let answer = try await database.query(
                    CloudQuery(recordType: "Destination", filters: filters), in: theirs, limit: nil, desiredKeys: nil,
                    continuation: nil)
                return Set(answer.records.map(\.id.recordName))
            }
            try equal(try await found([], in: ben), ["root", "leaf", "branch", "twig"])
            try equal(try await found([.init(.field("n"), .equals, .int64(1))], in: ben), ["root", "leaf", "branch", "twig"])
            try equal(try await found([.init(.parent, .equals, .string("root"))], in: ben), ["leaf", "branch"])
            try equal(try await found([.init(.parent, .equals, .string("above"))], in: ben), [])
            try equal(try await found([.init(.parent, .equals, .string("above"))], in: owner), ["root"])
        },
        Check("what comes into a hierarchy is told as saved, and what leaves it as deleted; nothing else is told") { subject in
            let (owner, ben, theirs, share) = try await tree(subject)
            func move(_ name: String, below parent: String?) async throws {
                let there = try await lookup(name, in: owner)
                try await save(child(name, of: parent, there?.fields ?? [:]), .forceReplace, to: owner)
            }
            var (token, zones) = (
                try await allChanges(in: ben, zone: theirs).token, try await ben.databaseChanges(since: nil, limit: nil).token
            )
            func news() async throws -> Set<String> {
                let page = try await allChanges(in: ben, since: token, limit: 2, zone: theirs)
                let changes = try await ben.databaseChanges(since: zones, limit: nil)
                try equal(changes.changed.isEmpty, page.changes.isEmpty)
                (token, zones) = (page.token, changes.token)
                return told(page.changes)
            }
            try await save(record("secret", ["n": .int64(2)]), .forceUpdate, to: owner)
            try await save(child("deep", of: "under"), .create, to: owner)
            try await save(record("free"), .create, to: owner)
            _ = try await one(.delete(CloudRecordID("free", in: zone)), to: owner)
            try equal(try await news(), [])
            try await move("secret", below: "leaf")
            try equal(try await news(), ["secret", "under", "deep"])
            try equal(try await lookup("deep", in: ben, zone: theirs)?.fields, ["n": .int64(1)])
            try await save(record("deep", ["n": .int64(3)]), .forceUpdate, to: owner)
            try equal(try await news(), ["deep"])
            try await move("under", below: "above")
            try equal(try await news(), ["-under", "-deep"])
            try equal(try await lookup("deep", in: ben, zone: theirs), nil)
            try await save(record("deep", ["n": .int64(4)]), .forceUpdate, to: owner)
            _ = try await one(.delete(CloudRecordID("deep", in: zone)), to: owner)
            try equal(try await news(), [])
            // A move within the hierarchy removes nothing from it.
            try await move("branch", below: "secret")
            try equal(try await news(), ["branch"])
            _ = try await one(.delete(CloudRecordID("twig", in: zone)), to: owner)
            try equal(try await news(), ["-twig"])
            // A record enters the hierarchy and leaves it again. A participant who has not fetched in between gets nothing of its
            // contents.
            try await save(child("brief", of: "leaf"), .create, to: owner)
            try await move("brief", below: nil)
            try expect(try await news().isSubset(of: ["-brief"]), "more was told")
            _ = try await owner.changeShare(share.id, [.setTitle("Trees")])
            try equal(try await news(), ["share"])
            // A record below another one can't become its parent.
            try failed(try await one(RecordOperation(.forceUpdate, child("secret", of: "branch")), to: owner), .invalidArguments)
        },
        Check("who comes later is not told what left a hierarchy before") { subject in
            let (owner, _, theirs, share) = try await tree(subject)
            _ = try await one(.delete(CloudRecordID("leaf", in: zone)), to: owner)
            try await save(child("twig", of: nil), .forceReplace, to: owner)
            let cleo = try await join(subject, share, of: owner, cleo)
            try equal(told(try await allChanges(in: cleo, limit: 1, zone: theirs).changes), ["root", "branch", "share"])
        },
        Check("what has left one hierarchy and is shared anew is told, wherever a page ends") { subject in
            let (owner, ben, theirs, _) = try await tree(subject)
            for name in ["twig", "leaf"] { try await save(child(name, of: nil), .forceReplace, to: owner) }
            let second = try await owner.createShare(
                in: zone, coverage: .hierarchy(root: "leaf"), title: "Leaf", publicPermission: .none)
            _ = try await join(subject, second, of: owner, Self.ben)
            for limit in 1...5 {
                let all = told(try await allChanges(in: ben, limit: limit, zone: theirs).changes)
                try equal(all.subtracting(["-twig"]), ["root", "branch", "leaf", "share"])
            }
        },
        Check("a participant of a hierarchy adds below it and nowhere else, and finds no names by trying") { subject in
            let (owner, ben, theirs, share) = try await tree(subject)
            func put(_ name: String, _ parent: String?, _ kind: RecordOperation.Kind = .create) async throws -> RecordOutcome {
                try await one(RecordOperation(kind, child(name, of: parent, in: theirs)), to: ben)
            }
            let name = UUID().uuidString
            guard case .saved(let saved) = try await put(name, "leaf") else { throw Violation(description: "not saved") }
            try equal(saved.parent, "leaf")
            try denied(.stranger, try await put(UUID().uuidString, nil))
            // A UUID of another version may follow from contents, and could be guessed.
            try failed(try await put("5F5B1A4C-3C11-8B2E-9D5A-0A1B2C3D4E5F", "leaf"), .invalidArguments)
            // A parent outside of the hierarchy looks like a missing one.
            for parent in ["secret", "nothing", "above"] {
                try failed(try await put(UUID().uuidString, parent), .referenceViolation)
                try failed(try await put("leaf", parent, .forceUpdate), .referenceViolation)
            }
            try failed(try await put(UUID().uuidString, share.id.recordName), .invalidArguments)
            // A name that is taken outside of the hierarchy looks like a free one.
            let taken = UUID().uuidString
            try await save(record(taken, ["n": .int64(9)]), .create, to: owner)
            for kind in RecordOperation.Kind.allCases {
                func answer(_ name: String) async throws -> String {
                    var given = child(name, of: "leaf", in: theirs)
                    given.changeTag = try await lookup("secret", in: owner)?.changeTag
                    return "\(try await one(RecordOperation(kind, given), to: ben))".replacing(name, with: "NAME")
                }
                try equal(try await answer("secret"), try await answer("nothing"))
                if kind == .create || kind == .forceUpdate {
                    try failed(try await put("secret", "leaf", kind), .invalidArguments)
                }
                if kind == .forceReplace { try failed(try await put(taken, "leaf", kind), .invalidArguments) }
            }
            try equal(try await lookup("secret", in: owner)?.fields, ["n": .int64(1)])
            try equal(try await lookup(taken, in: owner)?.fields, ["n": .int64(9)])
            // References reveal nothing, either.
            for action in [CloudReference.Action.validate, .deleteSelf] {
                func refer(to target: String) async throws -> RecordOutcome {
                    try await one(
                        RecordOperation(
                            .forceUpdate, record("leaf", ["see": .reference(CloudReference(target, action: action))], in: theirs)),
                        to: ben)
                }
                try failed(try await refer(to: "secret"), .referenceViolation)
                try failed(try await refer(to: "nothing"), .referenceViolation)
                guard case .saved = try await refer(to: "twig") else {
                    throw Violation(description: "a reference within was refused")
                }
            }
        },
        Check("a participant of a hierarchy neither deletes its root nor moves anything out of it") { subject in
            let (owner, ben, theirs, _) = try await tree(subject)
            func put(_ name: String, _ parent: String?, _ kind: RecordOperation.Kind) async throws -> RecordOutcome {
                try await one(RecordOperation(kind, child(name, of: parent, in: theirs)), to: ben)
            }
            try denied(.rootIsTheOwners, try await one(.delete(CloudRecordID("root", in: theirs)), to: ben))
            try denied(.zonesAreTheOwners, try await put("leaf", nil, .forceReplace))
            try denied(.zonesAreTheOwners, try await put("root", "leaf", .forceUpdate))
            guard case .saved = try await put("root", nil, .forceReplace) else {
                throw Violation(description: "the root was not saved")
            }
            try equal(try await lookup("root", in: owner)?.parent, "above")
            guard case .saved = try await put("leaf", "branch", .forceReplace) else {
                throw Violation(description: "not moved within")
            }
            // A deletion by a reference reveals nothing, either.
            try await save(
                child("root", of: "above", ["see": .reference(CloudReference("leaf", action: .deleteSelf))]), .forceReplace,
                to: owner)
            try denied(.rootIsTheOwners, try await one(.delete(CloudRecordID("leaf", in: theirs)), to: ben))
            try expect(try await lookup("leaf", in: owner) != nil, "the leaf went all the same")
            guard case .deleted = try await one(.delete(CloudRecordID("twig", in: theirs)), to: ben) else {
                throw Violation(description: "not deleted")
            }
        },
        Check("records lose a parent that is deleted, and the share ends with its root") { subject in
            let (owner, ben, theirs, share) = try await tree(subject)
            let (mark, seen) = (try await allChanges(in: owner).token, try await allChanges(in: ben, zone: theirs).token)
            _ = try await one(.delete(CloudRecordID("branch", in: theirs)), to: ben)
            try equal(names(try await allChanges(in: owner, since: mark).changes), ["-branch", "twig"])
            try equal(told(try await allChanges(in: ben, since: seen, zone: theirs).changes), ["-branch", "-twig"])
            try equal(try await lookup("twig", in: owner)?.parent, nil)
            try equal(try await lookup("twig", in: owner)?.fields, ["n": .int64(1)])
            // A new record of the parent's name does not give access to the records that had this parent.
            try failed(
                try await one(RecordOperation(.create, child("branch", of: "leaf", in: theirs)), to: ben), .invalidArguments)
            try await save(child("branch", of: "leaf"), .create, to: owner)
            try equal(try await lookup("twig", in: ben, zone: theirs), nil)
            let zones = try await ben.databaseChanges(since: nil, limit: nil).token
            _ = try await one(.delete(CloudRecordID("root", in: zone)), to: owner)
            try equal(try await owner.shares(in: zone), [])
            try equal(try await ben.databaseChanges(since: zones, limit: nil).deleted, [theirs])
            try await refused(.zoneNotFound) { try await ben.lookup(["leaf"], in: theirs, desiredKeys: nil) }
            try await refused(.unknownItem) { try await owner.changeShare(share.id, [.setTitle("x")]) }
            try equal(try await lookup("leaf", in: owner)?.fields, ["n": .int64(1)])
            _ = try await owner.createShare(in: zone, coverage: .hierarchy(root: "leaf"), title: nil, publicPermission: .none)
        },
        Check("two hierarchies of a zone are two shares, and a person may take part in both") { subject in
            let (owner, ben, theirs, share) = try await tree(subject)
            let other = try await owner.createShare(
                in: zone, coverage: .hierarchy(root: "secret"), title: nil, publicPermission: .none)
            let before = try await allChanges(in: ben, zone: theirs).token
            let zones = try await ben.databaseChanges(since: nil, limit: nil).token
            try await join(subject, other, of: owner, CloudContract.ben, .readOnly)
            try equal(try await ben.databaseChanges(since: zones, limit: nil).changed, [theirs])
            try await refused(.changeTokenExpired) {
                try await ben.zoneChanges(theirs, since: before, limit: nil, desiredKeys: nil)
            }
            let all = try await allChanges(in: ben, limit: 2, zone: theirs)
            try equal(told(all.changes), ["root", "leaf", "branch", "twig", "secret", "under", "share"])
            // Each share has its own permission.
            try denied(
                .readOnly, try await one(RecordOperation(.forceUpdate, record("under", ["n": .int64(2)], in: theirs)), to: ben))
            try denied(
                .readOnly, try await one(RecordOperation(.create, child(UUID().uuidString, of: "under", in: theirs)), to: ben))
            try await save(record("leaf", ["n": .int64(2)], in: theirs), .forceUpdate, to: ben)
            try denied(
                .zonesAreTheOwners, try await one(RecordOperation(.forceUpdate, child("leaf", of: "under", in: theirs)), to: ben))
            // A record that moves from one hierarchy to the other stays visible for a participant of both.
            try await save(child("twig", of: "under"), .forceUpdate, to: owner)
            try equal(told(try await allChanges(in: ben, since: all.token, zone: theirs).changes), ["leaf", "twig"])
            try denied(
                .readOnly, try await one(RecordOperation(.forceUpdate, record("twig", ["n": .int64(2)], in: theirs)), to: ben))
            try await ben.deleteShare(CloudRecordID(share.id.recordName, in: theirs))
            try equal(try await ben.zones(), [theirs])
            try equal(told(try await allChanges(in: ben, zone: theirs).changes), ["secret", "under", "twig", "share"])
            try equal(try await lookup("leaf", in: ben, zone: theirs), nil)
        },
        Check("of a hierarchy's assets nobody fetches what only others name") { subject in
            let (owner, ben, theirs, _) = try await tree(subject)
            let content = (1...3).map { Data(repeating: $0, count: 500) }
            let assets = content.map { AssetDigest.asset(of: $0) }
            for (content, asset) in zip(content, assets) { _ = try await owner.upload(content, of: asset, at: 0, in: zone) }
            try await save(record("leaf", ["image": .asset(assets[0])]), .forceUpdate, to: owner)
            try await save(record("secret", ["image": .asset(assets[1])]), .forceUpdate, to: owner)
            try equal(try await ben.download(assets[0], in: theirs, from: 0, count: 500), content[0])
            for asset in assets[1...] {
                try await refused(.assetNotAvailable) { try await ben.download(asset, in: theirs, from: 0, count: 500) }
                try failed(
                    try await one(RecordOperation(.forceUpdate, record("twig", ["image": .asset(asset)], in: theirs)), to: ben),
                    .assetNotAvailable)
            }
            try equal(try await ben.missingAssets(assets, in: theirs), [assets[1]: 0, assets[2]: 0])
            try await save(record("twig", ["image": .asset(assets[0])], in: theirs), .forceUpdate, to: ben)
            _ = try await ben.upload(content[1], of: assets[1], at: 0, in: theirs)
            try await save(record("branch", ["image": .asset(assets[1])], in: theirs), .forceUpdate, to: ben)
            try equal(try await owner.download(assets[1], in: zone, from: 0, count: 500), content[1])
        },
    ]
}

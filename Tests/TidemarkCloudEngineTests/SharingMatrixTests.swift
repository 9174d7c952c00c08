import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel

/// Goal: each account that calls the cloud, with any request, gets the answer of the table. Method: each cell is a call to a
/// cloud with one kind of share, made by an account in one relation to the share; an allowed operation has happened afterwards,
/// and a refused one has not.
///
/// In the table, `+` is done; `-` is refused with a decision of the policy; `0` is answered as if there were nothing:
/// `zoneNotFound` or `unknownItem`; `!` is `invalidArguments`; `n` asks for a sign-in; `?` succeeds without effect: the caller
/// does not see what is to be deleted or found. The reader is an administrator who may only read; the account that has left did
/// so itself.
@Suite(.timeLimit(.minutes(30))) struct SharingMatrixTests {
    enum Person: String, CaseIterable {
        case owner, administrator, readWrite, readOnly, `public`, invited, removed, stranger, left, adminReader, signedOut
    }

    private static let table = """
                              owner admin write read public invited removed stranger left reader nobody
        lookUp                +     +     +     +    +      0       0       0        0    +      n
        lookUpShare           +     +     +     +    +      0       0       0        0    +      n
        query                 +     +     +     +    +      0       0       0        0    +      n
        zoneChanges           +     +     +     +    +      0       0       0        0    +      n
        oldToken              +     +     +     +    +      0       0       0        0    +      n
        databaseChanges       +     +     +     +    +      ?       ?       ?        ?    +      n
        zones                 +     +     +     +    +      ?       ?       ?        ?    +      n
        download              +     +     +     +    +      0       0       0        0    +      n
        missingAssets         +     +     +     +    +      0       0       0        0    +      n
        create                +     +     +     -    -      0       0       0        0    -      n
        update                +     +     +     -    -      0       0       0        0    -      n
        forceUpdate           +     +     +     -    -      0       0       0        0    -      n
        forceReplace          +     +     +     -    -      0       0       0        0    -      n
        delete                +     +     +     -    -      0       0       0        0    -      n
        forceDelete           +     +     +     -    -      0       0       0        0    -      n
        atomic                +     +     +     -    -      0       0       0        0    -      n
        moveWithin            +     +     +     -    -      0       0       0        0    -      n
        repeatedRequest       +     +     +     -    -      0       0       0        0    -      n
        deleteRoot            +     -     -     -    -      0       0       0        0    -      n
        moveOut               +     -     -     -    -      0       0       0        0    -      n
        upload                +     +     +     -    -      0       0       0        0    -      n
        nameAsset             +     +     +     -    -      0       0       0        0    -      n
        makeZone              +     -     -     -    -      -       -       -        -    -      n
        deleteZone            +     -     -     -    -      -       -       -        -    -      n
        writeShareRecord      !     !     !     !    !      0       0       0        0    !      n
        readShare             +     +     +     +    +      0       0       0        0    +      n
        shareAgain            -     -     -     -    -      0       0       0        0    -      n
        setTitle              +     +     -     -    -      0       0       0        0    +      n
        setPublicPermission   +     -     -     -    -      0       0       0        0    -      n
        closeToPublic         +     -     -     -    -      0       0       0        0    -      n
        inviteUser            +     +     -     -    -      0       0       0        0    +      n
        inviteAdministrator   +     -     -     -    -      0       0       0        0    -      n
        inviteNobody          !     !     -     -    -      0       0       0        0    !      n
        setPermission         +     +     -     -    -      0       0       0        0    +      n
        setOwnPermission      -     -     -     -    -      0       0       0        0    -      n
        makeAdministrator     +     -     -     -    -      0       0       0        0    -      n
        demoteAdministrator   +     -     -     -    -      0       0       0        0    -      n
        removeUser            +     +     -     -    -      0       0       0        0    +      n
        removeAdministrator   +     -     -     -    -      0       0       0        0    -      n
        removeOwner           -     -     -     -    -      0       0       0        0    -      n
        removeOneself         -     +     +     +    +      0       0       0        0    +      n
        makeLink              +     +     -     -    -      0       0       0        0    +      n
        revokeLink            +     +     -     -    -      0       0       0        0    +      n
        audit                 +     +     -     -    -      0       0       0        0    +      n
        resolveLink           +     +     +     +    +      +       0       +        +    +      n
        acceptLink            -     +     +     +    +      +       0       +        +    +      n
        resolvePersonalLink   +     0     0     0    0      0       0       0        0    0      n
        acceptPersonalLink    -     0     0     0    0      0       0       0        0    0      n
        resolveRevokedLink    0     0     0     0    0      0       0       0        0    0      n
        acceptRevokedLink     0     0     0     0    0      0       0       0        0    0      n
        declineLink           -     +     +     +    +      +       0       +        +    +      n
        endOrLeave            +     +     +     +    +      0       0       0        0    +      n
        """

    /// Operations that exist for hierarchies only.
    private static let onlyOfHierarchies: Set<String> = ["deleteRoot", "moveOut"]

    struct Row: Sendable, CustomTestStringConvertible {
        let operation: String
        let outcomes: [Character]
        let isHierarchy: Bool
        var testDescription: String { "\(operation) of a \(isHierarchy ? "hierarchy" : "zone")" }
    }

    static let rows: [Row] = [false, true].flatMap { isHierarchy in
        table.split(separator: "\n").dropFirst().compactMap { line in
            let words = line.split(separator: " ")
            if !isHierarchy, onlyOfHierarchies.contains(String(words[0])) { return nil }
            return Row(operation: String(words[0]), outcomes: words.dropFirst().map { $0.first! }, isHierarchy: isHierarchy)
        }
    }

    @Test func `the table has all persons, and enough cells`() {
        #expect(Self.rows.allSatisfy { $0.outcomes.count == Person.allCases.count })
        #expect(Self.rows.count * Person.allCases.count >= 1_000)
    }

    @Test(arguments: rows) func `each person may do what the table says`(row: Row) async throws {
        var known: (world: World, state: World.State)?
        let place = Self.rows.firstIndex { $0.testDescription == row.testDescription }!
        for (number, (person, wanted)) in zip(Person.allCases, row.outcomes).enumerated() where DrawnTrials.have(number + place) {
            let (world, before): (World, World.State)
            if let known {
                (world, before) = known
            } else {
                world = try await World(isHierarchy: row.isHierarchy)
                before = try await world.state()
            }
            let found = try await world.outcome(of: row.operation, by: person)
            #expect(found.sign == wanted, "\(person): \(found.told)")
            let writes = !Self.reads.contains(row.operation)
            let after = try await world.state()
            // After a change, the next person gets a new world.
            known = after == before && !Self.told.contains(row.operation) ? (world, before) : nil
            if found.sign == "+" {
                // Accepting, declining and repeated requests do not show in the records.
                if writes, !Self.told.contains(row.operation) { #expect((after != before) == true, "\(person) did nothing") }
                if !writes { #expect((after == before) == true, "\(person) changed something by reading") }
            } else {
                #expect((after == before) == true, "\(person) changed something")
            }
        }
    }

    private static let reads: Set<String> = [
        "lookUp", "query", "zoneChanges", "oldToken", "databaseChanges", "zones", "download", "missingAssets", "readShare",
        "audit", "resolveLink", "resolvePersonalLink", "lookUpShare", "resolveRevokedLink",
    ]
    /// Operations that may be done and change nothing.
    private static let told: Set<String> = ["acceptLink", "declineLink", "makeZone", "upload", "repeatedRequest"]
}

/// A cloud with a shared zone, and all accounts of the table.
private final class World {
    private let scratch: Scratch
    private let owner: EmbeddedDatabase
    private let databases: [SharingMatrixTests.Person: EmbeddedDatabase]
    private let isHierarchy: Bool
    private let zone = CloudZoneID("Journal")
    private let theirs: CloudZoneID
    private let share: CloudShare
    private let links: [ShareLink]
    private let revoked: ShareLink
    private let ids: [SharingMatrixTests.Person: String]
    private let tokens: [SharingMatrixTests.Person: CloudToken]
    private let content = Data(repeating: 7, count: 100)
    private let sent = Data(repeating: 8, count: 100)
    private let fresh = UUID().uuidString

    init(isHierarchy: Bool) async throws {
        scratch = try Scratch()
        self.isHierarchy = isHierarchy
        let clock = Ticks()
        let cloud = try EmbeddedCloud(inMemoryBeside: scratch["cloud"], now: { clock.next() })
        let container = "iCloud.org.example.journal"
        let owner = try cloud.database(.private, of: container, account: try await cloud.addAccount("owner@example.org").id)
        self.owner = owner
        var databases: [SharingMatrixTests.Person: EmbeddedDatabase] = [.owner: owner]
        databases[.signedOut] = try cloud.database(.shared, of: container, account: nil)
        for person in SharingMatrixTests.Person.allCases where databases[person] == nil {
            let account = try await cloud.addAccount("\(person.rawValue)@example.org")
            databases[person] = try cloud.database(.shared, of: container, account: account.id)
        }
        self.databases = databases
        try await owner.modifyZones(saving: [zone], deleting: [])
        theirs = CloudZoneID("Journal", owner: try await owner.account().userRecordName ?? "")
        let asset = AssetDigest.asset(of: content)
        _ = try await owner.upload(content, of: asset, at: 0, in: zone)
        for name in ["root", "a", "b", "secret"] {
            var record = CloudRecord(
                CloudRecordID(name, in: zone), type: "Destination", fields: ["n": .int64(1), "image": .asset(asset)])
            if name == "a" || name == "b" { record.parent = "root" }
            _ = try await owner.modify(ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.create, record)]))
        }
        try await cloud.setIndexes([.queryable], of: "n", in: "Destination", container: container)
        var share = try await owner.createShare(
            in: zone, coverage: isHierarchy ? .hierarchy(root: "root") : .zone, title: "Norway", publicPermission: .readOnly)
        let open = try await owner.makeLink(to: share.id, for: nil)
        func invite(
            _ person: SharingMatrixTests.Person, _ permission: ShareParticipant.Permission,
            _ role: ShareParticipant.Role = .privateUser
        ) async throws {
            share = try await owner.changeShare(
                share.id, [.invite(.emailAddress("\(person.rawValue)@example.org"), role: role, permission: permission)])
        }
        try await invite(.administrator, .readWrite, .administrator)
        try await invite(.readWrite, .readWrite)
        try await invite(.readOnly, .readOnly)
        try await invite(.invited, .readWrite)
        try await invite(.removed, .readWrite)
        try await invite(.left, .readWrite)
        try await invite(.adminReader, .readOnly, .administrator)
        var tokens: [SharingMatrixTests.Person: CloudToken] = [:]
        for person in [SharingMatrixTests.Person.administrator, .readWrite, .readOnly, .public, .removed, .left, .adminReader] {
            _ = try await databases[person]!.acceptLink(open.token)
            tokens[person] = try await databases[person]!.zoneChanges(theirs, since: nil, limit: nil, desiredKeys: nil).token
        }
        try await databases[.left]!.deleteShare(CloudRecordID(share.id.recordName, in: theirs))
        revoked = try await owner.makeLink(to: share.id, for: nil)
        try await owner.revokeLink(revoked.id, to: share.id)
        tokens[.owner] = try await owner.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil).token
        var ids: [SharingMatrixTests.Person: String] = [:]
        share = try await owner.shares(in: zone)[0]
        for participant in share.participants {
            let person = SharingMatrixTests.Person.allCases.first {
                participant.identity.lookUp == .emailAddress("\($0.rawValue.lowercased())@example.org")
            }
            ids[person ?? (participant.role == .owner ? .owner : .public)] = participant.id
        }
        // The removed person makes this request before the removal; a row of the table repeats it with its token.
        let repeated = try await databases[.removed]!.modify(
            ModifyRecordsRequest(
                zone: theirs,
                operations: [
                    RecordOperation(
                        .forceUpdate, CloudRecord(CloudRecordID("b", in: theirs), type: "Destination", fields: ["n": .int64(2)]))
                ], clientToken: "again"))
        guard case .saved = repeated[0] else { throw CloudError(.internalError, "not saved") }
        self.ids = ids
        self.tokens = tokens
        // A link limited to a person who is not in the table.
        let other = try await owner.changeShare(
            share.id, [.invite(.emailAddress("other@example.org"), role: .privateUser, permission: .readOnly)])
        links = [open, try await owner.makeLink(to: share.id, for: other.participants.last!.id)]
        self.share = try await owner.changeShare(share.id, [.remove(participant: ids[.removed]!)])
    }

    /// All records of the owner, and how they are shared.
    struct State: Equatable {
        var zones: [CloudZoneID]
        var changes: [ZoneChanges.Change] = []
        var shares: [CloudShare] = []
        var audit: [ShareAuditEntry] = []
    }

    func state() async throws -> State {
        var state = State(zones: try await owner.zones())
        guard state.zones.contains(where: { $0.zoneName == "Journal" }) else { return state }
        state.changes = try await owner.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil).changes
        state.shares = try await owner.shares(in: zone)
        state.audit = try await owner.shareAudit(in: zone, after: nil)
        return state
    }

    /// The outcome of a call: a sign of the table, and the message.
    func outcome(of operation: String, by person: SharingMatrixTests.Person) async throws -> (sign: Character, told: String) {
        let isOwner = person == .owner
        do {
            let answer = try await call(operation, databases[person]!, isOwner ? zone : theirs, person)
            switch answer {
            // Must be first, because an empty array casts to an array of any type.
            case let zones as [CloudZoneID] where operation == "zones" || operation == "databaseChanges":
                return (zones.contains { $0.zoneName == "Journal" } ? "+" : "?", "\(zones)")
            case let outcomes as [RecordOutcome]:
                for case .failed(let error) in outcomes where error.code != .batchRequestFailed { throw error }
                return ("+", "\(outcomes)")
            case let found as [Result<CloudRecord, CloudError>]: return ("+", "\(try found.map { try $0.get().id })")
            default: return ("+", "\(answer)")
            }
        } catch let error as CloudError {
            switch error.code {
            case .zoneNotFound, .unknownItem: return ("0", "\(error)")
            case .permissionFailure, .alreadyShared:
                guard let denial = error.denial, !denial.isAllowed else { return ("x", "without a decision: \(error)") }
                return ("-", "\(denial.rule)")
            case .invalidArguments: return ("!", "\(error)")
            case .notAuthenticated: return ("n", "\(error)")
            default: return ("x", "\(error)")
            }
        }
    }

    private func record(_ name: String, in zone: CloudZoneID, _ number: Int64 = 9) -> CloudRecord {
        CloudRecord(CloudRecordID(name, in: zone), type: "Destination", fields: ["n": .int64(number)])
    }

    private func call(
        _ operation: String, _ database: EmbeddedDatabase, _ place: CloudZoneID, _ person: SharingMatrixTests.Person
    ) async throws -> Any {
        let id = CloudRecordID(share.id.recordName, in: place)
        let tag = try await owner.lookup(["a"], in: zone, desiredKeys: nil)[0].get().changeTag
        func modify(_ operations: [RecordOperation], isAtomic: Bool = false, token: String? = nil) async throws -> Any {
            try await database.modify(
                ModifyRecordsRequest(zone: place, operations: operations, isAtomic: isAtomic, clientToken: token))
        }
        func change(_ changes: ShareChange...) async throws -> Any { try await database.changeShare(id, changes) }
        switch operation {
        case "lookUp": return try await database.lookup(["a"], in: place, desiredKeys: nil)
        case "lookUpShare": return try await database.lookup([share.id.recordName], in: place, desiredKeys: nil)
        case "query":
            let query = CloudQuery(recordType: "Destination", filters: [.init(.field("n"), .equals, .int64(1))])
            return try await database.query(query, in: place, limit: nil, desiredKeys: nil, continuation: nil).records
        case "zoneChanges": return try await database.zoneChanges(place, since: nil, limit: nil, desiredKeys: nil)
        case "oldToken":
            return try await database.zoneChanges(
                place, since: tokens[person] ?? tokens[.readWrite], limit: nil, desiredKeys: nil)
        case "databaseChanges": return try await database.databaseChanges(since: nil, limit: nil).changed
        case "zones": return try await database.zones()
        case "download": return try await database.download(AssetDigest.asset(of: content), in: place, from: 0, count: 10)
        case "missingAssets": return try await database.missingAssets([AssetDigest.asset(of: content)], in: place)
        case "create":
            var new = record(fresh, in: place)
            new.parent = "root"
            return try await modify([RecordOperation(.create, new)])
        case "update":
            var known = record("a", in: place)
            known.changeTag = tag
            return try await modify([RecordOperation(.update, known)])
        case "forceUpdate": return try await modify([RecordOperation(.forceUpdate, record("a", in: place))])
        case "forceReplace":
            var whole = record("a", in: place)
            whole.parent = "root"
            return try await modify([RecordOperation(.forceReplace, whole)])
        case "delete": return try await modify([.delete(CloudRecordID("a", in: place), changeTag: tag)])
        case "forceDelete": return try await modify([.delete(CloudRecordID("a", in: place))])
        case "atomic":
            return try await modify(
                [RecordOperation(.forceUpdate, record("a", in: place)), RecordOperation(.forceUpdate, record("b", in: place))],
                isAtomic: true)
        case "moveWithin":
            var moved = record("b", in: place)
            moved.parent = "a"
            return try await modify([RecordOperation(.forceUpdate, moved)])
        case "repeatedRequest":
            return try await modify([RecordOperation(.forceUpdate, record("b", in: place, 2))], token: "again")
        case "deleteRoot": return try await modify([.delete(CloudRecordID("root", in: place))])
        case "moveOut":
            return try await modify([RecordOperation(.forceReplace, record("a", in: place))])
        case "upload": return try await database.upload(sent, of: AssetDigest.asset(of: sent), at: 0, in: place)
        case "nameAsset":
            var known = record("a", in: place)
            known.fields["other"] = .asset(AssetDigest.asset(of: content))
            return try await modify([RecordOperation(.forceUpdate, known)])
        case "makeZone":
            try await database.modifyZones(saving: [CloudZoneID("Another", owner: place.ownerName)], deleting: [])
        case "deleteZone": try await database.modifyZones(saving: [], deleting: [place])
        case "writeShareRecord":
            return try await modify([RecordOperation(.forceUpdate, CloudRecord(id, type: CloudShare.recordType))])
        case "readShare":
            guard let found = try await database.shares(in: place).first else { throw CloudError(.unknownItem, "") }
            return found
        case "shareAgain":
            return try await database.createShare(in: place, coverage: .hierarchy(root: "a"), title: nil, publicPermission: .none)
        case "setTitle": return try await change(.setTitle("Sweden"))
        case "setPublicPermission": return try await change(.setPublicPermission(.readWrite))
        case "closeToPublic": return try await change(.setPublicPermission(.none))
        case "inviteUser":
            return try await change(.invite(.emailAddress("new@example.org"), role: .privateUser, permission: .readOnly))
        case "inviteAdministrator":
            return try await change(.invite(.emailAddress("new@example.org"), role: .administrator, permission: .readOnly))
        case "inviteNobody":
            return try await change(.invite(.emailAddress("no address"), role: .privateUser, permission: .readOnly))
        case "setPermission":
            let other = person == .readOnly ? ids[.readWrite]! : ids[.readOnly]!
            return try await change(.setPermission(participant: other, person == .readOnly ? .readOnly : .readWrite))
        case "setOwnPermission":
            let mine = ids[person] ?? ids[.readOnly]!
            return try await change(.setPermission(participant: mine, .readOnly))
        case "makeAdministrator": return try await change(.setRole(participant: ids[.invited]!, .administrator))
        case "demoteAdministrator": return try await change(.setRole(participant: ids[.administrator]!, .privateUser))
        case "removeAdministrator":
            return try await change(.remove(participant: ids[person == .administrator ? .adminReader : .administrator]!))
        case "removeUser": return try await change(.remove(participant: ids[.invited]!))
        case "removeOwner": return try await change(.remove(participant: ids[.owner]!))
        case "removeOneself": return try await change(.remove(participant: ids[person] ?? ids[.readOnly]!))
        case "makeLink": return try await database.makeLink(to: id, for: nil)
        case "revokeLink": try await database.revokeLink(links[1].id, to: id)
        case "audit": return try await database.shareAudit(in: place, after: nil)
        case "resolveLink": return try await database.resolveLink(links[0].token)
        case "acceptLink": return try await database.acceptLink(links[0].token)
        case "resolvePersonalLink": return try await database.resolveLink(links[1].token)
        case "acceptPersonalLink": return try await database.acceptLink(links[1].token)
        case "resolveRevokedLink": return try await database.resolveLink(revoked.token)
        case "acceptRevokedLink": return try await database.acceptLink(revoked.token)
        case "declineLink": try await database.declineLink(links[0].token)
        case "endOrLeave": try await database.deleteShare(id)
        default: throw CloudError(.internalError, "there is no operation '\(operation)'")
        }
        return "done"
    }
}

/// A clock that advances by one at each call.
private final class Ticks: Sendable {
    private let lock = NSLock()
    private nonisolated(unsafe) var time: Int64 = 1_700_000_000_000_000

    func next() -> Int64 {
        lock.withLock {
            time += 1
            return time
        }
    }
}

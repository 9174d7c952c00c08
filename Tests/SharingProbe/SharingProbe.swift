import ArgumentParser
import Foundation
import TestSupport
import Tidemark
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel

/// Somebody with a container, who tries what one can try with what is shared: by the container's API, and past it by calling the cloud.
///
/// For each operation it prints a line: the operation, a sign, and what was said. Signs: `+` done, `-` refused with a decision of the policy,
/// `r` saved here, refused by the cloud, taken back and kept, `0` as if there were nothing, `x` something else.
@main
struct SharingProbe: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "sharing-probe")

    @Argument(help: "A folder of worlds, one for each operation.") var worlds: String
    @Argument var person: String
    @Option(help: "A link that only the one who is invited can use.") var link = ""
    @Option(help: "The owner's name in the cloud container.") var owner = ""
    @Flag(help: "Reaches the cloud of each world only by the server that the session in the person's container is for.")
    var served = false
    @Argument var operations: [String] = []

    func run() async throws {
        for operation in operations {
            let world = URL(fileURLWithPath: worlds).appendingPathComponent(operation, isDirectory: true)
            let attempt = try await Attempt(
                person: served ? visitor(in: world) : TwoUserFixture(in: world).person(person), name: person, link: link,
                owner: owner)
            let (sign, told) = await attempt.outcome(of: operation)
            print("\(operation) \(sign) \(told.replacingOccurrences(of: "\n", with: " "))")
        }
    }

    /// The person, who knows nothing of the cloud but where it is served.
    private func visitor(in world: URL) throws -> Person {
        let directory = try ContainerDirectory(openingAt: SharingTrial.container(of: person, in: world))
        let sessions = SessionFile(at: directory.session)
        // Address, container and environment.
        let names = try sessions.session()?.cloud.split(separator: " ").map(String.init) ?? []
        guard names.count == 3 else { throw CloudError(.notAuthenticated, "\(sessions.url.path) has no session") }
        let cloud = HTTPCloud(try ServerAddress(names[0]), container: names[1], session: sessions)
        return Person(
            email: "\(person)@example.org", container: try PersistentContainer(directory: directory, author: person),
            databases: cloud.databases)
    }
}

/// One try.
struct Attempt {
    let person: Person
    let name: String
    let link: String
    /// The zone that is shared, as this person calls it.
    let zone: CloudZoneID
    let isOwner: Bool

    init(person: Person, name: String, link: String, owner: String) throws {
        (self.person, self.name, self.link) = (person, name, link)
        isOwner = name == "owner"
        zone = CloudZoneID(ZoneName.ofShare(root: "senja").name, owner: isOwner ? CloudZoneID.defaultOwner : owner)
    }

    private var container: PersistentContainer { person.container }
    private var databases: CloudDatabases { person.databases }
    private var database: any SharingDatabase { isOwner ? databases.private : databases.shared }
    /// Each has a record of their own to try on.
    private var target: String { "of-\(name)" }
    private var record: RecordName { RecordName(type: "Destination", name: target) }
    private var shareID: CloudRecordID { CloudRecordID(CloudShare.zoneWideName, in: zone) }
    static let picture = Picture.png(1)

    /// There is nothing here to try it on.
    private struct Nothing: Error {}

    func outcome(of operation: String) async -> (sign: Character, told: String) {
        do {
            let told = try await operation.hasPrefix("cloud.") ? call(operation) : use(operation)
            return try container.refusedSaves().isEmpty ? ("+", told) : ("r", "\(container.refusedSaves()[0].reason)")
        } catch let denial as PermissionDenied {
            return ("-", denial.description)
        } catch let error as CloudError {
            switch error.code {
            case .zoneNotFound, .unknownItem, .assetNotAvailable: return ("0", "\(error)")
            case .permissionFailure, .alreadyShared:
                return error.denial.map { $0.isAllowed ? ("x", "allowed?") : ("-", $0.reason) } ?? ("x", "without a decision")
            default: return ("x", "\(error)")
            }
        } catch is Nothing {
            return ("0", "nothing")
        } catch {
            return ("x", "\(error)")
        }
    }

    // By the API

    private func share() async throws -> Share {
        guard let share = try await container.fetchShares().first else { throw Nothing() }
        return share
    }

    private func mine() async throws -> Destination {
        guard let found = try await container.fetch(Destination.self, named: target) else { throw Nothing() }
        return found
    }

    private func another(_ share: Share) throws -> String {
        guard let other = share.participants.first(where: { $0.role == .privateUser && $0.id != share.currentUser?.id }) else {
            throw Nothing()
        }
        return other.id
    }

    private func use(_ operation: String) async throws -> String {
        switch operation {
        case "fetch":
            try await person.sync()
            return try await mine().caption
        case "picture":
            try await person.sync()
            guard try await mine().image?.data() == Self.picture else { return "another picture" }
        case "edit":
            var edited = try await mine()
            edited.caption = "of \(name)"
            try await container.save(edited)
        case "editPicture":
            var edited = try await mine()
            edited.image = Asset(data: Picture.png(7))
            try await container.save(edited)
        case "editInContext":
            guard try await container.fetch(Destination.self, named: target) != nil else { throw Nothing() }
            let context = container.newContext()
            guard var edited = try await context.fetch(Destination.self, named: target) else { throw Nothing() }
            edited.caption = "of \(name)"
            try await context.update(edited)
            try await context.save()
        case "insert": try await container.save([Destination("new-\(name)", caption: "New")], in: share())
        case "delete": try await container.delete(mine())
        case "deleteAll":
            _ = try await mine()
            try await container.deleteAll(Destination.self, where: .field("id") == target)
        case "updateAll":
            _ = try await mine()
            try await container.updateAll(Destination.self, where: .field("id") == target, set: ["caption": "all"])
        case "share":
            _ = try await mine()
            return try await container.share([record], in: databases).name
        case "fetchShares":
            try await person.sync()
            return try await share().name
        case "invite":
            let share = try await share()
            try await container.updateParticipants(
                of: share, [.invite(.emailAddress("new@example.org"), role: .privateUser, permission: .readOnly)],
                in: databases)
        case "setPermission":
            let share = try await share()
            try await container.updateParticipants(
                of: share, [.setPermission(participant: another(share), .readOnly)], in: databases)
        case "setOwnPermission":
            let share = try await share()
            guard let me = share.currentUser?.id else { throw Nothing() }
            try await container.updateParticipants(of: share, [.setPermission(participant: me, .readWrite)], in: databases)
        case "setTitle": try await container.updateParticipants(of: share(), [.setTitle("Another")], in: databases)
        case "setPublicPermission":
            try await container.updateParticipants(of: share(), [.setPublicPermission(.readWrite)], in: databases)
        case "removeParticipant":
            let share = try await share()
            try await container.updateParticipants(of: share, [.remove(participant: another(share))], in: databases)
        case "makeLink": return try await container.makeLink(to: share(), in: databases).id
        case "acceptInvitation": return try await container.acceptInvitation(link, in: databases).name
        case "stopSharing": try await container.stopSharing(share(), in: databases)
        case "leave": try await container.leave(share(), in: databases)
        case "purgeZone": try await container.purgeZone(share().zone, in: databases)
        default: throw CloudError(.internalError, "there is no operation '\(operation)'")
        }
        try await person.sync()
        try await person.sync()
        return "done"
    }

    // Past it

    private func modify(_ operation: RecordOperation) async throws -> String {
        let outcomes = try await database.modify(ModifyRecordsRequest(zone: operation.record.id.zone, operations: [operation]))
        if case .failed(let error) = outcomes[0] { throw error }
        return "done"
    }

    private func cloudRecord(_ name: String, _ fields: [String: CloudValue] = [:], in zone: CloudZoneID? = nil) -> CloudRecord {
        CloudRecord(
            CloudRecordID(name, in: zone ?? self.zone), type: "Destination",
            fields: ["caption": .string("forged")].merging(fields) { $1 })
    }

    private func call(_ operation: String) async throws -> String {
        let asset = AssetDigest.asset(of: Self.picture)
        switch operation {
        case "cloud.lookUp": return "\(try await database.lookup([target], in: zone, desiredKeys: nil)[0].get().id)"
        case "cloud.query":
            let query = CloudQuery(
                recordType: "Destination", filters: [.init(.field("caption"), .equals, .string("as it was"))])
            return "\(try await database.query(query, in: zone, limit: nil, desiredKeys: nil, continuation: nil).records.count)"
        case "cloud.zoneChanges":
            return "\(try await database.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil).changes.count)"
        case "cloud.download": return "\(try await database.download(asset, in: zone, from: 0, count: 10).count)"
        case "cloud.missingAssets": return "\(try await database.missingAssets([asset], in: zone))"
        case "cloud.upload":
            let data = Data("of \(name)".utf8)
            return "\(try await database.upload(data, of: AssetDigest.asset(of: data), at: 0, in: zone))"
        case "cloud.create": return try await modify(RecordOperation(.create, cloudRecord("forged-\(name)")))
        case "cloud.forceUpdate": return try await modify(RecordOperation(.forceUpdate, cloudRecord(target)))
        case "cloud.forceReplace": return try await modify(RecordOperation(.forceReplace, cloudRecord(target)))
        case "cloud.delete": return try await modify(.delete(CloudRecordID(target, in: zone)))
        case "cloud.nameForeignAsset":
            // Equal digests of other people's pictures grant nothing, also in one's own zone.
            let own = CloudZoneID("Own")
            try await databases.private.modifyZones(saving: [own], deleting: [])
            let operation = RecordOperation(.create, cloudRecord("thief", ["image": .asset(asset)], in: own))
            let outcomes = try await databases.private.modify(ModifyRecordsRequest(zone: own, operations: [operation]))
            if case .failed(let error) = outcomes[0] { throw error }
            return "\(try await databases.private.download(asset, in: own, from: 0, count: 10).count)"
        case "cloud.readShare":
            guard let share = try await database.shares(in: zone).first else { throw CloudError(.unknownItem, "none") }
            return share.id.recordName
        case "cloud.setTitle": return "\(try await database.changeShare(shareID, [.setTitle("Another")]).title ?? "")"
        case "cloud.invite":
            _ = try await database.changeShare(
                shareID, [.invite(.emailAddress("new@example.org"), role: .privateUser, permission: .readWrite)])
        case "cloud.setPublicPermission": _ = try await database.changeShare(shareID, [.setPublicPermission(.readWrite)])
        case "cloud.makeLink": _ = try await database.makeLink(to: shareID, for: nil)
        case "cloud.audit": return "\(try await database.shareAudit(in: zone, after: nil).count)"
        case "cloud.deleteZone": try await database.modifyZones(saving: [], deleting: [zone])
        case "cloud.deleteShare": try await database.deleteShare(shareID)
        case "cloud.guessLink": _ = try await database.resolveLink(String(repeating: "a", count: link.count))
        default: throw CloudError(.internalError, "there is no operation '\(operation)'")
        }
        return "done"
    }
}

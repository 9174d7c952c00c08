import Foundation
import Testing
import Tidemark
import TidemarkCloud
import TidemarkModel

/// Each of six people tries each operation on a shared record, through a container or directly at the cloud. The answer is that
/// of a table, and nothing else changes.
///
/// Each person is a process with a container of its own. Each operation has a copy of one cloud of its own, which all six use.
///
/// In the table, `+` is done; `-` is refused with a decision of the policy; `r` is refused by the cloud, and the change is
/// reverted and kept as a refused save; `0` is answered as if the record did not exist.
public struct SharingTrial: Sendable {
    public static let people = ["owner", "write", "read", "invited", "removed", "stranger"]

    /// The container of the removed participant does not know of the removal yet.
    private static let table = """
        fetch                     +     +     +     0     0     0
        picture                   +     +     +     0     0     0
        edit                      +     +     -     0     r     0
        editPicture               +     +     -     0     r     0
        editInContext             +     +     -     0     r     0
        insert                    +     +     -     0     r     0
        delete                    +     +     -     0     r     0
        deleteAll                 +     +     -     0     r     0
        updateAll                 +     +     -     0     r     0
        share                     +     -     -     0     -     0
        fetchShares               +     +     +     0     0     0
        invite                    +     -     -     0     0     0
        setPermission             +     -     -     0     0     0
        setOwnPermission          -     -     -     0     0     0
        setTitle                  +     -     -     0     0     0
        setPublicPermission       +     -     -     0     0     0
        removeParticipant         +     -     -     0     0     0
        makeLink                  +     -     -     0     0     0
        acceptInvitation          -     0     0     +     0     0
        stopSharing               +     -     -     0     -     0
        leave                     -     +     +     0     +     0
        purgeZone                 +     +     +     0     +     0
        cloud.lookUp              +     +     +     0     0     0
        cloud.query               +     +     +     0     0     0
        cloud.zoneChanges         +     +     +     0     0     0
        cloud.download            +     +     +     0     0     0
        cloud.missingAssets       +     +     +     0     0     0
        cloud.upload              +     +     -     0     0     0
        cloud.create              +     +     -     0     0     0
        cloud.forceUpdate         +     +     -     0     0     0
        cloud.forceReplace        +     +     -     0     0     0
        cloud.delete              +     +     -     0     0     0
        cloud.nameForeignAsset    +     0     0     0     0     0
        cloud.readShare           +     +     +     0     0     0
        cloud.setTitle            +     -     -     0     0     0
        cloud.invite              +     -     -     0     0     0
        cloud.setPublicPermission +     -     -     0     0     0
        cloud.makeLink            +     -     -     0     0     0
        cloud.audit               +     -     -     0     0     0
        cloud.deleteZone          +     -     -     -     -     -
        cloud.deleteShare         +     +     +     0     0     0
        cloud.guessLink           0     0     0     0     0     0
        """

    private static let rows = table.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }

    private let scratch: Scratch
    private let link: String
    private let owner: String

    /// What each world is copied from: a cloud in the folder `cloud` with a share, and the containers of all people beside it.
    public var template: URL { scratch["template"] }

    /// A folder for each operation.
    public var worlds: [URL] { Self.rows.map { scratch["worlds/\($0[0])"] } }

    public static func prepared() async throws -> SharingTrial {
        let scratch = try Scratch()
        let (link, owner) = try await prepare(scratch["template"])
        return SharingTrial(scratch: scratch, link: link, owner: owner)
    }

    /// The container of one of the people in a world, or in the template.
    public static func container(of person: String, in world: URL) -> URL {
        world.appendingPathComponent("\(person).tidemark", isDirectory: true)
    }

    /// Makes the worlds of the template.
    public func makeWorlds() throws {
        try FileManager.default.createDirectory(at: scratch["worlds"], withIntermediateDirectories: true)
        for world in worlds { try FileManager.default.copyItem(at: template, to: world) }
    }

    /// Runs all operations as all six people, and checks their outcomes and what is stored afterwards.
    ///
    /// - Parameter options: Further options of the processes.
    public func run(_ options: [String] = []) async throws {
        let rows = Self.rows
        #expect(rows.count * Self.people.count >= 150)
        let tool = try Tool(named: "sharing-probe")
        let operations = rows.map { $0[0] }
        // The owner comes last, because the owner can stop sharing for all.
        let outcomes = try await withThrowingTaskGroup(of: (String, String).self) { group in
            for person in Self.people.dropFirst() {
                group.addTask { (person, try await attempt(tool, person, operations, options)) }
            }
            var outcomes = try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
            outcomes["owner"] = try await attempt(tool, "owner", operations, options)
            return outcomes
        }
        for (column, person) in Self.people.enumerated() {
            let lines = (outcomes[person] ?? "").split(separator: "\n").map {
                $0.split(separator: " ", maxSplits: 2).map(String.init)
            }
            #expect(lines.count == rows.count, "\(person): \(outcomes[person] ?? "")")
            for (row, line) in zip(rows, lines) where line.count > 1 {
                #expect(line[0] == row[0])
                #expect(line[1] == row[column + 1], "\(person), \(line.joined(separator: " "))")
            }
        }
        for (row, world) in zip(rows, worlds) { try await Self.check(row, in: world) }
    }

    private func attempt(_ tool: Tool, _ person: String, _ operations: [String], _ options: [String]) async throws -> String {
        let result = try await tool.run(
            [scratch["worlds"].path, person, "--link=\(link)", "--owner", owner] + options + operations)
        #expect(result.status == 0, "\(person): \(result.errors)")
        return result.output
    }

    /// A cloud with a share, and everybody's container as it is before the operations.
    private static func prepare(_ folder: URL) async throws -> (link: String, owner: String) {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let place = try TwoUserFixture(in: folder)
        let owner = try await place.person("owner")
        let senja = Destination("senja", caption: "Senja")
        try await owner.container.save(senja)
        try await owner.container.save(
            people.map { name in
                var record = Destination("of-\(name)", caption: "as it was")
                record.image = Asset(data: Picture.png(1))
                record.neighbour = Reference("senja")
                return record
            })
        try await owner.sync()
        try await place.cloud.setIndexes([.queryable], of: "caption", in: "Destination", container: TwoUserFixture.container)
        var links: [String: String] = [:]
        for name in people.dropFirst() {
            let person = try await place.person(name)
            guard name != "stranger" else {
                try await person.sync()
                continue
            }
            let (_, link) = try await owner.share(senja, with: person, name == "read" ? .readOnly : .readWrite)
            links[name] = link
            try await owner.sync()
            if name != "invited" { try await person.container.acceptInvitation(link, in: person.databases) }
            try await person.sync()
        }
        try await owner.sync()
        // Synchronising lets the participants know of each other.
        for name in ["write", "read"] { try await place.person(name).sync() }
        let share = try #require(try await owner.container.fetchShares().first)
        let removed = try #require(share.participants.first { $0.identity.lookUp == .emailAddress("removed@example.org") })
        try await owner.container.updateParticipants(of: share, [.remove(participant: removed.id)], in: owner.databases)
        return (links["invited"]!, try await owner.databases.private.account().userRecordName ?? "")
    }

    /// Checks that only what was allowed has happened.
    private static func check(_ row: [String], in folder: URL) async throws {
        let place = try TwoUserFixture(in: folder)
        let owner = try await place.person("owner")
        let zone = ZoneName.ofShare(root: "senja").cloudZone
        guard try await owner.databases.private.zones().contains(where: { $0.zoneName == zone.zoneName }) else {
            #expect(row[1] == "+" && (row[0] == "purgeZone" || row[0] == "cloud.deleteZone"))
            return
        }
        let changed = try await owner.databases.private.lookup(people.map { "of-\($0)" }, in: zone, desiredKeys: nil).map {
            found in
            guard case .success(let record) = found else { return true }
            return record.fields["caption"] != .string("as it was")
                || record.fields["image"] != .asset(AssetDigest.asset(of: Picture.png(1)))
        }
        let writes: Set<String> = [
            "edit", "editPicture", "editInContext", "delete", "deleteAll", "updateAll", "cloud.forceUpdate", "cloud.forceReplace",
            "cloud.delete",
        ]
        for (column, person) in people.enumerated() {
            #expect(changed[column] == (writes.contains(row[0]) && row[column + 1] == "+"), "\(row[0]) by \(person)")
        }
    }
}

import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Remembers the numbers of zones. By its number, the content of a zone can be read together with the zone. If the number has
/// changed, that costs a statement whose rows are not used.
final class PostgresZoneNumbers: Sendable {
    private static let most = 10_000
    private let known = LockedValue<[StoredZone.Place: Int64]>([:])

    func keep(_ zone: StoredZone) {
        known.withLock { known in
            guard known[zone.place] != zone.number else { return }
            if known.count >= Self.most { known = [:] }
            known[zone.place] = zone.number
        }
    }

    func number(of place: StoredZone.Place) -> Int64? { known.withLock { $0[place] } }
}

/// The statements with which requests that save begin. The same functions make those that are sent ahead, so their rows are
/// found.
extension PostgresCloudTransaction {
    /// The statements by which a request is expected to read.
    func commands(of reads: ExpectedReads) -> [PostgresCommand] {
        var commands = [
            command(zone: reads.place), commandOfSchema, command(usedBy: reads.user), command(reservedBy: reads.user),
        ]
        if let token = reads.token { commands.append(command(answerTo: token, of: reads.user)) }
        if let number = context.zones.number(of: reads.place) {
            let zone = StoredZone.ID(owner: reads.place.owner, number: number)
            commands += [command(removalsIn: zone), command(records: Self.keys(of: reads.names), in: zone, "OFFSET 0")]
        }
        return commands
    }

    /// The keys of names, each once, in their order.
    static func keys(of names: [String]) -> [Data] {
        let keys = names.map(\.key)
        guard Set(keys).count < keys.count else { return keys }
        var seen: Set<Data> = []
        return keys.filter { seen.insert($0).inserted }
    }

    func command(zone place: StoredZone.Place) -> PostgresCommand {
        PostgresCommand(
            "SELECT \(Self.zoneColumns) FROM tidemark_zones WHERE container = $1 AND owner = $2 AND name = $3",
            [container, place.owner.key, place.name.key])
    }

    func command(records names: [Data], in zone: StoredZone.ID, _ end: String) -> PostgresCommand {
        PostgresCommand(
            Self.byName(Self.recordColumns, in: "tidemark_records", end), [container, zone.owner.key, zone.number, names])
    }

    func command(removalsIn zone: StoredZone.ID) -> PostgresCommand {
        PostgresCommand(
            """
            SELECT \(Self.removalColumns) FROM tidemark_removals WHERE container = $1 AND owner = $2 AND zone = $3 ORDER BY id
            """, [container, zone.owner.key, zone.number])
    }

    func command(answerTo token: String, of user: String) -> PostgresCommand {
        PostgresCommand(
            "SELECT answer FROM tidemark_answers WHERE container = $1 AND owner = $2 AND token = $3",
            [container, user.key, token.key])
    }

    func command(usedBy user: String) -> PostgresCommand {
        PostgresCommand("SELECT bytes FROM tidemark_usage WHERE container = $1 AND owner = $2", [container, user.key])
    }

    func command(reservedBy payer: String) -> PostgresCommand {
        PostgresCommand(
            """
            SELECT coalesce(sum(bytes), 0)::int8, count(*) FROM tidemark_reservations WHERE container = $1 AND owner = $2
            """, [container, payer.key])
    }

    var commandOfSchema: PostgresCommand {
        PostgresCommand("SELECT version FROM tidemark_schemas WHERE container = $1", [container])
    }
}

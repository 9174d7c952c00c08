import TidemarkCloud
import TidemarkContainers
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Compares each device's final content with what the cloud shows to its account.
extension SharingSimulation {
    private struct Place: Hashable, CustomStringConvertible {
        let zone: String
        let owner: String?
        let name: String
        var description: String { "\(zone)/\(name)" }
    }

    private struct Content: Equatable, CustomStringConvertible {
        let type: String
        let tag: String
        let values: [String: String]
        var description: String { "\(type) \(tag) \(values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" })" }
    }

    /// Checks that a device has the records that its account sees in the cloud, each once, and that nothing is left to be sent.
    func check(_ device: SimulatedDevice) async throws -> [String] {
        let number = device.number
        let zones = try await device.store.zones().reduce(into: [:]) { $0[$1.id] = $1.name }
        var failures: [String] = []
        var here: [Place: Content] = [:]
        for row in try device.rows({ $0 }) {
            let zone = zones[row.zone] ?? ZoneName("a zone that is not there")
            let place = Place(
                zone: zone == .default ? SyncConfiguration().zoneName : zone.name, owner: zone.owner, name: row.name)
            if here[place] != nil { failures.append("d\(number) has \(place) twice") }
            here[place] = Content(type: row.type, tag: row.tag ?? "-", values: row.values)
            if row.isPending { failures.append("d\(number) has to send \(place) still") }
            if row.base != row.version {
                failures.append("d\(number)'s \(place) has the version \(row.version), and the base \(row.base ?? -1)")
            }
        }
        let there = try await seen(by: person(of: number))
        for (place, content) in there.sorted(by: { "\($0.key)" < "\($1.key)" }) where here[place] != content {
            failures.append("the cloud has \(place) \(content), and d\(number) \(here[place].map { "\($0)" } ?? "not")")
        }
        for (place, content) in here.sorted(by: { "\($0.key)" < "\($1.key)" }) where there[place] == nil {
            failures.append("d\(number) has \(place) \(content), and the cloud has not")
        }
        for (table, count) in try device.counts(of: BookkeepingChecker.emptyTables).sorted(by: { $0.key < $1.key })
        where count > 0 {
            failures.append("d\(number) has \(count) rows left in \(table)")
        }
        let verified = try StoreVerification(of: device.container).run().problems
        return failures + verified.map { "d\(number): \($0.message)" }
    }

    /// Returns what the cloud shows to a person. All servers must show the same.
    private func seen(by person: Int) async throws -> [Place: Content] {
        var all: [[Place: Content]] = []
        for server in databases {
            let database = server[person]
            var records: [Place: Content] = [:]
            for zone in try await database.zones() where zone.zoneName != ZoneName.default.name {
                var token: CloudToken?
                while true {
                    let page = try await database.zoneChanges(zone, since: token, limit: nil, desiredKeys: nil)
                    for case .saved(let record) in page.changes where record.type != CloudShare.recordType {
                        let owner = person == 0 ? nil : zone.ownerName
                        records[Place(zone: zone.zoneName, owner: owner, name: record.id.recordName)] = Content(
                            type: record.type, tag: record.changeTag ?? "",
                            values: record.fields.filter { $0.key != "tide_edited" }.mapValues(\.text))
                    }
                    token = page.token
                    if !page.moreComing { break }
                }
            }
            all.append(records)
        }
        guard all.allSatisfy({ $0 == all[0] }) else {
            throw Simulation.Failure(reason: "the servers show \(Self.people[person]) different records: \(all)")
        }
        return all[0]
    }
}

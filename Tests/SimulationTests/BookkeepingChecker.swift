/// Checks that nothing is left to be sent, and that each row has the tag of the cloud's version.
struct BookkeepingChecker {
    /// The tables that are empty in a store which has nothing left to do.
    static let emptyTables = ["tide_outbox", "tide_requests", "tide_sync_issues", "tide_deferred", "tide_seen"]

    /// The tables that are empty even in a store that has a field with another type than the cloud.
    static let oddTables = ["tide_requests", "tide_seen"]

    func check(_ state: FinalState, leftovers: [[String: Int]]) -> [String] {
        var failures: [String] = []
        for (device, tables) in leftovers.enumerated() {
            for (table, count) in tables.sorted(by: { $0.key < $1.key }) where count > 0 {
                failures.append("d\(device) has \(count) rows left in \(table)")
            }
        }
        for (device, rows) in state.stores.enumerated() {
            for row in rows {
                let what = "d\(device)'s row of \(row.name)"
                if state.excused[device].contains(row.name) { continue }
                if row.isPending { failures.append("\(what) is to be sent still") }
                if row.base != row.version {
                    failures.append("\(what) has the version \(row.version) and the base \(row.base ?? -1)")
                }
                guard let remote = state.cloud.first(where: { $0.name == row.name }) else { continue }
                if row.tag != remote.tag { failures.append("\(what) has the tag \(row.tag ?? "-"), and the cloud \(remote.tag)") }
                if row.edited != remote.edited {
                    failures.append("\(what) was edited at \(row.edited ?? "-"), in the cloud at \(remote.edited ?? "-")")
                }
            }
        }
        return failures
    }
}

import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel
import TidemarkTesting

@testable import TidemarkCloudEngine
@testable import TidemarkPostgres

/// Goal: the cost of a request does not grow with the rows of other owners, nor with the other rows of its owner. Method: a
/// database with many owners, and one owner with many records, is analysed. The plans with which the server has executed each
/// statement of a request come from its log (`auto_explain`). They have to reach each table by an index, from the owner on, at
/// few rows.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(20)))
struct PostgresPlanTests {
    private static let count = 12_000
    /// Owners with 400 rows each.
    private static let others = 40
    /// How often each statement runs: often enough that the server considers a plan for all parameters.
    private static let repetitions = 7

    private static func record(_ number: Int, in zone: StoredZone.ID, at change: Int64) -> StoredCloudRecord {
        let stamp = CloudRecord.Stamp(time: Int64(number), userRecordName: "_anna")
        return StoredCloudRecord(
            zone: zone, name: "r\(number)", type: number % 50 == 0 ? "Stop" : "Note", fields: Data(repeating: 7, count: 100),
            parent: number % 3 == 0 ? "r\(number / 30)" : nil, changed: change, created: stamp, modified: stamp, isDeleted: false,
            dependsOn: number % 4 == 0 ? ["r\(number / 20)"] : [], assets: number % 10 == 0 ? ["\(number / 2)"] : [],
            indexed: [
                1: [.text("title \(number)")], 2: [.integer(Int64(number % 1000))], 3: [.text("word"), .text("w\(number)")],
            ])
    }

    /// A server that logs the plan of each statement, and gathers no statistics by itself.
    private static func server() async throws -> PostgresServer {
        try await apart {
            try PostgresServer(settings: [
                "shared_preload_libraries = 'auto_explain'", "auto_explain.log_min_duration = 0", "auto_explain.log_analyze = on",
                "auto_explain.log_timing = off", "auto_explain.log_format = json", "log_min_messages = log",
                "log_line_prefix = '@@ '", "autovacuum = off",
            ])
        }
    }

    @Test func `each statement of a request reaches few rows, by an index that begins with the owner`() async throws {
        let server = try await Self.server()
        let records = try await RecordsFixture(on: server)
        let zone = try await fill(records, of: "_anna", sharedWith: "_ben", count: Self.count, shares: 400)
        try await copy(records, of: ["_anna", "_ben"], rows: 400, owners: Self.others)
        let database = try records.fixture.other()
        let storage = try await records.storage(on: database)
        let big = try await bigTables(database)
        #expect(big.count >= 12, "\(big.sorted())")
        let before = try server.log.utf8.count
        for turn in 0..<Self.repetitions { try await writeHot(storage, zone, turn) }
        try await readHot(storage, zone)
        let between = try server.log.utf8.count
        let counts = try await queryHot(storage, zone)
        await database.close()
        let log = Array(try server.log.utf8)
        let requests = try Self.plans(String(decoding: log[before..<between], as: UTF8.self))
        let queries = try Self.plans(String(decoding: log[between...], as: UTF8.self))
        let texts = Set(requests.map(\.sql))
        #expect(texts.count >= 45, "\(texts.count) statements")
        #expect(counts.allSatisfy { $0 > 0 }, "\(counts)")
        var faults: [String: String] = [:]
        for plan in requests {
            for fault in plan.faults(big, rowsMost: 2_500) { faults["\(fault) in: \(plan.sql)"] = plan.text }
        }
        for plan in queries {
            for fault in plan.faults(big, rowsMost: nil) { faults["\(fault) in: \(plan.sql)"] = plan.text }
        }
        for (fault, text) in faults.sorted(by: { $0.key < $1.key }) { Issue.record("\(fault)\n\(text)") }
        print("plans: \(requests.count + queries.count) of \(texts.count + Set(queries.map(\.sql)).count) statements")
    }

    /// Where owners are many, and the statistics have not seen a large zone, PostgreSQL expects one row in it. Then each index that begins with
    /// the owner seems as good as the right one, and a condition on the owner alone as good as one on the name.
    @Test(arguments: [false, true])
    func `a statement reaches few rows of a zone of which the server knows nothing`(isVacuumed: Bool) async throws {
        let server = try await Self.server()
        let records = try await RecordsFixture(on: server)
        _ = try await fill(records, of: "_carl", sharedWith: "_dora", count: 1, shares: 1)
        try await copy(records, of: ["_carl", "_dora"], rows: 1, owners: 4_000)
        let zone = try await fill(records, of: "_anna", sharedWith: "_ben", count: Self.count, shares: 400)
        // After that an index that has all columns of an answer seems to be the best.
        if isVacuumed { try await records.fixture.sql("VACUUM") }
        let database = try records.fixture.other()
        let storage = try await records.storage(on: database)
        let tables = try await bigTables(database)
        let before = try server.log.utf8.count
        for turn in 0..<Self.repetitions { try await writeHot(storage, zone, turn) }
        try await readHot(storage, zone)
        await database.close()
        let plans = try Self.plans(String(decoding: Array(try server.log.utf8)[before...], as: UTF8.self))
        for table in tables { #expect(plans.contains { $0.reads(table) }, "no statement reads \(table)") }
        var faults: [String: String] = [:]
        for plan in plans {
            for fault in plan.faults(tables, rowsMost: 2_500) { faults["\(fault) in: \(plan.sql)"] = plan.text }
        }
        for (fault, text) in faults.sorted(by: { $0.key < $1.key }) { Issue.record("\(fault)\n\(text)") }
    }

    /// Of two indexes that begin alike, and by which one record is expected, PostgreSQL takes the one with the flatter tree.
    @Test func `a look-up of a name can take no index of records but that of names`() async throws {
        let records = try await RecordsFixture()
        _ = try await records.storage()
        let database = try records.fixture.other()
        let rows = try await database.query(
            "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'tidemark_records'::regclass AND indpred IS NULL")
        #expect(try rows.map { try $0.value(0, as: String.self) } == ["tidemark_records_by_name"])
        for table in ["tidemark_dependencies", "tidemark_named"] {
            let whole = try await database.query(
                "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = $1::text::regclass AND indpred IS NULL", table)
            #expect(whole.isEmpty, "\(table)")
        }
        await database.close()
    }

    @Test func `a plan that reads a whole table is found`() throws {
        let log = """
            @@ LOG:  duration: 1 ms  plan:
            \t{"Query Text": "SELECT", "Plan": {"Node Type": "Limit", "Plans": [{"Node Type": "Seq Scan",
            \t"Relation Name": "tidemark_records", "Actual Rows": 9, "Actual Loops": 1}, {"Node Type": "Index Scan",
            \t"Index Name": "tidemark_records_by_name", "Relation Name": "tidemark_records", "Index Cond": "(container = 1)",
            \t"Actual Rows": 3000, "Actual Loops": 2}]}}
            @@ LOG:  something else
            """
        let plans = try Self.plans(log)
        #expect(plans.map(\.sql) == ["SELECT"])
        #expect(plans[0].faults(["tidemark_records"], rowsMost: 5000).count == 3)
        #expect(plans[0].faults(["tidemark_records"], rowsMost: nil).count == 2)
        #expect(plans[0].faults(["tidemark_zones"], rowsMost: 5000).isEmpty)
    }

    // Rows

    /// Makes an owner with records, some of which are shared with another owner.
    private func fill(
        _ records: RecordsFixture, of owner: String, sharedWith other: String, count: Int, shares: Int
    ) async throws -> StoredZone.ID {
        let storage = try await records.storage()
        let zone = try await storage.write(owners: [owner]) { rows throws(CloudError) in
            try rows.save(StoredZone(place: .init(scope: .private, owner: owner, name: "Zone"), made: 0, changed: 0)).id
        }
        for page in stride(from: 0, to: count, by: 1000) {
            try await storage.write(owners: [owner]) { rows throws(CloudError) in
                let numbers = page..<min(page + 1000, count)
                _ = try rows.records(numbers.map { "r\($0)" }, in: zone)
                try rows.save(numbers.map { Self.record($0, in: zone, at: Int64($0) + 1) })
                try rows.setLastChange(Int64(page) + 1000, of: owner)
                for number in numbers where number % 10 == 0 {
                    try rows.addAsset(CloudAsset(digest: "\(number / 2)", size: 5), owner: owner, payer: owner)
                    try rows.noteUpload("\(number / 2)", owner: owner, by: owner)
                    try rows.keep(Data([1]), to: "token \(number)", of: owner, at: Int64(number))
                }
            }
        }
        try await storage.write(owners: [owner, other]) { rows throws(CloudError) in
            for number in 0..<shares {
                let share = try rows.save(
                    StoredShare(
                        number: 0, zone: zone, name: "s\(number)", root: "r\(number)", title: nil,
                        publicPermission: ShareParticipant.Permission.none, touched: 1, isEnded: false))
                try rows.save(
                    StoredParticipant(
                        id: "p\(number)", share: share.id, zone: zone, user: other, role: .privateUser, permission: .readOnly,
                        acceptanceStatus: .accepted, began: 1, ended: 0, invited: 1, expelled: 0))
                try rows.add(
                    StoredLink(digest: Data("\(owner) l\(number)".utf8), id: "l\(number)", share: share.id, participant: nil))
                try rows.save(
                    (0..<10).map {
                        CoveredRecord(
                            share: share.id, name: "r\(number * 10 + $0)", type: "Note", change: Int64(number * 10 + $0 + 1),
                            isGone: false)
                    }, in: zone)
                try rows.noteSharedZone(.init(owner: "_owner\(number)", number: 1), for: other)
                try rows.add(
                    StoredAuditEntry(
                        time: Int64(number), zone: zone, share: share.id, user: owner, kind: .created, subject: nil, value: nil)
                )
                _ = try rows.save(
                    StoredZone(
                        place: .init(scope: .private, owner: other, name: "Zone \(number)"), made: 0, changed: Int64(number)))
            }
        }
        return zone
    }

    /// Gives many owners some rows of each table, as others have them, and has the server gather its statistics.
    private func copy(_ records: RecordsFixture, of models: [String], rows: Int, owners: Int) async throws {
        let names = models.map { "'\($0)'" }.joined(separator: ", ")
        let copy = """
            DO $$ DECLARE name text; columns text; chosen text; BEGIN
                FOR name IN SELECT table_name FROM information_schema.columns
                    WHERE column_name = 'owner' AND table_name LIKE 'tidemark\\_%' GROUP BY 1
                LOOP
                    SELECT string_agg(column_name, ', ' ORDER BY ordinal_position), string_agg(CASE
                        WHEN column_name = 'owner' THEN 'convert_to(''_other'' || g, ''UTF8'')'
                        WHEN name = 'tidemark_links' AND column_name = 'digest' THEN 'digest || int4send(g)'
                        ELSE column_name END, ', ' ORDER BY ordinal_position)
                    INTO columns, chosen FROM information_schema.columns
                    WHERE table_name = name AND is_identity = 'NO';
                    EXECUTE format('INSERT INTO %I (%s) SELECT %s FROM (SELECT * FROM %I WHERE owner IN (\(names.replacing("'", with: "''"))) LIMIT \(rows)) r,
                        generate_series(1, \(owners)) g ON CONFLICT DO NOTHING', name, columns, chosen, name);
                END LOOP;
            END $$
            """
        try await records.fixture.sql(copy)
        try await records.fixture.sql("ANALYZE")
    }

    /// Tables in which an index is worth it. The others have few rows for each container or owner.
    private func bigTables(_ database: PostgresDatabase) async throws -> Set<String> {
        let rows = try await database.query(
            "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relname LIKE 'tidemark\\_%' AND reltuples >= 1000")
        return Set(try rows.map { try $0.value(0, as: String.self) })
    }

    // Requests

    private func writeHot(_ storage: PostgresCloudStorage, _ zone: StoredZone.ID, _ turn: Int) async throws {
        try await storage.write(owners: ["_anna", "_ben"]) { rows throws(CloudError) in
            _ = try rows.answer(to: "new \(turn)", of: "_anna")
            _ = try rows.schema()
            _ = try rows.zone(StoredZone.Place(scope: .private, owner: "_anna", name: "Zone"))
            let numbers = (0..<100).map { turn * 100 + $0 } + (0..<100).map { Self.count + turn * 100 + $0 }
            let names = numbers.map { "r\($0)" }
            _ = try rows.records(names, in: zone)
            _ = try rows.assetsNamed(by: names, in: zone)
            _ = try rows.assets(Set(numbers.map { "\($0 / 2)" }), owner: "_anna")
            _ = try rows.dependents(of: names, in: zone, before: 1_000_000, limit: 500)
            _ = try rows.children(of: names, in: zone, limit: 500)
            _ = try rows.parent(of: "r9", in: zone)
            _ = try rows.hasChildren(in: zone)
            _ = try rows.shares(covering: names, in: zone)
            let last = try rows.lastChange(of: "_anna")
            try rows.save(numbers.enumerated().map { Self.record($1, in: zone, at: last + Int64($0) + 1) })
            try rows.setLastChange(last + 200, of: "_anna")
            try rows.addUsed(5, by: "_anna")
            try rows.forgetAnswers(of: "_anna", AnswerAge(at: 1))
            try rows.keep(Data([1]), to: "new \(turn)", of: "_anna", at: 1_000_000)
            let share = try rows.share(named: "s\(turn)", in: zone)!
            try rows.save([CoveredRecord(share: share.id, name: "n\(turn)", type: "Note", change: last, isGone: false)], in: zone)
            _ = try rows.save(share)
            _ = try rows.participants(of: share.id)
            _ = try rows.participants(called: "_ben", in: zone)
            _ = try rows.linkCount(of: share.id)
            _ = try rows.links(to: share.id)
            _ = try rows.removeLink("l\(turn)", to: share.id)
            try rows.removeParticipant("p\(turn)", of: share.id)
            try rows.removeCovered(by: share.id)
            _ = try rows.lastAuditTime(of: "_anna")
            _ = try rows.nextRemoval(of: "_anna")
            _ = try rows.removals(in: zone)
            _ = try rows.removeRecords(in: zone, limit: 100)
            _ = try rows.removeUnnamedAssets(["\(turn)"], owner: "_anna")
            try rows.noteUpload("\(turn)", owner: "_anna", by: "_anna")
            _ = try rows.reserved(by: "_anna")
        }
    }

    private func readHot(_ storage: PostgresCloudStorage, _ zone: StoredZone.ID) async throws {
        for turn in 0..<Self.repetitions {
            let names = (0..<200).map { "r\(1000 + turn * 200 + $0)" }
            let place = StoredZone.Place(scope: .private, owner: "_anna", name: "Zone")
            let together = try await storage.readTogether(names, in: place) { rows throws(CloudError) in
                _ = try rows.zone(place)
                return try rows.records(names, in: zone).count
            }
            #expect(together == 200)
            try await storage.read { rows throws(CloudError) in
                _ = try rows.incarnation()
                _ = try rows.zone(zone)
                _ = try rows.records((0..<200).map { "r\(1000 + turn * 200 + $0)" }, in: zone)
                _ = try rows.records(in: zone, after: Int64(3000 + turn), limit: 200)
                _ = try rows.lastChange(of: "_anna")
                _ = try rows.lastChange(of: "")
                _ = try rows.newestChange(of: "_ben")
                _ = try rows.zones(of: "_ben", after: 5, limit: 100)
                _ = try rows.sharedZones(of: "_ben")
                _ = try rows.participants(called: "_ben", in: zone)
                let shares = (100..<110).map { StoredShare.ID(owner: "_anna", number: Int64($0)) }
                _ = try rows.covered(by: shares, after: 5, limit: 200)
                _ = try rows.share(shares[0])
                _ = try rows.shares(in: zone)
                _ = try rows.named(["500", "505"], in: zone, shares: nil)
                _ = try rows.named(["500", "505"], in: zone, shares: shares)
                _ = try rows.uploads(["500", "505"], owner: "_anna", by: "_anna")
                _ = try rows.ownerOfLink(Data("_anna l50".utf8))
                _ = try rows.link(Data("_anna l50".utf8), of: "_anna")
                _ = try rows.used(by: "_anna")
                _ = try rows.writerNonce(of: 100, in: "_anna")
                _ = try rows.isOfLostTime(100, in: "_anna")
                _ = try rows.lives(of: zone)
                _ = try rows.auditEntries(in: zone, after: 390)
                _ = try rows.answer(to: "token 50", of: "_anna")
            }
        }
    }

    /// - Returns: How many records each query has found.
    private func queryHot(_ storage: PostgresCloudStorage, _ zone: StoredZone.ID) async throws -> [Int] {
        let conditions: [[IndexQuery.Condition]] = [
            [.compare(.index(2), .equal, .integer(5))], [.compare(.index(2), .greater, .integer(990))],
            [.beginsWith(.index(1), "title 11")], [.isOneOf(.index(3), [.text("w2001"), .text("w3001")])],
            [.not(.compare(.index(2), .less, .integer(990)))], [.compare(.parent, .equal, .text("r300"))],
            [.compare(.recordName, .equal, .text("r5001"))], [.compare(.modified, .greater, .integer(11_900))], [],
        ]
        let orders: [[IndexQuery.Order]] = [
            [], [.init(key: .index(1), isAscending: true)], [.init(key: .created, isAscending: false)],
        ]
        var counts: [Int] = []
        for condition in conditions {
            for order in orders {
                for shares in [nil, [StoredShare.ID(owner: "_anna", number: 200)]] {
                    var query = IndexQuery(type: "Note", conditions: condition, order: order)
                    query.shares = shares
                    let asked = query
                    let found = try await storage.read { rows throws(CloudError) in
                        try rows.find(asked, in: zone, limit: 100, within: QueryBudget(steps: .max, time: .seconds(20)))
                    }
                    #expect(!found.isCut)
                    if shares == nil { counts.append(found.rows.count) }
                }
            }
        }
        return counts
    }

    // Plans

    private struct Plan {
        let sql: String
        let text: String
        let nodes: [[String: Any]]

        /// Whether the plan reads a table, or an index of it.
        func reads(_ table: String) -> Bool {
            nodes.contains { ($0["Index Name"] as? String ?? $0["Relation Name"] as? String ?? "").hasPrefix(table) }
        }

        /// Says what is wrong with the plan.
        ///
        /// - Parameters:
        ///   - tables: The tables that are looked at.
        ///   - rowsMost: The most rows that a node may have looked at.
        func faults(_ tables: Set<String>, rowsMost: Double?) -> [String] {
            var faults: [String] = []
            for node in nodes {
                func number(_ key: String) -> Double { (node[key] as? NSNumber)?.doubleValue ?? 0 }
                let type = node["Node Type"] as? String ?? ""
                let index = node["Index Name"] as? String
                let table = index ?? node["Relation Name"] as? String ?? ""
                // An index begins with the name of its table.
                guard type.hasSuffix("Scan"), tables.contains(where: table.hasPrefix) else { continue }
                if type == "Seq Scan" { faults.append("a whole table, \(table), is read") }
                // Links are unique in a container: their index needs no owner.
                if index != nil, index != "tidemark_links_by_digest" {
                    let condition = node["Index Cond"] as? String ?? ""
                    if !condition.contains("owner = ") { faults.append("\(table) is read for all owners: \(condition)") }
                }
                let rows = (number("Actual Rows") + number("Rows Removed by Filter")) * number("Actual Loops")
                if let rowsMost, rows > rowsMost { faults.append("\(Int(rows)) rows of \(table) are read") }
            }
            return faults
        }
    }

    /// Reads the plans of a server's log.
    private static func plans(_ log: String) throws -> [Plan] {
        var plans: [Plan] = []
        for entry in log.split(separator: "@@ ") {
            guard let start = entry.range(of: "plan:\n")?.upperBound else { continue }
            let text = String(entry[start...])
            let content = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
            guard let sql = content["Query Text"] as? String, let plan = content["Plan"] as? [String: Any] else { continue }
            var (nodes, open) = ([[String: Any]](), [plan])
            while let node = open.popLast() {
                nodes.append(node)
                open += node["Plans"] as? [[String: Any]] ?? []
            }
            plans.append(Plan(sql: sql, text: text, nodes: nodes))
        }
        return plans
    }
}

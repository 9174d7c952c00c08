import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel

/// Goal: everybody reads the public database, an account that is signed in adds records, and only the maker of a record changes
/// it. Method: each cell is a call to a database of its own, in which one account has made a record; a refused call has changed
/// nothing.
///
/// In the table, `+` is done, `-` is refused with a decision of the policy, `!` is `invalidArguments`, and `n` asks for a sign-in.
@Suite(.timeLimit(.minutes(30))) struct PublicMatrixTests {
    private enum Person: String, CaseIterable { case maker, other, nobody }

    struct Row: Sendable, CustomTestStringConvertible {
        let operation: String
        let outcomes: [Character]
        var testDescription: String { operation }
    }

    static let rows: [Row] = """
        lookUp          + + +
        query           + + +
        download        + + +
        create          + + n
        update          + - n
        forceUpdate     + - n
        forceReplace    + - n
        delete          + - n
        forceDelete     + - n
        atomic          ! ! n
        upload          + + n
        zoneChanges     ! ! n
        databaseChanges ! ! n
        share           - - n
        readShares      - - n
        """.split(separator: "\n").map { line in
            let words = line.split(separator: " ")
            return Row(operation: String(words[0]), outcomes: words.dropFirst().compactMap(\.first))
        }

    @Test(arguments: rows) func `each person may do in the public database what the table says`(row: Row) async throws {
        #expect(row.outcomes.count == Person.allCases.count)
        for (person, wanted) in zip(Person.allCases, row.outcomes) {
            let world = try await World()
            let before = try await world.records()
            let found = try await world.outcome(of: row.operation, by: person.rawValue)
            #expect(found.sign == wanted, "\(person): \(found.told)")
            let isChanged = try await world.records() != before
            let reads = ["lookUp", "query", "download", "upload"].contains(row.operation)
            #expect(isChanged == (found.sign == "+" && !reads), "\(person)")
        }
    }

    /// A public database in which one account has made the record `a`.
    private final class World {
        private let scratch: Scratch
        private let databases: [String: EmbeddedDatabase]
        private let zone = CloudZoneID.default
        private let content = Data(repeating: 7, count: 100)
        private let names = ["a", "b"]
        private let tag: String?

        init() async throws {
            scratch = try Scratch()
            let cloud = try EmbeddedCloud(
                inMemoryBeside: scratch["cloud"], now: { Int64((Date().timeIntervalSince1970 * 1e6).rounded()) })
            let container = "iCloud.org.example.journal"
            var databases = ["nobody": try cloud.database(.public, of: container, account: nil)]
            for person in ["maker", "other"] {
                let account = try await cloud.addAccount("\(person)@example.org")
                databases[person] = try cloud.database(.public, of: container, account: account.id)
            }
            self.databases = databases
            let maker = databases["maker"]!
            let asset = AssetDigest.asset(of: content)
            _ = try await maker.upload(content, of: asset, at: 0, in: zone)
            let record = CloudRecord(
                CloudRecordID("a", in: zone), type: "Destination", fields: ["n": .int64(1), "image": .asset(asset)])
            let outcomes = try await maker.modify(
                ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.create, record)]))
            guard case .saved(let saved) = outcomes[0] else { throw CloudError(.internalError, "\(outcomes)") }
            tag = saved.changeTag
            try await cloud.setIndexes([.queryable], of: "n", in: "Destination", container: container)
        }

        /// The numbers of the records that are there.
        func records() async throws -> [CloudValue?] {
            let found = try await databases["maker"]!.lookup(names, in: zone, desiredKeys: nil)
            return found.map { try? $0.get().fields["n"] }
        }

        func outcome(of operation: String, by person: String) async throws -> (sign: Character, told: String) {
            do {
                let outcomes = try await call(operation, databases[person]!)
                for case .failed(let error) in outcomes where error.code != .batchRequestFailed { throw error }
                return ("+", "done")
            } catch let error as CloudError {
                switch error.code {
                case .permissionFailure:
                    guard let denial = error.denial, !denial.isAllowed else { return ("x", "without a decision: \(error)") }
                    return ("-", "\(denial.rule)")
                case .invalidArguments: return ("!", "\(error)")
                case .notAuthenticated: return ("n", "\(error)")
                default: return ("x", "\(error)")
                }
            }
        }

        private func record(_ name: String, tag: String? = nil) -> CloudRecord {
            CloudRecord(CloudRecordID(name, in: zone), type: "Destination", fields: ["n": .int64(9)], changeTag: tag)
        }

        private func call(_ operation: String, _ database: EmbeddedDatabase) async throws -> [RecordOutcome] {
            func modify(_ operations: [RecordOperation], isAtomic: Bool = false) async throws -> [RecordOutcome] {
                try await database.modify(ModifyRecordsRequest(zone: zone, operations: operations, isAtomic: isAtomic))
            }
            switch operation {
            case "lookUp": _ = try await database.lookup(["a"], in: zone, desiredKeys: nil)[0].get()
            case "query":
                let query = CloudQuery(recordType: "Destination", filters: [.init(.field("n"), .equals, .int64(1))])
                let answer = try await database.query(query, in: zone, limit: nil, desiredKeys: nil, continuation: nil)
                guard answer.records.count == 1 else { throw CloudError(.internalError, "\(answer)") }
            case "download":
                _ = try await database.download(AssetDigest.asset(of: content), in: zone, from: 0, count: 10)
            case "create": return try await modify([RecordOperation(.create, record("b"))])
            case "update": return try await modify([RecordOperation(.update, record("a", tag: tag))])
            case "forceUpdate": return try await modify([RecordOperation(.forceUpdate, record("a"))])
            case "forceReplace": return try await modify([RecordOperation(.forceReplace, record("a"))])
            case "delete": return try await modify([.delete(CloudRecordID("a", in: zone), changeTag: tag)])
            case "forceDelete": return try await modify([.delete(CloudRecordID("a", in: zone))])
            case "atomic":
                return try await modify(
                    [RecordOperation(.create, record("b")), RecordOperation(.forceUpdate, record("a"))], isAtomic: true)
            case "upload":
                let sent = Data(repeating: 8, count: 100)
                _ = try await database.upload(sent, of: AssetDigest.asset(of: sent), at: 0, in: zone)
            case "zoneChanges": _ = try await database.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil)
            case "databaseChanges": _ = try await database.databaseChanges(since: nil, limit: nil)
            case "share":
                _ = try await database.createShare(
                    in: zone, coverage: .hierarchy(root: "a"), title: nil, publicPermission: .none)
            case "readShares": _ = try await database.shares(in: zone)
            default: throw CloudError(.internalError, "there is no operation '\(operation)'")
            }
            return []
        }
    }
}

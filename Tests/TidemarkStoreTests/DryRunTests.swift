import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: a dry run says what the import would do, for any store. Method: each dry run is followed by the import itself.
@Suite(.timeLimit(.minutes(30))) struct DryRunTests {
    private func lines(_ numbers: Range<Int>, _ n: Int = 1) -> [String] {
        numbers.map { #"{"id": "r\#($0)", "n": \#($0 + n)}"# }
    }

    private func withoutIndex(_ scratch: Scratch) throws {
        let store = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        // The state after a process dies between two batches of a load.
        try store.write { db in try db.execute(sql: "DROP INDEX tide_name_Destination") }
        try store.close()
    }

    @Test func `a dry run is right for a store whose first import was interrupted`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: lines(0..<50), .destination())
        try withoutIndex(scratch)
        let options = ImportOptions.destination { $0.batchSize = 7 }
        let changed = lines(0..<20) + lines(20..<30, 2) + lines(45..<60)
        var dry = options
        dry.isDryRun = true
        let rehearsal = try await scratch.importing(lines: changed, dry)
        #expect(rehearsal.changes == ChangeCounts(inserted: 10, updated: 10, unchanged: 25))
        #expect(try await scratch.importing(lines: changed, options).changes == rehearsal.changes)
        let other = ImportOptions.destination {
            $0.type = "Place"
            $0.isDryRun = true
        }
        #expect(try await scratch.importing(lines: lines(55..<65), other).rejected == 5)
    }

    @Test func `a dry run without the index of names does not scan the table for each row`() async throws {
        let scratch = try Scratch()
        let file = try scratch.writeLines(lines(0..<20_000), to: "all.jsonl")
        try await scratch.importing(file, .destination())
        let options = ImportOptions.destination { $0.isDryRun = true }
        func duration() async throws -> Duration {
            let start = ContinuousClock.now
            #expect(try await scratch.importing(file, options).changes == ChangeCounts(unchanged: 20_000))
            return ContinuousClock.now - start
        }
        let with = try await duration()
        try withoutIndex(scratch)
        // A scan of the table for each row takes more than ten times as long.
        #expect(try await duration() < with * 3 + .seconds(1))
    }

    @Test func `a dry run is right for a store with other table names`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a", "n": 1, "m": 2}"#, #"{"id": "b", "n": 1}"#], .destination())
        let store = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        try await store.write { db in
            try db.execute(
                sql: """
                    DROP VIEW _Destination;
                    ALTER TABLE Destination RENAME TO Destination_5;
                    ALTER TABLE Destination_5 RENAME COLUMN n TO n_7;
                    UPDATE tide_types SET table_name = 'Destination_5';
                    UPDATE tide_fields SET column_name = 'n_7' WHERE name = 'n';
                    """)
        }
        let options = ImportOptions.destination { $0.isDryRun = true }
        let changed = [#"{"id": "a", "n": 1, "m": 3}"#, #"{"id": "b", "n": 1, "new": true}"#, #"{"id": "c", "n": 1}"#]
        let rehearsal = try await scratch.importing(lines: changed, options)
        #expect(rehearsal.changes == ChangeCounts(inserted: 1, updated: 2, unchanged: 0))
        #expect(try await scratch.importing(lines: changed, .destination()).changes == rehearsal.changes)
    }
}

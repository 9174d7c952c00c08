import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

extension FormatMigrations {
    /// This version's migrations of stores with two more steps, which only tests have: one adds a column to an internal table,
    /// the other rewrites the captions of destinations. Both leave a trace each time that they run.
    package static let testStores = FormatMigrations.stores.adding(testSteps)

    package static let testSteps: [Step] = [
        .init("requests know when they were sent") { db in
            try db.execute(sql: "ALTER TABLE tide_requests ADD COLUMN sent INTEGER")
        },
        .init("captions end with an exclamation mark") { db in
            try FormatMigrations.rewrite(db, of: "caption", in: "Destination") { value in
                String.fromDatabaseValue(value).map { .string($0 + "!") }
            }
        },
    ]
}

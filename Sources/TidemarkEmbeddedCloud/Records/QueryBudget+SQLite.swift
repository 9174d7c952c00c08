import Foundation
import GRDB
import GRDBSQLite
import TidemarkCloudEngine

/// Bounds the work of one SQLite statement, and measures it.
///
/// SQLite calls back after every ``stride`` instructions of its virtual machine, also while it searches without finding anything.
extension QueryBudget {
    /// The number of instructions between two checks of the budget.
    static let stride: Int32 = 1_000
    /// How long a statement works before it sleeps, if it gives way to others.
    private static let turn = Duration.milliseconds(2)

    /// Runs `body` with the budget on a connection. A statement that exceeds it fails with `SQLITE_INTERRUPT`.
    ///
    /// - Returns: The answer of `body`; `nil` where the budget was exceeded.
    func limit<Answer>(_ db: Database, _ body: () throws -> Answer) throws -> Answer? {
        let meter = Meter(self)
        return try withExtendedLifetime(meter) {
            sqlite3_progress_handler(
                db.sqliteConnection, Self.stride,
                { pointer in
                    guard let pointer else { return 0 }
                    return Unmanaged<Meter>.fromOpaque(pointer).takeUnretainedValue().isExceeded() ? 1 : 0
                }, Unmanaged.passUnretained(meter).toOpaque())
            defer { sqlite3_progress_handler(db.sqliteConnection, 0, nil, nil) }
            do {
                return try body()
            } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT && meter.hasExceeded {
                return nil
            }
        }
    }

    /// Returns the number of instructions that a statement has taken since it was prepared.
    static func steps(of statement: Statement) -> Int64 {
        Int64(sqlite3_stmt_status(statement.sqliteStatement, Int32(SQLITE_STMTSTATUS_VM_STEP), 0))
    }

    /// Seconds for which the calling thread has had a processor.
    static func processorTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Counts while a statement runs; used by one thread.
    private final class Meter {
        private let budget: QueryBudget
        private let clock = ContinuousClock()
        private let began: ContinuousClock.Instant
        private var turnBegan: ContinuousClock.Instant
        private var steps: Int64 = 0
        private(set) var hasExceeded = false

        init(_ budget: QueryBudget) {
            self.budget = budget
            began = clock.now
            turnBegan = began
        }

        func isExceeded() -> Bool {
            steps += Int64(QueryBudget.stride)
            let now = clock.now
            if steps > budget.steps || now - began > budget.time {
                hasExceeded = true
            } else if budget.givesWay, now - turnBegan >= QueryBudget.turn {
                let rest = min(now - turnBegan, .milliseconds(50))
                var time = timespec()
                time.tv_nsec = Int(rest / .nanoseconds(1))
                nanosleep(&time, nil)
                turnBegan = clock.now
            }
            return hasExceeded
        }
    }
}

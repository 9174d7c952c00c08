import CTideCore
import Foundation
package import GRDB
import TidemarkModel

/// The numbered migrations of one kind of database: the steps that bring a file of an older format to the newest.
///
/// `PRAGMA user_version` holds a file's format. Each step takes a file from one format to the next, in one transaction that also
/// writes the new number, and is durable before the next step begins. A process that is killed leaves a file of one format or of
/// the next, and nothing in between. The next opening for writing goes on from there.
///
/// Rules for a step:
/// - A step is frozen once it is released. It reads and writes its two formats by SQL of its own, and calls no code that changes
///   with later formats.
/// - A step of a store that changes the values of records writes their digests, too (``rewrite(_:of:in:_:)`` does). It subtracts
///   the old value's part from the digest, and adds the new value's. So a damaged row is still recognised as damaged afterwards.
/// - A step's changes are not edits: it writes no history, and nothing is sent to a cloud.
/// - A step keeps everything that copying a container of an older format reads: `id` and `size` of `tide_assets`, and
///   `tide_types` and `tide_fields`, with which records are compared with their digests.
/// - A step changes only the database: a transaction can't undo a change of another file.
package struct FormatMigrations: Sendable {
    /// A migration from one format to the next.
    package struct Step: Sendable {
        /// The step's effect in plain words. Errors name it.
        package let name: String
        let body: @Sendable (Database) throws -> Void

        package init(_ name: String, _ body: @escaping @Sendable (Database) throws -> Void) {
            self.name = name
            self.body = body
        }
    }

    /// A point of a migration. Tests stop a migration there.
    package enum Moment: Hashable, Sendable {
        /// The step to a format has run, and its transaction is still open.
        case applied(path: String, format: Int32)
        /// The step to a format is durable.
        case committed(path: String, format: Int32)
        /// All stores of a container have the newest format, and `container.json` does not have it yet.
        case storesMigrated
        /// `container.json` has the newest format.
        case described
    }

    /// SQLite's application id of these files.
    package let applicationID: Int32
    /// The oldest format that can be migrated.
    package let oldest: Int32
    /// The steps from ``oldest`` on, without a gap.
    package let steps: [Step]
    /// Called at each moment. For tests.
    package var hook: @Sendable (Moment) throws -> Void = { _ in }

    package init(applicationID: Int32, oldest: Int32, steps: [Step] = []) {
        self.applicationID = applicationID
        self.oldest = oldest
        self.steps = steps
    }

    /// The format of new files, and the format to which older files are migrated.
    package var newest: Int32 { oldest + Int32(steps.count) }

    /// These migrations with further steps.
    package func adding(_ more: [Step]) -> FormatMigrations {
        FormatMigrations(applicationID: applicationID, oldest: oldest, steps: steps + more)
    }

    /// Makes sure that a format is the newest, or that this version can migrate it.
    ///
    /// - Throws: ``StoreError`` `newerFormat`, or `olderFormat` when the format is older than ``oldest``.
    package func checkIsKnown(_ format: Int, of path: String) throws(StoreError) {
        guard format <= Int(newest) else {
            throw StoreError(
                .newerFormat, "\(path) has format \(format); this version reads up to \(newest). Update Tidemark to open it")
        }
        guard format >= Int(oldest) else {
            throw StoreError(
                .olderFormat,
                "\(path) has format \(format); this version reads from \(oldest) on. Open it with the Tidemark that made it")
        }
    }

    /// Makes sure that a file has the newest format.
    ///
    /// - Parameter remedy: A whole sentence that says how to migrate an older file.
    /// - Throws: ``StoreError`` `newerFormat`, `olderFormat`.
    package func checkIsNewest(_ format: Int, of path: String, remedy: @autoclosure () -> String) throws(StoreError) {
        try checkIsKnown(format, of: path)
        guard format == Int(newest) else {
            throw StoreError(
                .olderFormat, "\(path) has format \(format), which this version reads once it is migrated. \(remedy())")
        }
    }

    /// Makes sure, within a transaction, that no newer version has migrated the file since it was opened. Everything that the
    /// transaction reads afterwards has the format that this version knows.
    ///
    /// - Throws: ``StoreError`` `newerFormat`; `olderFormat` when an older file was put in its place.
    /// - Complexity: About 0.1 µs in a transaction that has begun.
    package func checkIsUnchanged(_ db: Database, path: @autoclosure () -> String) throws {
        let found = try db.format
        guard found != newest else { return }
        guard found > newest else {
            throw StoreError(
                .olderFormat,
                "\(path()) has format \(found) now: an older file was put in its place. Open the container again, which migrates it"
            )
        }
        throw StoreError(
            .newerFormat,
            "\(path()) has been migrated to format \(found) since it was opened; this version reads up to \(newest). Update Tidemark to open it"
        )
    }

    /// Migrates a file step by step to the newest format. The caller holds the lock of writers, and the connection makes each
    /// commit durable.
    ///
    /// - Returns: The format that the file had.
    /// - Throws: ``StoreError`` `notAStore`, `newerFormat`, `olderFormat` before anything is changed; or the failure of a step,
    ///   with the step's name. The file then has the format of the last finished step.
    @discardableResult
    package func migrate(_ db: Database, path: String) throws -> Int32 {
        guard try Int32.fetchOne(db, sql: "PRAGMA application_id") == applicationID else {
            throw StoreError(.notAStore, "\(path) is a SQLite database of another kind")
        }
        let before = try Int32.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        try checkIsKnown(Int(before), of: path)
        for format in before..<newest {
            let step = steps[Int(format - oldest)]
            do {
                try db.inTransaction(.immediate) {
                    try step.body(db)
                    try db.execute(sql: "PRAGMA user_version = \(format + 1)")
                    try hook(.applied(path: path, format: format + 1))
                    return .commit
                }
            } catch {
                let what = "migrate \(path) from format \(format) to \(format + 1) (\(step.name))"
                // `StoreError.init(_:doing:)` names the step in errors of other libraries, and leaves a `StoreError` as it is.
                let failure = StoreError(error, doing: what)
                let reason = error is StoreError ? "cannot \(what): \(failure.message)" : failure.message
                let remedy = failure.code == .diskFull ? "Free space on its disk; the" : "The"
                throw StoreError(
                    failure.code, "\(reason). It still has format \(format). \(remedy) next opening goes on from there",
                    namesRemedy: true)
            }
            try hook(.committed(path: path, format: format + 1))
        }
        return before
    }
}

extension Database {
    /// The value of `PRAGMA user_version`.
    ///
    /// It is read without GRDB's rows, which take six times as long: each transaction reads it.
    var format: Int32 {
        get throws {
            let statement = try cachedStatement(sql: "PRAGMA user_version")
            var format: Int32 = 0
            if tide_statement_number(statement.sqliteStatement, &format) { return format }
            // Throws what SQLite reports.
            return try Int32.fetchOne(statement) ?? 0
        }
    }
}

extension FormatMigrations: Hashable {
    /// Two lists are equal if they have the same application id and oldest format, and steps of the same names.
    package static func == (left: FormatMigrations, right: FormatMigrations) -> Bool {
        left.applicationID == right.applicationID && left.oldest == right.oldest
            && left.steps.map(\.name) == right.steps.map(\.name)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(applicationID)
        hasher.combine(newest)
    }
}

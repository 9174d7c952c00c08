import CTideCore
import Foundation
package import GRDB
import TidemarkModel

/// The numbered migrations of one kind of database: how a file of an older format becomes one of the newest.
///
/// `PRAGMA user_version` holds a file's format. Each step takes a file from one format to the next, in one transaction that also writes the
/// new number, and is durable before the next step begins. A process that is killed leaves a file of one format or of the next, never
/// something between; the next opening for writing goes on from there.
///
/// Rules for a step:
/// - It is frozen once it is released: it reads and writes the two formats it lies between by SQL of its own, and calls nothing that changes
///   with later formats.
/// - A step of a store that changes the values of records writes their digests, too (``rewrite(_:of:in:_:)`` does). It subtracts what the old
///   value added to the digest and adds what the new one does: so a damaged row is still found to be damaged afterwards.
/// - What it changes is no edit: it writes no history, and nothing of it is sent to a cloud.
/// - What copies of containers of older formats read stays: `id` and `size` of `tide_assets`; `tide_types` and `tide_fields`, by which records
///   are compared with their digests.
/// - It works only on the database: a transaction can't undo a change of a file.
package struct FormatMigrations: Sendable {
    /// From one format to the next.
    package struct Step: Sendable {
        /// What it does, in plain words: errors name it.
        package let name: String
        let body: @Sendable (Database) throws -> Void

        package init(_ name: String, _ body: @escaping @Sendable (Database) throws -> Void) {
            self.name = name
            self.body = body
        }
    }

    /// A point that a migration comes to; tests stop it there.
    package enum Moment: Hashable, Sendable {
        /// The step to a format has run, and its transaction is still open.
        case applied(path: String, format: Int32)
        /// The step to a format is durable.
        case committed(path: String, format: Int32)
        /// All stores of a container have the newest format, and `container.json` does not say so yet.
        case storesMigrated
        /// `container.json` says so.
        case described
    }

    /// SQLite's application id of these files.
    package let applicationID: Int32
    /// The oldest format that can be migrated.
    package let oldest: Int32
    /// From ``oldest`` on, without a gap.
    package let steps: [Step]
    /// Is called at each moment.
    package var hook: @Sendable (Moment) throws -> Void = { _ in }

    package init(applicationID: Int32, oldest: Int32, steps: [Step] = []) {
        self.applicationID = applicationID
        self.oldest = oldest
        self.steps = steps
    }

    /// The format of files that are made, and to which others are migrated.
    package var newest: Int32 { oldest + Int32(steps.count) }

    /// These migrations with further steps.
    package func adding(_ more: [Step]) -> FormatMigrations {
        FormatMigrations(applicationID: applicationID, oldest: oldest, steps: steps + more)
    }

    /// Makes sure that this version can migrate a format, or needs not.
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
    /// - Parameter remedy: What migrates a file of an older one: a whole sentence.
    /// - Throws: ``StoreError`` `newerFormat`, `olderFormat`.
    package func checkIsNewest(_ format: Int, of path: String, remedy: @autoclosure () -> String) throws(StoreError) {
        try checkIsKnown(format, of: path)
        guard format == Int(newest) else {
            throw StoreError(
                .olderFormat, "\(path) has format \(format), which this version reads once it is migrated. \(remedy())")
        }
    }

    /// Makes sure, within a transaction, that no newer version has migrated the file since it was opened. All that the transaction reads
    /// afterwards has the format that this version knows.
    ///
    /// - Throws: ``StoreError`` `newerFormat`, `olderFormat` when an older file was put in its place.
    /// - Complexity: A tenth of a microsecond in a transaction that has begun.
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

    /// Takes a file step by step to the newest format. Under the lock of its writers, on a connection that makes each commit durable.
    ///
    /// - Returns: The format that the file had.
    /// - Throws: ``StoreError`` `notAStore`, `newerFormat`, `olderFormat` before anything is changed; or what stopped a step, with the step's name: then the file has the format
    ///   that the last finished step gave it.
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
                // A failure of another library gets a sentence that names the step; a failure of ours has a sentence without it.
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
    /// What `PRAGMA user_version` says.
    ///
    /// Past GRDB's rows, which take six times as long: each transaction asks for it.
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
    /// Two lists are equal when they are for the same files and have steps of the same names.
    package static func == (left: FormatMigrations, right: FormatMigrations) -> Bool {
        left.applicationID == right.applicationID && left.oldest == right.oldest
            && left.steps.map(\.name) == right.steps.map(\.name)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(applicationID)
        hasher.combine(newest)
    }
}

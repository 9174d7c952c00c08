import Foundation
import GRDB
import TestServers
import TestSupport
import Testing
import TidemarkModel

@testable import TidemarkServer

/// Goal: a move that has not copied everything says so, and leaves no cloud in its target. Method: a move in this process. SQL
/// changes one side of it: while it runs, or between two parts, the first of which ends at a table that is missing.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct MoveComparisonTests {
    private static let container = "iCloud.org.example.journal/development"

    /// A move of a cloud of twelve records, and its sides.
    private struct Trial: Sendable {
        let isIntoDatabase: Bool
        let database: MovedDatabase
        let tool: Tool
        /// The cloud's directory, as the source or the target.
        let directory: URL
        /// The file of the directory's rows during a move.
        var records: URL {
            let folder =
                isIntoDatabase
                ? directory
                : directory.deletingLastPathComponent().appendingPathComponent(".\(directory.lastPathComponent).moving")
            return folder.appendingPathComponent("containers/\(MoveComparisonTests.container)/records.sqlite")
        }
        private var places: (directory: CloudMove.Place, database: CloudMove.Place) {
            let assets = ServerConfiguration.Assets.directory(URL(fileURLWithPath: database.assets, isDirectory: true))
            return (.directory(directory), .database(ServerConfiguration.Database(address: database.address, assets: assets)))
        }

        /// Runs the move.
        ///
        /// - Parameters:
        ///   - step: The beginning of a step's name.
        ///   - action: Run once, when the move first reports such a step.
        @discardableResult
        func run(
            at step: String? = nil, _ action: @escaping @Sendable () throws -> Void = {}
        ) async throws -> CloudMove.Report {
            let isDone = Shared(false)
            defer { #expect(step == nil || isDone.value, "the move has not come to '\(step ?? "")'") }
            let (from, to) = isIntoDatabase ? (places.directory, places.database) : (places.database, places.directory)
            let move = CloudMove(from: from, to: to) { state in
                guard let step, state.what.hasPrefix(step), !isDone.value else { return }
                isDone.change { $0 = true }
                do { try action() } catch { Issue.record(error) }
            }
            return try await move.run()
        }

        /// Runs the move by the tool.
        func runTool() async throws -> Tool.Result {
            let (from, to) =
                isIntoDatabase ? (directory.path, database.address) : (database.address, directory.path)
            return try await database.move(tool, from, to)
        }

        /// Ends the move behind the records, before it has moved all tables.
        func runFirstPart() async throws {
            let error = await #expect(throws: ServerError.self) {
                try await run(at: "records of ") { try change(database: true, "ALTER TABLE $assets RENAME TO hidden") }
            }
            #expect(error?.code == .storage, "\(error?.message ?? "")")
            try change(database: true, "ALTER TABLE hidden RENAME TO tidemark_assets")
        }

        /// Changes rows of a container.
        ///
        /// - Parameter sql: Has `$` before the names of tables, for the prefix that they have in PostgreSQL.
        private func change(database isDatabase: Bool, _ sql: String) throws {
            if isDatabase {
                try PostgresServer.shared().sql(sql.replacing("$", with: "tidemark_"), in: database.name)
            } else {
                try DatabaseQueue.execute(records, sql.replacing("$", with: ""))
            }
        }

        func changeSource(_ sql: String) throws { try change(database: !isIntoDatabase, sql) }
        func changeTarget(_ sql: String) throws { try change(database: isIntoDatabase, sql) }

        /// Changes accounts of the source, not by an administrator's command.
        func changeAccounts(_ sql: String) throws {
            if isIntoDatabase {
                try DatabaseQueue.execute(directory.appendingPathComponent("accounts.sqlite"), sql)
            } else {
                try PostgresServer.shared().sql(sql, in: database.name)
            }
        }

        /// Runs the move, which must fail.
        func expectFailure(
            _ code: ServerError.Code, _ reason: String, at step: String? = nil,
            _ action: @escaping @Sendable () throws -> Void = {}
        ) async throws {
            let error = await #expect(throws: ServerError.self) { try await run(at: step, action) }
            #expect(error?.code == code && error?.message.contains(reason) == true, "\(isIntoDatabase): \(error?.message ?? "")")
            try await expectNoCloud()
        }

        /// Checks that the target has no usable cloud.
        func expectNoCloud() async throws {
            if !isIntoDatabase {
                #expect(!FileManager.default.fileExists(atPath: directory.path))
                return
            }
            let administered = try await tool.run(["admin", "account", "list"] + database.options)
            #expect(administered.status == 69 && administered.errors.contains("is being moved into"), "\(administered.errors)")
            try database.eventuallyUnused()
        }

        /// Changes the source by a command.
        @discardableResult
        func administer(_ words: String...) async throws -> Tool.Result {
            let place = isIntoDatabase ? ["--data", directory.path] : database.options
            let result = try await tool.run(["admin"] + words + place)
            #expect(result.status == 0, "\(words): \(result.errors)")
            if !isIntoDatabase { try database.eventuallyUnused() }
            return result
        }

        /// Adds an API token to the source.
        ///
        /// - Returns: Its identifier.
        func addToken() async throws -> String {
            let made = try await administer(
                "token", "add", "--container", "iCloud.org.example.journal", "--name", "Web", "--callback", "http://127.0.0.1:9/",
                "--json")
            return try #require(try made.json()["id"] as? String)
        }
    }

    /// Runs a body with a move into a database, and with a move out of a database.
    private func withTrials(_ body: (Trial) async throws -> Void) async throws {
        let place = try await ServedMachines.started(people: ["anna"])
        try await place.signIn("laptop", as: "anna")
        try await place.importRecords("laptop", count: 12, pictureEvery: 3)
        try await place.sync("laptop")
        await place.stop()
        let (cloud, scratch, tool) = (place.scratch["cloud"], place.scratch, place.tool)
        let filled = try MovedDatabase(in: scratch)
        let into = try await filled.move(tool, cloud.path, filled.address)
        try #require(into.status == 0, "\(into.errors)")
        for trial in [
            Trial(isIntoDatabase: true, database: try MovedDatabase(in: scratch), tool: tool, directory: cloud),
            Trial(isIntoDatabase: false, database: filled, tool: tool, directory: scratch["back"]),
        ] {
            try await body(trial)
        }
    }

    private static let differs = "the records of \(container) that have arrived in "

    @Test func `a move reports rows that changed in the target, until they are as they were sent`() async throws {
        try await withTrials { trial in
            try await trial.runFirstPart()
            try trial.changeTarget("UPDATE $records SET modified = modified + 1")
            try await trial.expectFailure(.different, Self.differs)
            let again = try await trial.runTool()
            #expect(again.status == 65 && again.errors.contains(Self.differs), "\(again.status) \(again.errors)")
            #expect(again.errors.contains("(12 and 12 rows); empty the target and begin again"), "\(again.errors)")
            try await trial.expectNoCloud()
            try trial.changeTarget("UPDATE $records SET modified = modified - 1")
            let report = try await trial.run()
            #expect(report.records == 12 && report.assets == 4 && report.problems == [])
        }
    }

    @Test func `a move reports a row that the target has lost, with the counts that were sent and found`() async throws {
        try await withTrials { trial in
            let lost = "(11 and 12 rows); empty the target and begin again"
            try await trial.expectFailure(.different, lost, at: "comparing ") {
                try trial.changeTarget("DELETE FROM $records WHERE id = (SELECT min(id) FROM $records)")
            }
            try await trial.expectFailure(.different, Self.differs)
        }
    }

    @Test func `a move reports a container that differs in the target`() async throws {
        try await withTrials { trial in
            try await trial.expectFailure(.different, "the containers or secrets that have arrived in ", at: "comparing ") {
                try trial.changeTarget(
                    trial.isIntoDatabase
                        ? "UPDATE $containers SET common_changes = common_changes + 1"
                        : "INSERT OR REPLACE INTO $counters (name, value) VALUES ('change', 1000)")
            }
        }
    }

    @Test func `a move reports a source that changes after its first part, and says to empty the target`() async throws {
        try await withTrials { trial in
            try await trial.runFirstPart()
            try await trial.administer("account", "add", "eva@example.org", "--no-password")
            try await trial.expectFailure(.busy, "has changed since the move began; empty ")
            let again = try await trial.runTool()
            #expect(again.status == 75 && again.errors.contains("has changed since the move began"), "\(again.errors)")
            try await trial.expectNoCloud()
        }
    }

    @Test func `a move reports a source that changes meanwhile, and says to empty the target`() async throws {
        try await withTrials { trial in
            try await trial.expectFailure(.busy, "has changed meanwhile; empty ", at: "comparing ") {
                try trial.changeSource("UPDATE $owners SET change = change + 1")
            }
            // The target differs from the current source.
            try await trial.expectFailure(.busy, "has changed since the move began")
        }
    }

    @Test func `a move reports an account that changes in the source during the comparison`() async throws {
        try await withTrials { trial in
            try await trial.expectFailure(.busy, "has changed meanwhile; empty ", at: "comparing ") {
                try trial.changeAccounts("UPDATE accounts SET quota = quota + 1")
            }
        }
    }

    @Test func `a move reports an account that changes in the source after its first part`() async throws {
        try await withTrials { trial in
            try await trial.runFirstPart()
            // By then the account was moved, and the number of accounts stays the same.
            try await trial.administer("account", "set", "anna@example.org", "--quota", "500MB")
            try await trial.expectFailure(.busy, "has changed since the move began; empty ")
        }
    }

    @Test func `a move reports an API token that is revoked in the source after its first part`() async throws {
        try await withTrials { trial in
            let token = try await trial.addToken()
            try await trial.runFirstPart()
            // The revocation must count, or the moved token would still give access to the cloud.
            try await trial.administer("token", "revoke", token)
            try await trial.expectFailure(.busy, "has changed since the move began; empty ")
        }
    }
}

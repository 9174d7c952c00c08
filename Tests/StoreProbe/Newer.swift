import ArgumentParser
import TestSupport
import TidemarkCommands
import TidemarkSQLite
import TidemarkStore

/// The command-line tool of a version whose stores have the formats that tests have.
struct Newer: AsyncParsableCommand {
    @Argument(parsing: .captureForPassthrough) var arguments: [String] = []

    func run() async throws {
        FormatMigrations.testOnlySteps.all = FormatMigrations.testSteps
        await Tidemark.run(arguments)
    }
}

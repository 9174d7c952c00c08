import ArgumentParser
import Foundation
import TestSupport
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Migrates a container by the steps that tests have.
struct Migrate: AsyncParsableCommand {
    @Argument var path: String
    /// Kills itself at the moment of this number, counted from 0.
    @Option var killAt: Int?

    func run() async throws {
        var migrations = FormatMigrations.testStores
        let (count, killAt) = (Counter(), killAt)
        migrations.hook = { _ in if count.next() == killAt { kill(getpid(), SIGKILL) } }
        let container = try ContainerDirectory(openingAt: URL(fileURLWithPath: path), migrations: migrations)
        let store = try RecordStore(container: container)
        try StoreProbe.print(["format": store.container.description.format, "moments": count.next()])
    }

    private final class Counter: Sendable {
        private let value = LockedValue(0)
        func next() -> Int {
            value.withLock { value in
                defer { value += 1 }
                return value
            }
        }
    }
}

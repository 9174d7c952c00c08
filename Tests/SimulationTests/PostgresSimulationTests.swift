import Foundation
import TestServers
import Testing
import TidemarkModel
import TidemarkPostgres

/// How many seeds are run, where the environment says it, and how long they may take: three seconds each.
enum PostgresSimulationRuns {
    static let count = ProcessInfo.processInfo.environment["TIDEMARK_SIMULATION_POSTGRES_RUNS"].flatMap(Int.init)
    static let minutes = max(30, (count ?? 0) / 20)
}

/// Goal: devices lose nothing over a cloud in PostgreSQL either. Method: the runs of `SimulationTests`, with the same faults, deaths and
/// checkers, over a database whose records each run has to itself. Runs that put the cloud back to a copy are left out: a database is put
/// back by its own programs.
///
/// `TIDEMARK_SIMULATION_POSTGRES_RUNS` says how many new seeds are run instead of the fixed ones, from `TIDEMARK_SIMULATION_FIRST` (any) on.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(PostgresSimulationRuns.minutes)))
struct PostgresSimulationTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let count = PostgresSimulationRuns.count
    private static let first = environment["TIDEMARK_SIMULATION_FIRST"].flatMap(UInt64.init)

    private static var chosen: [UInt64] {
        let seeds: any Sequence<UInt64> =
            count == nil ? SimulationTests.seeds : sequence(first: first ?? UInt64.random(in: 1...UInt64(UInt32.max))) { $0 + 1 }
        var chosen: [UInt64] = []
        for seed in seeds where !Simulation.plan(seed).features.contains(.restoredCloud) {
            chosen.append(seed)
            if chosen.count == count { break }
        }
        return chosen
    }

    /// The rows of clouds: all of them in one database, which tests make on a thread of their own, as that waits for processes.
    private static func database() async throws -> PostgresDatabase {
        let address = try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<String, any Error>) in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        let server = try PostgresServer.shared()
                        return server.address(try server.makeDatabase())
                    })
            }
        }
        var configuration = PostgresConfiguration(try PostgresAddress(address))
        configuration.connections = 8
        // A machine that does much else is slow.
        (configuration.waitLimit, configuration.patience, configuration.lockTimeout) = (.seconds(60), .seconds(60), .seconds(60))
        let database = PostgresDatabase(configuration)
        try await PostgresMigrations(PostgresCloudTables.migrations).run(on: database)
        return database
    }

    @Test func `devices that fail, die and edit at once end with equal stores over PostgreSQL too`() async throws {
        let template = try ContainerTemplate(devices: 3)
        defer { template.remove() }
        let (database, seeds, begin) = (try await Self.database(), Self.chosen, ContinuousClock.now)
        let failed = await withTaskGroup(of: (UInt64, [String]).self) { group in
            var (failed, running): ([(UInt64, [String])], Int) = ([], 0)
            for seed in seeds {
                if running >= 2, let (seed, failures) = await group.next(), !failures.isEmpty { failed.append((seed, failures)) }
                running += 1
                group.addTask {
                    let outcome = await Simulation.run(seed, template: template) {
                        try await PostgresCloudStorage(database, container: "simulation\(seed)", environment: .development)
                    }
                    return (seed, outcome.failures)
                }
            }
            for await (seed, failures) in group where !failures.isEmpty { failed.append((seed, failures)) }
            return failed
        }
        let seconds = Int((ContinuousClock.now - begin) / .seconds(1))
        print("\(seeds.count) simulations over PostgreSQL from seed \(seeds.first ?? 0) in \(seconds) s, \(failed.count) failed")
        for (seed, failures) in failed.prefix(20) {
            Issue.record(
                """
                TIDEMARK_SIMULATION_FIRST=\(seed) TIDEMARK_SIMULATION_POSTGRES_RUNS=1: \(failures.joined(separator: "; "))
                """)
        }
    }
}

import Foundation
import TestServers
import Testing
import TidemarkModel
import TidemarkPostgres

/// The number of seeds to run, if the environment gives it, and the time limit: three seconds for each.
enum PostgresSimulationRuns {
    static let count = ProcessInfo.processInfo.environment["TIDEMARK_SIMULATION_POSTGRES_RUNS"].flatMap(Int.init)
    static let minutes = max(30, (count ?? 0) / 20)
}

/// Goal: devices lose nothing over a cloud in PostgreSQL either. Method: the runs of `SimulationTests`, with the same faults,
/// kills and checkers, over a database in which each run has its own records. Runs that put the cloud back to a copy are left
/// out, because PostgreSQL's own programs put a database back.
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

    /// Makes the database of the clouds' rows. It has a thread of its own, because that waits for processes.
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
        // Waits are long, because the machine may be busy.
        (configuration.waitLimit, configuration.patience, configuration.lockTimeout) = (.seconds(60), .seconds(60), .seconds(60))
        let database = PostgresDatabase(configuration)
        try await PostgresMigrations(PostgresCloudTables.migrations).run(on: database)
        return database
    }

    @Test func `devices that fail, die and edit at once end with equal stores over PostgreSQL too`() async throws {
        let template = try ContainerTemplate(devices: 3)
        defer { template.remove() }
        let database = try await Self.database()
        try await SimulationRuns.run(Self.chosen, nil, "simulations over PostgreSQL", Self.again) { seed in
            await Simulation.run(seed, template: template) {
                try await PostgresCloudStorage(database, container: "simulation\(seed)", environment: .development)
            }
        }
    }

    @Test func `devices of several people end with what each sees over PostgreSQL too, whichever server they use`() async throws {
        let template = try SharingSimulation.template()
        defer { template.remove() }
        let database = try await Self.database()
        let count = Self.count ?? SharingSimulationTests.seeds.count
        let first = Self.first ?? UInt64.random(in: 1...UInt64(UInt32.max))
        let seeds = Self.count == nil ? SharingSimulationTests.seeds : (0..<UInt64(count)).map { first + $0 }
        try await SimulationRuns.run(seeds, nil, "sharing simulations over PostgreSQL", Self.again) { seed in
            await SharingSimulation.run(seed, template: template) {
                try await PostgresCloudStorage(database, container: "sharing\(seed)", environment: .development)
            }
        }
    }

    /// Returns the variables that run a seed again.
    private static func again(_ seed: UInt64) -> String {
        "TIDEMARK_SIMULATION_FIRST=\(seed) TIDEMARK_SIMULATION_POSTGRES_RUNS=1"
    }
}

import Foundation
import TestSupport
import Testing

/// Runs of many seeds, two at a time.
enum SimulationRuns {
    /// The number of seeds to run, if the environment gives it.
    static let count = ProcessInfo.processInfo.environment["TIDEMARK_SIMULATION_RUNS"].flatMap(Int.init)
    /// The time limit in minutes: a second for each seed.
    static let minutes = max(30, (count ?? 0) / 60)
    /// The number of runs after which progress is printed.
    static let interval: UInt64 = 100

    /// Runs seeds, and records an issue for each of the first twenty that fail.
    ///
    /// - Parameters:
    ///   - progress: Records how many runs are done.
    ///   - what: The name of the runs in the line that is printed at the end.
    ///   - again: Returns the variables that run a seed again.
    static func run(
        _ seeds: [UInt64], _ progress: RunProgress?, _ what: String,
        _ again: @escaping @Sendable (UInt64) -> String = { "TIDEMARK_SIMULATION_SEED=\($0)" },
        _ run: @escaping @Sendable (UInt64) async -> Simulation.Outcome
    ) async throws {
        let begin = ContinuousClock.now
        let failed = try await withThrowingTaskGroup(of: (UInt64, [String]).self) { group in
            var (open, running) = (OpenRuns(progress, again), 0)
            for seed in seeds {
                if running >= 2, let ended = try await group.next() { try open.end(ended.0, ended.1) }
                running += 1
                open.begin(seed)
                group.addTask { (seed, await run(seed).failures) }
            }
            for try await ended in group { try open.end(ended.0, ended.1) }
            return open.failed
        }
        let seconds = (ContinuousClock.now - begin) / .seconds(1)
        let rate = (Double(seeds.count) / seconds * 10).rounded() / 10
        print("\(seeds.count) \(what) from seed \(seeds.first ?? 0), \(rate) a second, \(failed) failed")
    }

    /// Runs that have begun and are not done, and failed runs. Another process has to begin with the first of them.
    private struct OpenRuns {
        private let progress: RunProgress?
        private let again: (UInt64) -> String
        private var seeds: Set<UInt64> = []
        private var next: UInt64 = 0
        private var noted: UInt64 = 0
        private(set) var failed = 0

        init(_ progress: RunProgress?, _ again: @escaping (UInt64) -> String) { (self.progress, self.again) = (progress, again) }

        mutating func begin(_ seed: UInt64) {
            seeds.insert(seed)
            next = seed + 1
        }

        mutating func end(_ seed: UInt64, _ failures: [String]) throws {
            if failures.isEmpty {
                seeds.remove(seed)
            } else {
                failed += 1
                if failed <= 20 { Issue.record("\(again(seed)): \(failures.joined(separator: "; "))") }
            }
            guard let progress else { return }
            let done = (seeds.min() ?? next) - progress.seed
            let told = seeds.isEmpty ? done : done - done % SimulationRuns.interval
            guard told > noted else { return }
            noted = told
            try progress.note(told)
        }
    }
}

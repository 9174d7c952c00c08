import Foundation
import TestSupport
import Testing
import TidemarkModel

/// Goal: whatever happens to three devices, in whatever order, they end with equal stores, and no edit is lost. Method: runs that
/// follow from a seed, with a real cloud and real stores, faults, kills and a virtual clock. Checkers examine the end of each
/// run.
///
/// The seeds are always the same, so that a good change does not fail by chance. `make prove-simulate` runs new seeds, by these
/// variables. `TIDEMARK_SIMULATION_RUNS` is their number (by default as many as there are fixed ones).
/// `TIDEMARK_SIMULATION_FIRST` is the first one (by default any). `TIDEMARK_SIMULATION_FEATURES` (names of
/// `SimulationPlan.Feature`, separated by commas) runs only those with one of these features. With `TIDEMARK_PROGRESS`, a process
/// continues after the runs that an earlier process has done, and begins again before the first failed one.
/// `TIDEMARK_SIMULATION_SEED` runs one seed and prints what happened. `TIDEMARK_SIMULATION_RECORD`, the name of a record, also
/// prints each device's row of that record whenever it has changed.
@Suite(.timeLimit(.minutes(SimulationRuns.minutes))) struct SimulationTests {
    /// Together they have every feature and every policy. 46, and those with six digits and more, have failed once.
    static let seeds: [UInt64] = [
        3, 5, 9, 27, 39, 44, 46, 84, 700_012, 1_002_372, 1_002_699, 2_307_021_599, 2_307_024_117, 3_280_440_394, 3_280_440_605,
        3_280_440_692, 3_280_441_086, 3_280_441_359, 4_046_167_021, 4_046_167_474, 4_046_168_702,
    ]
    private static let environment = ProcessInfo.processInfo.environment
    private static let given = environment["TIDEMARK_SIMULATION_SEED"].flatMap(UInt64.init)
    private static let runs = SimulationRuns.count
    /// The first seed.
    private static let first = environment["TIDEMARK_SIMULATION_FIRST"].flatMap(UInt64.init)
    /// If set, only runs with one of these features are run.
    private static let features = environment["TIDEMARK_SIMULATION_FEATURES"].map {
        $0.split(separator: ",").map { name in
            guard let feature = SimulationPlan.Feature(rawValue: String(name)) else {
                preconditionFailure("no feature is '\(name)'")
            }
            return feature
        }
    }

    /// The runs of the fixed seeds, each once.
    private static let fixed = FixedRuns()

    private actor FixedRuns {
        private var runs: [UInt64: Task<Simulation.Outcome, Never>] = [:]

        func outcome(of seed: UInt64, _ template: ContainerTemplate) async -> Simulation.Outcome {
            let run = runs[seed] ?? Task { await Simulation.run(seed, template: template) }
            runs[seed] = run
            return await run.value
        }
    }

    /// The seeds to run, and how far earlier processes have come with them.
    private static var chosen: (seeds: [UInt64], progress: RunProgress?) {
        guard runs != nil || first != nil || features != nil else { return (seeds, nil) }
        let (first, count) = (first ?? UInt64.random(in: 1...UInt64(UInt32.max)), runs ?? seeds.count)
        guard let features else {
            let progress = RunProgress(
                "simulations", runs: UInt64(count), interval: SimulationRuns.interval, first: first, isChosen: Self.first != nil)
            return ((progress.begin..<UInt64(count)).map { progress.seed + $0 }, progress)
        }
        let matching = sequence(first: first) { $0 + 1 }.lazy.filter { !Simulation.plan($0).features.isDisjoint(with: features) }
        return (Array(matching.prefix(count)), nil)
    }

    @Test func `devices that fail, die and edit at once end with equal stores and lose nothing`() async throws {
        let template = try ContainerTemplate(devices: 3)
        defer { template.remove() }
        if let seed = Self.given {
            let outcome = await Simulation.run(seed, template: template)
            print(outcome.log.joined(separator: "\n"))
            #expect(outcome.failures == [], "seed \(seed)")
            return
        }
        let (seeds, progress) = Self.chosen
        try await SimulationRuns.run(seeds, progress, "simulations") { seed in
            let isFixed = Self.seeds.contains(seed)
            return isFixed ? await Self.fixed.outcome(of: seed, template) : await Simulation.run(seed, template: template)
        }
    }

    @Test func `the seeds that are always run have every feature and every conflict policy between them`() {
        let plans = Self.seeds.map(Simulation.plan)
        #expect(
            plans.reduce(into: Set<SimulationPlan.Feature>()) { $0.formUnion($1.features) }
                == Set(SimulationPlan.Feature.allCases))
        #expect(Set(plans.map(\.resolvingPolicy.name)) == Set(SimulationPlan.policies.map(\.name)))
        #expect(Set(plans.map(\.policy.name)) == Set(SimulationPlan.policies.map(\.name) + [MergePolicy.error.name]))
    }

    @Test func `a seed replays exactly`() async throws {
        let template = try ContainerTemplate(devices: 3)
        defer { template.remove() }
        for seed in [3, 27, 1_002_372] as [UInt64] {
            let (one, two) = (await Simulation.run(seed, template: template), await Self.fixed.outcome(of: seed, template))
            #expect(one.log == two.log)
            #expect(one.digest == two.digest)
        }
    }
}

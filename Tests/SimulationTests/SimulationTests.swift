import Foundation
import Testing

/// Goal: whatever happens to three devices and in whichever order, they end with equal stores, and nobody's work is lost. Method: runs that
/// follow from a seed, with a real cloud and real stores, faults, deaths and a virtual clock; checkers look at the end of each.
///
/// `TIDEMARK_SIMULATION_SEED` runs one seed and prints what happened; `TIDEMARK_SIMULATION_RUNS` says how many are run,
/// `TIDEMARK_SIMULATION_FIRST` from which seed, and `TIDEMARK_SIMULATION_FEATURES` (names of `SimulationPlan.Feature` with commas) that
/// only those are which have one of them.
@Suite struct SimulationTests {
    private static let given = ProcessInfo.processInfo.environment["TIDEMARK_SIMULATION_SEED"].flatMap(UInt64.init)
    private static let runs = ProcessInfo.processInfo.environment["TIDEMARK_SIMULATION_RUNS"].flatMap(Int.init) ?? 8
    /// The seeds begin with this one.
    private static let first = ProcessInfo.processInfo.environment["TIDEMARK_SIMULATION_FIRST"].flatMap(UInt64.init)
    /// Only runs that have one of these features are run.
    private static let features = ProcessInfo.processInfo.environment["TIDEMARK_SIMULATION_FEATURES"].map {
        $0.split(separator: ",").map { name in
            guard let feature = SimulationPlan.Feature(rawValue: String(name)) else {
                preconditionFailure("no feature is '\(name)'")
            }
            return feature
        }
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
        let first = Self.first ?? UInt64.random(in: 1...UInt64(UInt32.max))
        let begin = ContinuousClock.now
        let seeds = sequence(first: first) { $0 + 1 }.lazy.filter { seed in
            Self.features.map { !Simulation.plan(seed).features.isDisjoint(with: $0) } ?? true
        }.prefix(Self.runs)
        let failed = await withTaskGroup(of: (UInt64, [String]).self) { group in
            var (failed, running): ([(UInt64, [String])], Int) = ([], 0)
            for seed in seeds {
                if running >= 2, let (seed, failures) = await group.next(), !failures.isEmpty { failed.append((seed, failures)) }
                running += 1
                group.addTask { (seed, await Simulation.run(seed, template: template).failures) }
            }
            for await (seed, failures) in group where !failures.isEmpty { failed.append((seed, failures)) }
            return failed.sorted { $0.0 < $1.0 }
        }
        let seconds = (ContinuousClock.now - begin) / .seconds(1)
        print("\(Self.runs) simulations from seed \(first), \(Int(Double(Self.runs) / seconds)) a second, \(failed.count) failed")
        for (seed, failures) in failed.prefix(20) {
            Issue.record("TIDEMARK_SIMULATION_SEED=\(seed): \(failures.joined(separator: "; "))")
        }
    }

    @Test func `a seed replays exactly`() async throws {
        let template = try ContainerTemplate(devices: 3)
        defer { template.remove() }
        for seed in UInt64(1)...3 {
            let (one, two) = (await Simulation.run(seed, template: template), await Simulation.run(seed, template: template))
            #expect(one.log == two.log)
            #expect(one.digest == two.digest)
        }
    }
}

import Foundation
import TestSupport
import Testing

/// Goal: devices of an owner and of guests end with what the cloud shows to each of them, whatever is shared, moved, refused and
/// stopped meanwhile, and no edit is lost. Method: runs that follow from a seed, with a real cloud behind one or two servers,
/// real stores, faults, kills, a virtual clock, and two versions of an app. Each device writes fields of its own, so each field
/// must have its last saved value.
///
/// The seeds are always the same. The variables of `SimulationTests` choose others, except `TIDEMARK_SIMULATION_FEATURES`.
@Suite(.timeLimit(.minutes(SimulationRuns.minutes))) struct SharingSimulationTests {
    /// Together they have every kind of run. 17 and 188 have failed once.
    static let seeds: [UInt64] = Array(1...60) + [188]
    private static let environment = ProcessInfo.processInfo.environment
    private static let given = environment["TIDEMARK_SIMULATION_SEED"].flatMap(UInt64.init)
    private static let first = environment["TIDEMARK_SIMULATION_FIRST"].flatMap(UInt64.init)

    private static var chosen: (seeds: [UInt64], progress: RunProgress?) {
        guard SimulationRuns.count != nil || first != nil else { return (seeds, nil) }
        let count = UInt64(SimulationRuns.count ?? seeds.count)
        let progress = RunProgress(
            "sharing simulations", runs: count, interval: SimulationRuns.interval,
            first: first ?? UInt64.random(in: 1...UInt64(UInt32.max)), isChosen: first != nil)
        return ((progress.begin..<count).map { progress.seed + $0 }, progress)
    }

    @Test func `devices of several people end with what the cloud shows to each, and lose no edit`() async throws {
        let template = try SharingSimulation.template()
        defer { template.remove() }
        if let seed = Self.given {
            let outcome = await SharingSimulation.run(seed, template: template)
            print(outcome.log.joined(separator: "\n"))
            #expect(outcome.failures == [], "seed \(seed)")
            return
        }
        let (seeds, progress) = Self.chosen
        try await SimulationRuns.run(seeds, progress, "sharing simulations") {
            await SharingSimulation.run($0, template: template)
        }
    }

    @Test func `the seeds that are always run have every kind of run between them`() {
        let plans = Self.seeds.map(SharingSimulation.plan)
        #expect(Set(plans.map(\.policy.name)) == Set(SharingPlan.policies.map(\.name)))
        #expect(Set(plans.map(\.guests)) == [1, 2])
        #expect(Set(plans.map(\.servers)) == [1, 2])
        #expect(Set(plans.map(\.sharedZones)) == [1, 2])
        #expect(plans.contains { $0.ahead != nil })
        #expect(plans.contains { Set($0.versions).count == 2 })
        for kind in [\SharingPlan.stopsSharing, \.movesRecords, \.changesPermissions] {
            #expect(Set(plans.map { $0[keyPath: kind] }) == [true, false])
        }
    }

    @Test func `a seed with shares replays exactly`() async throws {
        let template = try SharingSimulation.template()
        defer { template.remove() }
        for seed in Self.seeds.prefix(3) {
            let (one, two) = (
                await SharingSimulation.run(seed, template: template), await SharingSimulation.run(seed, template: template)
            )
            #expect(one.log == two.log)
        }
    }
}

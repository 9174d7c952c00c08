import TidemarkModel
import TidemarkTesting

/// What one run is to be like; follows from its seed.
struct SimulationPlan {
    let policy: MergePolicy
    let records: [String]
    /// By name.
    let types: [String: String]
    let hasReferences: Bool
    /// Each save writes a field of its own, by which a record's whole state is known.
    let isStamped: Bool
    let actions: Int
    /// One of so many edits is a deletion; 0: none is.
    let deletions: Int
    let faultRate: Double
    let operationsPerRequest: Int
    let changesPerPage: Int?
    /// Microseconds by which the devices' clocks are ahead.
    let leads: [Int64]

    static let policies: [MergePolicy] = [
        .mergeByPropertyObjectTrump, .mergeByPropertyStoreTrump, .overwrite, .rollback, .latestEdit,
    ]

    init(_ random: inout SeededRandom, devices: Int) {
        policy = Self.policies.randomElement(using: &random)!
        records = (0..<Int.random(in: 1...5, using: &random)).map { "r\($0)" }
        let hasTwoTypes = Int.random(in: 0..<4, using: &random) == 0
        types = records.enumerated().reduce(into: [:]) { $0[$1.element] = hasTwoTypes && $1.offset % 2 == 1 ? "Note" : "Trip" }
        hasReferences = Int.random(in: 0..<3, using: &random) == 0
        let isByRecord = ["overwrite", "rollback"].contains(policy.name)
        isStamped = Bool.random(using: &random) || isByRecord
        actions = Int.random(in: 0..<10, using: &random) == 0 ? 150 : Int.random(in: 15...60, using: &random)
        deletions = [0, 4, 10].randomElement(using: &random)!
        faultRate = [0, 0.1, 0.2, 0.2, 0.5].randomElement(using: &random)!
        operationsPerRequest = [1, 2, 3, 400].randomElement(using: &random)!
        changesPerPage = [1, 2, 3, nil].randomElement(using: &random)!
        let spread: Int64 = [0, 2_000_000, 120_000_000, 600_000_000].randomElement(using: &random)!
        leads = (0..<devices).map { _ in Int64.random(in: -spread...spread, using: &random) }
    }

    /// Whether no clock is so far ahead of another that its edits are not believed.
    var clocksAreClose: Bool { leads.max()! - leads.min()! < EditTime.greatestLead / 2 }

    var description: String {
        "\(policy.name), \(records.count) records, \(Set(types.values).count) types, references \(hasReferences), "
            + "stamped \(isStamped), \(actions) actions, 1/\(deletions) deletions, faults \(faultRate), \(operationsPerRequest) a request, "
            + "\(changesPerPage ?? 0) a page, clocks \(leads)"
    }
}

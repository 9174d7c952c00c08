import TidemarkModel
import TidemarkSync
import TidemarkTesting

/// The plan of one run, which follows from its seed.
struct SimulationPlan {
    /// What a run may have in addition to edits, faults and kills.
    enum Feature: String, CaseIterable {
        /// The next page and the next batch are prepared ahead.
        case lookingAhead
        /// Devices purge their history.
        case purges
        /// A device has a field with another type than the others.
        case clashes
        /// Conflicts are left to a person, who resolves them at some time.
        case asking
        /// Devices sign out, are switched off, and use another account for a while.
        case accounts
        /// Records have pictures.
        case pictures
        /// Many records are saved at once.
        case bulk
        /// The cloud loses the zone.
        case zoneLoss
        /// The cloud is put back to an earlier state.
        case restoredCloud
        /// A device's container is put back to an earlier state.
        case restoredDevice

        /// The features that came first are drawn from the same numbers as ever, so that the run of a seed never changes.
        static let first = allCases.filter { !later.contains($0) }
        static let later: [Feature] = [.restoredCloud, .restoredDevice]
    }

    let policy: MergePolicy
    /// The policy with which a person resolves the conflicts that the other policy leaves.
    let resolvingPolicy: MergePolicy
    let features: Set<Feature>
    let records: [String]
    /// The types of the records, by name.
    let types: [String: String]
    let hasReferences: Bool
    /// Whether each save writes a field of its own that identifies the record's whole state.
    let isStamped: Bool
    let actions: Int
    /// One of so many edits is a deletion; 0 for no deletions.
    let deletions: Int
    let faultRate: Double
    let operationsPerRequest: Int
    let changesPerPage: Int?
    /// Microseconds by which the devices' clocks are ahead.
    let leads: [Int64]
    /// When the next page and batch are prepared; `nil` for no preparation ahead.
    let ahead: SyncEnvironment.AheadOrder?
    /// The device that has another type of the field `b`.
    let oddDevice: Int?

    static let policies: [MergePolicy] = [
        .mergeByPropertyObjectTrump, .mergeByPropertyStoreTrump, .overwrite, .rollback, .latestEdit,
    ]

    init(_ random: inout SeededRandom, devices: Int) {
        resolvingPolicy = Self.policies.randomElement(using: &random)!
        var later = random
        var features = Set(Feature.first.filter { _ in Int.random(in: 0..<5, using: &random) == 0 })
        // Quarantined records have a history of their own, which does not fit these features.
        if !features.contains(.accounts) {
            for feature in Feature.later where later.next() % 8 == 2 { features.insert(feature) }
        }
        self.features = features
        policy = features.contains(.asking) ? .error : resolvingPolicy
        records = (0..<Int.random(in: 1...5, using: &random)).map { "r\($0)" }
        let hasTwoTypes = Int.random(in: 0..<4, using: &random) == 0
        types = records.enumerated().reduce(into: [:]) { $0[$1.element] = hasTwoTypes && $1.offset % 2 == 1 ? "Note" : "Trip" }
        hasReferences = Int.random(in: 0..<3, using: &random) == 0
        let isByRecord = ["overwrite", "rollback"].contains(resolvingPolicy.name)
        isStamped = Bool.random(using: &random) || isByRecord
        actions = Int.random(in: 0..<10, using: &random) == 0 ? 150 : Int.random(in: 15...60, using: &random)
        deletions = [0, 4, 10].randomElement(using: &random)!
        faultRate = [0, 0.1, 0.2, 0.2, 0.5].randomElement(using: &random)!
        let isBulk = features.contains(.bulk)
        operationsPerRequest = (isBulk ? [20, 40, 400] : [1, 2, 3, 400]).randomElement(using: &random)!
        changesPerPage = (isBulk ? [20, 50, nil] : [1, 2, 3, nil]).randomElement(using: &random)!
        let spread: Int64 = [0, 2_000_000, 120_000_000, 600_000_000].randomElement(using: &random)!
        leads = (0..<devices).map { _ in Int64.random(in: -spread...spread, using: &random) }
        let order = Bool.random(using: &random) ? SyncEnvironment.AheadOrder.before : .behind
        ahead = features.contains(.lookingAhead) ? order : nil
        let odd = Int.random(in: 0..<devices, using: &random)
        oddDevice = features.contains(.clashes) ? odd : nil
    }

    /// Returns whether the clocks are so close that every edit's time is accepted.
    var clocksAreClose: Bool { leads.max()! - leads.min()! < EditTime.greatestLead / 2 }

    /// The fields whose last values are checked at the end.
    var fields: [String] {
        ["a", "b", "c", "s", "image"].filter { $0 != "image" || features.contains(.pictures) }
            .filter { $0 != "b" || oddDevice == nil }
    }

    /// Whether the version that an edit began with is always known. Otherwise an older edit may win.
    var ancestorsAreKnown: Bool {
        let editsHere = ["mergeByPropertyObjectTrump", "overwrite"].contains(resolvingPolicy.name)
        return features.isDisjoint(with: Feature.later + [.zoneLoss]) && (!features.contains(.purges) || editsHere)
    }

    func type(of name: String) -> String { types[name] ?? "Trip" }

    func type(of field: String, on device: Int) -> FieldType {
        switch field {
        case "b": device == oddDevice ? .string : .int64
        case "parent": .reference
        case "image": .asset
        default: .string
        }
    }

    var description: String {
        "\(policy.name) (\(resolvingPolicy.name)), \(features.map(\.rawValue).sorted()), \(records.count) records, "
            + "\(Set(types.values).count) types, references \(hasReferences), "
            + "stamped \(isStamped), \(actions) actions, 1/\(deletions) deletions, faults \(faultRate), \(operationsPerRequest) a request, "
            + "\(changesPerPage ?? 0) a page, clocks \(leads)"
    }
}

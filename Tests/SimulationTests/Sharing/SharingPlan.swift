import TidemarkModel
import TidemarkSync
import TidemarkTesting

/// What one run with shares is to be like; follows from its seed.
struct SharingPlan {
    /// What an app's version knows.
    enum Version: Int {
        /// A type, with one field for each device.
        case first = 1
        /// One more field for each device, and one more type.
        case second
    }

    let policy: MergePolicy
    /// Devices of people whom the owner invites. The owner has two.
    let guests: Int
    /// Servers of the same cloud.
    let servers: Int
    /// Zones that are shared, beside the default zone, which is not.
    let sharedZones: Int
    let actions: Int
    /// One of so many edits is a deletion; 0: none is.
    let deletions: Int
    let faultRate: Double
    let operationsPerRequest: Int
    let changesPerPage: Int?
    /// Microseconds by which the devices' clocks are ahead.
    let leads: [Int64]
    let ahead: SyncEnvironment.AheadOrder?
    /// What each device has at first. All have the second version some time.
    let versions: [Version]
    /// Sharing is stopped, and zones are shared again.
    let stopsSharing: Bool
    /// Records move between zones.
    let movesRecords: Bool
    /// Permissions change, guests are removed, and leave.
    let changesPermissions: Bool

    static let owners = 2
    /// Under these, each field goes its own way. Each field is written by one device, so no edit may be lost to another one.
    static let policies: [MergePolicy] = [.mergeByPropertyObjectTrump, .mergeByPropertyStoreTrump, .latestEdit]

    init(_ random: inout SeededRandom) {
        policy = Self.policies.randomElement(using: &random)!
        guests = Int.random(in: 1...2, using: &random)
        servers = Int.random(in: 0..<3, using: &random) == 0 ? 2 : 1
        sharedZones = Int.random(in: 1...2, using: &random)
        actions = Int.random(in: 0..<10, using: &random) == 0 ? 150 : Int.random(in: 15...70, using: &random)
        deletions = [0, 5, 12].randomElement(using: &random)!
        faultRate = [0, 0.1, 0.2, 0.2, 0.5].randomElement(using: &random)!
        operationsPerRequest = [1, 2, 3, 400].randomElement(using: &random)!
        changesPerPage = [1, 2, 3, nil].randomElement(using: &random)!
        let spread: Int64 = [0, 2_000_000, 120_000_000].randomElement(using: &random)!
        leads = (0..<Self.owners + guests).map { _ in Int64.random(in: -spread...spread, using: &random) }
        let order = Bool.random(using: &random) ? SyncEnvironment.AheadOrder.before : .behind
        ahead = Int.random(in: 0..<5, using: &random) == 0 ? order : nil
        let hasVersions = Bool.random(using: &random)
        versions = leads.map { _ in hasVersions && Bool.random(using: &random) ? .second : .first }
        stopsSharing = Int.random(in: 0..<4, using: &random) == 0
        movesRecords = Int.random(in: 0..<3, using: &random) > 0
        changesPermissions = Bool.random(using: &random)
    }

    var devices: Int { leads.count }

    /// Whether a device is one of the owner's.
    func isOwners(_ device: Int) -> Bool { device < Self.owners }

    var description: String {
        "\(policy.name), \(guests) guests, \(servers) servers, \(sharedZones) shared zones, \(actions) actions, 1/\(deletions) deletions, "
            + "faults \(faultRate), \(operationsPerRequest) a request, \(changesPerPage ?? 0) a page, clocks \(leads), "
            + "versions \(versions.map(\.rawValue)), stops \(stopsSharing), moves \(movesRecords), permissions \(changesPermissions)"
    }
}

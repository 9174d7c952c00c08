import TidemarkModel
import TidemarkSync
import TidemarkTesting

/// The plan of one run with shares, which follows from its seed.
struct SharingPlan {
    /// The schema that a version of the app knows.
    enum Version: Int {
        /// A type, with one field for each device.
        case first = 1
        /// One more field for each device, and one more type.
        case second
    }

    let policy: MergePolicy
    /// The number of people whom the owner invites. Each has one device, and the owner has two.
    let guests: Int
    /// The number of servers of the cloud.
    let servers: Int
    /// The number of shared zones. The default zone is not shared.
    let sharedZones: Int
    let actions: Int
    /// One of so many edits is a deletion; 0 for no deletions.
    let deletions: Int
    let faultRate: Double
    let operationsPerRequest: Int
    let changesPerPage: Int?
    /// Microseconds by which the devices' clocks are ahead.
    let leads: [Int64]
    let ahead: SyncEnvironment.AheadOrder?
    /// The version of each device at the beginning. All devices get the second version at some time.
    let versions: [Version]
    /// Whether sharing is stopped, and zones are shared again.
    let stopsSharing: Bool
    /// Whether records move between zones.
    let movesRecords: Bool
    /// Whether permissions change, and guests are removed or leave.
    let changesPermissions: Bool

    static let owners = 2
    /// Policies that merge each field by itself. Each field is written by one device, so no edit may be lost to another one.
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

    /// Returns whether a device belongs to the owner.
    func isOwners(_ device: Int) -> Bool { device < Self.owners }

    var description: String {
        "\(policy.name), \(guests) guests, \(servers) servers, \(sharedZones) shared zones, \(actions) actions, 1/\(deletions) deletions, "
            + "faults \(faultRate), \(operationsPerRequest) a request, \(changesPerPage ?? 0) a page, clocks \(leads), "
            + "versions \(versions.map(\.rawValue)), stops \(stopsSharing), moves \(movesRecords), permissions \(changesPermissions)"
    }
}

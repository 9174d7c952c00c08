/// The order in which passwords are hashed: a value without input or output.
///
/// Two lanes take turns, as long as attempts wait in both: one for attempts from a known address or device, one for all others.
/// In each lane the networks take turns, and in each network its addresses. So an attempt waits for one attempt of each network
/// at most, however many an attacker makes. An attempt from a known place loses only every second turn to strangers.
struct HashQueue {
    /// The lane of an attempt.
    enum Lane: Int, CaseIterable, Sendable {
        /// For attempts from an address or a device from which there was a sign-in to the account before.
        case known
        case unknown
    }

    /// The result of adding an attempt.
    enum Entry: Equatable {
        case waits
        /// It waits, and an attempt that waited already has lost its place.
        case displaces(Int)
        /// There is no room for it.
        case isRefused
    }

    /// The most attempts that may wait.
    struct Room: Sendable {
        var ofAddress = 4
        var ofNetwork = 8
        var ofLane = 32
    }

    /// The attempts of one network.
    private struct Network {
        /// The attempts of each address, in the order in which the addresses have their turns; none is empty.
        var addresses: [(name: String, tickets: [Int])] = []
        var count = 0

        /// The place of the address that has most of them waiting; the last one of several.
        var largest: Int {
            addresses.indices.reduce(0) { addresses[$1].tickets.count >= addresses[$0].tickets.count ? $1 : $0 }
        }
    }

    /// The networks of a lane, in the order in which they have their turns; none is empty.
    private struct Line {
        var networks: [(name: String, network: Network)] = []
        var count = 0
    }

    private let room: Room
    private let choice: @Sendable (Int) -> Int
    private var lines = [Line](repeating: Line(), count: Lane.allCases.count)
    private var last = Lane.unknown

    /// - Parameter choice: Picks a number from 0 to below its argument; a parameter for tests.
    init(_ room: Room = Room(), choice: @escaping @Sendable (Int) -> Int = { Int.random(in: 0..<$0) }) {
        (self.room, self.choice) = (room, choice)
    }

    var count: Int { lines.reduce(0) { $0 + $1.count } }

    /// Adds an attempt.
    ///
    /// When a network has as many attempts as it may, an address with fewer displaces the last attempt of the address with most.
    /// When a lane is full, a network with fewer displaces an attempt of the network with most. If all networks have one, a new
    /// network displaces one by lot, so that nobody holds all places by coming first.
    mutating func add(_ ticket: Int, _ lane: Lane, address: String, network: String) -> Entry {
        let place = lines[lane.rawValue].networks.firstIndex { $0.name == network }
        let own = place.map { lines[lane.rawValue].networks[$0].network }
        let ofAddress = own?.addresses.first { $0.name == address }?.tickets.count ?? 0
        guard ofAddress < room.ofAddress, room.ofLane > 0 else { return .isRefused }
        var displaced: Int?
        if let own, let place, own.count >= room.ofNetwork {
            let largest = own.largest
            guard own.addresses[largest].tickets.count > ofAddress + 1 else { return .isRefused }
            displaced = removeLast(lane, place, largest)
        } else if lines[lane.rawValue].count >= room.ofLane {
            let networks = lines[lane.rawValue].networks
            let most = networks.map(\.network.count).max() ?? 0
            let count = own?.count ?? 0
            let candidates = networks.indices.filter { networks[$0].network.count == most && $0 != place }
            guard most > count + 1 || count == 0, !candidates.isEmpty else { return .isRefused }
            let chosen = candidates[choice(candidates.count)]
            displaced = removeLast(lane, chosen, networks[chosen].network.largest)
        }
        insert(ticket, lane, address, network)
        return displaced.map(Entry.displaces) ?? .waits
    }

    /// Removes and returns the attempt whose turn it is.
    mutating func next() -> Int? {
        let other = Lane(rawValue: 1 - last.rawValue)!
        let lane = lines[other.rawValue].count > 0 ? other : last
        guard lines[lane.rawValue].count > 0 else { return nil }
        last = lane
        var (name, network) = lines[lane.rawValue].networks.removeFirst()
        var (address, tickets) = network.addresses.removeFirst()
        let ticket = tickets.removeFirst()
        network.count -= 1
        lines[lane.rawValue].count -= 1
        // The address and the network go behind all others.
        if !tickets.isEmpty { network.addresses.append((address, tickets)) }
        if network.count > 0 { lines[lane.rawValue].networks.append((name, network)) }
        return ticket
    }

    /// Removes an attempt whose task was cancelled.
    mutating func remove(_ ticket: Int) {
        for lane in lines.indices {
            for place in lines[lane].networks.indices {
                for address in lines[lane].networks[place].network.addresses.indices {
                    let tickets = lines[lane].networks[place].network.addresses[address].tickets
                    guard let index = tickets.firstIndex(of: ticket) else { continue }
                    remove(Lane(rawValue: lane)!, place, address, at: index)
                    return
                }
            }
        }
    }

    private mutating func insert(_ ticket: Int, _ lane: Lane, _ address: String, _ network: String) {
        var line = lines[lane.rawValue]
        let place = line.networks.firstIndex { $0.name == network } ?? line.networks.endIndex
        if place == line.networks.endIndex { line.networks.append((network, Network())) }
        if let index = line.networks[place].network.addresses.firstIndex(where: { $0.name == address }) {
            line.networks[place].network.addresses[index].tickets.append(ticket)
        } else {
            line.networks[place].network.addresses.append((address, [ticket]))
        }
        line.networks[place].network.count += 1
        line.count += 1
        lines[lane.rawValue] = line
    }

    private mutating func removeLast(_ lane: Lane, _ place: Int, _ address: Int) -> Int {
        let tickets = lines[lane.rawValue].networks[place].network.addresses[address].tickets
        remove(lane, place, address, at: tickets.count - 1)
        return tickets[tickets.count - 1]
    }

    private mutating func remove(_ lane: Lane, _ place: Int, _ address: Int, at index: Int) {
        var line = lines[lane.rawValue]
        line.networks[place].network.addresses[address].tickets.remove(at: index)
        if line.networks[place].network.addresses[address].tickets.isEmpty {
            line.networks[place].network.addresses.remove(at: address)
        }
        line.networks[place].network.count -= 1
        if line.networks[place].network.count == 0 { line.networks.remove(at: place) }
        line.count -= 1
        lines[lane.rawValue] = line
    }
}

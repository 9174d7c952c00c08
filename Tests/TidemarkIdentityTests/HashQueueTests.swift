import TestSupport
import Testing

@testable import TidemarkIdentity

/// Goal: attempts from elsewhere, however many, do not keep an owner from signing in. Method: turns are counted, not time.
@Suite(.timeLimit(.minutes(30))) struct HashQueueTests {
    private func address(_ number: Int) -> (address: String, network: String) {
        ("203.\(number / 100).\(number % 100).1", "203.\(number / 100).\(number % 100).0/24")
    }

    /// After how many turns an attempt is served, while strangers from so many networks ask again as soon as they were answered.
    private func turns(_ lane: HashQueue.Lane, strangers: Int, seed: UInt64) -> Int? {
        var random = Randomness(seed: seed)
        var choices = Randomness(seed: seed + 1)
        let numbers = (0..<100_000).map { _ in Int.random(in: 0..<1_000_000, using: &choices) }
        let drawn = Counter()
        var queue = HashQueue(choice: { count in numbers[drawn.next() % numbers.count] % count })
        var ticket = 1
        func flood(_ queue: inout HashQueue) {
            for _ in 0..<strangers * 2 {
                ticket += 1
                let from = address(Int.random(in: 0..<strangers, using: &random))
                _ = queue.add(ticket, .unknown, address: from.address, network: from.network)
            }
        }
        flood(&queue)
        guard queue.add(0, lane, address: "198.51.100.7", network: "198.51.100.0/24") != .isRefused else { return nil }
        for turn in 1...1_000 {
            flood(&queue)
            let next = queue.next()
            if next == 0 { return turn }
        }
        return nil
    }

    private final class Counter: @unchecked Sendable {
        // Used by one task.
        private var count = 0
        func next() -> Int {
            count += 1
            return count
        }
    }

    @Test func `while 100 addresses flood, a known device has its turn within two`() {
        for seed in 1...50 as ClosedRange<UInt64> {
            let turns = turns(.known, strangers: 100, seed: seed)
            #expect(turns.map { $0 <= 2 } == true, "seed \(seed): \(turns ?? -1)")
        }
    }

    @Test func `while one network floods, a stranger from another has its turn within three`() {
        for seed in 1...50 as ClosedRange<UInt64> {
            let turns = turns(.unknown, strangers: 1, seed: seed)
            #expect(turns.map { $0 <= 3 } == true, "seed \(seed): \(turns ?? -1)")
        }
    }

    @Test func `lanes, networks and addresses take turns`() {
        var queue = HashQueue()
        for (ticket, lane, address, network) in [
            (1, HashQueue.Lane.unknown, "a", "A"), (2, .unknown, "a", "A"), (3, .unknown, "b", "A"), (4, .unknown, "c", "C"),
            (5, .known, "d", "D"), (6, .known, "d", "D"),
        ] { #expect(queue.add(ticket, lane, address: address, network: network) == .waits) }
        #expect(queue.count == 6)
        var order: [Int] = []
        while let next = queue.next() { order.append(next) }
        #expect(order == [5, 1, 6, 4, 3, 2])
    }

    @Test func `an address and a network have limited places, and an address with fewer replaces one with more`() {
        var queue = HashQueue(.init(ofAddress: 2, ofNetwork: 3, ofLane: 10))
        #expect(queue.add(1, .unknown, address: "a", network: "A") == .waits)
        #expect(queue.add(2, .unknown, address: "a", network: "A") == .waits)
        #expect(queue.add(3, .unknown, address: "a", network: "A") == .isRefused)
        #expect(queue.add(4, .unknown, address: "b", network: "A") == .waits)
        #expect(queue.add(5, .unknown, address: "c", network: "A") == .displaces(2))
        #expect(queue.add(6, .unknown, address: "d", network: "A") == .isRefused)
        #expect(queue.add(7, .unknown, address: "d", network: "D") == .waits)
    }

    @Test func `a full lane makes room for a new network, at the expense of the network with most, or else by lot`() {
        var queue = HashQueue(.init(ofAddress: 4, ofNetwork: 8, ofLane: 4), choice: { count in count - 1 })
        for (ticket, network) in [(1, "A"), (2, "A"), (3, "A"), (4, "B")] {
            #expect(queue.add(ticket, .unknown, address: network, network: network) == .waits)
        }
        #expect(queue.add(5, .unknown, address: "C", network: "C") == .displaces(3))
        #expect(queue.add(6, .unknown, address: "D", network: "D") == .displaces(2))
        // All networks have one place.
        #expect(queue.add(7, .unknown, address: "A", network: "A") == .isRefused)
        #expect(queue.add(8, .unknown, address: "E", network: "E") == .displaces(6))
        // The other lane has places of its own.
        #expect(queue.add(9, .known, address: "A", network: "A") == .waits)
        queue.remove(4)
        queue.remove(4)
        #expect(queue.count == 4)
        #expect(queue.add(10, .unknown, address: "F", network: "F") == .waits)
    }

    @Test func `an address is assigned to its network in every notation`() {
        for (text, host, network) in [
            ("192.0.2.7", "192.0.2.7", "192.0.2.0/24"), ("::ffff:192.0.2.7", "192.0.2.7", "192.0.2.0/24"),
            ("2001:db8:1:2::5", "2001:db8:1:2::", "2001:db8:1::/48"), ("fe80::1%eth0", "fe80:0:0:0::", "fe80:0:0::/48"),
            ("::1", "::1", "::/64"),
        ] {
            let found = NetworkAddress(text)
            #expect(found?.host == host && found?.network == network, "\(text)")
        }
        for text in ["", "unknown", "192.0.2", "192.0.2.7.8", "192.0.2.256", "2001:db8::g", "_hidden", "1", "192.0.2.7:80"] {
            #expect(NetworkAddress(text) == nil, "\(text)")
        }
        for (text, address) in [
            ("192.0.2.7:4711", "192.0.2.7"), ("[2001:db8::7]:4711", "2001:db8::7"), ("[2001:db8::7]", "2001:db8::7"),
            ("2001:DB8::7", "2001:db8::7"), ("::ffff:192.0.2.7", "192.0.2.7"), ("[::ffff:192.0.2.7]:1", "192.0.2.7"),
            ("192.0.2.7", "192.0.2.7"),
        ] { #expect(NetworkAddress(forwarded: text)?.text == address, "\(text)") }
        for text in [
            "", "unknown", "192.0.2.7:", "192.0.2.7:x", "192.0.2.7:70000", "[192.0.2.7]", "[2001:db8::7", "[2001:db8::7]x",
        ] {
            #expect(NetworkAddress(forwarded: text) == nil, "\(text)")
        }
    }
}

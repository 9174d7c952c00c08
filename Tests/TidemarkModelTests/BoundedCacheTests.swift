import Testing

@testable import TidemarkModel

/// Goal: a cache has the values that were used last, never more than its capacity, and never another key's value. Method: random
/// runs beside a simple list, which is compared as a whole after each step.
@Suite(.timeLimit(.minutes(30))) struct BoundedCacheTests {
    /// The same cache as a list: the newest is last.
    private struct Model {
        let capacity: Int
        var list: [(key: Int, value: Int)] = []

        mutating func take(_ key: Int) -> Int? {
            guard let place = list.firstIndex(where: { $0.key == key }) else { return nil }
            return list.remove(at: place).value
        }

        mutating func get(_ key: Int) -> Int? {
            let value = take(key)
            if let value { list.append((key, value)) }
            return value
        }

        mutating func set(_ key: Int, _ value: Int?) {
            _ = take(key)
            guard let value else { return }
            if list.count == capacity { list.removeFirst() }
            list.append((key, value))
        }
    }

    /// Random numbers that are the same in each run (SplitMix64).
    private struct FixedRandom: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9e37_79b9_7f4a_7c15
            var mixed = (state ^ state >> 30) &* 0xbf58_476d_1ce4_e5b9
            mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
            return mixed ^ mixed >> 31
        }
    }

    private func order(_ cache: BoundedCache<Int, Int>) -> [[Int]] {
        var (found, place, before) = ([[Int]](), cache.oldest, -1)
        while place >= 0, found.count <= cache.count {
            let entry = cache.entries[place]
            #expect(entry.older == before && cache.places[entry.key] == place)
            found.append([entry.key, entry.value])
            (before, place) = (place, entry.newer)
        }
        #expect(before == cache.newest && cache.places.count == cache.entries.count)
        return found
    }

    @Test(arguments: [1, 2, 3, 8])
    func `a cache behaves like a list that is searched`(capacity: Int) {
        var random = FixedRandom(state: UInt64(capacity))
        var (cache, model) = (BoundedCache<Int, Int>(capacity: capacity), Model(capacity: capacity))
        for step in 0..<5000 {
            let key = Int.random(in: 0..<(2 * capacity + 1), using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0...3: #expect(cache[key] == model.get(key))
            case 4...7:
                cache[key] = step
                model.set(key, step)
            case 8:
                cache[key] = nil
                model.set(key, nil)
            default:
                let known = model.list.firstIndex { $0.key == key }
                #expect(
                    cache.update(key) {
                        $0 += 1
                        return $0
                    } == known.map { model.list[$0].value + 1 })
                if let known { model.list[known].value += 1 }
            }
            #expect(order(cache) == model.list.map { [$0.key, $0.value] }, "step \(step)")
        }
    }

    @Test func `used values stay, and unused ones are removed first`() {
        var cache = BoundedCache<String, Int>(capacity: 3)
        for (number, key) in ["a", "b", "c"].enumerated() { cache[key] = number }
        #expect(cache["a"] == 0)
        cache["d"] = 3
        #expect(cache["b"] == nil && cache["a"] == 0 && cache["c"] == 2 && cache["d"] == 3 && cache.count == 3)
        cache.removeAll()
        #expect(cache.count == 0 && cache["a"] == nil && cache.capacity == 3)
    }

    @Test func `removed values are released`() {
        final class Object {}
        weak var first: Object?
        var cache = BoundedCache<Int, Object>(capacity: 2)
        do {
            let object = Object()
            first = object
            cache[0] = object
        }
        #expect(first != nil)
        for key in 1...2 { cache[key] = Object() }
        #expect(first == nil && cache.count == 2)
    }
}

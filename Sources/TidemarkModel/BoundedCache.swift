/// A cache of at most `capacity` values. A new value replaces the least recently used one.
///
/// - Complexity: Each operation is O(1), beside the hash of the key.
package struct BoundedCache<Key: Hashable, Value> {
    @usableFromInline
    struct Entry {
        @usableFromInline let key: Key
        @usableFromInline var value: Value
        /// The places of the entries that were used next after this one and last before it; -1 for none.
        @usableFromInline var newer: Int
        @usableFromInline var older: Int

        @inlinable
        init(key: Key, value: Value, newer: Int, older: Int) {
            (self.key, self.value, self.newer, self.older) = (key, value, newer, older)
        }
    }

    package let capacity: Int
    @usableFromInline var places: [Key: Int] = [:]
    /// In no order, and without gaps.
    @usableFromInline var entries: [Entry] = []
    @usableFromInline var newest = -1
    @usableFromInline var oldest = -1

    /// - Parameter capacity: The most values that the cache holds; at least 1.
    @inlinable
    package init(capacity: Int) {
        precondition(capacity > 0)
        self.capacity = capacity
    }

    @inlinable package var count: Int { entries.count }

    /// The value of a key. Reading and setting count as uses. Setting `nil` removes the value.
    @inlinable
    package subscript(key: Key) -> Value? {
        mutating get {
            guard let place = places[key] else { return nil }
            use(place)
            return entries[place].value
        }
        set {
            guard let newValue else { return remove(key) }
            if let place = places[key] {
                entries[place].value = newValue
                use(place)
            } else {
                insert(newValue, key)
            }
        }
    }

    /// Changes the value of a key in place. This does not count as a use.
    ///
    /// - Returns: The result of `change`; `nil`, without a call, when the key has no value.
    @inlinable
    package mutating func update<Result>(_ key: Key, _ change: (inout Value) throws -> Result) rethrows -> Result? {
        guard let place = places[key] else { return nil }
        return try change(&entries[place].value)
    }

    @inlinable
    package mutating func removeAll() { self = BoundedCache(capacity: capacity) }

    @inlinable
    mutating func use(_ place: Int) {
        guard place != newest else { return }
        unlink(place)
        link(place)
    }

    @inlinable
    mutating func insert(_ value: Value, _ key: Key) {
        if entries.count < capacity {
            entries.append(Entry(key: key, value: value, newer: -1, older: -1))
            places[key] = entries.count - 1
            return link(entries.count - 1)
        }
        let place = oldest
        unlink(place)
        places[entries[place].key] = nil
        entries[place] = Entry(key: key, value: value, newer: -1, older: -1)
        places[key] = place
        link(place)
    }

    @inlinable
    mutating func remove(_ key: Key) {
        guard let place = places.removeValue(forKey: key) else { return }
        unlink(place)
        // The last entry takes its place.
        let last = entries.removeLast()
        guard place < entries.count else { return }
        entries[place] = last
        places[last.key] = place
        if last.newer >= 0 { entries[last.newer].older = place } else { newest = place }
        if last.older >= 0 { entries[last.older].newer = place } else { oldest = place }
    }

    /// Takes an entry out of the order.
    @inlinable
    mutating func unlink(_ place: Int) {
        let (newer, older) = (entries[place].newer, entries[place].older)
        if newer >= 0 { entries[newer].older = older } else { newest = older }
        if older >= 0 { entries[older].newer = newer } else { oldest = newer }
    }

    /// Makes an entry that is not in the order the newest.
    @inlinable
    mutating func link(_ place: Int) {
        (entries[place].newer, entries[place].older) = (-1, newest)
        if newest >= 0 { entries[newest].newer = place } else { oldest = place }
        newest = place
    }
}

extension BoundedCache.Entry: Sendable where Key: Sendable, Value: Sendable {}
extension BoundedCache: Sendable where Key: Sendable, Value: Sendable {}

import TidemarkModel

/// Records that have become one with another of their unique key, in one transaction.
struct RecordReplacements {
    private struct Place: Hashable {
        let type: String
        /// The canonical name.
        let name: String
        let zone: Int64

        init(_ type: String, _ name: String, _ zone: Int64) {
            (self.type, self.name, self.zone) = (type, RecordName.canonical(name), zone)
        }
    }

    private struct Replacement {
        /// The name of the record that is gone, as it was spelled.
        let name: String
        /// The name of the record that stayed. It may have gone the same way afterwards. The lower name stays, so there are no cycles.
        var other: String
    }

    private var all: [Place: Replacement] = [:]
    /// The types and canonical names of the records that are gone.
    private var gone: Set<RecordName> = []
    private var pending: [Place] = []

    /// - Parameters:
    ///   - name: The name of the record that is gone.
    ///   - other: The name of the record that stays.
    mutating func note(_ name: String, as other: String, of type: String, zone: Int64) {
        let place = Place(type, name, zone)
        all[place] = Replacement(name: name, other: other)
        gone.insert(RecordName(type: type, name: place.name))
        pending.append(place)
    }

    /// Whether a record that is gone has become one with another.
    func contains(_ record: GoneRecord) -> Bool {
        guard gone.contains(record.record) else { return false }
        return record.zone.map { all[Place(record.type, record.name, $0)] != nil } ?? true
    }

    /// By the records that are gone, the names of those that they are now.
    ///
    /// - Complexity: O(n).
    var names: [RecordName: String] {
        var copy = self
        return Dictionary(
            all.map { (RecordName(type: $0.type, name: $1.name), copy.lastName(of: $0)) }, uniquingKeysWith: { $1 })
    }

    /// Records of one type in one zone that are gone, and whose references are still to follow.
    struct Group {
        let type: String
        let zone: Int64
        /// By canonical names, the names of the records that they are now.
        let names: [String: String]
    }

    /// Returns what is still to follow, by type and zone, and forgets that it is.
    ///
    /// - Complexity: O(n log n).
    mutating func takePending() -> [Group] {
        guard !pending.isEmpty else { return [] }
        let names = pending.map { (place: $0, last: lastName(of: $0)) }
        pending = []
        return Dictionary(grouping: names) { Place($0.place.type, "", $0.place.zone) }
            .sorted { ($0.key.type, $0.key.zone) < ($1.key.type, $1.key.zone) }
            .map { key, names in
                Group(
                    type: key.type, zone: key.zone,
                    names: Dictionary(names.map { ($0.place.name, $0.last) }, uniquingKeysWith: { $1 }))
            }
    }

    /// The name at the end of the chain. The chain is short for the next one who asks.
    private mutating func lastName(of place: Place) -> String {
        var (passed, next): ([Place], Place) = ([], place)
        var last = all[place]?.other ?? place.name
        while let replacement = all[next] {
            passed.append(next)
            last = replacement.other
            next = Place(place.type, last, place.zone)
        }
        for it in passed { all[it]?.other = last }
        return last
    }
}

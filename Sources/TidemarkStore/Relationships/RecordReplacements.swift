import TidemarkModel

/// The records that were merged into another record with their unique key, in one transaction.
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
        /// The name of the record that stays. That may be merged into another one later. The lower name stays, so there are no
        /// cycles.
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

    /// Returns whether a deleted record was merged into another one.
    func contains(_ record: GoneRecord) -> Bool {
        guard gone.contains(record.record) else { return false }
        return record.zone.map { all[Place(record.type, record.name, $0)] != nil } ?? true
    }

    /// For each record that was merged, the name of the record that it is part of now.
    ///
    /// - Complexity: O(n).
    var names: [RecordName: String] {
        var copy = self
        return Dictionary(
            all.map { (RecordName(type: $0.type, name: $1.name), copy.lastName(of: $0)) }, uniquingKeysWith: { $1 })
    }

    /// Merged records of one type and zone whose references have not been redirected yet.
    struct Group {
        let type: String
        let zone: Int64
        /// By canonical name, the names of the records that they are part of now.
        let names: [String: String]
    }

    /// Returns the merged records whose references have to be redirected, by type and zone, and forgets them.
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

    /// Returns the name at the end of the chain, and shortens the chain for the next call.
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

import Tidemark

extension TravelBook {
    /// Finds the tags of some names, and makes those that are missing.
    ///
    /// - Returns: References in the order of the names. A name that is given twice is one tag.
    public func tags(named names: [String]) async throws -> [Reference<Tag>] {
        var tags = Dictionary(
            try await container.fetchAll(Tag.self, where: .field(\.name).isIn(names)).map { ($0.name, $0) },
            uniquingKeysWith: { first, _ in first })
        let missing = Set(names).subtracting(tags.keys).sorted().map { Tag($0) }
        try await container.save(missing)
        for tag in missing { tags[tag.name] = tag }
        var seen: Set<String> = []
        return names.filter { seen.insert($0).inserted }.compactMap { tags[$0] }.map { Reference($0) }
    }

    /// The stops that have a tag, of all trips.
    public func stops(tagged name: String) async throws -> [Stop] {
        try await container.fetchAll(
            Stop.self, where: .field(\.tags).matches(\.name == name), sortedBy: [.descending(\.arrival)])
    }
}

import Foundation
import Tidemark

/// A place in the diary that a search has found.
public struct DiaryHit: Sendable {
    public let entry: DiaryEntry
    public let place: String
    /// The piece of the text that fits best.
    public let excerpt: SearchExcerpt
}

extension TravelBook {
    /// Looks for words in the diary: `Fjord`, `"ruhige See"`, `Berg*`.
    ///
    /// - Parameters:
    ///   - text: What the person has typed. A word without `*` is looked for as the beginning of one, because German compounds words: *Berg*
    ///     finds *Bergtour*.
    ///   - country: Finds only entries of stops in the country.
    /// - Returns: The best hits first.
    public func search(_ text: String, in country: String? = nil, limit: Int = 20) async throws -> [DiaryHit] {
        let results = try await container.search(
            DiaryEntry.self, Self.asBeginnings(text), where: country.map { .field(\.stop).matches(\.country == $0) }, limit: limit
        )
        let stops = try await container.fetchAll(results.map(\.record.stop))
        return results.map { result in
            DiaryHit(
                entry: result.record, place: stops[result.record.stop]?.place ?? "", excerpt: result.excerpt)
        }
    }

    static func asBeginnings(_ text: String) -> String {
        if text.contains("\"") { return text }
        return text.split(separator: " ").map { $0.hasSuffix("*") ? String($0) : "\($0)*" }.joined(separator: " ")
    }
}

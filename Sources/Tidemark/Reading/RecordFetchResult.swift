import Logging
import TidemarkModel

/// The result of a fetch: the records, and those that can't be read as their type.
public struct RecordFetchResult<R: Record>: Sendable {
    /// The records that could be read, in order.
    public let records: [R]
    /// The records that match and can't be read, such as a record with an enum case that only a newer version of the program has.
    public let unreadable: [UnreadableRecord]
}

extension RecordReading {
    /// Returns the records that match, in the given order, and those that can't be read as their type.
    ///
    /// ```swift
    /// let result = try await journal.fetchResult(Destination.self, sortedBy: [.descending(\.createdAt)])
    /// for it in result.unreadable { print("\(it.record.name) needs a newer version") }
    /// ```
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - predicate: The condition; `nil` for all records.
    ///   - sorts: The order; without one, the order of insertion.
    ///   - limit: The maximum number of records; unreadable ones do not count.
    /// - Returns: The records, and the unreadable ones.
    /// - Throws: ``StoreError`` `invalid` or `schema` for a predicate or an order that the type can't have, `sql`, `moved`, `io`.
    /// - Complexity: O(n) in the records read; those returned are in memory.
    public func fetchResult<R: Record>(
        _ type: R.Type, where predicate: RecordPredicate<R>? = nil, sortedBy sorts: [RecordSort<R>] = [], limit: Int? = nil
    ) async throws -> RecordFetchResult<R> {
        let found = try await recordSources.fetch(type, where: predicate, sortedBy: sorts, limit: limit) { record, _, _, _ in
            record
        }
        return RecordFetchResult(records: found.elements, unreadable: found.unreadable)
    }
}

extension UnreadableRecord {
    private static let logger = Logger(label: "tidemark.records")

    /// Logs a warning with the names of the records that a fetch leaves out. The warning has no values of the records.
    static func log<R: Record>(_ unreadable: [UnreadableRecord], as type: R.Type) {
        guard !unreadable.isEmpty else { return }
        let names = unreadable.prefix(5).map { "\($0.record.name)\($0.place)" }.joined(separator: ", ")
        let more = unreadable.count > 5 ? " and \(unreadable.count - 5) more" : ""
        logger.warning(
            "left out \(R.recordType) records that can't be read as \(R.self): \(names)\(more). Call fetchResult for the errors",
            metadata: ["type": "\(R.recordType)", "count": "\(unreadable.count)"])
    }

    /// The name of the property that can't be decoded, in parentheses.
    private var place: String {
        let path: [any CodingKey]
        switch error {
        case DecodingError.dataCorrupted(let context), DecodingError.keyNotFound(_, let context),
            DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            path = context.codingPath
        default: path = []
        }
        return path.first.map { " ('\($0.stringValue)')" } ?? ""
    }
}

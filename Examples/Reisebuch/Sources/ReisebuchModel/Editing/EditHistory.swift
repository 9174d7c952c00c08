import Foundation
import Tidemark

/// What was done to the travel book, and the way back.
public struct EditHistory: Sendable {
    public struct Step: Sendable, Identifiable {
        public let id: Int64
        public let scope: StoreScope
        public let time: Date
        public let author: String
        public let inserted, updated, deleted: Int
    }

    let book: TravelBook

    public init(of book: TravelBook) { self.book = book }

    /// The steps that were made on this device and can be taken back, among the last ones of each store, newest first. What came from the
    /// cloud is nobody's to undo here, and that a trip was shared is ended in its own way.
    public func steps(amongLast limit: Int = 20) throws -> [Step] {
        try StoreScope.allCases.flatMap { scope in
            let history = book.container.history(scope)
            return try history.transactions(limit: limit)
                .filter { try $0.author == book.container.author && history.canUndo(transaction: $0.id) }
                .map { Step($0, in: scope) }
        }.sorted { $0.time > $1.time }
    }

    /// Takes a step back: what it deleted is there again, with all that went along. That is a step itself, which can be taken back.
    @discardableResult
    public func undo(_ step: Step) async throws -> ChangeCounts {
        try await book.container.undo(transaction: step.id, in: step.scope).counts
    }

    /// How the values of a trip came to be, newest first: `Titel: „Norwegen“ statt „Norden“`.
    public func titles(of trip: Trip) throws -> [(title: String, author: String)] {
        try StoreScope.allCases.flatMap { try book.container.history($0).changes(ofRecord: trip.recordName) }.compactMap {
            change in
            guard case .string(let title)? = change.fields.first(where: { $0.field == "title" })?.after else { return nil }
            return (title, change.transaction.author)
        }
    }
}

extension EditHistory.Step {
    fileprivate init(_ transaction: HistoryTransaction, in scope: StoreScope) {
        id = transaction.id
        self.scope = scope
        time = transaction.date
        author = transaction.author
        (inserted, updated, deleted) = (transaction.inserted, transaction.updated, transaction.deleted)
    }
}

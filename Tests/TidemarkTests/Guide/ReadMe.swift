import Foundation
import Tidemark

/// The code of the README. Not run: it opens the user's own container.
enum ReadMe {
    struct Destination: Record, Identifiable {
        var id = UUID()
        var createdAt = Date()
        var caption: String
        var details = ""
        var image: Asset?
    }

    static func run() async throws {
        let journal = try PersistentContainer(named: "Journal")
        let photo = Asset(fileURL: URL(fileURLWithPath: "pictures/senja.png"))
        try await journal.save(Destination(caption: "Senja", image: photo))
        let newest = try await journal.fetchAll(Destination.self, sortedBy: [.descending(\.createdAt)], limit: 10)
        for it in newest { print(it.caption, it.image?.size ?? 0) }

        // An edit remembers the values it began with, and is merged with what others have saved since.
        let context = journal.newContext()
        for var it in try await context.fetchAll(Destination.self, where: \.caption == "Senja") {
            it.details = "Light until midnight."
            try await context.update(it)
        }
        let result = try await context.save()

        // Every save is a transaction of history, and can be undone.
        if let transaction = result.transactions[.private] { try await journal.undo(transaction: transaction) }
    }
}

import Foundation
import Tidemark
import TidemarkContainers
import TidemarkModel
import TidemarkStore

/// The code of `SeveralProcesses.md`.
extension Guide {
    /// Not run: it opens the user's own container.
    static func openInTheApp() throws -> PersistentContainer {
        let group = StoreLocation.group("group.com.example.journal")
        let journal = try PersistentContainer(named: "Journal", at: group, author: "app")
        return journal
    }

    /// Not run: it opens the user's own container.
    static func openInTheExtension() throws -> PersistentContainer {
        let group = StoreLocation.group("group.com.example.journal")
        let journal = try PersistentContainer(named: "Journal", at: group, author: "share extension", role: .extension)
        return journal
    }

    /// Ends when its task is cancelled, or when it has shown everything.
    static func follow(
        _ journal: PersistentContainer, from tokenFile: URL, show: (ContainerChange) async throws -> Void,
        showEverything: () async throws -> Void
    ) async throws {
        let saved = try? JSONDecoder().decode(ContainerToken.self, from: Data(contentsOf: tokenFile))
        let token = try saved ?? journal.historyToken()
        do {
            var changes = journal.changes(since: token).makeAsyncIterator()
            while let change = try await changes.next() {
                try await show(change)
                try JSONEncoder().encode(changes.token).write(to: tokenFile, options: .atomic)
            }
        } catch let error as StoreError where error.code == .historyTokenExpired {
            try FileManager.default.removeItem(at: tokenFile)
            try await showEverything()
        }
    }

    static func names(_ change: ContainerChange) -> (Set<String>, Set<String>) {
        let destinations = change.changes.filter { $0.record.type == Destination.recordType }
        let gone = Set(destinations.filter { $0.kind == .delete }.map(\.record.name))
        let stale = Set(destinations.filter { $0.kind == .update }.map(\.record.name))

        return (gone, stale)
    }

    static func refresh(_ context: EditingContext) async throws -> Set<RecordName> {
        await context.setAutomaticallyMergesChangesFromParent(true)

        let refreshed = try await context.refreshAll()

        return refreshed
    }

    static func clearUp(_ journal: PersistentContainer) async throws -> [String] {
        let deleted = try await journal.deleteAll(Destination.self, where: \.rating < 2)

        return deleted
    }
}

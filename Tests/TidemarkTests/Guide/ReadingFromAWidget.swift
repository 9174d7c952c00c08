import Foundation
import Tidemark
import TidemarkContainers
import TidemarkStore

/// The code of `ReadingFromAWidget.md`.
extension Guide {
    /// Not run: it opens the user's own container.
    static func openInGroup() throws -> ReadOnlyContainer {
        let group = StoreLocation.group("group.com.example.journal")
        let journal = try ReadOnlyContainer(named: "Journal", at: group)
        return journal
    }

    static func find(_ group: StoreLocation, under tree: URL) throws -> ReadOnlyContainer? {
        let search = try StoreLocator(name: "Journal", under: tree, location: group).search()
        for skipped in search.skipped { print(skipped.url.path, skipped.reason) }
        guard let found = search.best else { return nil }
        let journal = try ReadOnlyContainer(directory: found.container)
        return journal
    }

    static func newest(_ journal: ReadOnlyContainer) async throws -> [URL?] {
        let newest = try await journal.fetchAll(Destination.self, sortedBy: [.descending(\.createdAt)], limit: 3)
        let pictures = newest.map { $0.image?.fileURL }

        return pictures
    }

    static func hasChanged(_ journal: ReadOnlyContainer, since saved: ContainerToken?) throws -> ContainerToken? {
        let token = try journal.historyToken()
        guard token != saved else { return nil }
        // Read again, show it, and keep the token for the next time.
        return token
    }

    static func follow(_ journal: ReadOnlyContainer, show: (ContainerChange) -> Void) async throws {
        for try await change in journal.changes() {
            show(change)
        }
    }
}

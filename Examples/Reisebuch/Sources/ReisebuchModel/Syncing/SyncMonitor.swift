import Foundation
import Observation
import Tidemark

/// What a view shows of the synchronisation: a line, a progress, and what happened to the account.
@MainActor @Observable public final class SyncMonitor {
    public private(set) var line = "Noch nicht abgeglichen"
    /// From 0 to 1; `nil` while nothing is transferred, or the end is not known.
    public private(set) var progress: Double?
    /// What the person should hear of the account, newest last.
    public private(set) var accountNews: [String] = []
    /// Changes that the cloud has refused, and that were taken back here.
    public private(set) var refused: [String] = []

    private let container: PersistentContainer
    @ObservationIgnored private var task: Task<Void, Never>?

    public init(_ book: TravelBook) {
        container = book.container
        let events = container.events()
        task = Task { [weak self] in
            for await event in events { self?.take(event) }
        }
    }

    deinit { task?.cancel() }

    /// Whether everything is where it belongs.
    public var isInSync: Bool { (try? container.isInSync()) ?? false }

    /// For a list that is pulled down.
    public func refresh() { container.requestSync() }

    private func take(_ event: ContainerEvent) {
        switch event.accountChange {
        case .signedIn: accountNews.append("Angemeldet")
        case .signedOut: accountNews.append("Abgemeldet")
        case .switched: accountNews.append("Ein anderer Account ist angemeldet")
        case nil: break
        }
        progress = event.end == nil ? event.totalRecords.map { Double(event.records) / Double(max($0, 1)) } : nil
        do {
            refused = try container.refusedSaves().map(\.reason)
            line = try event.failure?.localizedDescription ?? SyncLine.text(container.syncStatus())
        } catch {
            line = error.localizedDescription
        }
    }
}

/// The status of a synchronisation in a line for the person.
public enum SyncLine {
    public static func text(_ status: SyncStatus) -> String {
        guard let obstacle = status.obstacles.first else { return "Alles ist abgeglichen" }
        return switch obstacle {
        case .noAccount: "Noch mit keinem Account abgeglichen"
        case .notFetched: "Wird zum ersten Mal geladen"
        case .changesToFetch: "Es gibt Neues"
        case .changesToSend: status.changesToSend == 1 ? "1 Änderung wartet" : "\(status.changesToSend) Änderungen warten"
        case .recordsDeferred(_, let count): "\(count) Einträge brauchen eine Entscheidung"
        case .notSynchronized: "Nicht alles wird abgeglichen"
        case .failed(_, let failure): failure.localizedDescription
        }
    }
}

import Foundation
import Tidemark

/// Shares trips with people. A share has the trip, its stops, their photos and entries: what the trip owns.
public struct TripSharing: Sendable {
    let container: PersistentContainer
    let databases: CloudDatabases

    public init(_ book: TravelBook, with databases: CloudDatabases) {
        (container, self.databases) = (book.container, databases)
    }

    /// What would go along, in numbers by type, for the question before: `3 Halte, 12 Fotos`.
    public func preview(of trip: Trip) async throws -> [String: Int] {
        Dictionary(grouping: try await container.graph(of: trip), by: \.type).mapValues(\.count)
    }

    /// Shares a trip, or finds its share, and invites a person.
    ///
    /// - Returns: The link to send them.
    public func invite(_ email: String, to trip: Trip, mayEdit: Bool) async throws -> String {
        let share = try await container.share(trip, in: databases)
        let invited = try await container.updateParticipants(
            of: share, [.invite(.emailAddress(email), role: .privateUser, permission: mayEdit ? .readWrite : .readOnly)],
            in: databases)
        return try await "reisebuch://"
            + container.makeLink(to: invited, for: invited.participant(email)?.id, in: databases).token
    }

    /// What an invitation leads to, before it is accepted: `Norwegen von Anna`.
    public func describe(_ link: String) async throws -> String {
        let metadata = try await container.shareMetadata(for: link, in: databases)
        return "\(metadata.share.title ?? "Eine Reise") von \(metadata.owner.title)"
    }

    /// Accepts an invitation. The trip comes with the next synchronisation.
    @discardableResult
    public func accept(_ link: String) async throws -> Share {
        try await container.acceptInvitation(link, in: databases)
    }

    public func share(of trip: Trip) async throws -> Share? {
        try await container.fetchShare(of: trip)
    }

    /// Who takes part: `Ben: Eingeladen, darf ändern`.
    public func people(of trip: Trip) async throws -> [String] {
        try await share(of: trip)?.participants.map(\.text) ?? []
    }

    public func setMayEdit(_ mayEdit: Bool, _ email: String, of trip: Trip) async throws {
        guard let share = try await share(of: trip),
            let person = share.participant(email)
        else { return }
        try await container.updateParticipants(
            of: share, [.setPermission(participant: person.id, mayEdit ? .readWrite : .readOnly)], in: databases)
    }

    /// Ends one's own share, or leaves somebody else's.
    public func end(_ trip: Trip) async throws {
        guard let share = try await share(of: trip) else { return }
        if share.scope == .private {
            try await container.stopSharing(share, in: databases)
        } else {
            try await container.leave(share, in: databases)
        }
    }
}

extension Share {
    /// The participant who was invited by an address, however it is written.
    func participant(_ email: String) -> ShareParticipant? {
        let address = UserLookUp.emailAddress(email).normalized
        return participants.first { $0.identity.lookUp == address }
    }
}

extension ShareParticipant {
    /// The participant for the person.
    var text: String {
        let status =
            switch acceptanceStatus {
            case .accepted: "nimmt teil"
            case .pending: "eingeladen"
            case .removed: "entfernt"
            case .unknown: "unbekannt"
            }
        let right =
            switch permission {
            case _ where role == .owner: "Eigentümer"
            case .readWrite: "darf ändern"
            case .readOnly: "darf lesen"
            case .none, .unknown: "darf nichts"
            }
        return "\(identity.title): \(status), \(right)"
    }
}

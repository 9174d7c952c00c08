import Foundation
import Tidemark

/// Sharing with people. The cloud decides all of it; the store knows what the cloud has said.
extension Journal {
    /// Invites a person to a destination, sharing it if it is not.
    ///
    /// - Returns: The link to send them. The cloud tells it once.
    nonisolated func invite(_ email: String, to id: UUID, mayEdit: Bool) async throws -> String {
        guard UserLookUp.emailAddress(email).normalized != nil else {
            throw ValidationError("'\(email)' is no e-mail address.", field: "email")
        }
        let destination = try await destination(id)
        let share = try await container.share(destination, in: databases)
        let invited = try await container.updateParticipants(
            of: share, [.invite(.emailAddress(email), role: .privateUser, permission: mayEdit ? .readWrite : .readOnly)],
            in: databases)
        let participant = invited.participants.first { $0.identity.lookUp == UserLookUp.emailAddress(email).normalized }
        return try await container.makeLink(to: invited, for: participant?.id, in: databases).token
    }

    /// Has a participant edit or only read.
    nonisolated func setMayEdit(_ mayEdit: Bool, _ participant: String, of id: UUID) async throws {
        try await container.updateParticipants(
            of: share(of: id), [.setPermission(participant: participant, mayEdit ? .readWrite : .readOnly)], in: databases)
    }

    /// Removes a participant. They lose the destination with their next synchronisation.
    nonisolated func remove(_ participant: String, from id: UUID) async throws {
        try await container.updateParticipants(of: share(of: id), [.remove(participant: participant)], in: databases)
    }

    /// Ends one's own share, or leaves somebody else's.
    nonisolated func endShare(of id: UUID) async throws {
        let share = try await share(of: id)
        if share.scope == .private {
            try await container.stopSharing(share, in: databases)
        } else {
            try await container.leave(share, in: databases)
        }
    }

    /// What an invitation leads to, before it is accepted.
    nonisolated func invitation(_ token: String) async throws -> Invitation {
        let metadata = try await container.shareMetadata(for: token, in: databases)
        return Invitation(
            token: token, title: metadata.share.title ?? "A destination", owner: metadata.owner.title,
            isOwn: metadata.scope == .private, isAccepted: metadata.participant?.acceptanceStatus == .accepted,
            mayEdit: metadata.participant?.permission == .readWrite)
    }

    /// Accepts an invitation: the destination comes with the next synchronisation.
    nonisolated func accept(_ token: String) async throws {
        try await container.acceptInvitation(token, in: databases)
        container.requestSync()
    }

    nonisolated func decline(_ token: String) async throws {
        try await container.declineInvitation(token, in: databases)
    }

    private nonisolated func destination(_ id: UUID) async throws -> Destination {
        guard let destination = try await container.fetch(Destination.self, id: id) else { throw PageError.gone }
        return destination
    }

    private nonisolated func share(of id: UUID) async throws -> Share {
        guard let share = try await container.fetchShare(of: destination(id)) else {
            throw PageError(409, "Not shared", "It is not shared any more.")
        }
        return share
    }
}

/// What an invitation says.
struct Invitation: Sendable {
    let token, title, owner: String
    let isOwn, isAccepted, mayEdit: Bool
}

public import TidemarkCloud
public import TidemarkModel
import TidemarkSync

/// Invitations and links to shares.
extension PersistentContainer {
    /// Returns the share that an invitation leads to, without accepting it.
    ///
    /// - Parameters:
    ///   - link: The token of a ``ShareLink``, or an address that ends with it.
    ///   - databases: The databases of the account.
    public func shareMetadata(for link: String, in databases: CloudDatabases) async throws(CloudError) -> ShareMetadata {
        try await databases.shared.resolveLink(Self.token(link))
    }

    /// Accepts an invitation. The next synchronisation fetches the shared records into the shared store. An app that was launched
    /// by an invitation calls this as soon as its container is open. As `acceptShareInvitations(from:into:)`.
    ///
    /// - Throws: `CloudError` `unknownItem` for a link that does not exist, is revoked, or is limited to another person.
    @discardableResult
    public func acceptInvitation(_ link: String, in databases: CloudDatabases) async throws -> Share {
        try await adopt(databases)
        let before = try await fetchShares()
        let metadata = try await databases.shared.acceptLink(Self.token(link))
        guard let scope = StoreScope(metadata.scope) else {
            throw CloudError(
                .invalidArguments,
                "the cloud says that the share '\(metadata.share.id.recordName)' is in the public database, where no share can be"
            )
        }
        let share = Share(metadata.share, scope: scope)
        try await note(share, before)
        return share
    }

    /// Declines an invitation.
    ///
    /// - Throws: `CloudError` `invalidArguments` when the account has accepted the invitation already: see ``leave(_:in:)``.
    public func declineInvitation(_ link: String, in databases: CloudDatabases) async throws(CloudError) {
        let metadata = try await shareMetadata(for: link, in: databases)
        guard metadata.participant?.acceptanceStatus != .accepted else {
            throw CloudError(.invalidArguments, "the invitation is accepted already: leave the share to take part no more")
        }
        try await databases.shared.declineLink(Self.token(link))
    }

    private static func token(_ link: String) -> String {
        // The server and the container follow the question mark, in links that have them.
        let path = link.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)[0]
        return String(path.split { $0 == "/" || $0.isWhitespace }.last ?? "")
    }

    /// Makes a link to a share.
    ///
    /// - Parameters:
    ///   - share: The share.
    ///   - participant: The identifier of the participant who alone can use the link; `nil` for no limit.
    ///   - databases: The databases of the account.
    public func makeLink(
        to share: Share, for participant: String? = nil, in databases: CloudDatabases
    ) async throws(CloudError) -> ShareLink {
        try await databases[share.scope].makeLink(to: share.cloudID, for: participant)
    }

    /// Revokes a link to a share, so that nobody can use it any more. Participants who came by it stay.
    ///
    /// - Parameter id: The link's identifier, from ``ShareLinkEntry/id``.
    /// - Throws: `CloudError` `permissionFailure` for an account that may not invite; `unknownItem` if there is no such link.
    public func revokeLink(_ id: String, to share: Share, in databases: CloudDatabases) async throws(CloudError) {
        try await databases[share.scope].revokeLink(id, to: share.cloudID)
    }

    /// Returns the links to a share that were not revoked, the oldest first. They have no tokens, so they give no access.
    ///
    /// - Throws: `CloudError` `permissionFailure` for an account that may not invite.
    public func links(to share: Share, in databases: CloudDatabases) async throws(CloudError) -> [ShareLinkEntry] {
        var links: [ShareLinkEntry] = []
        for entry in try await databases[share.scope].shareAudit(in: share.zone.cloudZone, after: nil)
        where entry.share.recordName == share.name {
            guard let id = entry.subject else { continue }
            switch entry.kind {
            // An earlier share of the zone had the same name.
            case .stopped: links = []
            case .linkMade: links.append(ShareLinkEntry(id: id, participant: entry.value, made: entry.time))
            case .linkRevoked: links.removeAll { $0.id == id }
            default: break
            }
        }
        return links
    }
}

/// An entry in the list of a share's links, for those who manage the share.
public struct ShareLinkEntry: Hashable, Sendable, Identifiable {
    /// The link's identifier among the links of its share. It gives no access.
    public let id: String
    /// The identifier of the participant who alone can use the link; `nil` for no limit.
    public let participant: String?
    /// The time at which the link was made; microseconds since 1970 UTC.
    public let made: Int64
}

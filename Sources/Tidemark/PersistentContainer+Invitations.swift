public import TidemarkCloud
public import TidemarkModel
import TidemarkSync

/// Links into shares, and what they lead to.
extension PersistentContainer {
    /// What an invitation leads to, without taking part.
    ///
    /// - Parameter link: The token of a ``ShareLink``, or an address that ends with it.
    public func shareMetadata(for link: String, in databases: CloudDatabases) async throws(CloudError) -> ShareMetadata {
        try await databases.shared.resolveLink(Self.token(link))
    }

    /// Accepts an invitation: what is shared comes into the shared store with the next synchronisation. An app that was launched by an
    /// invitation calls it as soon as its container is open. As `acceptShareInvitations(from:into:)`.
    ///
    /// - Throws: `CloudError` `unknownItem` for a link that is none, is revoked, or is somebody else's.
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

    /// Ends an invitation without having taken part.
    ///
    /// - Throws: `CloudError` `invalidArguments` for who takes part already: see ``leave(_:in:)``.
    public func declineInvitation(_ link: String, in databases: CloudDatabases) async throws(CloudError) {
        let metadata = try await shareMetadata(for: link, in: databases)
        guard metadata.participant?.acceptanceStatus != .accepted else {
            throw CloudError(.invalidArguments, "the invitation is accepted already: leave the share to take part no more")
        }
        try await databases.shared.declineLink(Self.token(link))
    }

    private static func token(_ link: String) -> String {
        // Behind the question mark stand the server and the container, where a link says them.
        let path = link.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)[0]
        return String(path.split { $0 == "/" || $0.isWhitespace }.last ?? "")
    }

    /// A new link to a share, for whoever is given it.
    ///
    /// - Parameter participant: The identifier of the participant to whom it is limited.
    public func makeLink(
        to share: Share, for participant: String? = nil, in databases: CloudDatabases
    ) async throws(CloudError) -> ShareLink {
        try await databases[share.scope].makeLink(to: share.cloudID, for: participant)
    }

    /// Revokes a link to a share: it leads nowhere any more. Participants who came by it stay.
    ///
    /// - Parameter id: The link's identifier, from ``ShareLinkEntry/id``.
    /// - Throws: `CloudError` `permissionFailure` for an account that may not invite, `unknownItem` where there is no such link.
    public func revokeLink(_ id: String, to share: Share, in databases: CloudDatabases) async throws(CloudError) {
        try await databases[share.scope].revokeLink(id, to: share.cloudID)
    }

    /// The links to a share that lead there, the oldest first: what the cloud knows of them, which gives no access.
    ///
    /// - Throws: `CloudError` `permissionFailure` for who may not invite.
    public func links(to share: Share, in databases: CloudDatabases) async throws(CloudError) -> [ShareLinkEntry] {
        var links: [ShareLinkEntry] = []
        for entry in try await databases[share.scope].shareAudit(in: share.zone.cloudZone, after: nil)
        where entry.share.recordName == share.name {
            guard let id = entry.subject else { continue }
            switch entry.kind {
            // An earlier share of the zone was called the same.
            case .stopped: links = []
            case .linkMade: links.append(ShareLinkEntry(id: id, participant: entry.value, made: entry.time))
            case .linkRevoked: links.removeAll { $0.id == id }
            default: break
            }
        }
        return links
    }
}

/// A link to a share, as those see it who manage the share.
public struct ShareLinkEntry: Hashable, Sendable, Identifiable {
    /// Names the link among those of its share; it gives no access.
    public let id: String
    /// The identifier of the participant to whom it is limited.
    public let participant: String?
    /// Microseconds since 1970 UTC.
    public let made: Int64
}

import Tidemark
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// A participant as the tool prints it.
struct ParticipantLine: Encodable {
    let identifier, name, status, role, permission: String
    let lookUp, userRecordName: String?
    let isCurrentUser: Bool

    init(_ participant: ShareParticipant, of share: Share) {
        identifier = participant.id
        name = participant.identity.title
        status = participant.acceptanceStatus.title
        role = participant.role.title
        permission = participant.permission.title
        lookUp = participant.identity.lookUp?.value
        userRecordName = participant.identity.userRecordName
        isCurrentUser = participant.id == share.currentUser?.id
    }
}

/// A share as the tool prints it.
struct ShareLine: Encodable {
    let title, root, owner: String?
    let store, zone, zoneOwner: String
    let role, permission, status, publicPermission: String
    let participants: [ParticipantLine]

    init(_ share: Share) {
        (title, root) = (share.title, share.root)
        owner = share.owner?.identity.title
        (store, zone, zoneOwner) = (share.scope.name, share.zone.name, share.zone.owner ?? "")
        let own = share.currentUser
        role = (own?.role ?? .unknown).title
        permission = (own?.permission ?? .unknown).title
        status = (own?.acceptanceStatus ?? .unknown).title
        publicPermission = share.publicPermission.title
        participants = share.participants.map { ParticipantLine($0, of: share) }
    }
}

/// A new link as the tool prints it. Its recipient follows it with `tidemark share accept`.
struct LinkLine: Encodable {
    let identifier, link: String
    /// To whom it is limited.
    let participant: String?

    init(_ link: ShareLink, of share: Share, _ access: CloudAccess) {
        identifier = link.id
        self.link = ShareAddress(token: link.token, access.settings, access.directory.description.environment).text
        participant = link.participant.map { id in share.participants.first { $0.id == id }?.identity.title ?? id }
    }

    func tell() throws {
        try Output.line(
            "link \(identifier), for \(participant ?? "every invited participant, or everybody if the share is public"):")
        try Output.line("  \(link)")
    }
}

/// An existing link as the tool prints it, without its token.
struct LinkEntryLine: Encodable {
    let identifier, made: String
    /// To whom it is limited.
    let participant: String?

    init(_ link: ShareLinkEntry, of share: Share) {
        (identifier, made) = (link.id, Timestamp.text(microseconds: link.made))
        participant = link.participant.map { id in share.participants.first { $0.id == id }?.identity.title ?? id }
    }
}

/// The result of a change of a share, and of the synchronisation after it.
struct ShareOutcome: Encodable {
    var share: ShareLine?
    var links: [LinkLine]?
    /// The shared records, with all records below them.
    var records: [RecordName]?
    var sync: Sync.Report?
    /// Why no synchronisation was made.
    var note: String?
    /// The invited addresses for which the cloud finds no account: there is none, or its person does not want to be found.
    var undiscovered: [String]?
    /// The people whose invitations a change of the public permission has withdrawn.
    var withdrawn: [String]?
    /// The people who had joined by an open link, and were removed because the share is no longer public.
    var removed: [String]?
    /// The path of the container, if a link was followed.
    var container: String?

    /// Prints the result: `text` and the links, or one JSON object.
    ///
    /// - Throws: The exit code if the synchronisation was not completed.
    static func tell(
        _ text: String, share: Share? = nil, links: [LinkLine]? = nil, records: [RecordName]? = nil,
        undiscovered: [String] = [], withdrawn: [String] = [], removed: [String] = [], container: String? = nil,
        sync: SyncAfterwards.Outcome = .notWanted, json: Bool
    ) throws {
        var outcome = ShareOutcome(share: share.map(ShareLine.init), links: links, records: records, container: container)
        if !undiscovered.isEmpty { outcome.undiscovered = undiscovered }
        if !withdrawn.isEmpty { outcome.withdrawn = withdrawn }
        if !removed.isEmpty { outcome.removed = removed }
        switch sync {
        case .notWanted: break
        case .leftToAnother(let failure): outcome.note = "\(failure.code): \(failure.reason), and does so with this, too"
        case .done(let report): outcome.sync = Sync.Report(report)
        }
        if json {
            try Output.json(outcome)
        } else {
            try Output.line(text)
            if !withdrawn.isEmpty {
                let what = Wording.count(withdrawn.count, "invitation is", "invitations are")
                try Output.line("\(what) withdrawn: \(withdrawn.joined(separator: ", "))")
            }
            if !removed.isEmpty {
                let who = Wording.count(removed.count, "participant by an open link is", "participants by an open link are")
                try Output.line("\(who) removed: \(removed.joined(separator: ", "))")
            }
            for link in links ?? [] { try link.tell() }
            for address in undiscovered {
                Output.error(
                    """
                    note: \(address) can accept with the account of this address; the cloud does not say whether there is one
                    """)
            }
            if let note = outcome.note { Output.error("note: \(note)") }
        }
        guard case .done(let report) = sync else { return }
        if !json { try Sync.tell(report) }
        if let failure = Sync.failure(report) { throw failure }
    }
}

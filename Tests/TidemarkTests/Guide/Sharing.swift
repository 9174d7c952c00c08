import Foundation
import Tidemark
import TidemarkCloud
import TidemarkModel

/// The code of `Sharing.md`.
extension Guide {
    static func share(_ senja: Destination, in journal: PersistentContainer, _ databases: CloudDatabases) async throws -> String {
        let share = try await journal.share(senja, title: senja.caption, in: databases)
        let ben = UserLookUp.emailAddress("ben@example.org")
        let invited = try await journal.updateParticipants(
            of: share, [.invite(ben, role: .privateUser, permission: .readWrite)], in: databases)
        let link = try await journal.makeLink(to: invited, in: databases)

        return link.token
    }

    static func accept(_ link: String, in journal: PersistentContainer, _ databases: CloudDatabases) async throws -> Share {
        let share = try await journal.acceptInvitation(link, in: databases)

        return share
    }

    static func ask(_ record: RecordName, in journal: PersistentContainer, save: () async throws -> Void) async throws {
        if try await journal.canEdit(record) { try await save() }
        let permission = try await journal.permissions.permission(of: record)
        print(permission?.reason ?? "there is no such record")
    }

    static func save(_ edited: Destination, in journal: PersistentContainer) async throws {
        do {
            try await journal.save(edited)
        } catch let denial as PermissionDenied {
            print(denial.decision.reason, denial.decision.remedy?.text ?? "")
        }
    }

    static func add(_ beach: Destination, to share: Share, in journal: PersistentContainer) async throws {
        try await journal.save([beach], in: share)
    }

    static func tellRefused(_ journal: PersistentContainer) throws {
        for refused in try journal.refusedSaves() {
            print(refused.record.name, refused.reason, refused.after)
        }
    }
}

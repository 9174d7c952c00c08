import Foundation
import Tidemark
import TidemarkEmbeddedCloud
import TidemarkHTTP

/// A person's journal: a folder with a container, and with the account that it is synchronised with.
struct TravelJournal {
    let container: PersistentContainer
    private let accountFile: URL

    init(in folder: URL) throws {
        container = try PersistentContainer(named: "Journal", at: .directory(folder), author: "journal")
        accountFile = folder.appendingPathComponent("account.json")
    }

    // The account

    private struct Account: Codable {
        /// The directory of a cloud, or the address of a server that has one.
        var cloud, server: String?
        var email: String

        var directory: URL {
            let text = cloud ?? ""
            // Older journals have it as an URL.
            if text.hasPrefix("file:"), let url = URL(string: text) { return url }
            return URL(fileURLWithPath: text, isDirectory: true)
        }
    }

    private static let cloudContainer = "org.example.journal"

    func signIn(cloud: URL, email: String, name: PersonName?) async throws {
        try await EmbeddedCloud(at: cloud).addAccount(email, name: name)
        try keep(Account(cloud: cloud.path, email: email))
    }

    /// Signs in with an account that the server has; the session lies in the container.
    ///
    /// - Parameter code: Asks for a code of the account's second factor, where it has one.
    func signIn(server: String, email: String, password: String, code: () throws -> String) async throws {
        let cloud = try served(by: server)
        do {
            try await cloud.signIn(email: email, password: password)
        } catch  where error.code == .secondFactorRequired {
            try await cloud.signIn(email: email, password: password, code: code())
        }
        try keep(Account(server: server, email: email))
    }

    private func keep(_ account: Account) throws { try JSONEncoder().encode(account).write(to: accountFile) }

    private func served(by server: String) throws -> HTTPCloud {
        HTTPCloud(
            try ServerAddress(server), container: Self.cloudContainer, session: SessionFile(at: container.directory.session))
    }

    /// What the account has in the cloud.
    func databases() async throws -> CloudDatabases {
        guard let data = try? Data(contentsOf: accountFile) else { throw ValidationError("sign in first") }
        let account = try JSONDecoder().decode(Account.self, from: data)
        if let server = account.server { return try served(by: server).databases }
        let cloud = try EmbeddedCloud(at: account.directory)
        return try cloud.databases(of: Self.cloudContainer, account: try await cloud.account(account.email)?.id)
    }

    // Destinations

    /// One's own and those of others, newest first.
    func destinations() async throws -> [Destination] {
        try await container.fetchAll(Destination.self, sortedBy: [.descending(\.createdAt)])
    }

    /// The one of a caption, or of an identifier's beginning.
    func destination(_ text: String) async throws -> Destination {
        let found = try await destinations().first { $0.caption == text || $0.recordName.hasPrefix(text.lowercased()) }
        guard let found else { throw ValidationError("there is no destination '\(text)'") }
        return found
    }

    /// What one may do with it, and why.
    func permission(of destination: Destination) async throws -> RecordPermission {
        guard let permission = try await container.permissions.permission(of: destination) else {
            throw ValidationError("'\(destination.caption)' is gone")
        }
        return permission
    }

    /// Gives it other values, on top of what others have saved meanwhile.
    func edit(_ destination: Destination, _ change: (inout Destination) -> Void) async throws {
        let context = container.newContext()
        guard var edited = try await context.fetch(Destination.self, id: destination.id) else { return }
        change(&edited)
        try await context.update(edited)
        try await context.save()
    }

    // Shares

    func share(of destination: Destination) async throws -> Share {
        guard let share = try await container.fetchShare(of: destination) else {
            throw ValidationError("'\(destination.caption)' is not shared")
        }
        return share
    }
}

extension Share {
    /// Who is called so, or was invited by that address.
    func participant(_ text: String) throws -> ShareParticipant {
        let lookUp = UserLookUp.emailAddress(text).normalized
        let found = participants.first { $0.identity.title == text || lookUp != nil && $0.identity.lookUp == lookUp }
        guard let found else { throw ValidationError("'\(text)' takes no part") }
        return found
    }
}

import Foundation
import Tidemark
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkHTTP

/// Somebody with an account in the cloud.
struct Person: Hashable, Sendable {
    /// The account's name in the cloud's container: 33 letters and digits, which also name the folder of the person's store here.
    let id: String
    let email: String
    let name: String
}

/// A person who has signed in, and what the cloud gives them: a session.
struct Member: Sendable {
    let id = UUID()
    let person: Person
    let databases: CloudDatabases
    /// Ends the session with the cloud.
    var end: @Sendable () async throws -> Void = {}

    /// Whether the cloud still accepts the session; `nil` where the cloud does not say.
    func isAccepted() async -> Bool? {
        do throws(CloudError) {
            switch try await databases.private.account().status {
            case .available: return true
            case .noAccount, .restricted: return false
            case .temporarilyUnavailable, .couldNotDetermine: return nil
            }
        } catch {
            return error.code == .notAuthenticated ? false : nil
        }
    }
}

/// Where accounts are: in the cloud that a journal synchronises with.
protocol Accounts: Sendable {
    /// Those who may sign in without a password, because everything is a demonstration on one machine.
    var demonstrators: [Person] { get async throws }

    /// - Parameter code: Of the second factor, where the account has one.
    /// - Throws: `CloudError` `notAuthenticated` where the address or the password is wrong, `secondFactorRequired` where the code is missing or
    ///   wrong.
    func signIn(email: String, password: String, code: String?) async throws -> Member
}

enum CloudContainer { static let name = "iCloud.org.example.webjournal" }

/// The accounts of a Tidemark server. It checks the passwords; none is kept here.
struct ServedAccounts: Accounts {
    let server: ServerAddress

    var demonstrators: [Person] { [] }

    func signIn(email: String, password: String, code: String?) async throws -> Member {
        // The session lives as long as this process, as the sessions of the browsers do.
        let cloud = HTTPCloud(server, container: CloudContainer.name, session: SessionMemory())
        let name = try await cloud.signIn(email: email, password: password, code: code, device: "Web journal")
        return Member(person: Person(id: name, email: email, name: email), databases: cloud.databases) {
            try await cloud.signOut()
            await cloud.shutdown()
        }
    }
}

/// The two people of the demonstration, in a cloud in a directory.
struct DemoAccounts: Accounts {
    let cloud: EmbeddedCloud

    static let people = [
        ("ada@example.org", PersonName(givenName: "Ada", familyName: "Berg")),
        ("ben@example.org", PersonName(givenName: "Ben", familyName: "Holm")),
    ]

    /// Opens the cloud, making it and its people where it is new.
    init(at directory: URL) async throws {
        cloud = try EmbeddedCloud(at: directory)
        for (email, name) in Self.people { try await cloud.addAccount(email, name: name) }
    }

    var demonstrators: [Person] {
        get async throws {
            var people: [Person] = []
            for (email, _) in Self.people { people.append(try await member(email).person) }
            return people
        }
    }

    func signIn(email: String, password: String, code: String?) async throws -> Member { try await member(email) }

    private func member(_ email: String) async throws -> Member {
        guard let account = try await cloud.account(email) else {
            throw CloudError(.notAuthenticated, "the demonstration has no '\(email)'")
        }
        let databases = try cloud.databases(of: CloudContainer.name, account: account.id)
        guard let name = try await databases.private.account().userRecordName else {
            throw CloudError(.notAuthenticated, "'\(email)' can't be used")
        }
        return Member(
            person: Person(id: name, email: account.email, name: account.name?.title ?? account.email), databases: databases)
    }
}

import Foundation
import Tidemark
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// A cloud in a folder, and people who have accounts there.
public struct TwoUserFixture: Sendable {
    public let cloud: EmbeddedCloud
    let folder: URL
    public static let container = "iCloud.org.example.journal"

    public init(_ scratch: Scratch) throws { try self.init(in: scratch.url) }

    public init(in folder: URL) throws {
        self.folder = folder
        cloud = try EmbeddedCloud(at: folder.appendingPathComponent("cloud", isDirectory: true))
    }

    /// Makes a person with an account and a device.
    ///
    /// - Parameter device: A name for the device, different for each.
    public func person(
        _ name: String, device: String = "", database: (any SharingDatabase) -> any SharingDatabase = { $0 }
    ) async throws -> Person {
        let email = "\(name)@example.org"
        let known = try await cloud.account(email)
        let account =
            if let known { known } else {
                try await cloud.addAccount(email, name: PersonName(givenName: name.capitalized, familyName: "Berg"))
            }
        let databases = try cloud.databases(of: Self.container, account: account.id)
        let container = try PersistentContainer(
            directory: ContainerDirectory(openingOrCreatingAt: folder.appendingPathComponent("\(name)\(device).tidemark")),
            author: name)
        return Person(
            email: email, container: container,
            databases: CloudDatabases(private: database(databases.private), shared: database(databases.shared)))
    }
}

/// A person with a container and an account in a cloud.
public struct Person: Sendable {
    public let email: String
    public let container: PersistentContainer
    public let databases: CloudDatabases

    public init(email: String, container: PersistentContainer, databases: CloudDatabases) {
        (self.email, self.container, self.databases) = (email, container, databases)
    }

    /// Synchronises once.
    @discardableResult
    public func sync() async throws -> SyncReport {
        let sync = try await container.sync(with: databases)
        defer { sync.close() }
        return try await sync.sync()
    }

    /// Shares a record with another person, and returns a link that only that person can use.
    public func share(
        _ record: some Record, with other: Person, _ permission: ShareParticipant.Permission = .readWrite
    ) async throws -> (share: Share, link: String) {
        let share = try await container.share(record, title: "Shared", in: databases)
        let changed = try await container.updateParticipants(
            of: share, [.invite(.emailAddress(other.email), role: .privateUser, permission: permission)], in: databases)
        let invited = changed.participants.first { $0.identity.lookUp == .emailAddress(other.email) }
        return (changed, try await container.makeLink(to: changed, for: invited?.id, in: databases).token)
    }

    public func captions() async throws -> [String: String] {
        try await container.fetchAll(Destination.self).reduce(into: [:]) { $0[$1.id] = $1.caption }
    }
}

import Foundation
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// An embedded cloud in a folder of the test's own, or over another storage, with operations that no client can request.
public final class FaultyCloudFixture: Sendable {
    public static let container = "iCloud.org.example.journal"

    public let directory: URL
    public let cloud: EmbeddedCloud
    private let scratch: Scratch

    public convenience init() throws { try self.init(observing: nil) }

    /// - Parameters:
    ///   - observe: Called with the text of each statement on records before it is prepared.
    ///   - storage: Makes the storage of a container's rows, instead of a file of the folder.
    ///   - assets: Makes the storage of a container's assets over that of the folder.
    package init(
        observing observe: (@Sendable (String) -> Void)?, storage: EmbeddedCloud.StorageOfContainer? = nil,
        assets: EmbeddedCloud.AssetsOfContainer? = nil
    ) throws {
        scratch = try Scratch()
        directory = scratch["cloud"]
        cloud = try EmbeddedCloud(
            at: directory, now: { Int64((Date().timeIntervalSince1970 * 1e6).rounded()) }, observing: observe, storage: storage,
            assets: assets)
    }

    /// - Parameters:
    ///   - cloud: A cloud over another storage, whose container is open in both environments.
    ///   - scratch: A folder that is there for as long as the cloud.
    package init(over cloud: EmbeddedCloud, in scratch: Scratch) {
        (self.cloud, self.scratch) = (cloud, scratch)
        directory = cloud.directory
    }

    /// The identifier of the account with an address; makes the account if there is none.
    public func id(_ account: String?) async throws -> String? {
        guard let account else { return nil }
        return try await cloud.addAccount(account).id
    }

    public func deploy() async throws { try await cloud.deploySchema(of: Self.container) }

    public func index(_ field: String, of type: String) async throws {
        let known = try await cloud.schema(of: Self.container).types[type]?.fields[field]?.type ?? ""
        var indexes: Set<CloudSchema.Index> = [.queryable]
        if !known.hasPrefix("list") { indexes.insert(.sortable) }
        if known == "string" { indexes.insert(.searchable) }
        try await cloud.setIndexes(indexes, of: field, in: type, container: Self.container)
    }

    public func setQuota(_ bytes: Int64, of account: String) async throws {
        var known = try #require(try await cloud.account(account))
        known.quota = bytes
        try await cloud.update(known)
    }

    public func setStatus(_ status: CloudAccount.Status, of account: String) async throws {
        var known = try #require(try await cloud.account(account))
        known.status = status
        try await cloud.update(known)
    }

    public func describe(_ account: String, name: PersonName, phone: String) async throws {
        var known = try await cloud.addAccount(account)
        (known.name, known.phone) = (name, phone)
        try await cloud.update(known)
    }

    public func purge(_ zone: CloudZoneID, of account: String) async throws {
        try await cloud.database(.private, of: Self.container, account: try await id(account)).purgeZone(zone)
    }
}

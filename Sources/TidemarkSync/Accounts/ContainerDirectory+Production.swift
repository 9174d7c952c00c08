import Foundation
import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

/// The result of making a development container a production one.
public struct ProductionChange: Hashable, Sendable {
    /// The container as it is now.
    public let container: ContainerDirectory
    /// Whether the container was a development container before.
    public let isChanged: Bool
    /// The number of records that the next synchronisation sends to the production environment.
    public let records: Int
    /// The record types. The production environment of the cloud needs them before it accepts records.
    public let types: [String]
}

extension ContainerDirectory {
    /// Makes a development container a production one.
    ///
    /// The schema is fixed from then on: it grows only by the cloud's schema, and by ``SchemaChange/add(_:)``. The production
    /// environment of a cloud has none of the records yet, so all of them are sent again after the next sign-in. The records in
    /// the development environment stay there. Programs that have the container open have to open it again.
    ///
    /// A production container does not become a development one again.
    ///
    /// ```swift
    /// let journal = try ContainerDirectory(openingAt: url)
    /// let change = try await journal.makeProduction()
    /// print("\(change.records) records are sent to the production environment")
    /// ```
    ///
    /// - Parameter isDryRun: Whether the outcome is only found out, and nothing is written.
    /// - Throws: ``StoreError`` `invalid` while an account is signed in, or where there are records that others share; `busy`, `io`.
    ///   `ContainerEvent.Failure` 134410 while the container is synchronised.
    /// - Complexity: O(n) in the records.
    public func makeProduction(isDryRun: Bool = false) async throws -> ProductionChange {
        let reader = try StoreReader(container: self)
        let types = try reader.types().map(\.name)
        var records = 0
        for type in types { records += try reader.count(type: type) }
        guard description.environment == .development else {
            return ProductionChange(container: self, isChanged: false, records: 0, types: types)
        }
        if let email = try reader.accountSettings().email {
            throw StoreError(
                .invalid,
                "\(email) is signed in to the development environment. Sign out and keep the records: `tidemark account sign-out \(url.path) --records keep`"
            )
        }
        if hasStore(.shared) {
            let shared = try StoreReader(container: self, scope: .shared)
            for type in try shared.types().map(\.name) where try shared.count(type: type) > 0 {
                throw StoreError(
                    .invalid,
                    "the container has records that others share in the development environment. Leave their shares first: `tidemark share stop`"
                )
            }
        }
        guard !isDryRun else { return ProductionChange(container: self, isChanged: true, records: records, types: types) }
        let lock = try SyncLock(self)
        defer { lock.release() }
        // First: an interruption leaves a development container that sends everything again, and harms nothing.
        for scope in Self.scopes where hasStore(scope) {
            try await RecordStore(container: self, scope: scope).forgetCloud(user: nil)
        }
        let container = try setEnvironment(.production)
        return ProductionChange(container: container, isChanged: true, records: records, types: types)
    }
}

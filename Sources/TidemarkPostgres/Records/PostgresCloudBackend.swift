package import TidemarkCloud
package import TidemarkCloudEngine
package import TidemarkModel

/// A cloud in a PostgreSQL database, with the contents of assets elsewhere, such as in a bucket. Any number of servers may use it.
package final class PostgresCloudBackend: CloudBackend {
    package let accounts: any AccountStorage
    let database: PostgresDatabase
    private let listener: PostgresListener
    let assets: @Sendable (String, StoreEnvironment) -> any AssetStorage

    /// Brings the tables to their newest version.
    ///
    /// - Parameters:
    ///   - listener: Receives notifications of what other servers have written.
    ///   - assets: Makes the storage of a container's assets in an environment.
    /// - Throws: `CloudError` `serviceUnavailable` with `retryAfter`, also for a database that a newer version has migrated; `internalError`.
    package init(
        _ database: PostgresDatabase, listener: PostgresListener,
        assets: @escaping @Sendable (String, StoreEnvironment) -> any AssetStorage
    ) async throws(CloudError) {
        do {
            try await PostgresMigrations(PostgresCloudTables.migrations).run(on: database)
        } catch {
            throw CloudError(postgres: error)
        }
        accounts = try await PostgresAccountStorage.open(database)
        (self.database, self.listener, self.assets) = (database, listener, assets)
    }

    package var name: String { "the \(database.configuration.address.name)" }

    package func containers() async throws(CloudError) -> [(name: String, environment: StoreEnvironment)] {
        do {
            let rows = try await database.reading { () throws(PostgresError) in
                try await database.query("SELECT name, environment FROM tidemark_containers ORDER BY name, environment")
            }
            var found: [(name: String, environment: StoreEnvironment)] = []
            for row in rows {
                guard let environment = StoreEnvironment(rawValue: try row.value(1)) else { continue }
                found.append((try row.value(0), environment))
            }
            return found
        } catch {
            throw CloudError(postgres: error)
        }
    }

    package func open(_ container: String, _ environment: StoreEnvironment) async throws(CloudError) -> ContainerStorages {
        ContainerStorages(
            records: try await PostgresCloudStorage(database, container: container, environment: environment),
            assets: assets(container, environment),
            signal: PostgresChangeSignal(listener, topic: "\(container)/\(environment.rawValue)"))
    }
}

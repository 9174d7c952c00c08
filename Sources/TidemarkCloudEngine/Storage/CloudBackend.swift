package import TidemarkCloud
package import TidemarkModel

/// Stores a cloud outside a directory: in a database and a bucket, which several servers use at the same time.
///
/// All calls may come from any task, several at a time.
package protocol CloudBackend: Sendable {
    /// The database's name, for messages. It has no secret.
    var name: String { get }
    /// The accounts of all containers.
    var accounts: any AccountStorage { get }
    /// Returns the containers that have rows, with their environments.
    func containers() async throws(CloudError) -> [(name: String, environment: StoreEnvironment)]
    /// Opens a container in an environment, and makes it if it is not there.
    ///
    /// - Throws: `CloudError` `serviceUnavailable` with `retryAfter`, or `internalError`.
    func open(_ container: String, _ environment: StoreEnvironment) async throws(CloudError) -> ContainerStorages
}

/// The storages of one container in one environment.
package struct ContainerStorages: Sendable {
    package let records: any CloudStorage
    package let assets: any AssetStorage
    package let signal: any ChangeSignal

    package init(records: any CloudStorage, assets: any AssetStorage, signal: any ChangeSignal) {
        (self.records, self.assets, self.signal) = (records, assets, signal)
    }
}

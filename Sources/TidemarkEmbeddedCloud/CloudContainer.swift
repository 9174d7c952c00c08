import TidemarkCloudEngine

/// What an embedded cloud has of one container in one environment.
final class CloudContainer: Sendable {
    let name: String
    let engine: CloudEngine
    let assetStorage: any AssetStorage
    let notifier: any ChangeSignal
    let looks = SharedLooks()
    private let removals: RemovalTask
    private let removesByItself: Bool

    init(_ name: String, _ storages: ContainerStorages, _ engine: CloudEngine, removesByItself: Bool) {
        (self.name, self.engine, self.removesByItself) = (name, engine, removesByItself)
        (assetStorage, notifier) = (storages.assets, storages.signal)
        removals = RemovalTask(engine, assetStorage, notifier)
    }

    /// Has what is left to be removed go, beside what else is done.
    func goOnRemoving() { if removesByItself { removals.begin() } }
}

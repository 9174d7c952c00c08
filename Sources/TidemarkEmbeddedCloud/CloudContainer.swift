import TidemarkCloudEngine

/// An open container of an embedded cloud, in one environment.
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

    /// Continues unfinished removals in the background.
    func goOnRemoving() { if removesByItself { removals.begin() } }
}

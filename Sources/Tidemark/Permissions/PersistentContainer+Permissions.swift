import Foundation
import TidemarkSQLite
import TidemarkStore

extension PersistentContainer {
    /// The reporter of the user's permissions for the container's records.
    public nonisolated var permissions: PermissionReporter {
        reporter.withLock { reporter in
            if let reporter { return reporter }
            // The container keeps the reporter, and the reporter must not keep the container.
            let path = directory.url.path
            let made = PermissionReporter(recordSources) { [weak self] () throws(StoreError) in
                guard let self else { throw StoreError(.io, "the container \(path) is closed; open it again") }
                return ContainerNotifications(stream: try notifications(withOwn: true), notifier: self)
            }
            reporter = made
            return made
        }
    }
}

extension ContainerSnapshot {
    /// The reporter of the user's permissions for the snapshot's records, in the state of the snapshot.
    public var permissions: PermissionReporter {
        PermissionReporter(recordSources) { () throws(StoreError) in
            ContainerNotifications(stream: AsyncStream { $0.finish() })
        }
    }
}

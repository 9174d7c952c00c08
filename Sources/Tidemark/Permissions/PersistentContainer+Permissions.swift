import Foundation
import TidemarkSQLite
import TidemarkStore

extension PersistentContainer {
    /// What one may do with its records.
    public nonisolated var permissions: PermissionReporter {
        reporter.withLock { reporter in
            if let reporter { return reporter }
            // The container keeps it, and not the other way round.
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
    /// What one may do with its records, as far as the stores knew when it was taken. Nothing of that changes.
    public var permissions: PermissionReporter {
        PermissionReporter(recordSources) { () throws(StoreError) in
            ContainerNotifications(stream: AsyncStream { $0.finish() })
        }
    }
}

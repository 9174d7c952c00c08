import Foundation
package import GRDB
package import TidemarkModel
package import TidemarkSQLite

extension ReadOnlyDatabase {
    /// Opens connections that read a store side by side.
    static func open(_ container: ContainerDirectory, _ scope: StoreScope) throws -> DatabasePool {
        try DatabasePool(
            path: name(of: container.store(scope).path),
            configuration: configuration(of: container.store(scope).path) { try container.checkPlace() })
    }

    /// Opens one connection that reads a store.
    ///
    /// - Parameter allowsUnsafeTransactions: Whether transactions may be left open.
    package static func openQueue(
        _ container: ContainerDirectory, _ scope: StoreScope, allowsUnsafeTransactions: Bool
    ) throws -> DatabaseQueue {
        var configuration = try configuration(of: container.store(scope).path) { try container.checkPlace() }
        configuration.allowsUnsafeTransactions = allowsUnsafeTransactions
        return try DatabaseQueue(path: name(of: container.store(scope).path), configuration: configuration)
    }
}

import Foundation
package import TidemarkModel
package import TidemarkSQLite

extension ContainerDirectory {
    /// Changes the container's environment, durably. Processes that have it open find that out with their next read or write.
    ///
    /// - Returns: The container as it is now.
    /// - Throws: ``StoreError`` `busy`, `moved`, `changed` where another process has done it meanwhile, `io`.
    package func setEnvironment(
        _ environment: StoreEnvironment, lockTimeout: Duration = .seconds(30)
    ) throws(StoreError) -> ContainerDirectory {
        do {
            let locks = try ContainerLocks(storesAt: url, timeout: lockTimeout)
            defer { locks.release() }
            try checkPlace()
            let now = try ContainerDirectory(openingAt: url, migrations: migrations)
            var description = now.description
            guard description.environment != environment else { return now }
            description.environment = environment
            try DurableFile.write(description, to: url.appendingPathComponent(ContainerContents.description))
            return try ContainerDirectory(openingAt: url, migrations: migrations)
        } catch {
            throw naming(StoreError(error, doing: "change the environment of \(url.path)"))
        }
    }
}

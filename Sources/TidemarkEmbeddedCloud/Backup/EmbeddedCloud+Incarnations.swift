package import TidemarkCloud
import TidemarkCloudEngine

extension EmbeddedCloud {
    /// Begins another incarnation of each container, after its rows were put back to an earlier state by other means than
    /// ``CloudRestoration``. Devices then compare what they have with what is left, and send what is missing. Others may use the cloud
    /// meanwhile.
    ///
    /// The cloud notices by itself when a device shows the token of a lost change. A device that has only sent changes has no
    /// such token.
    ///
    /// - Returns: The numbers of containers and of their environments.
    package func beginIncarnations() async throws(CloudError) -> (containers: Int, environments: Int) {
        var (names, count) = (Set<String>(), 0)
        for (name, environment) in try await containers() where (try? Self.check(container: name)) != nil {
            let opened = try await openedContainer(name, environment)
            try await opened.engine.beginIncarnation()
            opened.notifier.post()
            names.insert(name)
            count += 1
        }
        return (names.count, count)
    }
}

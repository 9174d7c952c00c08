public import TidemarkModel

/// A credential for one environment of one container, and no other.
public protocol ContainerGrant {
    /// The identifier of the container.
    var container: String { get }
    /// The environment of the container.
    var environment: StoreEnvironment { get }
}

extension ContainerGrant {
    /// Whether the credential is for this container in this environment.
    public func isOf(_ container: String, _ environment: StoreEnvironment) -> Bool {
        self.container == container && self.environment == environment
    }
}

public import TidemarkCloud
import TidemarkModel
import TidemarkWire

extension HTTPDatabase {
    /// Sets whether others can find the account. `SharingDatabase` has the contract of `setDiscoverable(_:)`.
    public func setDiscoverable(_ isDiscoverable: Bool) async throws(CloudError) {
        try await own(.change, "account/set") {
            $0.member("discoverable", isDiscoverable)
        } reading: { _ throws(CloudError) in
        }
    }
}

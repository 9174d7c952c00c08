import TidemarkCloud

/// The store's names of assets that cloud records name, and the errors of the missing ones.
struct DownloadedAssets: Sendable {
    /// The store's names of the assets, by digest.
    var names: [String: String] = [:]
    /// The errors with which downloads have ended.
    var failures: [CloudAsset: CloudError] = [:]

    /// The error of a field's first asset that the store does not have.
    func failure(of value: CloudValue) -> CloudError {
        for case .asset(let asset) in value.scalars where names[asset.digest] == nil {
            return failures[asset]
                ?? CloudError(.assetNotAvailable, "the cloud's records name the content \(asset.digest) with several sizes")
        }
        return CloudError(.assetNotAvailable, "the store can't hold the value")
    }
}

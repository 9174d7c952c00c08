public import TidemarkCloud

extension CloudStorage {
    /// Returns `nil`.
    public func readTogether<Answer>(
        _ names: [String], in place: StoredZone.Place, _ body: (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer? { nil }
}

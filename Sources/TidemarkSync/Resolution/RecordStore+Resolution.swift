package import TidemarkModel
package import TidemarkSQLite
package import TidemarkStore

extension RecordStore {
    /// Applies changes from the cloud under merge policies; see `apply(_:schemas:occasion:author:planner:state:zone:)`.
    ///
    /// - Parameter policy: The merge policy of a type.
    @discardableResult
    package func apply(
        _ changes: [RemoteChange], schemas: [RecordTypeSchema] = [], occasion: ImportOccasion = .answer,
        author: String, policy: @escaping @Sendable (String) -> MergePolicy, state change: (inout SyncState) -> Void = { _ in },
        zone: Int64 = StoreFormat.defaultZone
    ) throws -> ImportOutcome {
        try apply(
            changes, schemas: schemas, occasion: occasion, author: author,
            planner: RemoteChangePlanner(policy: policy), state: change, zone: zone)
    }

    /// Applies the cloud's reply to a request; see `applyReply(to:of:results:next:zone:author:rejecting:)`.
    @discardableResult
    package func applyReply(
        to request: SentRequest, of batch: ExportBatch?, results: [ExportResult], next: SentRequest? = nil,
        zone: Int64 = StoreFormat.defaultZone, author: String = "cloud"
    ) throws(StoreError) -> Bool {
        try applyReply(
            to: request, of: batch, results: results, next: next, zone: zone, author: author,
            rejecting: RemoteChangePlanner.rejected)
    }
}

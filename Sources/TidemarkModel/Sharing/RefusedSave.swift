/// A save that the cloud has refused and the store has reverted. It is kept, so that nothing that a person wrote is lost.
public struct RefusedSave: Hashable, Sendable, Identifiable {
    /// The number of the entry, by which it is discarded; unique in its store.
    public let id: Int64
    /// When it was refused; microseconds since 1970 UTC.
    public let time: Int64
    /// The store that it was saved into.
    public let scope: StoreScope
    /// The zone that the record was in.
    public let zone: ZoneName
    /// The record.
    public let record: RecordName
    /// What the save did.
    public let kind: ChangeKind
    /// The fields that were changed, as they are again; `nil` in it for no value.
    public let before: [String: FieldValue?]
    /// The same fields as they were saved.
    public let after: [String: FieldValue?]
    /// The cloud's, by the names of CloudKit Web Services.
    public let code: String
    /// Why the cloud has refused it, as a sentence.
    public let reason: String

    /// Makes an entry.
    ///
    /// - Parameter time: Microseconds since 1970 UTC.
    public init(
        id: Int64, time: Int64, scope: StoreScope, zone: ZoneName, record: RecordName, kind: ChangeKind,
        before: [String: FieldValue?], after: [String: FieldValue?], code: String, reason: String
    ) {
        (self.id, self.time, self.scope, self.zone, self.record) = (id, time, scope, zone, record)
        (self.kind, self.before, self.after, self.code, self.reason) = (kind, before, after, code, reason)
    }
}

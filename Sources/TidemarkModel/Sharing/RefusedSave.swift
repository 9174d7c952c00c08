public import Foundation

/// A save that the cloud refused and that the store reverted. The store keeps its values, so that no edit is lost.
public struct RefusedSave: Hashable, Sendable, Identifiable {
    /// The number of the entry, by which it is discarded. It is unique in its store.
    public let id: Int64
    /// The time of the refusal; microseconds since 1970 UTC.
    public let time: Int64
    /// The time of the refusal.
    public var date: Date { Timestamp.date(microseconds: time) }
    /// The store of the record.
    public let scope: StoreScope
    /// The zone of the record.
    public let zone: ZoneName
    /// The record.
    public let record: RecordName
    /// The kind of change.
    public let kind: ChangeKind
    /// The changed fields with the values from before the save, which they have again; `nil` stands for no value.
    public let before: [String: FieldValue?]
    /// The same fields with the values that were saved.
    public let after: [String: FieldValue?]
    /// The cloud's error code, as CloudKit Web Services names it.
    public let code: String
    /// The reason of the refusal, as a sentence.
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

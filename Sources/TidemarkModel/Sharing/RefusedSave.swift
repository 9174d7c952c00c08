/// What was saved here and refused by the cloud, and was taken back: kept, so that nothing that somebody wrote is lost.
public struct RefusedSave: Hashable, Sendable, Identifiable {
    public enum Kind: Int, Codable, Sendable {
        case insert = 1
        case update = 2
        case delete = 3
    }

    public let id: Int64
    /// When it was refused; microseconds since 1970 UTC.
    public let time: Int64
    public let scope: StoreScope
    public let zone: ZoneName
    public let record: RecordName
    public let kind: Kind
    /// The fields that were changed, as they are again; `nil` in it for no value.
    public let before: [String: FieldValue?]
    /// The same fields as they were saved.
    public let after: [String: FieldValue?]
    /// The cloud's, by the names of CloudKit Web Services.
    public let code: String
    public let reason: String

    public init(
        id: Int64, time: Int64, scope: StoreScope, zone: ZoneName, record: RecordName, kind: Kind,
        before: [String: FieldValue?], after: [String: FieldValue?], code: String, reason: String
    ) {
        (self.id, self.time, self.scope, self.zone, self.record) = (id, time, scope, zone, record)
        (self.kind, self.before, self.after, self.code, self.reason) = (kind, before, after, code, reason)
    }
}

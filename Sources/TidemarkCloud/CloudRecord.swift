import TidemarkModel

/// A record as a cloud has it. As `CKRecord`.
public struct CloudRecord: Hashable, Sendable {
    /// Who did something, and when.
    public struct Stamp: Hashable, Codable, Sendable {
        /// Microseconds since 1970 UTC, by the cloud's clock.
        public let time: Int64
        public let userRecordName: String

        public init(time: Int64, userRecordName: String) {
            self.time = time
            self.userRecordName = userRecordName
        }
    }

    public var id: CloudRecordID
    public var type: String
    public var fields: [String: CloudValue]
    /// The record above it in a hierarchy that is shared.
    public var parent: String?
    /// Which version of the record it is, to be given back with a change; `nil` of one that was never saved. Opaque.
    public var changeTag: String?
    /// `nil` of a record that no cloud has answered with.
    public var created: Stamp?
    public var modified: Stamp?

    public init(_ id: CloudRecordID, type: String, fields: [String: CloudValue] = [:], changeTag: String? = nil) {
        self.id = id
        self.type = type
        self.fields = fields
        self.changeTag = changeTag
    }
}

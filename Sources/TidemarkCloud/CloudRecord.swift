import TidemarkModel

/// A record as a cloud has it. As `CKRecord`.
public struct CloudRecord: Hashable, Sendable {
    /// The account and the time of a change.
    public struct Stamp: Hashable, Codable, Sendable {
        /// Microseconds since 1970 UTC, by the cloud's clock.
        public let time: Int64
        /// The account that made the change.
        public let userRecordName: String

        /// Makes a stamp.
        ///
        /// - Parameters:
        ///   - time: Microseconds since 1970 UTC.
        ///   - userRecordName: The account that made the change.
        public init(time: Int64, userRecordName: String) {
            self.time = time
            self.userRecordName = userRecordName
        }
    }

    /// The field in which devices with Tidemark keep the edit times of the other fields, as text. No field of a store can have
    /// this name. A cloud accepts the field in every record type, even if the schema is fixed.
    package static let editedField = "tide_edited"

    /// Returns whether a field's name is reserved for stores, as ``editedField`` is. No field of a container can have such a
    /// name.
    package static func isReserved(_ field: String) -> Bool { field.lowercased().hasPrefix("tide_") }

    /// The record's name and zone.
    public var id: CloudRecordID
    /// The name of the record's type.
    public var type: String
    /// The values by the names of their fields. A field without a value is absent.
    public var fields: [String: CloudValue]
    /// The marks of fields whose values clients encrypt, by the fields' names. A field without an entry has no mark.
    ///
    /// A cloud keeps the marks and returns them. It encrypts nothing itself.
    public var encryptedFields: [String: FieldEncryption] = [:]
    /// The record above it in a hierarchy that is shared.
    public var parent: String?
    /// The version of the record, which a change sends back; `nil` for a record that was never saved. Opaque.
    public var changeTag: String?
    /// The creation of the record; `nil` if the record has not come from a cloud.
    public var created: Stamp?
    /// The last change of the record; `nil` if the record has not come from a cloud.
    public var modified: Stamp?
    /// For the record of a share (``CloudShare/recordType``): the share, as the calling account may see it. Only a cloud sets it;
    /// records that a client saves have none.
    public var share: CloudShare? {
        get { if case .share(let share) = carried { share } else { nil } }
        set { carried = newValue.map { .share($0) } ?? .nothing }
    }
    /// For the root of a shared hierarchy: the name of the record of its share. Only a cloud sets it; records that a client saves
    /// have none.
    public var shareName: String? {
        get { if case .root(let name, _) = carried { name } else { nil } }
        set { carried = newValue.map { .root(share: $0, guid: shortGUID) } ?? .nothing }
    }
    /// For such a root, and for the record of a share: the same as ``CloudShare/shortGUID``, for accounts that may invite.
    public var shortGUID: String? {
        get { if case .root(_, let guid) = carried { guid } else { share?.shortGUID } }
        set { if let shareName { carried = .root(share: shareName, guid: newValue) } }
    }
    /// The values about shares. They are stored out of line, since few records have one and a share is large.
    private indirect enum Carried: Hashable, Sendable {
        case nothing
        case share(CloudShare)
        case root(share: String, guid: String?)
    }
    private var carried = Carried.nothing

    /// The marks that a client can set on a field whose value it encrypts. They are independent of each other.
    public struct FieldEncryption: OptionSet, Hashable, Sendable {
        /// The marks as bits.
        public let rawValue: UInt8

        /// Makes a set of marks from its bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The value is bytes of the type `ENCRYPTED_BYTES`.
        public static let bytesType = FieldEncryption(rawValue: 1)
        /// The value, of any type, has the member `isEncrypted`.
        public static let member = FieldEncryption(rawValue: 2)
    }

    /// Makes a record.
    ///
    /// - Parameters:
    ///   - id: The record's name and zone.
    ///   - type: The name of the record's type.
    ///   - fields: The values by the names of their fields.
    ///   - changeTag: The version that the cloud returned; `nil` for a new record.
    public init(_ id: CloudRecordID, type: String, fields: [String: CloudValue] = [:], changeTag: String? = nil) {
        self.id = id
        self.type = type
        self.fields = fields
        self.changeTag = changeTag
    }
}

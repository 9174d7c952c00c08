import TidemarkModel

/// A record as a cloud has it. As `CKRecord`.
public struct CloudRecord: Hashable, Sendable {
    /// Who did something, and when.
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

    /// The field in which Tidemark's devices keep when the other fields were edited, as text. No field of a store can have such a name, and a
    /// schema takes it in every type, also where it takes no other field.
    package static let editedField = "tide_edited"

    /// Tells whether stores keep the name of a field for themselves: no field of a container can have it. ``editedField`` is one of these.
    package static func isReserved(_ field: String) -> Bool { field.lowercased().hasPrefix("tide_") }

    /// The record's name and zone.
    public var id: CloudRecordID
    /// The name of the record's type.
    public var type: String
    /// The values by the names of their fields. A field without a value is absent.
    public var fields: [String: CloudValue]
    /// How clients have marked the fields whose values they encrypt; a field that is not here has no mark.
    ///
    /// A cloud keeps the marks and answers with them. It encrypts nothing.
    public var encryptedFields: [String: FieldEncryption] = [:]
    /// The record above it in a hierarchy that is shared.
    public var parent: String?
    /// Which version of the record it is, to be given back with a change; `nil` of one that was never saved. Opaque.
    public var changeTag: String?
    /// `nil` of a record that no cloud has answered with.
    public var created: Stamp?
    /// The last change of the record; `nil` if the record has not come from a cloud.
    public var modified: Stamp?
    /// Of the record of a share (``CloudShare/recordType``): the share, as who asks may see it. A cloud fills it in; what is saved has none.
    public var share: CloudShare? {
        get { if case .share(let share) = carried { share } else { nil } }
        set { carried = newValue.map { .share($0) } ?? .nothing }
    }
    /// Of the root of a hierarchy that is shared: the name of the record of its share. A cloud fills it in; what is saved has none.
    public var shareName: String? {
        get { if case .root(let name, _) = carried { name } else { nil } }
        set { carried = newValue.map { .root(share: $0, guid: shortGUID) } ?? .nothing }
    }
    /// Of such a root: as ``CloudShare/shortGUID``, for those who may invite.
    public var shortGUID: String? {
        get { if case .root(_, let guid) = carried { guid } else { share?.shortGUID } }
        set { if let shareName { carried = .root(share: shareName, guid: newValue) } }
    }
    /// Beside the record: few have one, and it is large.
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

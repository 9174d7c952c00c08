public import Foundation
public import TidemarkModel

/// The value of a record's field in a cloud.
public enum CloudValue: Hashable, Sendable {
    /// A text.
    case string(String)
    /// A whole number.
    case int64(Int64)
    /// A floating-point number. A cloud accepts finite numbers only.
    case double(Double)
    /// Microseconds since 1970 UTC.
    case timestamp(Int64)
    /// Bytes that are stored in the record.
    case bytes(Data)
    /// A place on Earth.
    case location(Location)
    /// A reference to another record of the same zone.
    case reference(CloudReference)
    /// A file that is stored beside the record.
    case asset(CloudAsset)
    /// Scalars of one type.
    case list([CloudValue], of: FieldType.Scalar)

    /// The type of a field that holds the value.
    public var type: FieldType {
        switch self {
        case .string: .string
        case .int64: .int64
        case .double: .double
        case .timestamp: .timestamp
        case .bytes: .bytes
        case .location: .location
        case .reference: .reference
        case .asset: .asset
        case .list(_, let scalar): .list(of: scalar)
        }
    }
}

/// A field that names another record of the same zone. As `CKRecord.Reference`.
public struct CloudReference: Hashable, Codable, Sendable {
    /// How a cloud keeps the record that holds the reference consistent with the record that it names.
    public enum Action: String, Codable, Sendable {
        /// The cloud does nothing.
        case none = "NONE"
        /// The record is deleted with the record that it names.
        case deleteSelf = "DELETE_SELF"
        /// The record can be saved only if the record that it names exists.
        case validate = "VALIDATE"
    }

    /// The name of the record that the reference names.
    public let recordName: String
    /// How the cloud keeps the two records consistent.
    public let action: Action

    /// Makes a reference.
    ///
    /// - Parameters:
    ///   - recordName: The name of a record of the same zone.
    ///   - action: How the cloud keeps the two records consistent.
    public init(_ recordName: String, action: Action = .none) {
        self.recordName = recordName
        self.action = action
    }
}

/// A file in a cloud, identified by the SHA-256 digest of its content.
public struct CloudAsset: Hashable, Codable, Sendable {
    /// SHA-256 of the content, 64 lower-case hexadecimal digits.
    public let digest: String
    /// The content's size in bytes.
    public let size: Int64

    /// Makes an asset; see ``AssetDigest`` for the digest of a content.
    ///
    /// - Parameters:
    ///   - digest: SHA-256 of the content, 64 lower-case hexadecimal digits.
    ///   - size: The content's size in bytes.
    public init(digest: String, size: Int64) {
        self.digest = digest
        self.size = size
    }
}

extension CloudValue {
    /// The elements of a list; for any other value, the value itself.
    package var scalars: [CloudValue] {
        if case .list(let elements, _) = self { return elements }
        return [self]
    }

    /// Whether all floating-point numbers of the value, or of all its elements, are finite.
    package var isWhollyFinite: Bool {
        if case .list(let elements, _) = self { return elements.allSatisfy(\.isFinite) }
        return isFinite
    }

    /// Whether all locations of the value have a latitude and a longitude that exist. `true` for a value without locations.
    package var isOnEarth: Bool {
        scalars.allSatisfy {
            guard case .location(let place) = $0 else { return true }
            return abs(place.latitude) <= 90 && abs(place.longitude) <= 180
        }
    }

    /// Whether all floating-point numbers of the value are finite. `true` for every list; see ``isWhollyFinite``.
    package var isFinite: Bool {
        switch self {
        case .double(let number): number.isFinite
        case .location(let place):
            [
                place.latitude, place.longitude, place.altitude, place.horizontalAccuracy, place.verticalAccuracy, place.course,
                place.speed,
            ]
            .allSatisfy { $0?.isFinite ?? true }
        case .string, .int64, .timestamp, .bytes, .reference, .asset, .list: true
        }
    }

    /// The approximate number of bytes that the value takes in a request.
    package var byteCount: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .bytes(let data): data.count
        case .reference(let reference): reference.recordName.utf8.count
        case .asset: 64
        case .list(let elements, _): elements.reduce(0) { $0 + $1.byteCount }
        case .int64, .double, .timestamp, .location: 8
        }
    }
}

import Foundation

/// How one travels. The enumeration is open: a version that does not know a value keeps it, and saves it again as it was.
///
/// Compare ``Booking/Kind``, which is closed: a record with a value that it does not know can't be read.
public enum Transport: RawRepresentable, Codable, Hashable, Comparable, Sendable {
    case train, ship, car, foot
    /// A value of a newer version.
    case other(String)

    public init(rawValue: String) {
        self = Self.known.first { $0.rawValue == rawValue } ?? .other(rawValue)
    }

    public static let known: [Transport] = [.train, .ship, .car, .foot]

    public var rawValue: String {
        switch self {
        case .train: "train"
        case .ship: "ship"
        case .car: "car"
        case .foot: "foot"
        case .other(let value): value
        }
    }

    /// For the person.
    public var label: String {
        switch self {
        case .train: "mit dem Zug"
        case .ship: "mit dem Schiff"
        case .car: "mit dem Auto"
        case .foot: "zu Fuß"
        case .other: "anders"
        }
    }

    public static func < (left: Transport, right: Transport) -> Bool { left.rawValue < right.rawValue }
}

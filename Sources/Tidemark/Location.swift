import Foundation
import TidemarkModel
import TidemarkStore

/// A place on Earth.
public struct Location: Codable, Hashable, Sendable {
    /// Degrees, -90 to 90.
    public var latitude: Double
    /// Degrees, -180 to 180.
    public var longitude: Double
    /// Metres above sea level.
    public var altitude: Double?
    /// Metres.
    public var horizontalAccuracy: Double?
    public var verticalAccuracy: Double?
    /// Degrees from north, clockwise.
    public var course: Double?
    /// Metres a second.
    public var speed: Double?

    public init(latitude: Double, longitude: Double, altitude: Double? = nil) {
        self.latitude = latitude
        self.longitude = longitude
        self.altitude = altitude
    }
}

extension Location: FieldConvertible {
    static var fieldType: FieldType { .location }

    func fieldContent() throws -> FieldContent {
        let members: [(String, Double?)] = [
            ("latitude", latitude), ("longitude", longitude), ("altitude", altitude), ("horizontalAccuracy", horizontalAccuracy),
            ("verticalAccuracy", verticalAccuracy), ("course", course), ("speed", speed),
        ]
        guard abs(latitude) <= 90, abs(longitude) <= 180, members.allSatisfy({ $0.1?.isFinite ?? true }) else {
            throw FieldError("the position \(latitude), \(longitude) is not on Earth, or a part of it is no number")
        }
        return .value(.location(StoredText.object(members.compactMap { name, value in value.map { (name, $0) } })))
    }

    init(_ stored: StoredField) throws {
        let text = try stored.text(as: .location)
        do {
            self = try JSONDecoder().decode(Location.self, from: Data(text.utf8))
        } catch {
            throw FieldError("holds '\(text)', which is no location")
        }
    }
}

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
    /// Metres.
    public var verticalAccuracy: Double?
    /// Degrees from north, clockwise.
    public var course: Double?
    /// Metres a second.
    public var speed: Double?

    /// Makes a place. The values are checked when a record is saved, and not here.
    ///
    /// - Parameters:
    ///   - latitude: Degrees, -90 to 90.
    ///   - longitude: Degrees, -180 to 180.
    ///   - altitude: Metres above sea level.
    public init(latitude: Double, longitude: Double, altitude: Double? = nil) {
        self.latitude = latitude
        self.longitude = longitude
        self.altitude = altitude
    }
}

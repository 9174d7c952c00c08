import Tidemark

/// What has changed from version to version of the app, beyond what the types say themselves.
///
/// - A renamed property is read under its former name: ``Trip/formerFieldNames``.
/// - A new property has a value in older records: ``Trip/prototype``.
/// - A property with another type is converted here, before anything is synchronised. A cloud keeps the type of a field, so the field gets
///   a new name as well.
enum SchemaEvolution {
    static let changes: [SchemaChange] = [
        // Whole stars became half ones.
        .retypeField("stars", of: Trip.recordType, to: .init(name: "rating", type: .double)),
        // Nobody ever used it.
        .dropField("weather", of: Stop.recordType),
    ]

    /// Makes the changes that are not made yet. Each launch may ask for all of them.
    static func run(on container: PersistentContainer) async throws { try await container.changeSchema(changes) }
}

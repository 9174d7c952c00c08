/// The environment of a container, as in CloudKit. It decides whether the schema may grow.
public enum StoreEnvironment: String, Codable, CaseIterable, Sendable {
    /// New types and fields are added when records with them arrive.
    case development
    /// The schema is fixed: an unknown type or field is an error.
    case production
}

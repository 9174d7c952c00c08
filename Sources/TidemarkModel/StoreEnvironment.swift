/// Whether a container's schema may grow, as in CloudKit.
public enum StoreEnvironment: String, Codable, CaseIterable, Sendable {
    /// New types and fields are made as records with them arrive.
    case development
    /// The schema is fixed: an unknown type or field is an error.
    case production
}

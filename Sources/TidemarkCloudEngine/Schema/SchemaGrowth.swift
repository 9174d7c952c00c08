import TidemarkCloud
import TidemarkModel

/// What the records of one request add to the schema, checked against what may be added.
struct SchemaGrowth {
    private let limits: CloudLimits
    private let schemaLimits: SchemaLimits
    /// Whether records add no types and fields to the schema.
    private let isFixed: Bool
    /// The account that saves the records.
    private let user: String
    /// The types of the fields that records of this request have had, by record type: the schema has them.
    private var admitted: [String: [String: FieldType]] = [:]
    /// Whether the operation adds to the schema.
    private(set) var isGrowing = false
    /// What the container and the caller have added to the schema.
    private var use: (all: CloudSchema.Use, own: CloudSchema.Use)?

    init(_ engine: CloudEngine, by user: String) {
        limits = engine.limits
        schemaLimits = engine.schemaLimits
        isFixed = engine.environment == .production
        self.user = user
    }

    /// Begins an operation of the request.
    mutating func beginOperation() { isGrowing = false }

    /// Adds a record's fields to the schema, or checks them. Fields that records of this request have had before are known.
    ///
    /// - Parameter before: Fields that the record has had.
    /// - Throws: `CloudError`, as `CloudSchema.admit` does.
    mutating func admit(
        _ fields: [String: CloudValue], before: [String: CloudValue], of type: String, into schema: inout CloudSchema
    ) throws(CloudError) {
        if let known = admitted[type], fields.allSatisfy({ known[$0] == $1.type && $1.isWhollyFinite && $1.isOnEarth }) { return }
        // Values that were taken once stay, also when the field has another type since.
        let new = before.isEmpty ? fields : fields.filter { before[$0] != $1 }
        if try schema.admit(type, fields: new, limits: limits, isFixed: isFixed, by: user) { isGrowing = true }
        for (name, value) in new {
            // A list without elements may be of any type.
            if case .list(let elements, _) = value, elements.isEmpty { continue }
            admitted[type, default: [:]][name] = value.type
        }
    }

    /// Checks that an account adds no more to the schema than it may. In production, only the devices' own field is added, and
    /// what was deployed may have any size.
    ///
    /// - Throws: `CloudError` `limitExceeded`.
    mutating func check(_ type: String, from old: CloudSchema, to new: CloudSchema) throws(CloudError) {
        guard isGrowing, !isFixed else { return }
        var use = use ?? (old.use(by: nil), old.use(by: user))
        use.all += new.use(of: type, by: nil) - old.use(of: type, by: nil)
        use.own += new.use(of: type, by: user) - old.use(of: type, by: user)
        try schemaLimits.check(use.all, use.own)
        self.use = use
    }

    /// Forgets which fields were admitted: the schema lacks those of an operation that failed.
    mutating func forget() { admitted = [:] }
}

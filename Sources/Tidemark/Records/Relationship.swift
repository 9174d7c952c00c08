public import TidemarkModel
import TidemarkSQLite

/// What the references of a property mean: who owns the record, and what becomes of it when a record is deleted that it refers to.
///
/// Core Data declares a delete rule at the record that is deleted, as `stops` of a trip with the rule cascade; here the record that has the
/// reference declares it, as SQL does with `ON DELETE`. The inverse is computed: see ``ToMany``.
///
/// ```swift
/// struct Stop: Record, Identifiable {
///     var id = UUID()
///     var trip: Reference<Trip>
///     var day = 1
///     var tags: [Reference<Tag>] = []
///     var guide: Reference<Guide>?
///
///     static var relationships: [Relationship<Stop>] { [.owned(by: \.trip), .weak(\.tags), .weak(\.guide)] }
///     static let photos = ToMany<Stop, Photo>(by: \.stop)
/// }
/// ```
///
/// - **Owned**: the record is shared with its owner, a new one goes into the owner's zone, and it is deleted with the owner. A type has one
///   owning relationship at the most.
/// - **Weak**: the record and its target are shared apart from each other. Many-to-many is a weak list, which keeps its order.
///
/// The store keeps the rules whoever writes: saves, contexts, batch operations, undo, imports, and a synchronisation, where devices meet that
/// did not know of each other's changes. References without a declared relationship may name records that are not there.
public struct Relationship<R: Record>: Sendable {
    /// The rules for a reference that need not have a value, and for a list.
    public typealias DeleteRule = TidemarkModel.DeleteRule

    /// The rules for a reference that must have a value, which can't be removed.
    public enum RequiredDeleteRule: Hashable, Sendable {
        /// The record is deleted, too.
        case cascade
        /// The record that it refers to can't be deleted.
        case deny

        fileprivate var rule: DeleteRule {
            switch self {
            case .cascade: .cascade
            case .deny: .deny
            }
        }
    }

    /// The rules for a list.
    public enum ListDeleteRule: Hashable, Sendable {
        /// The list loses the reference.
        case nullify
        /// The record that the list names can't be deleted.
        case deny

        fileprivate var rule: DeleteRule {
            switch self {
            case .nullify: .nullify
            case .deny: .deny
            }
        }
    }

    private let field: Result<String, StoreError>
    private let target: String
    private let rule: DeleteRule
    /// Returns the name of the record that owns a record; `nil` for a relationship that does not own.
    let owner: (@Sendable (R) -> String?)?

    private init(
        _ property: PartialKeyPath<R>, _ target: any Record.Type, _ rule: DeleteRule, owner: (@Sendable (R) -> String?)? = nil
    ) {
        field = Result { () throws(StoreError) in try PropertyNames.name(of: property) }
        self.target = target.recordType
        self.rule = rule
        self.owner = owner
    }

    /// The record belongs to another, and can't be without it.
    public static func owned<Target>(
        by property: any KeyPath<R, Reference<Target>> & Sendable, onDelete rule: RequiredDeleteRule = .cascade
    ) -> Relationship {
        Relationship(property, Target.self, rule.rule) { $0[keyPath: property].recordName }
    }

    /// The record belongs to another while it has one.
    public static func owned<Target>(
        by property: any KeyPath<R, Reference<Target>?> & Sendable, onDelete rule: DeleteRule = .cascade
    ) -> Relationship {
        Relationship(property, Target.self, rule) { $0[keyPath: property]?.recordName }
    }

    /// The record refers to another that it does not belong to, and must have one.
    public static func weak<Target>(
        _ property: KeyPath<R, Reference<Target>>, onDelete rule: RequiredDeleteRule
    ) -> Relationship {
        Relationship(property, Target.self, rule.rule)
    }

    /// The record refers to another that it does not belong to.
    public static func weak<Target>(
        _ property: KeyPath<R, Reference<Target>?>, onDelete rule: DeleteRule = .nullify
    ) -> Relationship {
        Relationship(property, Target.self, rule)
    }

    /// The record refers to others that it does not belong to, in an order.
    public static func weak<Target>(
        _ property: KeyPath<R, [Reference<Target>]>, onDelete rule: ListDeleteRule = .nullify
    ) -> Relationship {
        Relationship(property, Target.self, rule.rule)
    }

    /// - Throws: ``StoreError`` `invalid` for a key path of no stored property.
    func schema() throws(StoreError) -> RelationshipSchema {
        RelationshipSchema(field: try field.get(), target: target, isOwning: owner != nil, deleteRule: rule)
    }
}

/// The inverse of a relationship: the records that refer to a record. It is computed, and has no field.
///
/// ```swift
/// let stops = try await journal.fetchAll(Trip.stops, of: trip)
/// let photos = try await journal.fetchAll(Stop.photos, of: stops)
/// let badges = try await journal.counts(Stop.photos, of: stops)
/// ```
public struct ToMany<Target: Record, R: Record>: Sendable {
    /// Returns the references of a record.
    let references: @Sendable (R) -> [Reference<Target>]
    /// The name of the field.
    let field: Result<String, StoreError>
    /// The order of the records.
    let sorts: [RecordSort<R>]

    /// The inverse of a property.
    ///
    /// - Parameters:
    ///   - property: A stored property that is a reference, or a list of references.
    ///   - sorts: The order of the records of one target.
    public init<Value: ReferenceValue & SendableMetatype>(
        by property: any KeyPath<R, Value> & Sendable, sortedBy sorts: [RecordSort<R>] = []
    ) where Value.Target == Target {
        references = { $0[keyPath: property].references }
        field = Result { () throws(StoreError) in try PropertyNames.name(of: property) }
        self.sorts = sorts
    }
}

/// The relationships of record types. A type's are computed once.
struct DeclaredRelationships: Sendable {
    /// By the names of the fields.
    let schemas: [String: RelationshipSchema]
    /// Returns the record that owns a record of the type; `nil` where records of the type have no owner.
    private let owner: (@Sendable (any Record) -> RecordName?)?

    /// - Throws: ``StoreError`` `invalid` for a key path of no stored property.
    static func of<R: Record>(_ type: R.Type) throws(StoreError) -> DeclaredRelationships {
        let id = ObjectIdentifier(type)
        if let relationships = known.withLock({ $0[id] }) { return relationships }
        let made = try DeclaredRelationships(R.self)
        known.withLock { $0[id] = made }
        return made
    }

    private init<R: Record>(_ type: R.Type) throws(StoreError) {
        var schemas: [String: RelationshipSchema] = [:]
        var owner: (@Sendable (any Record) -> RecordName?)?
        for relationship in R.relationships {
            let schema = try relationship.schema()
            schemas[schema.field] = schema
            guard let name = relationship.owner else { continue }
            owner = { record in
                (record as? R).flatMap(name).map { RecordName(type: schema.target, name: $0) }
            }
        }
        (self.schemas, self.owner) = (schemas, owner)
    }

    private static let known = LockedValue<[ObjectIdentifier: DeclaredRelationships]>([:])

    /// The records that own records; `nil` where one has none.
    static func owners(of records: [any Record]) throws(StoreError) -> [RecordName?] {
        var owners: [RecordName?] = []
        owners.reserveCapacity(records.count)
        // Most records are of one type.
        var last: (type: ObjectIdentifier, relationships: DeclaredRelationships)?
        for record in records {
            let type = Swift.type(of: record)
            if last?.type != ObjectIdentifier(type) { last = (ObjectIdentifier(type), try of(type)) }
            owners.append(last?.relationships.owner?(record))
        }
        return owners
    }

    /// The record that owns a record; `nil` where it has none.
    static func owner<R: Record>(of record: R) throws(StoreError) -> RecordName? { try of(R.self).owner?(record) }
}

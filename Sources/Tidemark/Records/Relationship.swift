public import TidemarkModel
import TidemarkSQLite

/// The relationship of a reference property: whether the target owns the record, and the effect on the record of deleting the
/// target.
///
/// Core Data declares a delete rule at the record that is deleted, such as the rule cascade for `stops` of a trip. Here the
/// record that has the reference declares the rule, as SQL does with `ON DELETE`. The inverse is computed: see ``ToMany``.
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
/// - **Owned**: the record is shared with its owner. A new record goes into the owner's zone. By default the record is deleted
///   with its owner. A type has at most one owning relationship.
/// - **Weak**: the record and its target are shared separately. A many-to-many relationship is a weak list, which keeps its
///   order.
///
/// The store applies the rules to all writes: saves, contexts, batch operations, undo, imports, and synchronisation. References
/// without a declared relationship may name records that do not exist.
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

    /// The record belongs to an owner, and always has one.
    public static func owned<Target>(
        by property: any KeyPath<R, Reference<Target>> & Sendable, onDelete rule: RequiredDeleteRule = .cascade
    ) -> Relationship {
        Relationship(property, Target.self, rule.rule) { $0[keyPath: property].recordName }
    }

    /// The record belongs to an owner, if the property has a value.
    public static func owned<Target>(
        by property: any KeyPath<R, Reference<Target>?> & Sendable, onDelete rule: DeleteRule = .cascade
    ) -> Relationship {
        Relationship(property, Target.self, rule) { $0[keyPath: property]?.recordName }
    }

    /// The record always refers to another record, and does not belong to it.
    public static func weak<Target>(
        _ property: KeyPath<R, Reference<Target>>, onDelete rule: RequiredDeleteRule
    ) -> Relationship {
        Relationship(property, Target.self, rule.rule)
    }

    /// The record refers to another record, if the property has a value, and does not belong to it.
    public static func weak<Target>(
        _ property: KeyPath<R, Reference<Target>?>, onDelete rule: DeleteRule = .nullify
    ) -> Relationship {
        Relationship(property, Target.self, rule)
    }

    /// The record refers to an ordered list of records, and does not belong to them.
    public static func weak<Target>(
        _ property: KeyPath<R, [Reference<Target>]>, onDelete rule: ListDeleteRule = .nullify
    ) -> Relationship {
        Relationship(property, Target.self, rule.rule)
    }

    /// - Throws: ``StoreError`` `invalid` for a key path that names no stored property.
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

    /// Makes the inverse of a property.
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

/// The relationships of a record type. They are computed once for each type.
struct DeclaredRelationships: Sendable {
    /// The relationships by the names of their fields.
    let schemas: [String: RelationshipSchema]
    /// Returns the record that owns a record of the type; `nil` if records of the type have no owner.
    private let owner: (@Sendable (any Record) -> RecordName?)?

    /// - Throws: ``StoreError`` `invalid` for a key path that names no stored property.
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

    /// Returns the owner of each record; `nil` for a record without one.
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

    /// Returns the owner of a record; `nil` if it has none.
    static func owner<R: Record>(of record: R) throws(StoreError) -> RecordName? { try of(R.self).owner?(record) }
}

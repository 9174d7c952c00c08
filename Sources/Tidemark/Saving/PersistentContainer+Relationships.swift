import TidemarkModel
import TidemarkSQLite
import TidemarkStore

extension PersistentContainer {
    /// Stores the relationships and indexes that types declare, without saving a record of them. A deletion then follows the
    /// rules of types whose records have come from the cloud, and of types that this version of the program has changed. A search
    /// finds these records.
    ///
    /// ```swift
    /// let journal = try PersistentContainer(named: "Journal")
    /// try await journal.declare([Trip.self, Stop.self, Photo.self])
    /// ```
    ///
    /// Types and fields that a store does not have yet get their relationships and indexes when they are created.
    ///
    /// - Throws: ``StoreError`` `schema` for relationships that are not possible, such as two owners; `invalid` for a key path
    ///   that names no stored property; `busy`, `io`.
    public func declare(_ types: [any Record.Type]) throws {
        for type in types {
            let relationships = try Self.relationships(of: type)
            declaredRelationships[type.recordType, default: [:]].merge(relationships) { $1 }
            try spreadRelationships([Self.declaration(type, relationships, among: stores)])
        }
        var indexes: [String: [FieldIndex]] = [:]
        for type in types { indexes[type.recordType] = try Self.indexes(of: type) }
        let declared = indexes
        for scope in ContainerDirectory.scopes { try stores[scope].assumeIsolated { try $0.declareIndexes(declared) } }
    }

    private static func indexes<R: Record>(of type: R.Type) throws(StoreError) -> [FieldIndex] {
        var indexes: [FieldIndex] = []
        for index in R.indexes { indexes.append(try index.fieldIndex()) }
        return indexes
    }

    /// Returns a type's declarations for the reference fields that the stores have.
    private static func declaration(
        _ type: any Record.Type, _ relationships: [String: RelationshipSchema], among stores: PerScope<RecordStore>
    ) throws -> RecordTypeSchema {
        var schema = RecordTypeSchema(name: type.recordType)
        for scope in ContainerDirectory.scopes {
            let known = try stores[scope].assumeIsolated { try $0.knownTypes() }
            for field in known.first(where: { $0.name == type.recordType })?.fields ?? [] where field.type.scalar == .reference {
                schema.relationships[field.name] = .some(relationships[field.name])
            }
        }
        return schema
    }

    static func relationships<R: Record>(of type: R.Type) throws(StoreError) -> [String: RelationshipSchema] {
        try DeclaredRelationships.of(type).schemas
    }

    /// Returns, for each record, the store in which it is to be saved: the store that has the record, otherwise the store that
    /// has its owner, otherwise `scope`.
    ///
    /// - Throws: ``StoreError`` `invalid` for a record whose owner is in the other store: a record and its owner must be in one
    ///   store.
    /// - Complexity: A look-up for each record and each owner.
    func homes(of records: [(record: RecordName, owner: RecordName?)], default scope: StoreScope) throws -> [StoreScope] {
        // If the shared store is empty, it has neither the records nor their owners.
        guard try scope != .private || hasRecordsOfOthers else { return records.map { _ in scope } }
        var homes = try homes(of: records.map(\.record), default: scope)
        let owned = records.indices.filter { records[$0].owner != nil }
        guard !owned.isEmpty, try hasRecordsOfOthers else { return homes }
        let owners = owned.map { records[$0].owner! }
        var hasOwner: [StoreScope: [Bool]] = [:]
        for scope in ContainerDirectory.scopes { hasOwner[scope] = try contained(owners, scope) }
        let isThere = try contained(owned.map { records[$0].record }, .private)
        var placed = Dictionary(zip(records.map(\.record), homes), uniquingKeysWith: { $1 })
        func isOwner(of place: Int, in scope: StoreScope) -> Bool {
            hasOwner[scope]?[place] == true || placed[owners[place]] == scope
        }
        // An owner may be new, too, and may come before or after the records that it owns. When an owner gets its store, so do
        // these records.
        if scope == .private {
            func follows(_ place: Int) -> Bool {
                homes[owned[place]] == .private && !isThere[place] && hasOwner[.private]?[place] == false
                    && isOwner(of: place, in: .shared)
            }
            let placesByOwner = Dictionary(grouping: owned.indices) { owners[$0] }
            var open = owned.indices.filter(follows)
            while let place = open.popLast() {
                guard follows(place) else { continue }
                let record = records[owned[place]].record
                homes[owned[place]] = .shared
                placed[record] = .shared
                open += placesByOwner[record] ?? []
            }
        }
        for (place, index) in owned.enumerated() where !isOwner(of: place, in: homes[index]) {
            guard hasOwner[homes[index].other]?[place] == true else { continue }
            throw Self.ownerIsElsewhere(records[index].record, in: homes[index], owners[place])
        }
        return homes
    }

    /// Makes sure that records of a store get no owners that are in the other store.
    ///
    /// - Throws: ``StoreError`` `invalid`.
    /// - Complexity: Two look-ups for each record with an owner; none while the shared store has had no records.
    func checkOwners(of records: [(record: RecordName, owner: RecordName?)], in scope: StoreScope) throws {
        let owned = records.filter { $0.owner != nil }
        guard !owned.isEmpty, try hasRecordsOfOthers else { return }
        let owners = owned.map { $0.owner! }
        let (isHere, isThere) = (try contained(owners, scope), try contained(owners, scope.other))
        if let place = owned.indices.first(where: { !isHere[$0] && isThere[$0] }) {
            throw Self.ownerIsElsewhere(owned[place].record, in: scope, owners[place])
        }
    }

    static func ownerIsElsewhere(_ record: RecordName, in scope: StoreScope, _ owner: RecordName) -> StoreError {
        StoreError(
            .invalid,
            """
            \(record.type) \(record.name) is in the \(scope.name) store, and its owner \(owner.type) \(owner.name) is in the \
            \(scope.other.name) store. Delete the record, and save a new one of another name
            """)
    }

    /// Gives both stores the same relationships. The types of a store may have come from the cloud, which has no relationships.
    ///
    /// - Parameter schemas: The types that are saved. Their relationships take precedence over the stores'.
    /// - Complexity: A query of each store; none of the private store while the shared store has had no records and no type was
    ///   declared.
    func spreadRelationships(_ schemas: some Sequence<RecordTypeSchema> = []) throws {
        let declared = declaredRelationships
        guard try !declared.isEmpty || hasRecordsOfOthers else { return }
        var known: [StoreScope: [RecordTypeSchema]] = [:]
        for scope in ContainerDirectory.scopes { known[scope] = try stores[scope].assumeIsolated { try $0.knownTypes() } }
        for scope in ContainerDirectory.scopes {
            let other: StoreScope = scope == .private ? .shared : .private
            var missing: [RecordTypeSchema] = []
            for type in known[scope] ?? [] {
                // A relationship that a store lacks comes from the program; otherwise from the other store.
                var wanted = known[other]?.first { $0.name == type.name }?.relationships ?? [:]
                wanted.merge((declared[type.name] ?? [:]).mapValues(Optional.some)) { $1 }
                wanted.merge(type.relationships) { $1 }
                for schema in schemas where schema.name == type.name { wanted.merge(schema.relationships) { $1 } }
                let changed = wanted.filter {
                    type.field(named: $0.key) != nil && (type.relationships[$0.key] ?? nil) != $0.value
                }
                guard !changed.isEmpty else { continue }
                var schema = RecordTypeSchema(name: type.name)
                schema.relationships = changed
                missing.append(schema)
            }
            guard !missing.isEmpty else { continue }
            let changes = missing
            try stores[scope].assumeIsolated { try $0.declare(changes, environment: directory.description.environment) }
        }
    }

    /// Whether the shared store has, or had, records.
    var hasRecordsOfOthers: Bool {
        get throws { try stores[.shared].assumeIsolated { try $0.hasTypes() } }
    }
}

extension StoreScope {
    fileprivate var other: StoreScope { self == .private ? .shared : .private }
}

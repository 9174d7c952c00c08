import TidemarkModel
import TidemarkSQLite
import TidemarkStore

extension PersistentContainer {
    /// Stores the relationships that types declare, before anything of them is saved: so that a deletion follows the rules of a type that this
    /// version of a program has changed, and has not saved yet.
    ///
    /// ```swift
    /// let journal = try PersistentContainer(named: "Journal")
    /// try await journal.declare([Trip.self, Stop.self, Photo.self])
    /// ```
    ///
    /// Types and fields that a store does not have yet are passed over: their relationships are stored with the first record.
    ///
    /// - Throws: ``StoreError`` `schema` for relationships that can't be, as two owners; `invalid` for a key path of no stored property;
    ///   `busy`, `io`.
    public func declare(_ types: [any Record.Type]) throws {
        let declared = try types.map { type in (name: type.recordType, relationships: try Self.relationships(of: type)) }
        for scope in ContainerDirectory.scopes {
            try stores[scope].assumeIsolated { store in
                let known = try store.knownTypes()
                let schemas = declared.compactMap { it -> RecordTypeSchema? in
                    guard let there = known.first(where: { $0.name == it.name }) else { return nil }
                    var schema = RecordTypeSchema(name: it.name)
                    for field in there.fields where field.type.scalar == .reference {
                        schema.relationships[field.name] = .some(it.relationships[field.name])
                    }
                    return schema.relationships == there.declaredRelationships ? nil : schema
                }
                try store.declare(schemas, environment: directory.description.environment)
            }
        }
    }

    private static func relationships<R: Record>(of type: R.Type) throws(StoreError) -> [String: RelationshipSchema] {
        try DeclaredRelationships.of(type).schemas
    }

    /// Returns, for each record, the store in which it is to be saved: the one that has it, else the one that has its owner, else `scope`.
    ///
    /// - Throws: ``StoreError`` `invalid` for a record whose owner is in the other store: what is owned can't be apart from its owner.
    /// - Complexity: A look-up for each record and each owner.
    func homes(of records: [(record: RecordName, owner: RecordName?)], default scope: StoreScope) throws -> [StoreScope] {
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
        // An owner may be new, too, and stand before what it owns or behind it: from step to step more are placed.
        var isChanged = scope == .private
        while isChanged {
            isChanged = false
            for (place, index) in owned.enumerated() where homes[index] == .private && !isThere[place] {
                guard hasOwner[.private]?[place] == false, isOwner(of: place, in: .shared) else { continue }
                homes[index] = .shared
                placed[records[index].record] = .shared
                isChanged = true
            }
        }
        for (place, index) in owned.enumerated() where !isOwner(of: place, in: homes[index]) {
            let other: StoreScope = homes[index] == .private ? .shared : .private
            guard hasOwner[other]?[place] == true else { continue }
            throw StoreError(
                .invalid,
                """
                \(records[index].record.type) \(records[index].record.name) is in the \(homes[index].name) store, and its owner \
                \(owners[place].type) \(owners[place].name) is in the \(other.name) store. Delete the record, and save a new one of another name
                """)
        }
        return homes
    }

    /// Has both stores know the same relationships: the types of a store may have come from the cloud, which has none.
    ///
    /// - Parameter schemas: The types that are saved. What they declare goes before what a store has.
    /// - Complexity: A query for each store; none of the private one while nobody shares anything.
    func spreadRelationships(_ schemas: some Sequence<RecordTypeSchema> = []) throws {
        guard try hasRecordsOfOthers else { return }
        var known: [StoreScope: [RecordTypeSchema]] = [:]
        for scope in ContainerDirectory.scopes { known[scope] = try stores[scope].assumeIsolated { try $0.knownTypes() } }
        for scope in ContainerDirectory.scopes {
            let other: StoreScope = scope == .private ? .shared : .private
            var missing: [RecordTypeSchema] = []
            for type in known[scope] ?? [] {
                var wanted = type.relationships
                if wanted.isEmpty { wanted = known[other]?.first { $0.name == type.name }?.relationships ?? [:] }
                for schema in schemas where schema.name == type.name { wanted.merge(schema.relationships) { $1 } }
                let declared = wanted.filter { type.field(named: $0.key) != nil && (type.relationships[$0.key] ?? nil) != $0.value }
                guard !declared.isEmpty else { continue }
                var schema = RecordTypeSchema(name: type.name)
                schema.relationships = declared
                missing.append(schema)
            }
            guard !missing.isEmpty else { continue }
            let declared = missing
            try stores[scope].assumeIsolated { try $0.declare(declared, environment: directory.description.environment) }
        }
    }

    /// Whether the shared store has, or had, records.
    private var hasRecordsOfOthers: Bool {
        get throws { try stores[.shared].assumeIsolated { try $0.hasTypes() } }
    }
}

extension RecordTypeSchema {
    /// The relationships of the reference fields, as a declaration names them.
    fileprivate var declaredRelationships: [String: RelationshipSchema?] {
        var declared: [String: RelationshipSchema?] = [:]
        for field in fields where field.type.scalar == .reference { declared[field.name] = .some(relationships[field.name] ?? nil) }
        return declared
    }
}

import GRDB
import TidemarkModel
import TidemarkSQLite

/// A record that no longer exists.
struct GoneRecord: Hashable {
    /// The name of its type.
    let type: String
    /// Its canonical name.
    let name: String
    /// The zone in which references to it count; `nil` for all zones: in a private store a name is in one zone at the most.
    let zone: Int64?

    init(type: String, name: String, zone: Int64?) {
        self.type = type
        self.name = RecordName.canonical(name)
        self.zone = zone
    }

    var record: RecordName { RecordName(type: type, name: name) }
}

/// Finds what the delete rules demand of records that refer to deleted records, directly or through other records.
struct DeletionConsequences {
    /// A row of a record type.
    struct RowID: Hashable {
        let type: Int64
        let row: Int64
    }

    /// A record that is deleted with the record that it refers to.
    struct Cascade {
        let type: StoredType
        let row: Int64
        let record: RecordName
        let zone: Int64
        let field: String
        /// The record that it refers to.
        let target: GoneRecord
    }

    /// A record that loses references.
    struct Loss {
        let type: StoredType
        let row: Int64
        let name: String
        let zone: Int64
        /// By the index of the field: the value, and the canonical names in it that are gone.
        var fields: [Int: (value: FieldValue, gone: Set<String>)]
    }

    /// A record that denies the deletion of another.
    struct Denial {
        let id: RowID
        let record: RecordName
        let field: String
        let target: GoneRecord
    }

    private let db: Database
    private let scope: StoreScope
    private let referrers: [String: [(type: StoredType, relationship: StoredRelationship)]]
    /// For each deleted record, the record with which it is deleted; `nil` for the given records.
    private var causes: [GoneRecord: GoneRecord?] = [:]
    private var doomed: Set<RowID> = []
    /// In the order in which they were found, owners first.
    private(set) var cascades: [Cascade] = []
    private var allLosses: [RowID: Loss] = [:]
    private var allDenials: [Denial] = []

    /// The denials of records that stay.
    var denials: [Denial] { allDenials.filter { !doomed.contains($0.id) } }
    /// The losses of records that stay.
    var losses: [Loss] {
        allLosses.filter { !doomed.contains($0.key) }.values.sorted { ($0.type.id, $0.row) < ($1.type.id, $1.row) }
    }

    /// The names of the types to which relationships lead.
    static func targets(of types: [StoredType]) -> Set<String> { Set(types.lazy.flatMap(\.relationships).map(\.target)) }

    /// - Complexity: For each step a look-up for each record in each relationship; see ``ReferrerSearch``.
    init(of gone: some Sequence<GoneRecord>, _ db: Database, types: [StoredType], scope: StoreScope) throws {
        self.db = db
        self.scope = scope
        var referrers: [String: [(type: StoredType, relationship: StoredRelationship)]] = [:]
        for type in types {
            for relationship in type.relationships { referrers[relationship.target, default: []].append((type, relationship)) }
        }
        self.referrers = referrers
        var frontier = Array(Set(gone))
        for record in frontier { causes[record] = .some(nil) }
        while !frontier.isEmpty { frontier = try step(from: frontier) }
    }

    /// Returns the given record with which another one is deleted.
    func root(of record: GoneRecord) -> GoneRecord {
        var record = record
        while let cause = causes[record] ?? nil { record = cause }
        return record
    }

    private mutating func step(from frontier: [GoneRecord]) throws -> [GoneRecord] {
        struct Group: Hashable {
            let type: String
            let zone: Int64?
        }
        var next: [GoneRecord] = []
        let groups = Dictionary(grouping: frontier) { Group(type: $0.type, zone: $0.zone) }
        for (group, records) in groups.sorted(by: { ($0.key.type, $0.key.zone ?? 0) < ($1.key.type, $1.key.zone ?? 0) }) {
            let names = Set(records.map(\.name))
            for (type, relationship) in referrers[group.type] ?? [] {
                let field = relationship.field
                for row in try ReferrerSearch(db: db).rows(of: type, by: field, to: names, inZone: group.zone) {
                    let gone = Set(row.value.referenceNames.map(RecordName.canonical)).intersection(names)
                    guard let name = gone.min() else { continue }
                    let id = RowID(type: type.id, row: row.row)
                    let target = GoneRecord(type: group.type, name: name, zone: group.zone)
                    let record = RecordName(type: type.name, name: row.name)
                    switch relationship.rule {
                    case .cascade:
                        guard doomed.insert(id).inserted else { continue }
                        cascades.append(
                            Cascade(
                                type: type, row: row.row, record: record, zone: row.zone, field: field.name, target: target))
                        let too = GoneRecord(type: type.name, name: row.name, zone: scope == .shared ? row.zone : nil)
                        if causes[too] == nil {
                            causes[too] = .some(target)
                            next.append(too)
                        }
                    case .nullify:
                        var loss =
                            allLosses[id] ?? Loss(type: type, row: row.row, name: row.name, zone: row.zone, fields: [:])
                        loss.fields[field.ordinal, default: (row.value, [])].gone.formUnion(gone)
                        allLosses[id] = loss
                    case .deny: allDenials.append(Denial(id: id, record: record, field: field.name, target: target))
                    }
                }
            }
        }
        return next
    }
}

import CTideCore
import GRDB
import TidemarkModel
import TidemarkSQLite

/// Marks many records at once with the version that the cloud has by now.
struct ExportConfirmation {
    private let db: Database
    private let connection: StoreConnection
    private let hasSyncIssues: Bool

    init(_ db: Database, connection: StoreConnection) throws {
        (self.db, self.connection) = (db, connection)
        let syncIssues = "SELECT EXISTS (SELECT 1 FROM tide_sync_issues)"
        hasSyncIssues = try Bool.fetchOne(db.cachedStatement(sql: syncIssues)) ?? false
    }

    /// Whether the outbox has rows that stand for a single saved record each.
    private var hasSingles: Bool {
        get throws {
            let sql =
                "SELECT EXISTS (SELECT 1 FROM tide_outbox WHERE kind = \(ExportKind.save.rawValue) AND first_row = last_row)"
            return try Bool.fetchOne(db.cachedStatement(sql: sql)) ?? true
        }
    }

    /// - Parameter changed: Called for each record that has changed since it was sent, with the cloud's tag.
    func note(
        _ results: some Sequence<(ExportItem, ExportResult)>, changed: (ExportItem, String) throws -> Void
    ) throws {
        var acknowledgements: [Int64: Acknowledgements] = [:]
        for (item, result) in results {
            if case .saved(let tag) = result {
                acknowledgements[item.key.typeID, default: Acknowledgements()].add(item, tag: tag)
            }
        }
        guard !acknowledgements.isEmpty else { return }
        let hasSingles = try hasSingles
        for (typeID, var list) in acknowledgements.sorted(by: { $0.key < $1.key }) {
            guard let type = connection.types.first(where: { $0.id == typeID }) else { continue }
            try list.note(connection.writer(db, for: type))
            for (item, tag, isNoted) in list.outcomes {
                if hasSyncIssues {
                    try db.cachedStatement(sql: "DELETE FROM tide_sync_issues WHERE waits_for = ?").execute(arguments: [item.name]
                    )
                }
                if !isNoted {
                    try changed(item, tag)
                } else if hasSyncIssues || hasSingles {
                    try Outbox(db).remove(.save, type: typeID, row: item.key.row)
                }
            }
        }
    }
}

/// The acknowledged records of a type, as the core takes them.
private struct Acknowledgements {
    private var items: [(item: ExportItem, tag: String)] = []
    private var records: [tide_acknowledgement] = []
    private var text: [CChar] = []
    private var lastEdited: (span: tide_span, item: ExportItem)?

    mutating func add(_ item: ExportItem, tag: String) {
        items.append((item, tag))
        var record = tide_acknowledgement()
        record.row = item.key.row
        record.version = item.version
        record.tag = append(tag)
        record.has_known_tag = item.tag != nil
        if let known = item.tag { record.known_tag = append(known) }
        if let lastEdited, lastEdited.item.edited == item.edited {
            record.edited = lastEdited.span
        } else {
            record.edited = append(item.edited.description)
            lastEdited = (record.edited, item)
        }
        records.append(record)
    }

    private mutating func append(_ piece: String) -> tide_span {
        let offset = text.count
        text.append(contentsOf: piece.utf8.lazy.map { CChar(bitPattern: $0) })
        return tide_span(offset: UInt32(offset), length: UInt32(text.count - offset))
    }

    mutating func note(_ writer: TableWriter) throws {
        try checked { tide_writer_acknowledge(writer.pointer, text, &records, records.count, &$0) }
    }

    var outcomes: [(item: ExportItem, tag: String, isNoted: Bool)] {
        zip(items, records).map { ($0.item, $0.tag, $1.is_noted) }
    }
}

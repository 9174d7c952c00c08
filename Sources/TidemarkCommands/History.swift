import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

struct History: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows what was changed, when and by whom.",
        discussion: """
            Examples:
              tidemark history MyJournal.tidemark --limit 5
              tidemark history MyJournal.tidemark --transaction 42 --json
              tidemark history MyJournal.tidemark --record lofoten
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: ArgumentHelp("Shows the changes of one record.", valueName: "name"))
    var record: String?

    @Option(help: ArgumentHelp("Shows the changes of one transaction.", valueName: "id"))
    var transaction: Int64?

    @Option(name: .customLong("scope"), help: "The store: private or shared. (default: private)")
    var chosenScope: StoreScope?

    var scope: StoreScope { chosenScope ?? .private }

    @Option(parsing: .unconditional, help: ArgumentHelp("The maximum number of transactions, newest first.", valueName: "n"))
    var limit: Int?

    @Flag(help: "Prints one JSON object.")
    var json = false

    func validate() throws {
        if record != nil, transaction != nil { throw ValidationError("--record and --transaction exclude each other") }
        if let limit, limit < 0 { throw ValidationError("--limit takes a number from 0 on") }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let reader = try StoreReader(container: directory, scope: scope)
            if let record {
                var changes = try reader.changes(ofRecord: directory.recordName(record, in: scope))
                if changes.isEmpty {
                    // A deleted record has a short name, too, and its type is not known.
                    for type in try reader.types() { changes += try reader.changes(ofRecord: type.qualifiedName(of: record)) }
                }
                guard !changes.isEmpty else { throw StoreError(.notFound, "there is no record '\(record)'") }
                let known = try KnownFields([reader])
                try show(HistoryReport(changes: changes.prefix(limit ?? .max).map { HistoryReport.Change($0, known) }))
            } else if let transaction {
                let (changes, inserted) = try reader.changes(ofTransaction: transaction)
                // All transactions are read only if this one has no changes to show.
                guard try !changes.isEmpty || !inserted.isEmpty || reader.transactions().contains(where: { $0.id == transaction })
                else { throw StoreError(.notFound, "there is no transaction \(transaction)") }
                let known = try KnownFields([reader])
                try show(HistoryReport(changes: changes.map { HistoryReport.Change($0, known) }, inserted: inserted))
            } else {
                try show(HistoryReport(transactions: try reader.transactions(limit: limit).map(HistoryReport.Transaction.init)))
            }
        }
    }

    private func show(_ report: HistoryReport) throws {
        if json { return try Output.json(report) }
        if let transactions = report.transactions {
            var table = TextTable(columns: ["id", "time", "author", "origin", "inserted", "updated", "deleted"])
            for it in transactions {
                try table.add([
                    "\(it.id)", it.time, it.author, it.origin, "\(it.inserted)", "\(it.updated)", "\(it.deleted)",
                ])
            }
            try table.finish()
        }
        for (type, count) in (report.inserted ?? [:]).sorted(by: { $0.key < $1.key }) {
            try Output.line("inserted \(Wording.count(count)) of type \(type)")
        }
        for change in report.changes ?? [] {
            try Output.line(
                "\(change.time)  \(change.author)  \(change.kind) \(RecordName(type: change.type, name: change.record).title)  (transaction \(change.transaction))"
            )
            for (field, values) in change.fields.sorted(by: { $0.key < $1.key }) {
                try Output.line("    \(field): \(values.before?.text ?? "–") → \(values.after?.text ?? "–")")
            }
        }
    }
}

/// The output of `tidemark history --json`.
private struct HistoryReport: Encodable {
    struct Transaction: Encodable {
        let id: Int64
        let time, author, origin: String
        let inserted, updated, deleted: Int

        init(_ it: HistoryTransaction) {
            (id, time, author, origin) = (it.id, Timestamp.text(microseconds: it.time), it.author, it.origin.rawValue)
            (inserted, updated, deleted) = (it.inserted, it.updated, it.deleted)
        }
    }

    struct Change: Encodable {
        struct Values: Encodable {
            let before, after: Value?
        }
        let transaction: Int64
        let time, author, origin, type, record, kind: String
        let fields: [String: Values]

        init(_ it: HistoryChange, _ known: KnownFields) {
            (transaction, time) = (it.transaction.id, Timestamp.text(microseconds: it.transaction.time))
            (author, origin, type, record) = (it.transaction.author, it.transaction.origin.rawValue, it.type, it.record)
            kind = "\(it.kind)"
            fields = Dictionary(
                it.fields.map { change in
                    let field = known[it.type, change.field]
                    return (change.field, Values(before: Value(change.before, of: field), after: Value(change.after, of: field)))
                }, uniquingKeysWith: { $1 })
        }
    }

    /// A stored value; JSON numbers for numbers, Booleans for Booleans, text for the rest.
    struct Value: Encodable {
        let value: FieldValue
        /// `true` or `false`, of a Boolean's value.
        private let boolean: String?

        init?(_ value: FieldValue?, of field: RecordTypeSchema.Field?) {
            guard let value else { return nil }
            self.value = value
            boolean = field.flatMap { RecordText.boolean(value, of: $0) }
        }

        /// In a damaged store, the text of a list that is no JSON is shown as it is stored.
        var text: String {
            if let boolean { return boolean }
            do {
                return try RecordText(schema: RecordTypeSchema(name: "")).plain(value)
            } catch {
                return "\(value)"
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            if let boolean { return try container.encode(boolean == "true") }
            switch value {
            case .int64(let number): try container.encode(number)
            case .double(let number): try container.encode(number)
            case .bytes(let bytes): try container.encode(Data(bytes).base64EncodedString())
            case .string, .timestamp, .location, .reference, .asset, .list: try container.encode(text)
            }
        }
    }

    var transactions: [Transaction]?
    var changes: [Change]?
    var inserted: [String: Int]?
}

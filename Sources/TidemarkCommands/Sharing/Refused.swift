import ArgumentParser
import Foundation
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

struct Refused: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "refused", abstract: "Shows and discards saves that the cloud has refused permanently.",
        discussion: """
            The cloud refuses a save without permission. The record is reverted to the cloud's copy; the refused save is stored with the \
            reason until you discard it.

            Examples:
              tidemark refused MyJournal.tidemark
              tidemark refused MyJournal.tidemark --json
              tidemark refused MyJournal.tidemark --discard shared:3
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: ArgumentHelp("Removes one refused save by its identifier, or 'all', permanently.", valueName: "identifier"))
    var discard: [String] = []

    @Flag(help: "Prints one JSON object per line.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let reading = try SyncReading(directory)
            let saves = try reading.refused()
            guard discard.isEmpty else {
                return try await discard(
                    saves, PersistentContainer(directory: directory, author: "tidemark refused", role: .tool))
            }
            let known = try reading.knownFields()
            for save in saves {
                let line = try RefusedLine(save, known)
                if json { try Output.json(line) } else { try tell(line) }
            }
        }
    }

    private func discard(_ saves: [RefusedSave], _ container: PersistentContainer) async throws {
        for id in discard where id != "all" && !saves.contains(where: { RefusedLine.identifier($0) == id }) {
            throw StoreError(.notFound, "there is no refused save '\(id)'; 'tidemark refused' shows those that there are")
        }
        let chosen = discard.contains("all") ? saves : saves.filter { discard.contains(RefusedLine.identifier($0)) }
        try await container.discard(chosen)
        guard !json else { return try Output.json(["discarded": chosen.map(RefusedLine.identifier)]) }
        try Output.line("discarded \(Wording.count(chosen.count, "refused save"))")
    }

    private func tell(_ line: RefusedLine) throws {
        try Output.line("\(line.identifier)  \(line.time)  \(line.text)")
        for field in line.changed {
            func short(_ value: ConflictValue?) -> String {
                value.map { $0.text.count > 60 ? "\($0.text.prefix(60))…" : $0.text } ?? "none"
            }
            try Output.line("    \(field): \(short(line.after[field])); it was \(short(line.before[field]))")
        }
    }
}

/// A refused save as the tool prints it.
struct RefusedLine: Encodable {
    let identifier, time, type, record, store, zone, kind, code, reason: String
    /// The values before the save and after it. A field without a value is left out.
    let before, after: [String: ConflictValue]
    /// The saved fields, with those whose value was removed.
    let changed: [String]

    private enum CodingKeys: CodingKey { case identifier, time, type, record, store, zone, kind, code, reason, before, after }

    init(_ save: RefusedSave, _ known: KnownFields) throws {
        let texts = RecordText(schema: RecordTypeSchema(name: save.record.type))
        func text(_ values: [String: FieldValue?]) throws -> [String: ConflictValue] {
            var kept: [String: ConflictValue] = [:]
            for (field, value) in values {
                guard let value else { continue }
                var out: [UInt8] = []
                try texts.appendJSON(value, to: &out)
                kept[field] = ConflictValue(String(decoding: out, as: UTF8.self), of: known[save.record.type, field])
            }
            return kept
        }
        (identifier, time) = (Self.identifier(save), Timestamp.text(microseconds: save.time))
        (type, record, store, zone) = (save.record.type, save.record.name, save.scope.name, save.zone.name)
        (kind, code, reason) = ("\(save.kind)", save.code, save.reason)
        (before, after, changed) = (try text(save.before), try text(save.after), save.after.keys.sorted())
    }

    /// The identifier of a save with its store, because each store numbers its own saves.
    static func identifier(_ save: RefusedSave) -> String { "\(save.scope.name):\(save.id)" }

    var text: String { "\(kind) \(RecordName(type: type, name: record).title): \(code): \(reason)" }
}

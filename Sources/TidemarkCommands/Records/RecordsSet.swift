import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkStore
import TidemarkTransfer

struct RecordsSet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Sets fields of a record, or makes a record.",
        discussion: """
            Values are written as in a CSV file: times as 2024-05-01T12:30:00Z, lists as JSON arrays, positions as \
            {"latitude": 68.2, "longitude": 13.6}, bytes in Base64. For a field that holds an asset, give the path of a file. FIELD= clears a \
            field. Fields that are not named stay. A record of what others share is changed there, if one may write (else exit code 77); of \
            equal names one's own is meant, unless --scope or --share says another. A new one goes to the private store, or with --share to \
            what is shared.

            Examples:
              tidemark records set MyJournal.tidemark lofoten caption="Lofoten in May" rating=5
              tidemark records set MyJournal.tidemark lofoten image=pictures/lofoten.jpg details=
              tidemark records set MyJournal.tidemark senja --type Destination caption=Senja
              tidemark records set MyJournal.tidemark tent --type Note text=Wet --share senja
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The record's name, or TYPE/NAME of one that is there.")
    var name: String

    @Argument(help: ArgumentHelp("The values.", valueName: "field=value"))
    var assignments: [String]

    @Option(help: "The record type; needed for a new record.")
    var type: String?

    @Option(
        help: ArgumentHelp(
            "The share that the record is of, or a new one goes into: a record of it, its zone, number or title.",
            valueName: "share"))
    var share: String?

    @Option(help: "The store of a record that is there: private or shared. (default: the one that has it, private first)")
    var scope: DatabaseScope?

    @Flag(help: "Prints one JSON object.")
    var json = false

    private struct Report: Encodable {
        let type, record: String
        let inserted, updated, unchanged: Int
    }

    func run() async throws {
        try await reportingErrors {
            let url = try fileURL(container, "the container")
            let directory = try ContainerDirectory(openingAt: url)
            var home: Share?
            if let share { home = try await KnownShares(directory).share(named: share) }
            if let scope, let home, home.scope != scope {
                throw StoreError(
                    .invalid, "the share '\(home.caption)' is in the \(home.scope.name) store, not in the \(scope.name) one")
            }
            let found = try FoundRecord(name, type: nil, in: home?.scope ?? scope, of: directory)
            if let found, !found.record.isIntact {
                throw StoreError.damaged(RecordName(type: found.schema.name, name: found.record.name))
            }
            let schema = try schema(found, directory)
            let name = try found?.record.name ?? newName(schema, directory)
            let values = try assignments.map { try assignment($0, schema: schema) }
            let nameField = schema.nameField ?? "_name"
            let manifest = try Manifest(
                header: [nameField] + values.map(\.field), row: [name] + values.map(\.value), schema: schema)
            defer { manifest.remove() }
            var options = ImportOptions(
                type: schema.name, format: .csv, nameField: nameField,
                assetsRoot: URL(fileURLWithPath: "/", isDirectory: true),
                author: "tidemark records set")
            options.origin = .save
            options.rejects = manifest.rejects
            func take(into container: URL) async throws -> ChangeCounts {
                let summary = try await BulkImport(source: .file(manifest.file), into: container, options: options).run()
                if summary.rejected > 0 { throw StoreError(.invalid, try manifest.reason()) }
                return summary.changes
            }
            let changes: ChangeCounts
            if home == nil, found?.scope != .shared {
                changes = try await take(into: url)
            } else {
                // As an import would read them.
                let scratch = manifest.folder.appendingPathComponent("values.tidemark", isDirectory: true)
                options.schema = [schema]
                _ = try await take(into: scratch)
                let place = try place(home, found, directory)
                let read = try ReadValues(of: name, schema, fields: Set(values.map(\.field)), in: scratch)
                changes = try await read.save(in: place.scope, zone: place.zone, of: directory)
            }
            if json {
                return try Output.json(
                    Report(
                        type: schema.name, record: name, inserted: changes.inserted, updated: changes.updated,
                        unchanged: changes.unchanged))
            }
            let done = changes.inserted > 0 ? "made" : changes.updated > 0 ? "changed" : "unchanged"
            try Output.line("\(schema.name) \(name): \(done)")
        }
    }

    /// The type; of what is shared, with the fields that either store knows: there it has those that others have sent.
    private func schema(_ found: FoundRecord?, _ directory: ContainerDirectory) throws -> RecordTypeSchema {
        if let found, let type, type != found.schema.name {
            throw StoreError(.schema, "the record '\(name)' is there with the type \(found.schema.name), not \(type)")
        }
        guard let type = found?.schema.name ?? type else {
            throw StoreError(.notFound, "there is no record '\(name)'; to make it, give its --type")
        }
        guard share != nil || found?.scope == .shared else {
            if let found { return found.schema }
            let own = try StoreReader(container: directory)
            if directory.hasStore(.shared), try !own.types().contains(where: { $0.name == type }),
                try StoreReader(container: directory, scope: .shared).types().contains(where: { $0.name == type })
            {
                throw StoreError(
                    .schema,
                    "the private store has no record type '\(type)', and what others share has: name the --share that the record goes into"
                )
            }
            return try own.type(named: type)
        }
        let known = try ContainerDirectory.scopes.filter { directory.hasStore($0) }
            .compactMap { try StoreReader(container: directory, scope: $0).types().first { $0.name == type } }
        guard var schema = found?.schema ?? known.first else { return try StoreReader(container: directory).type(named: type) }
        for field in known.flatMap(\.fields) where schema.field(named: field.name) == nil { schema.fields.append(field) }
        return schema
    }

    /// The name of a record to make: as an import would give it.
    private func newName(_ schema: RecordTypeSchema, _ directory: ContainerDirectory) throws -> String {
        guard schema.nameField != nil, UUID(uuidString: name) == nil, RecordName(type: schema.name, name: name).shortName == name,
            try StoreReader(container: directory).count(type: schema.name) > 0,
            try StoreReader(container: directory).namesHaveType(of: schema.name)
        else { return name }
        return schema.qualifiedName(of: name)
    }

    /// Where the record is, or is to be made; no zone is said of one that is there and of no share that was named.
    private func place(
        _ share: Share?, _ found: FoundRecord?, _ directory: ContainerDirectory
    ) throws -> (scope: DatabaseScope, zone: Int64?) {
        guard let share else { return (found?.scope ?? .private, nil) }
        let zones = try StoreReader(container: directory, scope: share.scope).zones()
        return (share.scope, zones.first { $0.name == share.zone }?.id)
    }

    private func assignment(_ text: String, schema: RecordTypeSchema) throws -> (field: String, value: String?) {
        guard let equals = text.firstIndex(of: "=") else {
            throw StoreError(.invalid, "'\(text)' sets nothing; write field=value")
        }
        let (field, value) = (String(text[..<equals]), String(text[text.index(after: equals)...]))
        guard let known = schema.field(named: field) else {
            let fields = schema.fields.map(\.name).joined(separator: ", ")
            throw StoreError(.schema, "\(schema.name) has no field '\(field)'; it has \(fields)")
        }
        if value.isEmpty { return (field, nil) }
        guard known.type == .asset else { return (field, value) }
        // Any file that whoever types this can read, links on the way to it included.
        let file = try fileURL(value, "the file for '\(field)'").resolvingSymlinksInPath()
        guard access(file.path, R_OK) == 0 else {
            throw StoreError(.invalid, "\(field): cannot read \(file.path): \(String(cString: strerror(errno)))")
        }
        return (field, String(file.path.dropFirst()))
    }

    /// A manifest of one row, in a folder of its own.
    private struct Manifest {
        let folder: URL
        var file: URL { folder.appendingPathComponent("row.csv") }
        var rejects: URL { folder.appendingPathComponent("rejects.jsonl") }

        init(header: [String], row: [String?], schema: RecordTypeSchema) throws {
            folder = FileManager.default.temporaryDirectory.appendingPathComponent("tidemark-set-\(UUID().uuidString)")
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            func quoted(_ cell: String?) -> String {
                cell.map { "\"\($0.replacingOccurrences(of: "\"", with: "\"\""))\"" } ?? ""
            }
            let lines = [header.map { quoted($0) }, row.map { quoted($0) }].map { $0.joined(separator: ",") + "\r\n" }
            try Data(lines.joined().utf8).write(to: file)
        }

        /// Why the row was refused.
        func reason() throws -> String {
            struct Rejection: Decodable {
                let field: String?
                let reason: String
            }
            let line = try Data(contentsOf: rejects).prefix { $0 != 0x0a }
            let rejection = try JSONDecoder().decode(Rejection.self, from: line)
            return (rejection.field.map { "\($0): " } ?? "") + rejection.reason
        }

        // What stays lies in the folder for what is temporary.
        func remove() { try? FileManager.default.removeItem(at: folder) }
    }
}

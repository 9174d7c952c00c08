import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

struct RecordsSet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Sets fields of a record, or creates a record.",
        discussion: """
            The command creates a missing container, type or field, and reports it. The type of a new field is inferred from its value, \
            or is given after its name, as in rating:int64=3 (string, int64 or int, double, boolean or bool, timestamp or time, bytes, \
            location, reference, asset, list<…>). In a production container the schema is fixed.

            Values are written as in a CSV file: Booleans as true and false, times as 2024-05-01T12:30:00Z, lists as JSON arrays, \
            locations as {"latitude": 68.2, "longitude": 13.6}, bytes in Base64. For a field that holds an asset, give the path of a \
            file. FIELD= clears a field. Other fields keep their values. A shared record is changed in its share, if you have the \
            permission to write (else exit code 77); if both stores have a record of the name, the private one is meant, unless you pass \
            --scope or --share. A new record goes to the private store, or with --share into the share.

            Examples:
              tidemark records set MyJournal.tidemark lofoten caption="Lofoten in May" rating=5
              tidemark records set MyJournal.tidemark lofoten image=pictures/lofoten.jpg details=
              tidemark records set MyJournal.tidemark senja --type Destination caption=Senja
              tidemark records set Notes.tidemark first --type Note text=Hello rating:int=3 done=false
              tidemark records set MyJournal.tidemark tent --type Note text=Wet --share senja
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The record's name, or TYPE/NAME of an existing record.")
    var name: String

    @Argument(help: ArgumentHelp("The values.", valueName: "field[:type]=value"))
    var assignments: [String]

    @Option(help: "The record type; needed for a new record.")
    var type: String?

    @Option(
        help: ArgumentHelp(
            "The share that the record is of, or a new one goes into: a record of it, its zone, number or title.",
            valueName: "share"))
    var share: String?

    @Option(help: "The store of an existing record: private or shared. (default: the store that has the record, private first)")
    var scope: StoreScope?

    @Flag(help: "Prints one JSON object.")
    var json = false

    private struct Report: Encodable {
        struct Made: Encodable {
            let container: Bool
            let type: Bool
            let fields: [String: String]
        }
        let type, record: String
        let inserted, updated, unchanged: Int
        let made: Made
    }

    func run() async throws {
        try await reportingErrors {
            let url = try fileURL(container, "the container")
            if try isToBeMade(url) {
                let schema = RecordTypeSchema(name: type ?? "")
                return try await make(url, schema, try assignments.map { try assignment($0, schema: schema) })
            }
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
            if found == nil, home == nil, scope == .shared {
                throw StoreError(
                    .notFound, "the shared store has no record '\(name)'; to make one there, name the --share that it goes into")
            }
            let known = try schema(found, directory)
            let name = try found?.record.name ?? newName(known, directory)
            let values = try assignments.map { try assignment($0, schema: known) }
            try Self.checkSpelling(values, known)
            let schema = Self.adding(values, to: known)
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
            let isNewType = try !ContainerDirectory.scopes.contains { scope in
                try directory.hasStore(scope)
                    && StoreReader(container: directory, scope: scope).types().contains { $0.name == schema.name }
            }
            let isGrowing =
                isNewType || schema.fields.count > known.fields.count || values.contains { $0.type == nil && $0.isNew }
            // What is refused makes nothing: not the type, and no field.
            let scratch = manifest.folder.appendingPathComponent("values.tidemark", isDirectory: true)
            let changes: ChangeCounts
            var read: RecordTypeSchema?
            if home == nil, found?.scope != .shared {
                if isGrowing {
                    options.schema = [schema]
                    _ = try await Self.take(manifest, options, into: scratch)
                    read = try StoreReader(container: ContainerDirectory(openingAt: scratch)).type(named: schema.name)
                    if let read { options.schema = [Self.adding(values, to: known, read: read)] }
                }
                changes = try await Self.take(manifest, options, into: url)
            } else {
                // As an import would read them.
                options.schema = [schema]
                _ = try await Self.take(manifest, options, into: scratch)
                read = try StoreReader(container: ContainerDirectory(openingAt: scratch)).type(named: schema.name)
                let place = try place(home, found, directory)
                let whole = read.map { Self.adding(values, to: known, read: $0) } ?? schema
                let rows = try ReadValues(of: name, whole, fields: Set(values.map(\.field)), in: scratch)
                changes = try await rows.save(in: place.scope, zone: place.zone, of: directory)
            }
            var made = RecordTypeSchema(name: schema.name)
            for value in values where value.isNew {
                if let field = read?.field(named: value.field) ?? schema.field(named: value.field) { made.fields.append(field) }
            }
            let others = try types(directory).filter { $0 != schema.name }
            try tell(
                changes, name, made, isNewType: isNewType, othersTypes: isNewType ? others : [], others: known.fields.map(\.name))
        }
    }

    /// The container whose name a name looks like a misspelling of. Short names, and those that differ in digits only, are meant as they are.
    static func misspelt(_ name: String, among others: [String]) -> String? {
        func stem(_ name: String) -> String { (name as NSString).deletingPathExtension }
        func letters(_ name: String) -> String { stem(name).filter { !$0.isNumber } }
        guard stem(name).count > 3 else { return nil }
        if let whole = others.first(where: { stem($0) == stem(name) }) { return whole }
        let others = others.filter { letters($0) != letters(name) }
        guard let near = Suggestion.nearest(to: stem(name), among: others.map(stem), limit: 1) else { return nil }
        return others.first { stem($0) == near }
    }

    /// Whether the container is to be made: it is not there, and the type of its first record is given.
    ///
    /// - Throws: ``StoreError`` `notFound` where the path looks like a misspelt one of a container beside it.
    private func isToBeMade(_ url: URL) throws -> Bool {
        guard share == nil, scope == nil else { return false }
        if FileManager.default.fileExists(atPath: url.path) {
            // A process that was killed while it made the container has left it without a store.
            guard type != nil, let begun = try? ContainerDirectory(openingAt: url) else { return false }
            return !ContainerDirectory.scopes.contains { begun.hasStore($0) }
        }
        let folder = url.deletingLastPathComponent()
        guard FileManager.default.fileExists(atPath: folder.path) else { return false }
        let name = url.lastPathComponent
        let beside = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).filter { other in
            FileManager.default.fileExists(atPath: folder.appendingPathComponent("\(other)/container.json").path)
        }
        if let other = Self.misspelt(name, among: beside) {
            throw StoreError(
                .notFound,
                "there is no container at \(url.path); did you mean '\(other)'? To make another one, give it another name")
        }
        guard type != nil else {
            throw StoreError(.notFound, "there is no container at \(url.path); to make one with this record, give its --type")
        }
        return true
    }

    /// Makes a container with its first record; nothing where the record is refused.
    private func make(_ url: URL, _ known: RecordTypeSchema, _ values: [Assignment]) async throws {
        try Self.checkSpelling(values, known)
        let schema = Self.adding(values, to: known)
        let manifest = try Manifest(header: ["_name"] + values.map(\.field), row: [name] + values.map(\.value), schema: schema)
        defer { manifest.remove() }
        var options = ImportOptions(
            type: schema.name, format: .csv, nameField: "_name", assetsRoot: URL(fileURLWithPath: "/", isDirectory: true),
            schema: [schema], author: "tidemark records set")
        options.origin = .save
        options.rejects = manifest.rejects
        let scratch = manifest.folder.appendingPathComponent("values.tidemark", isDirectory: true)
        _ = try await Self.take(manifest, options, into: scratch)
        // With the types that were found out, in the order of the command line.
        let read = try StoreReader(container: ContainerDirectory(openingAt: scratch)).type(named: schema.name)
        options.schema = [Self.adding(values, to: known, read: read)]
        let changes = try await Self.take(manifest, options, into: url)
        let made = try StoreReader(container: ContainerDirectory(openingAt: url)).type(named: schema.name)
        if !json { try Output.line("made the container \(url.path)") }
        try tell(changes, name, made, isNewContainer: true, isNewType: true, othersTypes: [], others: [])
    }

    private static func take(_ manifest: Manifest, _ options: ImportOptions, into container: URL) async throws -> ChangeCounts {
        let summary = try await BulkImport(source: .file(manifest.file), into: container, options: options).run()
        if summary.rejected > 0 { throw StoreError(.invalid, try manifest.reason()) }
        return summary.changes
    }

    /// - Parameters:
    ///   - made: The type, with the fields that were made.
    ///   - othersTypes: Types beside a new one, which may be a misspelt one of them.
    ///   - others: Fields beside the new ones.
    private func tell(
        _ changes: ChangeCounts, _ name: String, _ made: RecordTypeSchema, isNewContainer: Bool = false, isNewType: Bool,
        othersTypes: [String], others: [String]
    ) throws {
        if json {
            let fields = Dictionary(made.fields.map { ($0.name, $0.typeName) }, uniquingKeysWith: { $1 })
            return try Output.json(
                Report(
                    type: made.name, record: name, inserted: changes.inserted, updated: changes.updated,
                    unchanged: changes.unchanged, made: .init(container: isNewContainer, type: isNewType, fields: fields)))
        }
        func besides(_ name: String, _ others: [String]) -> String {
            Suggestion.nearest(to: name, among: others).map { " (there is also '\($0)')" } ?? ""
        }
        if isNewType { try Output.line("made the record type \(made.name)\(besides(made.name, othersTypes))") }
        for field in made.fields {
            try Output.line("made the field \(field.name) of \(made.name), \(field.typeName)\(besides(field.name, others))")
        }
        let done = changes.inserted > 0 ? "made" : changes.updated > 0 ? "changed" : "unchanged"
        try Output.line("\(RecordName(type: made.name, name: name).title): \(done)")
    }

    private func types(_ directory: ContainerDirectory) throws -> [String] {
        try ContainerDirectory.scopes.filter { directory.hasStore($0) }
            .flatMap { try StoreReader(container: directory, scope: $0).types().map(\.name) }
    }

    /// - Throws: ``StoreError`` `schema` where a field differs from another one by the case of letters only.
    private static func checkSpelling(_ values: [Assignment], _ known: RecordTypeSchema) throws {
        var names = RecordTypeSchema(name: known.name, nameField: known.nameField)
        names.fields = values.map { .init(name: $0.field, type: .string) }
        if let collision = names.nameCollision(with: known.fields) { throw StoreError(.schema, collision.description) }
    }

    /// A schema with the fields that values are given for, as far as their types are known.
    ///
    /// - Parameter read: The type as an import has read the values, for fields whose types were not given.
    private static func adding(
        _ values: [Assignment], to known: RecordTypeSchema, read: RecordTypeSchema? = nil
    ) -> RecordTypeSchema {
        var schema = known
        for value in values where schema.field(named: value.field) == nil {
            if let field = value.type ?? read?.field(named: value.field) { schema.fields.append(field) }
        }
        return schema
    }

    /// The type; of what is shared, with the fields that either store knows: there it has those that others have sent.
    private func schema(_ found: FoundRecord?, _ directory: ContainerDirectory) throws -> RecordTypeSchema {
        if let found, let type, type != found.schema.name {
            throw StoreError(.schema, "the record '\(name)' is there with the type \(found.schema.name), not \(type)")
        }
        guard let type = found?.schema.name ?? type else {
            throw StoreError(.notFound, "there is no record '\(name)'; to make it, give its --type")
        }
        try RecordStore.checkIdentifier(type, what: "a record type")
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
            return try own.types().first { $0.name == type } ?? RecordTypeSchema(name: type)
        }
        let known = try ContainerDirectory.scopes.filter { directory.hasStore($0) }
            .compactMap { try StoreReader(container: directory, scope: $0).types().first { $0.name == type } }
        guard var schema = found?.schema ?? known.first else { return RecordTypeSchema(name: type) }
        for field in known.flatMap(\.fields) where schema.field(named: field.name) == nil { schema.fields.append(field) }
        return schema
    }

    /// The name of a record to make: as an import would give it.
    private func newName(_ schema: RecordTypeSchema, _ directory: ContainerDirectory) throws -> String {
        guard schema.nameField != nil, UUID(uuidString: name) == nil, RecordName(type: schema.name, name: name).shortName == name,
            case let reader = try StoreReader(container: directory),
            try reader.types().contains(where: { $0.name == schema.name }), try reader.count(type: schema.name) > 0,
            try reader.namesHaveType(of: schema.name)
        else { return name }
        return schema.qualifiedName(of: name)
    }

    /// Where the record is, or is to be made; no zone is said of one that is there and of no share that was named.
    private func place(
        _ share: Share?, _ found: FoundRecord?, _ directory: ContainerDirectory
    ) throws -> (scope: StoreScope, zone: Int64?) {
        guard let share else { return (found?.scope ?? .private, nil) }
        let zones = try StoreReader(container: directory, scope: share.scope).zones()
        return (share.scope, zones.first { $0.name == share.zone }?.id)
    }

    /// A field and its value, as they stand on the command line.
    private struct Assignment {
        let field: String
        /// `nil` for no value.
        let value: String?
        /// The field, where its type was given or the record type has it.
        let type: RecordTypeSchema.Field?
        /// Whether the record type does not have the field.
        let isNew: Bool
    }

    private func assignment(_ text: String, schema: RecordTypeSchema) throws -> Assignment {
        guard let equals = text.firstIndex(of: "=") else {
            throw StoreError(.invalid, "'\(text)' sets nothing; write field=value")
        }
        let (left, value) = (String(text[..<equals]), String(text[text.index(after: equals)...]))
        let colon = left.firstIndex(of: ":")
        let field = colon.map { String(left[..<$0]) } ?? left
        try RecordStore.checkIdentifier(field, what: "a field")
        let known = schema.field(named: field)
        let given = try colon.map { try Self.field(field, String(left[left.index(after: $0)...])) }
        if let known, let given, known.type != given.type || known.isBoolean != given.isBoolean && given.isBoolean {
            throw StoreError(.schema, "the field '\(field)' of \(schema.name) is \(known.typeName), not \(given.typeName)")
        }
        let type = known ?? given
        func made(_ value: String?) -> Assignment { Assignment(field: field, value: value, type: type, isNew: known == nil) }
        if value.isEmpty {
            guard type != nil else {
                let fields = schema.fields.map(\.name)
                let remedy = Suggestion.question(field, among: fields)
                throw StoreError(
                    .schema,
                    "\(schema.name) has no field '\(field)' that could be cleared; it has \(fields.joined(separator: ", "))\(remedy)"
                )
            }
            return made(nil)
        }
        guard type?.type == .asset else { return made(value) }
        // Any file that whoever types this can read, links on the way to it included.
        let file = try fileURL(value, "the file for '\(field)'").resolvingSymlinksInPath()
        guard access(file.path, R_OK) == 0 else {
            throw StoreError(.invalid, "\(field): cannot read \(file.path): \(String(cString: strerror(errno)))")
        }
        return made(String(file.path.dropFirst()))
    }

    /// A field of the type that a text names.
    private static func field(_ name: String, _ typeName: String) throws -> RecordTypeSchema.Field {
        let short = [
            "int": "int64", "integer": "int64", "bool": "boolean", "time": "timestamp", "date": "timestamp", "text": "string",
            "float": "double",
        ]
        guard let field = RecordTypeSchema.Field(name: name, typeName: short[typeName] ?? typeName) else {
            let known = RecordTypeSchema.Field.typeNames
            let remedy = Suggestion.question(typeName, among: known)
            throw StoreError(
                .schema,
                "'\(typeName)' is no type for '\(name)'; types are \(known.joined(separator: ", ")), and list<…> of them\(remedy)"
            )
        }
        return field
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
                // Of a formula behind apostrophes, an import takes off one.
                cell.map { $0.hasPrefix("'") && RecordText.isFormula($0) ? "'\($0)" : $0 }.map {
                    "\"\($0.replacingOccurrences(of: "\"", with: "\"\""))\""
                } ?? ""
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

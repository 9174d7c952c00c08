import ArgumentParser
import Foundation
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct RecordsSet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Sets fields of a record, or creates a record.",
        discussion: """
            The command creates a missing container, type or field, and reports it. The type of a new field is inferred from its value, \
            or is given after its name, as in rating:int64=3 (string, int64 or int, double, boolean or bool, timestamp or time, bytes, \
            location, reference, asset, list<…>). In a production container the schema is fixed.

            Values are written as in a CSV file: Booleans as true and false, times as 2024-05-01T12:30:00Z, lists as JSON arrays, \
            locations as {"latitude": 68.2, "longitude": 13.6}, bytes in Base64. For a field that holds an asset, give the path of a \
            file; for a list of assets, a JSON array of paths. FIELD= clears a field. Other fields keep their values. A shared record is changed in its share, if you have the \
            permission to write (else exit code 77); if both stores have a record of the name, the private one is meant, unless you pass \
            --scope or --share. A new record goes to the private store, or with --share into the share.

            Examples:
              tidemark records set MyJournal.tidemark lofoten caption="Lofoten in May" rating=5
              tidemark records set MyJournal.tidemark lofoten image=pictures/lofoten.jpg details=
              tidemark records set MyJournal.tidemark senja --type Destination caption=Senja
              tidemark records set Notes.tidemark first --type Note text=Hello rating:int=3 done=false
              tidemark records set Notes.tidemark first 'tags:list<string>=["north", "sea"]' 'place:location={"latitude": 68.2, "longitude": 13.6}'
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
            guard try !isToBeMade(url) else { return try await make(url) }
            let directory = try containerToWrite(container)
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
            let given = try GivenValues(assignments, of: known, found)
            let record = RecordName(type: known.name, name: name)
            let types = try types(directory)
            let container = try PersistentContainer(directory: directory, author: Self.author, role: .tool)
            let result = try await container.save(
                given.edit(of: record), in: home?.scope ?? found?.scope ?? .private, share: home)
            try tell(result, given, record, isNewType: !types.contains(record.type), othersTypes: types)
        }
    }

    private static let author = "tidemark records set"

    /// Returns the container of which a name looks like a misspelling. Short names, and names that differ only in digits, are
    /// taken as they are.
    static func misspelt(_ name: String, among others: [String]) -> String? {
        func stem(_ name: String) -> String { (name as NSString).deletingPathExtension }
        func letters(_ name: String) -> String { stem(name).filter { !$0.isNumber } }
        guard stem(name).count > 3 else { return nil }
        if let whole = others.first(where: { stem($0) == stem(name) }) { return whole }
        let others = others.filter { letters($0) != letters(name) }
        guard let near = Suggestion.nearest(to: stem(name), among: others.map(stem), limit: 1) else { return nil }
        return others.first { stem($0) == near }
    }

    /// Whether the container is to be made: it does not exist, and the type of its first record is given.
    ///
    /// - Throws: ``StoreError`` `notFound` if the path looks like a misspelling of a container beside it, or if the type is
    ///   missing.
    private func isToBeMade(_ url: URL) throws -> Bool {
        guard share == nil, scope == nil else { return false }
        if FileManager.default.fileExists(atPath: url.path) {
            // A process that was killed while it made the container leaves it without a store.
            guard type != nil, let begun = try? ContainerDirectory(openingAt: url) else { return false }
            return !ContainerDirectory.scopes.contains { begun.hasStore($0) }
        }
        let folder = url.deletingLastPathComponent()
        guard FileManager.default.fileExists(atPath: folder.path) else { return false }
        let name = url.lastPathComponent
        // In a folder that can't be listed no other container is found. Making a container there reports the fault.
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

    /// Makes a container with its first record. If the record is refused, no container is made.
    private func make(_ url: URL) async throws {
        guard let type else { return }
        try RecordStore.checkIdentifier(type, what: "a record type")
        let given = try GivenValues(assignments, of: RecordTypeSchema(name: type), nil)
        let record = RecordName(type: type, name: name)
        let new = NewContainer(at: url)
        let result: SaveResult
        do {
            result = try await Self.save(given.edit(of: record), intoContainerAt: url, new)
        } catch {
            await new?.removeIfUnused()
            throw error
        }
        if !json { try Output.line("made the container \(url.path)") }
        try tell(result, given, record, isNewContainer: true, isNewType: true, othersTypes: [])
    }

    private static func save(
        _ edit: FieldEdit, intoContainerAt url: URL, _ new: NewContainer?
    ) async throws -> SaveResult {
        try await PersistentContainer(openingOrCreatingAt: url, author: author, role: .tool, new: new).save(edit, in: .private)
    }

    /// Reports the new and changed objects.
    ///
    /// - Parameter othersTypes: The other types. A new type may be a misspelling of one of them.
    private func tell(
        _ result: SaveResult, _ given: GivenValues, _ record: RecordName, isNewContainer: Bool = false, isNewType: Bool,
        othersTypes: [String]
    ) throws {
        let counts = result.counts
        let merged = result.replaced[record]
        if json {
            let fields = Dictionary(given.newFields.map { ($0.name, $0.typeName) }, uniquingKeysWith: { $1 })
            return try Output.json(
                Report(
                    type: record.type, record: merged ?? record.name, inserted: merged == nil ? counts.inserted : 0,
                    updated: counts.updated,
                    unchanged: counts.unchanged, made: .init(container: isNewContainer, type: isNewType, fields: fields)))
        }
        func besides(_ name: String, _ others: [String]) -> String {
            Suggestion.nearest(to: name, among: others).map { " (there is also '\($0)')" } ?? ""
        }
        if isNewType { try Output.line("made the record type \(record.type)\(besides(record.type, othersTypes))") }
        for field in given.newFields {
            let others = besides(field.name, given.known.fields.map(\.name))
            try Output.line("made the field \(field.name) of \(record.type), \(field.typeName)\(others)")
        }
        if let merged {
            let other = RecordName(type: record.type, name: merged).shortName
            return try Output.line("\(record.title): one record with \(other) now, because of a unique key")
        }
        let done = counts.inserted > 0 ? "made" : counts.updated > 0 ? "changed" : "unchanged"
        try Output.line("\(record.title): \(done)")
    }

    private func types(_ directory: ContainerDirectory) throws -> [String] {
        try ContainerDirectory.scopes.filter { directory.hasStore($0) }
            .flatMap { try StoreReader(container: directory, scope: $0).types().map(\.name) }
    }

    /// The record type. For a shared record it has the fields of both stores, because the shared store has only the fields that
    /// others have sent.
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

    /// The name of a new record, in the form of names from an import.
    private func newName(_ schema: RecordTypeSchema, _ directory: ContainerDirectory) throws -> String {
        guard schema.nameField != nil, UUID(uuidString: name) == nil, RecordName(type: schema.name, name: name).shortName == name,
            case let reader = try StoreReader(container: directory),
            try reader.types().contains(where: { $0.name == schema.name }), try reader.count(type: schema.name) > 0,
            try reader.namesHaveType(of: schema.name)
        else { return name }
        return schema.qualifiedName(of: name)
    }
}

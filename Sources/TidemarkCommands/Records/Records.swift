public import ArgumentParser
public import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct Records: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows, finds, sets, renames and deletes records.",
        discussion: """
            Examples:
              tidemark records MyJournal.tidemark --type Destination --sort createdAt --descending
              tidemark records get MyJournal.tidemark lofoten
              tidemark records set MyJournal.tidemark lofoten --type Destination caption="Lofoten in May"
              tidemark records delete MyJournal.tidemark lofoten
            """,
        subcommands: [
            RecordsList.self, RecordsGet.self, RecordsSearch.self, RecordsSet.self, RecordsRename.self, RecordsDelete.self,
        ],
        defaultSubcommand: RecordsList.self)
}

/// A record by its name, in the store that has it.
struct FoundRecord {
    let scope: StoreScope
    let schema: RecordTypeSchema
    let record: StoredRecord

    var name: RecordName { RecordName(type: schema.name, name: record.name) }

    /// - Parameters:
    ///   - text: The record's name, or `TYPE/NAME`.
    ///   - scope: The store to look in; `nil` for both, the private one first.
    init?(_ text: String, type: String?, in scope: StoreScope?, of directory: ContainerDirectory) throws {
        if let found = try FoundRecord(name: text, type: type, in: scope, of: directory) {
            self = found
        } else if type == nil, let slash = text.firstIndex(of: "/"),
            let found = try FoundRecord(
                name: String(text[text.index(after: slash)...]), type: String(text[..<slash]), in: scope, of: directory)
        {
            self = found
        } else if let found = try Self.ofShortName(text, type: type, in: scope, of: directory) {
            self = found
        } else {
            return nil
        }
    }

    /// Finds the record to which an import has given a short name, or `TYPE/NAME`.
    ///
    /// - Throws: ``StoreError`` `invalid` if records of several types have the short name.
    private static func ofShortName(
        _ text: String, type: String?, in scope: StoreScope?, of directory: ContainerDirectory
    ) throws -> FoundRecord? {
        for home in ContainerDirectory.scopes where scope.map({ $0 == home }) ?? directory.hasStore(home) {
            var found: [FoundRecord] = []
            for schema in try StoreReader(container: directory, scope: home).types() {
                guard type == nil || type == schema.name else { continue }
                let prefix = "\(schema.name)/"
                let short = type == nil && text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : text
                let name = schema.qualifiedName(of: short)
                if let record = try FoundRecord(name: name, type: schema.name, in: home, of: directory) { found.append(record) }
            }
            guard found.count < 2 else {
                let names = found.map { "\($0.schema.name)/\($0.name.shortName)" }.joined(separator: ", ")
                throw StoreError(.invalid, "records of several types have the name '\(text)': \(names); write TYPE/NAME")
            }
            if let record = found.first { return record }
        }
        return nil
    }

    private init?(name: String, type: String?, in scope: StoreScope?, of directory: ContainerDirectory) throws {
        for home in ContainerDirectory.scopes where scope.map({ $0 == home }) ?? directory.hasStore(home) {
            let found = try StoreReader(container: directory, scope: home).record(named: name)
            guard let (schema, record) = found, type == nil || type == schema.name else { continue }
            (self.scope, self.schema, self.record) = (home, schema, record)
            return
        }
        return nil
    }
}

extension RecordName {
    /// Whether a text on the command line names the record: by its name or its short name, alone or as `TYPE/NAME`.
    func isMeant(by text: String) -> Bool { [name, shortName, "\(type)/\(name)", "\(type)/\(shortName)"].contains(text) }
}

extension ContainerDirectory {
    /// The whole name of the record that a text names: by its name, or by the short name of an import. A text that names no
    /// record is returned as it is, because it may be the name of a deleted record.
    func recordName(_ text: String, in scope: StoreScope? = nil) throws -> String {
        try FoundRecord(text, type: nil, in: scope, of: self)?.record.name ?? text
    }
}

extension StoreScope: ExpressibleByArgument, CustomStringConvertible {
    public init?(argument: String) {
        guard let scope = ContainerDirectory.scopes.first(where: { $0.name == argument }) else { return nil }
        self = scope
    }

    public var defaultValueDescription: String { name }
    public var description: String { name }
    public static var allValueStrings: [String] { ContainerDirectory.scopes.map(\.name) }
    public static var allValueDescriptions: [String: String] { [:] }
}

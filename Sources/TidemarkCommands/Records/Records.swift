import ArgumentParser
import TidemarkModel
import TidemarkStore

struct Records: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows, sets, renames and deletes records.",
        discussion: """
            Examples:
              tidemark records MyJournal.tidemark --type Destination --sort createdAt --descending
              tidemark records get MyJournal.tidemark lofoten
              tidemark records set MyJournal.tidemark lofoten --type Destination caption="Lofoten in May"
              tidemark records delete MyJournal.tidemark lofoten
            """,
        subcommands: [RecordsList.self, RecordsGet.self, RecordsSet.self, RecordsRename.self, RecordsDelete.self],
        defaultSubcommand: RecordsList.self)
}

/// A record by its name, in the store that has it.
struct FoundRecord {
    let scope: StoreScope
    let schema: RecordTypeSchema
    let record: StoredRecord

    var name: RecordName { RecordName(type: schema.name, name: record.name) }

    /// - Parameters:
    ///   - text: Its name, or `TYPE/NAME`.
    ///   - scope: Where it is to be; `nil` for either store, the private one first.
    init?(_ text: String, type: String?, in scope: StoreScope?, of directory: ContainerDirectory) throws {
        if let found = try FoundRecord(name: text, type: type, in: scope, of: directory) {
            self = found
        } else if type == nil, let slash = text.firstIndex(of: "/"),
            let found = try FoundRecord(
                name: String(text[text.index(after: slash)...]), type: String(text[..<slash]), in: scope, of: directory)
        {
            self = found
        } else {
            return nil
        }
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

extension StoreScope: ExpressibleByArgument, CustomStringConvertible {
    public init?(argument: String) {
        guard let scope = ContainerDirectory.scopes.first(where: { $0.name == argument }) else { return nil }
        self = scope
    }

    public var defaultValueDescription: String { name }
    public var description: String { name }
    public static var allValueStrings: [String] { ContainerDirectory.scopes.map(\.name) }
}

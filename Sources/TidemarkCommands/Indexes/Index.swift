import ArgumentParser
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct Index: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows, adds and drops indexes, which make queries fast.",
        discussion: """
            An index belongs to a container and is not synchronised. Names and references always have one. A program declares others in \
            its record types, and a schema file in its types. An index that this command adds stays until this command drops it.

            Examples:
              tidemark index list MyJournal.tidemark
              tidemark index add MyJournal.tidemark --type Destination rating createdAt
              tidemark index add MyJournal.tidemark --type Destination --full-text --language en caption details
              tidemark index drop MyJournal.tidemark --type Destination rating createdAt
            """,
        subcommands: [IndexList.self, IndexAdd.self, IndexDrop.self])
}

/// An index as the commands print it.
struct IndexLine: Encodable {
    let type: String
    let kind: String
    let fields: [String]
    let language: String?
    let declaredBy: String
    let store: String

    init(_ stored: StoredIndex, type: String, scope: StoreScope) {
        self.type = type
        (kind, fields, language) = (stored.index.kind.rawValue, stored.index.fields, stored.index.language)
        declaredBy = stored.origin.rawValue
        store = scope.name
    }

    var title: String {
        let words = kind == FieldIndex.Kind.fullText.rawValue ? "the full-text index" : "the index"
        return "\(words) of \(type) on \(fields.joined(separator: ", "))"
    }
}

/// The stores of a container whose indexes a command changes.
struct IndexStores {
    let directory: ContainerDirectory
    let scopes: [StoreScope]

    /// - Throws: ``StoreError`` `schema` when no store has the type.
    init(_ directory: ContainerDirectory, type: String, scope: StoreScope?) throws {
        self.directory = directory
        let there = scope.map { [$0] } ?? ContainerDirectory.scopes.filter(directory.hasStore)
        scopes = try there.filter { scope in
            try StoreReader(container: directory, scope: scope).types().contains { $0.name == type }
        }
        guard !scopes.isEmpty else { throw StoreError(.schema, "the container has no record type '\(type)'") }
    }

    func store(_ scope: StoreScope) throws -> RecordStore { try RecordStore(container: directory, scope: scope) }
}

import ArgumentParser
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

struct AdminSchema: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema", abstract: "Shows record types, sets indexes, and deploys the schema to production.",
        discussion: """
            In development, saves add record types and fields to the schema, and so do 'add' and 'import'. In production, the schema is \
            what was deployed, and fixed.

            Examples:
              tidemark admin schema show --container journal --data ~/cloud
              tidemark admin schema export --container journal --data ~/cloud > schema.json
              tidemark admin schema add --container journal --type Destination --field rating \\
                  --kind int64 --data ~/cloud
              tidemark admin schema import schema.json --container journal --data ~/cloud
              tidemark admin schema index --container journal --type Destination --field title \\
                  --queryable --sortable --data ~/cloud
              tidemark admin schema diff --container journal --data ~/cloud
              tidemark admin schema deploy --container journal --data ~/cloud
              tidemark admin schema freeze --container journal --data ~/cloud
              tidemark admin schema remove --container journal --type Destination --field stars --data ~/cloud
            """,
        subcommands: [
            AdminSchemaShow.self, AdminSchemaExport.self, AdminSchemaAdd.self, AdminSchemaImport.self, AdminSchemaIndex.self,
            AdminSchemaDiff.self, AdminSchemaDeploy.self, AdminSchemaFreeze.self, AdminSchemaRemove.self, AdminSchemaReset.self,
        ])
}

extension CloudSchema.RecordType {
    /// The indexes of a field, in the order of their declaration.
    fileprivate static func names(_ field: CloudSchema.Field) -> [String] {
        CloudSchema.Index.allCases.filter { field.indexes[$0] != nil }.map(\.rawValue)
    }
}

struct AdminSchemaShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Shows the record types of a container, their fields and indexes.",
        discussion: """
            The field 'recordName' stands for the record type itself.

            Examples:
              tidemark admin schema show --container journal --data ~/cloud
              tidemark admin schema show --container journal --environment production --data ~/cloud --json
            """)

    @Option(help: ArgumentHelp("The container.", valueName: "name"))
    var container: String

    @Option(help: "development or production.")
    var environment: StoreEnvironment = .development

    @OptionGroup var place: AdminData

    @Flag(help: "Prints one JSON object per type and line.")
    var json = false

    private struct Line: Encodable {
        let type: String
        let isQueryable: Bool
        let fields: [Field]

        struct Field: Encodable {
            let name, type: String
            let indexes: [String]
        }
    }

    func run() async throws {
        try await reportingErrors {
            let schema = try await place.administration().schema(of: container, environment: environment)
            if !json, schema.types.isEmpty {
                return try Output.line("\(container) has no record types in \(environment.rawValue)")
            }
            var table = TextTable(columns: ["record type", "field", "type", "indexes"])
            for (name, type) in schema.types.sorted(by: { $0.key < $1.key }) {
                let fields = type.fields.sorted { $0.key < $1.key }
                    .map { Line.Field(name: $0.key, type: $0.value.type, indexes: CloudSchema.RecordType.names($0.value)) }
                if json {
                    try Output.json(Line(type: name, isQueryable: type.isQueryable, fields: fields))
                    continue
                }
                try table.add([name, "recordName", "", type.isQueryable ? "queryable" : ""])
                for field in fields { try table.add(["", field.name, field.type, field.indexes.joined(separator: ", ")]) }
            }
            if !json { try table.finish() }
        }
    }
}

struct AdminSchemaIndex: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "index", abstract: "Sets the indexes of a field in the development schema.",
        discussion: """
            The field has exactly the named indexes afterwards. '--field recordName --queryable' allows queries for all records of a \
            type. The index covers existing records, too. To have it in production, deploy the schema.

            Examples:
              tidemark admin schema index --container journal --type Destination --field title \\
                  --queryable --sortable --data ~/cloud
              tidemark admin schema index --container journal --type Destination --field notes \\
                  --none --data ~/cloud
            """)

    @Option(help: ArgumentHelp("The container.", valueName: "name"))
    var container: String

    @Option(help: ArgumentHelp("The record type.", valueName: "name"))
    var type: String

    @Option(help: ArgumentHelp("The field, or recordName.", valueName: "name"))
    var field: String

    @Flag(help: "Queries can compare the field.")
    var queryable = false

    @Flag(help: "Queries can sort by the field.")
    var sortable = false

    @Flag(help: "Queries can search the field for words.")
    var searchable = false

    @Flag(help: "Removes all indexes of the field.")
    var none = false

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    private var indexes: Set<CloudSchema.Index> {
        Set([(queryable, CloudSchema.Index.queryable), (sortable, .sortable), (searchable, .searchable)].filter(\.0).map(\.1))
    }

    func validate() throws {
        guard none == indexes.isEmpty else {
            throw ValidationError("say which indexes: --queryable, --sortable, --searchable, or --none")
        }
    }

    func run() async throws {
        try await reportingErrors {
            try await place.administration().setIndexes(indexes, of: field, in: type, container: container)
            let names = CloudSchema.Index.allCases.filter(indexes.contains).map(\.rawValue)
            try outcome.tell(
                "admin schema index", ["container": container, "type": type, "field": field, "indexes": names],
                text: "\(field) of \(type): \(names.isEmpty ? "no index" : names.joined(separator: ", "))")
        }
    }
}

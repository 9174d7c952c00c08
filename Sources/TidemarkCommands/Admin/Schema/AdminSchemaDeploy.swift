import ArgumentParser
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkModel

/// A difference between the schemas of development and production, as a JSON object.
private struct DifferenceLine: Encodable {
    let type: String
    let field: String?
    /// `newType`, `newField`, `otherType`, `indexes` or `onlyInProduction`.
    let change: String
    /// The type of the field, or its indexes.
    let development, production: String?

    init(_ difference: CloudSchemaDifference) {
        (type, field) = (difference.type, difference.field)
        switch difference.change {
        case .newType: (change, development, production) = ("newType", nil, nil)
        case .newField(let kind): (change, development, production) = ("newField", kind, nil)
        case .otherType(let there, let here): (change, development, production) = ("otherType", here, there)
        case .indexes(let there, let here):
            (change, development, production) = ("indexes", here.joined(separator: ", "), there.joined(separator: ", "))
        case .onlyInProduction: (change, development, production) = ("onlyInProduction", nil, nil)
        }
    }
}

struct AdminSchemaDiff: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff", abstract: "Compares the schema of development with that of production.",
        discussion: """
            'tidemark admin schema deploy' gives production what it lacks. What only production has stays there.

            Examples:
              tidemark admin schema diff --container journal --data ~/cloud
              tidemark admin schema diff --container journal --data ~/cloud --json
            """)

    @Option(help: ArgumentHelp("The container.", valueName: "name"))
    var container: String

    @Flag(help: "Prints one JSON object.")
    var json = false

    @OptionGroup var place: AdminData

    private struct Report: Encodable {
        let equal: Bool
        /// Whether no field has another type in production.
        let canBeDeployed: Bool
        let differences: [DifferenceLine]
    }

    func run() async throws {
        try await reportingErrors {
            let differences = try await place.administration().schemaDifferences(of: container)
            guard !json else {
                return try Output.json(
                    Report(
                        equal: differences.isEmpty, canBeDeployed: !differences.contains(where: \.isRefused),
                        differences: differences.map(DifferenceLine.init)))
            }
            for difference in differences { try Output.line(difference.sentence) }
            if differences.isEmpty { try Output.line("production has the same schema") }
        }
    }
}

struct AdminSchemaDeploy: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deploy",
        abstract: "Deploys the development schema to production. Deployed types and fields can't be removed.",
        discussion: """
            Deployment adds types and fields, and replaces the indexes by those of development. The command lists them first, and asks on a \
            terminal. If a field has another type in production, the command refuses and changes nothing. If the differences have changed \
            since they were listed, it deploys nothing, with exit code 75.

            Examples:
              tidemark admin schema deploy --container journal --dry-run --data ~/cloud
              tidemark admin schema deploy --container journal --data ~/cloud
              tidemark admin schema deploy --container journal --yes --data ~/cloud
            """)

    @Option(help: ArgumentHelp("The container.", valueName: "name"))
    var container: String

    @Flag(help: "Lists what would be deployed, and changes nothing.")
    var dryRun = false

    @OptionGroup var confirmation: Confirmation

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let administration = try await place.administration()
            let differences = try await administration.schemaDifferences(of: container).filter(\.isDeployed)
            if !outcome.json { for difference in differences { try Output.line(difference.sentence) } }
            if let refused = differences.first(where: \.isRefused) {
                throw ending(
                    "nothing is deployed: \(refused.sentence). Give the field another name in development", .usage)
            }
            if !dryRun, !differences.isEmpty {
                // Standard output gets JSON only.
                if outcome.json, confirmation.isAsking { for difference in differences { Output.error(difference.sentence) } }
                let count = Wording.count(differences.count, "difference")
                try confirmation.ask(
                    "Deploy \(count) of \(container) to production, where types and fields can't be removed?")
                try await deploy(differences, administration)
            }
            let newTypes = differences.count { $0.change == .newType }
            let newFields = differences.count { if case .newField = $0.change { true } else { false } }
            let production = try await administration.schema(of: container, environment: .production)
            // A dry run reports what would be there.
            let types = production.types.count + (dryRun ? newTypes : 0)
            let fields = production.types.values.reduce(dryRun ? newFields : 0) { $0 + $1.fields.count }
            let numbers =
                "\(Wording.count(types, "type")) (\(Wording.count(newTypes)) new) and \(Wording.count(fields, "field")) "
                + "(\(Wording.count(newFields)) new)"
            try outcome.tell(
                "admin schema deploy",
                [
                    "container": container, "dryRun": dryRun, "types": types, "fields": fields, "newTypes": newTypes,
                    "newFields": newFields, "differences": differences.map(DifferenceLine.init),
                ],
                text: dryRun ? "production would have \(numbers)" : "production has \(numbers)")
        }
    }

    private func deploy(_ differences: [CloudSchemaDifference], _ administration: Administration) async throws {
        do throws(AdministrationError) {
            try await administration.deploySchema(of: container, expecting: CloudSchemaDifference.digest(of: differences))
        } catch {
            guard error.code == .conflict else { throw error }
            throw ending(error.message, .temporaryFailure)
        }
    }
}

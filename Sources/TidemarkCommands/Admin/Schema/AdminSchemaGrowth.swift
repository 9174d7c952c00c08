import ArgumentParser
import TidemarkAdministration
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

struct AdminSchemaFreeze: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "freeze", abstract: "Freezes the development schema: saves no longer add types and fields.",
        discussion: """
            From then on the cloud refuses records with unknown types or fields, as in production. '--off' ends the freeze.

            Examples:
              tidemark admin schema freeze --container journal --data ~/cloud
              tidemark admin schema freeze --container journal --off --data ~/cloud
            """)

    @Option(help: ArgumentHelp("The container.", valueName: "name"))
    var container: String

    @Flag(help: "Ends the freeze.")
    var off = false

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            try await place.administration().setSchemaFrozen(!off, of: container)
            try outcome.tell(
                "admin schema freeze", ["container": container, "isFrozen": !off],
                text: "the development schema of \(container) \(off ? "grows by what is saved" : "is frozen")")
        }
    }
}

struct AdminSchemaRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Removes a record type or a field from the development schema.",
        discussion: """
            The next saved record that has the field defines its type, so removing a field is the way to change its type while no record has \
            it. If records have the type or field, the command removes nothing unless --force is given. With --force, the records keep their \
            values, but queries no longer find them by the field, and devices that hold values of the old type are refused once another type \
            is defined. Where one device has a field of another type than the cloud, change that device: 'tidemark schema retype' or \
            'tidemark schema rename'. Deployed types and fields stay in production.

            Examples:
              tidemark admin schema remove --container journal --type Destination --field stars --data ~/cloud
              tidemark admin schema remove --container journal --type Junk --force --data ~/cloud
            """)

    @Option(help: ArgumentHelp("The container.", valueName: "name"))
    var container: String

    @Option(help: ArgumentHelp("The record type.", valueName: "name"))
    var type: String

    @Option(help: ArgumentHelp("The field. (default: the whole type)", valueName: "name"))
    var field: String?

    @Flag(
        help:
            "Removes the type or field even if records have it. They keep their values; devices that hold the old type may be refused."
    )
    var force = false

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let count = try await place.administration().removeFromSchema(
                type: type, field: field, of: container, isForced: force)
            let what = field.map { "\($0) of \(type)" } ?? type
            let kept = count == 0 ? "" : "; \(Wording.count(count, "record")) kept what they have"
            if count > 0 {
                Output.error(
                    "note: the next record that is saved decides the type; devices that hold values of another one are refused then"
                )
            }
            try outcome.tell(
                "admin schema remove", ["container": container, "type": type, "field": field, "records": count],
                text: "removed \(what) from the development schema of \(container)\(kept)")
        }
    }
}

struct AdminSchemaReset: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset", abstract: "Deletes all records of development, and makes its schema that of production.",
        discussion: """
            The command permanently deletes the records, shares and assets of all accounts in the development environment; devices that \
            synchronise later lose their copies. Production, accounts and tokens stay.

            Examples:
              tidemark admin schema reset --container journal --data ~/cloud
              tidemark admin schema reset --container journal --yes --data ~/cloud
            """)

    @Option(help: ArgumentHelp("The container.", valueName: "name"))
    var container: String

    @Flag(help: "Does not ask for confirmation.")
    var yes = false

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let administration = try await place.administration()
            _ = try await administration.schema(of: container, environment: .development)
            guard
                yes
                    || isTyped(
                        "This deletes all records of \(container) in development, for good. To go on, type the container's name again:",
                        container)
            else { throw ending("nothing was deleted; add --yes to reset the development environment of \(container)", .usage) }
            let removed = try await administration.resetDevelopment(of: container)
            try outcome.tell(
                "admin schema reset", ["container": container, "records": removed.records, "zones": removed.zones],
                text:
                    "deleted \(Wording.count(removed.records, "record")) and \(Wording.count(removed.zones, "zone")) of \(container) in development"
            )
        }
    }
}

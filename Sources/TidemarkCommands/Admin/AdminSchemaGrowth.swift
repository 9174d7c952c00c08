import ArgumentParser
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

struct AdminSchemaFreeze: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "freeze", abstract: "Lets the development schema grow no more by what is saved.",
        discussion: """
            Records with types and fields that are not there are refused from then on, as in production. '--off' lets it grow again.

            Examples:
              tidemark admin schema freeze --container journal --data ~/cloud
              tidemark admin schema freeze --container journal --off --data ~/cloud
            """)

    @Option(help: ArgumentHelp("The container.", valueName: "name"))
    var container: String

    @Flag(help: "Lets it grow again.")
    var off = false

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let (cloud, credentials) = try place.open()
            try demandContainer(container, in: credentials)
            try await cloud.setSchemaFrozen(!off, of: container)
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
            The next record that has it decides its type: so a field gets another type. What records have is refused unless it is \
            forced; then they keep their values, and nothing finds them by the field any more. What was deployed to production stays there.

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

    @Flag(help: "Removes it also where records have it.")
    var force = false

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let (cloud, credentials) = try place.open()
            try demandContainer(container, in: credentials)
            let count = try await cloud.removeFromSchema(type: type, field: field, of: container, isForced: force)
            let what = field.map { "\($0) of \(type)" } ?? type
            let kept = count == 0 ? "" : "; \(Wording.count(count, "record")) kept what they have"
            try outcome.tell(
                "admin schema remove", ["container": container, "type": type, "field": field, "records": count],
                text: "removed \(what) from the development schema of \(container)\(kept)")
        }
    }
}

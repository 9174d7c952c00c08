import ArgumentParser
import TidemarkAdministration
import TidemarkEmbeddedCloud
import TidemarkIdentity

struct AdminContainer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "container", abstract: "Adds, shows and removes served containers.",
        discussion: """
            Examples:
              tidemark admin container add iCloud.org.example.journal --data ~/cloud
              tidemark admin container list --data ~/cloud
              tidemark admin container remove iCloud.org.example.journal --data ~/cloud
            """,
        subcommands: [AdminContainerAdd.self, AdminContainerList.self, AdminContainerRemove.self])
}

struct AdminContainerAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds a container to those that the server serves.",
        discussion: """
            If the directory holds no cloud, the command creates one. Adding a served container again changes nothing.

            Examples:
              tidemark admin container add iCloud.org.example.journal --data ~/cloud
            """)

    @Argument(help: "The container's identifier: letters, digits, hyphens, underscores and single dots.")
    var name: String

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            // An invalid name is refused before a cloud is made.
            try CredentialStore.check(container: name)
            try await place.administrationOrMake().addContainer(name)
            try outcome.tell("admin container add", ["container": name], text: "\(name) is served")
        }
    }
}

struct AdminContainerList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows which containers are served.",
        discussion: """
            Examples:
              tidemark admin container list --data ~/cloud
              tidemark admin container list --data ~/cloud --json
            """)

    @OptionGroup var place: AdminData

    @Flag(help: "Prints one JSON object per line.")
    var json = false

    private struct Line: Encodable { let name: String }

    func run() async throws {
        try await reportingErrors {
            let names = try await place.administration().containers()
            if !json, names.isEmpty {
                return try Output.line("no container is served; add one with 'tidemark admin container add'")
            }
            for name in names {
                if json { try Output.json(Line(name: name)) } else { try Output.line(name) }
            }
        }
    }
}

struct AdminContainerRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Stops serving a container; its stored data stays.",
        discussion: """
            Examples:
              tidemark admin container remove iCloud.org.example.journal --data ~/cloud
            """)

    @Argument(help: "The container's identifier.")
    var name: String

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let administration = try await place.administration()
            try await administration.removeContainer(name)
            try outcome.tell(
                "admin container remove", ["container": name],
                text:
                    "\(name) is served no longer; its records stay in \(place.data.map { "\($0)/containers/\(name)" } ?? administration.cloud.place)"
            )
        }
    }
}

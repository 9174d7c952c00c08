import ArgumentParser
import TidemarkEmbeddedCloud

/// `tidemark admin resync`: the last step after a cloud was restored by other means than `tidemark admin restore`.
struct AdminResync: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resync",
        abstract: "Makes devices compare their records with a cloud that was put back, and send what it lacks.",
        discussion: """
            Run it after a cloud was put back to an earlier state: a database by PostgreSQL's own programs, a directory or a machine from a \
            snapshot. 'tidemark admin restore' does it by itself. A cloud learns from most devices that it was put back, but not from one that \
            has only sent records since: without this command these stay on the device, and others never get them.

            With its next sync, each device fetches all records once, compares them with its own, and sends those that the cloud had \
            acknowledged and lacks now. 'tidemark serve' may run meanwhile. No record is changed by the command itself.

            Examples:
              tidemark admin resync --data ~/cloud
              tidemark admin resync --database postgresql://tidemark@db1/tidemark --assets s3://journal
            """)

    @OptionGroup var place: AdminData

    @Flag(help: "Prints one JSON object.")
    var json = false

    private struct Report: Encodable {
        var done = "admin resync"
        let containers, environments: Int
    }

    func run() async throws {
        try await reportingErrors {
            let (containers, environments) = try await place.open().cloud.beginIncarnations()
            if json { return try Output.json(Report(containers: containers, environments: environments)) }
            try Output.line(
                "With their next sync, devices compare their records with those of "
                    + "\(Wording.containers(containers, environments: environments)), and send what is missing.")
        }
    }
}

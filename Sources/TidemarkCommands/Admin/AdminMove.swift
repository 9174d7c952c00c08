import ArgumentParser
import Foundation
import TidemarkModel

/// `tidemark admin move`: moves a served cloud from a directory into a database and a bucket, or back.
struct AdminMove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Copies a cloud from a directory into a database and a bucket, or back.",
        discussion: """
            One of --from and --to is a directory, the other a PostgreSQL database as 'tidemark serve --database' has it; --assets says where \
            the contents of assets are that belong to the database. The source stays as it is. Devices go on with the target as if nothing had \
            happened: accounts, passwords, sessions, tokens, records with their changes, shares and subscriptions are the same there. \
            Uploads that are not complete start again, and the list of sync errors begins anew.

            Stop the servers first. The command refuses a source or a target that is in use, and a target that holds something else. When it \
            is ended midway, even by a loss of power, run it again: it goes on where it was. At the end it compares a digest of all rows \
            on both sides; contents of assets are checked against their SHA-256 as they arrive. Damaged or missing contents are named, the \
            rest is moved, and the command exits with 1.

            Examples:
              tidemark admin move --from /srv/cloud --to postgresql://tidemark@db1/tidemark \\
                  --assets s3://journal --s3-endpoint https://s3.example.org
              tidemark admin move --from postgresql://tidemark@db1/tidemark --assets s3://journal \\
                  --to /srv/cloud
              tidemark admin move --from /srv/cloud --to 'host=db1 dbname=tidemark' \\
                  --assets /srv/assets --json

            Exit codes: 1 the source has damaged contents; 64 wrong usage; 65 what has arrived is not what was there; 66 there is no cloud; \
            69 the database or the bucket can't be used; 73 the target holds something else; 75 one of both is in use, or has changed \
            meanwhile.
            """)

    @Option(help: ArgumentHelp("The cloud: a directory, or the address of a database.", valueName: "place"))
    var from: String

    @Option(help: ArgumentHelp("Where it comes to: a directory that is new or empty, or a database.", valueName: "place"))
    var to: String

    @Option(
        help: ArgumentHelp(
            "Where the contents of assets are that belong to the database: s3://bucket or s3://bucket/prefix, or a directory that all servers share.",
            valueName: "place"))
    var assets: String

    @Option(help: ArgumentHelp("As for 'tidemark serve'.", valueName: "url"))
    var s3Endpoint: String?

    @Option(help: ArgumentHelp("As for 'tidemark serve'.", valueName: "name"))
    var s3Region = "us-east-1"

    @Option(help: ArgumentHelp("As for 'tidemark serve': path or host.", valueName: "style"))
    var s3Style: String?

    @Option(help: ArgumentHelp("A file with these options, such as that of 'tidemark serve'.", valueName: "file"))
    var config: String?

    @Option(help: "Shows progress on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Prints the summary as one JSON object.")
    var json = false

    func validate() throws {
        guard Self.isDatabase(from) != Self.isDatabase(to) else {
            throw ValidationError(
                Self.isDatabase(from)
                    ? "--from and --to name two databases; one of them has to be a directory"
                    : "--from and --to name two directories; copy a directory by 'tidemark admin backup', and name a database here"
            )
        }
        try storage.validate()
    }

    /// Whether a place is a database's address: a PostgreSQL URI, or pairs such as `host=db1`.
    static func isDatabase(_ place: String) -> Bool {
        let first = place.prefix { $0 != "=" }
        let isPair = first.count < place.count && !first.isEmpty && first.allSatisfy { $0.isLetter || $0 == "_" }
        return place.hasPrefix("postgresql://") || place.hasPrefix("postgres://") || isPair
    }

    /// The database with its assets.
    private var storage: StorageOptions {
        var options = StorageOptions()
        (options.database, options.assets) = (Self.isDatabase(from) ? from : to, assets)
        (options.s3Endpoint, options.s3Region, options.s3Style) = (s3Endpoint, s3Region, s3Style)
        (options.databaseConnections, options.databasePooler, options.databaseDirect) = (8, false, nil)
        return options
    }

    func run() async throws {
        try await reportingErrors {
            guard let opener = AdminDatabases.opener else {
                throw ending("this program opens no database; run the command by 'tidemark admin'", .unavailable)
            }
            _ = umask(0o077)
            let path = Self.isDatabase(from) ? to : from
            let directory = URL(fileURLWithPath: try fileURL(path, "the cloud").path, isDirectory: true)
            let bar = LockedValue(ProgressBar(progress))
            let report = try await opener.move(directory, storage, intoDatabase: Self.isDatabase(to)) { state in
                bar.withLock { $0.show(state.what, done: state.done, total: state.total) }
            }
            bar.withLock { $0.finish() }
            if json {
                try Output.json(report)
            } else {
                for problem in report.problems { Output.error("asset: \(problem)") }
                try Output.line(
                    "Moved \(Wording.containers(report.containers, environments: report.environments)), with "
                        + "\(Wording.count(report.accounts, "account")), "
                        + "\(Wording.count(report.records, "record")) and \(Wording.count(report.assets, "asset")). "
                        + "Both sides have the digest \(report.digest).")
            }
            guard report.problems.isEmpty else {
                Output.error(
                    "tidemark: \(Wording.count(report.problems.count, "content")) of assets of the source can't be read; the rest is moved"
                )
                throw ExitCode(ExitStatus.problemsFound.rawValue)
            }
        }
    }
}

/// The report of `tidemark admin move`.
package struct AdminMoveReport: Encodable, Sendable {
    var done = "admin move"
    let containers, environments, accounts, records, assets: Int
    let digest: String
    let problems: [String]

    package init(
        containers: Int, environments: Int, accounts: Int, records: Int, assets: Int, digest: String, problems: [String]
    ) {
        (self.containers, self.environments, self.accounts) = (containers, environments, accounts)
        (self.records, self.assets, self.digest, self.problems) = (records, assets, digest, problems)
    }
}

/// The progress of a move.
package struct AdminMoveProgress: Sendable {
    let what: String
    let done, total: Int

    package init(what: String, done: Int, total: Int) { (self.what, self.done, self.total) = (what, done, total) }
}

import ArgumentParser
import Foundation
import TidemarkEmbeddedCloud
import TidemarkModel

struct AdminBackup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Copies the directory of a cloud and verifies the copy, while the cloud is served.",
        discussion: """
            The copy has each database as of one moment, and the assets that it references. On the same file system assets are hard \
            links and take no space. The command overwrites nothing; the next attempt removes what a killed attempt has left.

            The copy contains the server's secrets: protect it as you protect the cloud. The command copies damaged records as they are, \
            names them, and exits with 1.

            Examples:
              tidemark admin backup /backups/Monday --data ~/cloud
              tidemark admin backup /backups/Monday --data ~/cloud --json
            """)

    @Argument(help: "The path of the copy, which must not exist.")
    var target: String

    @OptionGroup var place: AdminData

    @Option(help: "Shows progress on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Prints the summary as one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            try place.demandDirectory(
                "back up a database by pg_basebackup or pg_dump, and the bucket by its versions, or copy the cloud into a directory by 'tidemark admin move'"
            )
            let directory = try place.existing()
            let target = URL(fileURLWithPath: try fileURL(target, "the backup").path, isDirectory: true)
            let bar = ProgressBar(progress)
            let manifest = try CloudBackup(of: directory, to: target).run { state in
                bar.show("\(state.phase.rawValue) \(state.place)  \(Wording.count(state.assets, "asset"))", done: 0, total: nil)
            }
            bar.finish()
            if json {
                try Output.json(manifest)
            } else {
                for problem in manifest.problems { Output.error("\(problem.kind.rawValue): \(problem.message)") }
                try Output.line(
                    "Backed up \(Wording.count(manifest.containers, "container")) with \(Wording.count(manifest.records, "record")) and "
                        + "\(Wording.count(manifest.assets, "asset")), \(Wording.bytes(Int(manifest.bytes))), to \(target.path).")
            }
            guard manifest.problems.isEmpty else {
                Output.error(
                    "tidemark: \(Wording.count(manifest.problems.count, "problem")) of the cloud went into the backup; "
                        + "'tidemark admin verify' tells more")
                throw ExitCode(ExitStatus.problemsFound.rawValue)
            }
        }
    }
}

struct AdminRestore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Restores a cloud from a backup; devices then send the records that the backup lacks.",
        discussion: """
            The command verifies the backup first. It overwrites nothing without --replace; with it, the present cloud is renamed and \
            stays beside the new one. No process may use the cloud meanwhile.

            With the next sync, devices compare their records with the cloud's, and send records that the cloud had acknowledged after \
            the backup. Sessions, passwords and tokens are those of the backup: revoke again what was revoked since.

            Examples:
              tidemark admin restore /backups/Monday --data ~/cloud
              tidemark admin restore /backups/Monday --data ~/cloud --replace
            """)

    @Argument(help: "The backup.")
    var backup: String

    @OptionGroup var place: AdminData

    @Flag(help: "Replaces an existing cloud, which is renamed and kept.")
    var replace = false

    @Flag(help: "Restores the undamaged part of a damaged backup.")
    var acceptDamage = false

    @Option(help: "Shows progress on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Prints the summary as one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            try place.demandDirectory(
                "restore a database by PostgreSQL's own means and run 'tidemark admin resync', or copy the backup into an empty one by 'tidemark admin move'"
            )
            let directory = try place.directory()
            let source = try fileURL(backup, "the backup")
            let bar = ProgressBar(progress)
            let summary = try CloudRestoration(of: source, to: directory, replaces: replace, acceptsDamage: acceptDamage).run {
                state in
                bar.show("\(state.phase.rawValue) \(state.place)  \(Wording.count(state.assets, "asset"))", done: 0, total: nil)
            }
            bar.finish()
            if json { return try Output.json(summary) }
            for problem in summary.problems { Output.error("\(problem.kind.rawValue): \(problem.message)") }
            let replaced = summary.replaced.map { " The previous cloud is in \($0)." } ?? ""
            try Output.line(
                "Restored \(Wording.count(summary.containers, "container")) with \(Wording.count(summary.records, "record")) and "
                    + "\(Wording.count(summary.assets, "asset")) of \(Wording.moment(summary.createdAt)) UTC to "
                    + "\(summary.path).\(replaced)")
        }
    }
}

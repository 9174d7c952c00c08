import ArgumentParser
import Foundation
import TidemarkEmbeddedCloud
import TidemarkModel

struct AdminBackup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Copies the directory of a cloud, whole and verified, while it is served.",
        discussion: """
            The copy has each database as it is at one moment, and the assets that it names. On the same file system assets get a second \
            name and take no room. Nothing is overwritten; what an attempt that was killed has left goes with the next one.

            The copy has the secrets of the server: keep it as you keep the cloud. What is damaged in the cloud is copied as it is and told, \
            and the command exits with 1.

            Examples:
              tidemark admin backup /backups/Monday --data ~/cloud
              tidemark admin backup /backups/Monday --data ~/cloud --json
            """)

    @Argument(help: "The copy's place, where nothing may be.")
    var target: String

    @OptionGroup var place: AdminData

    @Option(help: "Shows progress on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Prints the summary as one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
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
        commandName: "restore", abstract: "Puts a backup of a cloud in its place, and has devices send what it lacks.",
        discussion: """
            The backup is verified first. Nothing is overwritten unless you say --replace: then the cloud that is there is kept beside the \
            new one, and nobody may use it meanwhile.

            When devices synchronise next, they compare what they have with what the cloud has, and send what was acknowledged after the \
            backup was made. Sessions, passwords and tokens are those of the backup: revoke again what was revoked since.

            Examples:
              tidemark admin restore /backups/Monday --data ~/cloud
              tidemark admin restore /backups/Monday --data ~/cloud --replace
            """)

    @Argument(help: "The backup.")
    var backup: String

    @OptionGroup var place: AdminData

    @Flag(help: "Replaces the cloud that is there, which is kept beside.")
    var replace = false

    @Flag(help: "Restores what is whole of a damaged backup.")
    var acceptDamage = false

    @Option(help: "Shows progress on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Prints the summary as one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
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
            let replaced = summary.replaced.map { " What was there is in \($0)." } ?? ""
            try Output.line(
                "Restored \(Wording.count(summary.containers, "container")) with \(Wording.count(summary.records, "record")) and "
                    + "\(Wording.count(summary.assets, "asset")) of \(Wording.moment(Timestamp.text(microseconds: summary.made))) UTC to "
                    + "\(summary.path).\(replaced)")
        }
    }
}

import ArgumentParser
import Foundation
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

struct AdminAccountExport: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Exports all data of an account to a folder.",
        discussion: """
            The folder gets README.txt, which says to the person what each file is; account.json, sessions.jsonl, identities.jsonl, \
            sync-errors.jsonl and audit.jsonl; SHA256SUMS, by which 'sha256sum -c' checks all files; and for each container and environment records.jsonl, a \
            line for each record of the person with its database and zone, and shares.jsonl; a table for each record type in records, \
            for spreadsheets; the assets, in a folder for each record type, with names that begin with record and field and an ending \
            by their content; and assets.csv, which says which record and field has which file. Records have the form of CloudKit Web \
            Services. Records that other owners share with the account are left out.

            The command names damaged records, exports the rest, and exits with 1.

            Examples:
              tidemark admin account export anna@example.org --to anna --data ~/cloud
            """)

    @Argument(help: "The address.")
    var email: String

    @Option(help: ArgumentHelp("The folder to create; it must not exist.", valueName: "dir"))
    var to: String

    @Flag(help: "Prints the summary as one JSON object.")
    var json = false

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let administration = try await place.administration()
            let account = try await administration.account(email)
            let folder = try fileURL(to, "the folder of the export")
            guard mkdir(folder.path, 0o700) == 0 else {
                throw ending("cannot make the folder \(folder.path): \(String(cString: strerror(errno)))", .cannotCreate)
            }
            let summary: PersonArchive.Summary
            do {
                summary = try await administration.export(account, to: folder)
            } catch {
                // Somebody could mistake a part of the export for the whole.
                do {
                    try FileManager.default.removeItem(at: folder)
                } catch let removal {
                    Output.error(
                        "note: \(folder.path) holds a part of the data, and can't be removed: \(removal.localizedDescription)")
                }
                throw error
            }
            if json {
                try Output.json(summary)
                if !summary.problems.isEmpty { throw ExitCode(ExitStatus.problemsFound.rawValue) }
                return
            }
            for problem in summary.problems { try Output.line("damaged: \(problem)") }
            try Output.line(
                "Exported \(Wording.count(summary.records, "record")), \(Wording.count(summary.shares, "share")) and "
                    + "\(Wording.count(summary.assets, "asset")), \(Wording.bytes(Int(summary.bytes))), to \(to)."
                    + (summary.problems.isEmpty ? "" : " Without \(Wording.count(summary.problems.count, "damaged item")).")
            )
            if !summary.problems.isEmpty { throw ExitCode(ExitStatus.problemsFound.rawValue) }
        }
    }
}

import ArgumentParser
import Foundation
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct StoreLocate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "locate",
        abstract: "Finds a container by its name.",
        discussion: """
            Below a directory, …/store/NAME.tidemark comes first (a cloud stands behind it), …/local/store/NAME.tidemark second, and the \
            default location last. The default location is ~/.local/share/tidemark (XDG_DATA_HOME), or with --group the folder of that \
            group; without --in, the search is below its folder. Symbolic links are not followed, and nothing is changed. Unusable \
            candidates are named on standard error, with the reason. The command exits with 66 if there is no container of the name.

            Examples:
              tidemark store locate Journal
              tidemark store locate Journal --in ~/Library --json
              tidemark store locate Journal --group group.com.example.journal
            """)

    @Argument(help: "The container's name, without '.tidemark'.")
    var name: String

    @Option(name: .customLong("in"), help: ArgumentHelp("The directory below which to look.", valueName: "dir"))
    var directory: String?

    @Option(help: ArgumentHelp("The group whose folder is the default location.", valueName: "identifier"))
    var group: String?

    @Flag(help: "Prints one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let locator = try StoreLocator(
                name: name, under: directory.map { try fileURL($0, "the directory") },
                location: group.map { .group($0) } ?? .default)
            let search = try locator.search()
            if json {
                try Output.json(Report(search))
            } else {
                for candidate in search.candidates {
                    try Output.line(candidate.url.path)
                    try Output.line("    \(candidate.kind.rawValue): \(candidate.reason)")
                }
                for skipped in search.skipped { Output.error("skipped: \(skipped.reason)") }
                if !search.isComplete {
                    Output.error(
                        """
                        note: not all folders were looked into; at most \(Wording.count(StoreLocator.entryLimit)) names are read, and folders \
                        up to \(StoreLocator.depthLimit) deep. Name a directory that is nearer with --in
                        """)
                }
            }
            guard search.best != nil else {
                let place = directory ?? group.map { "the folder of \($0)" } ?? locator.tree?.path ?? "the default location"
                let hint = search.skipped.isEmpty || json ? "" : "; what was found was skipped"
                throw ending("there is no container '\(name)' in \(place)\(hint)", .noInput)
            }
        }
    }

    /// The output of `--json`.
    private struct Report: Encodable {
        struct Candidate: Encodable {
            let path, kind, reason, identity, environment: String
        }
        struct Skipped: Encodable {
            let path, reason: String
            let code: String?
        }
        let candidates: [Candidate]
        let skipped: [Skipped]
        let complete: Bool

        init(_ search: StoreSearch) {
            candidates = search.candidates.map {
                Candidate(
                    path: $0.url.path, kind: $0.kind.rawValue, reason: $0.reason,
                    identity: $0.container.description.identity.uuidString,
                    environment: $0.container.description.environment.rawValue)
            }
            skipped = search.skipped.map { Skipped(path: $0.url.path, reason: $0.reason, code: $0.code?.rawValue) }
            complete = search.isComplete
        }
    }
}

import ArgumentParser
import Foundation
import TidemarkContainers
import TidemarkSQLite
import TidemarkStore

struct StoreMove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move",
        abstract: "Moves a container to another place and verifies the copy first.",
        discussion: """
            Everything is copied, read again and compared; then one renaming makes the copy count, and the old files are deleted. \
            Writers wait meanwhile. An interrupted move goes on when it is run again, and --rollback undoes it. A note with the new \
            location stays in the old folder. Running the command again changes nothing.

            Examples:
              tidemark store move MyJournal.tidemark ~/Shared/MyJournal.tidemark --dry-run
              tidemark store move MyJournal.tidemark ~/Shared/MyJournal.tidemark
              tidemark store move MyJournal.tidemark /mnt/J.tidemark --keep-source
              tidemark store move MyJournal.tidemark --rollback
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The new path, which must not exist. Not needed with --rollback and --finish.")
    var target: String?

    @Flag(help: "Shows what would be copied and what prevents it; changes nothing.")
    var dryRun = false

    @Flag(help: "Keeps the old files, which can't be opened, until --finish.")
    var keepSource = false

    @Flag(help: "Undoes a move that was interrupted, or whose old files were kept and are unchanged.")
    var rollback = false

    @Flag(help: "Deletes the old files of a move.")
    var finish = false

    @Option(help: "Shows a progress bar on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Prints one JSON object.")
    var json = false

    func validate() throws {
        guard [dryRun, keepSource, rollback, finish].filter(\.self).count <= 1 else {
            throw ValidationError("--dry-run, --keep-source, --rollback and --finish exclude each other")
        }
        guard target != nil || rollback || finish else { throw ValidationError("say where the container is to move: TARGET") }
    }

    func run() async throws {
        try await reportingErrors {
            let source = try fileURL(container, "the container")
            var mover = StoreMover(from: source, to: try place(source), keepsSource: keepSource)
            mover.hook = MoveKillHook.hook
            if dryRun {
                try show(mover.plan())
            } else if rollback {
                try mover.rollBack()
                // The copy of an abandoned move may be gone, and the container may have moved elsewhere since.
                let there = try StoreMover.target(ofMoveFrom: source)?.path ?? source.path
                try show(RolledBack(rolledBack: true, container: there)) { "The container is at \(there) as before." }
            } else {
                let bar = CopyingBar(progress)
                let summary = finish ? try mover.finish() : try mover.run { bar.show($0) }
                bar.finish()
                DamageNotes.tell(summary.damaged, "damaged, and has moved as it is")
                try show(summary) { text(summary) }
            }
        }
    }

    private func place(_ source: URL) throws -> URL {
        if let target { return try fileURL(target, "the target") }
        guard let known = try StoreMover.target(ofMoveFrom: source) else {
            throw StoreError(.cannotMove, "\(source.path) does not say where it was to move; name the target")
        }
        return known
    }

    private struct RolledBack: Encodable {
        let rolledBack: Bool
        let container: String
    }

    private func show(_ value: some Encodable, _ text: () -> String) throws {
        if json { try Output.json(value) } else { try Output.line(text()) }
    }

    private func show(_ plan: MovePlan) throws {
        guard !json else {
            try Output.json(plan)
            if !plan.reasonsAgainst.isEmpty { throw ExitCode(ExitStatus.cannotCreate.rawValue) }
            return
        }
        switch plan.state {
        case .done: return try Output.line("\(plan.from) has moved to \(plan.to) already.")
        case .switched: return try Output.line("The container is at \(plan.to) already; old files are at \(plan.from).")
        case .new, .begun: break
        }
        let begun = plan.state == .begun ? ", going on with a move that was interrupted" : ""
        try Output.line("Would move \(plan.from) to \(plan.to)\(begun):")
        for store in plan.stores { try Output.line("  \(store.name)  \(Wording.bytes(Int(store.bytes)))") }
        try Output.line("  \(Wording.count(plan.assets, "asset"))  \(Wording.bytes(Int(plan.assetBytes)))")
        try Output.line("To be copied: \(Wording.bytes(Int(plan.bytes))); free at the target: \(Wording.bytes(Int(plan.free))).")
        if !plan.staying.isEmpty {
            try Output.line("Not the container's, and would stay: \(plan.staying.joined(separator: ", "))")
        }
        for reason in plan.reasonsAgainst { Output.error("tidemark: against it: \(reason)") }
        if !plan.reasonsAgainst.isEmpty { throw ExitCode(ExitStatus.cannotCreate.rawValue) }
    }

    private func text(_ summary: StoreMover.Summary) -> String {
        var text =
            summary.bytes > 0
            ? "Moved \(Wording.count(summary.stores, "store")) and \(Wording.count(summary.assets, "asset")), "
                + "\(Wording.bytes(Int(summary.bytes))), to \(summary.to)."
            : "\(summary.from) has \(summary.alreadyMoved ? "already moved" : "moved") to \(summary.to)."
        if !summary.sourceIsDeleted {
            text += " The old files are kept; --finish deletes them, --rollback goes back to them."
        }
        if !summary.staying.isEmpty {
            text += " Not the container's, and still there: \(summary.staying.joined(separator: ", "))."
        }
        return text
    }
}

import ArgumentParser

/// `tidemark store`: the commands that concern a container as a whole.
struct Store: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Locates, describes, moves, backs up, restores and migrates containers; makes them production ones.",
        discussion: """
            Examples:
              tidemark store locate Journal
              tidemark store info MyJournal.tidemark
              tidemark store move MyJournal.tidemark ~/Shared/MyJournal.tidemark --dry-run
              tidemark store backup MyJournal.tidemark Backup.tidemark
            """,
        subcommands: [
            StoreLocate.self, StoreInfo.self, StoreMove.self, Verify.self, StoreBackup.self, StoreRestore.self, StoreMigrate.self,
            StoreEnvironmentCommand.self,
        ])
}

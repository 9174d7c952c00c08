import ArgumentParser

/// `tidemark store`: what concerns a container as a whole.
struct Store: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Finds containers, and tells what they hold.",
        discussion: """
            Examples:
              tidemark store locate Journal
              tidemark store info MyJournal.tidemark
            """,
        subcommands: [StoreLocate.self, StoreInfo.self])
}

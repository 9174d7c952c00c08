import ArgumentParser

struct Store: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Moves, verifies, backs up and restores containers.",
        subcommands: [StoreMove.self, Verify.self, StoreBackup.self, StoreRestore.self])
}

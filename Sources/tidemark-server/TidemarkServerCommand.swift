import ArgumentParser
import TidemarkServer

@main
struct TidemarkServerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "tidemark-server")
}

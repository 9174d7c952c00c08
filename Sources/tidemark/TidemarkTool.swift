import ArgumentParser
import TidemarkCommands

@main
struct TidemarkTool {
    static func main() async {
        Tidemark.logToStandardError()
        await Tidemark.run(Array(CommandLine.arguments.dropFirst()))
    }
}

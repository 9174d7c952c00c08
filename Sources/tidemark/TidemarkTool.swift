import ArgumentParser
import TidemarkCommands

@main
struct TidemarkTool {
    static func main() async { await Tidemark.main() }
}

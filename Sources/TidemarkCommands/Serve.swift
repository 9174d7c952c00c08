import ArgumentParser

/// `tidemark serve`: executes the program `tidemark-server` in place of the tool.
struct Serve: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serves a cloud to devices and programs on other machines.",
        discussion: """
            The command starts tidemark-server, which 'make server' builds, and passes all options on; see 'tidemark serve --help'. With \
            --json it prints one JSON object with its address and port when it is reachable.

            Examples:
              tidemark serve --data /srv/cloud
              tidemark serve --data /srv/cloud --host 0.0.0.0 --port 443 --tls-cert fullchain.pem --tls-key privkey.pem
            """)

    @Argument(parsing: .captureForPassthrough, help: ArgumentHelp("Options of tidemark-server.", valueName: "option"))
    var options: [String] = []

    func run() throws {
        try ServerProgram.start(["tidemark serve"] + options)
    }
}

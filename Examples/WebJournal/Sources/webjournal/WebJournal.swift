import ArgumentParser
import Foundation
import Hummingbird
import Logging
import NIOCore
import Tidemark
import TidemarkHTTP

@main struct WebJournal: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "webjournal", abstract: "Serves a travel journal, which people share, to browsers.",
        discussion: "Try it with 'webjournal --demo Examples/journal'.")

    @Option(help: "The folder of the people's stores; it is made if need be.") var data = "webjournal-data"
    @Option(help: "The port, on the loopback address; 0: any.") var port = 8090
    @Option(help: "The address in browsers, such as https://journal.example.org: of the proxy that has the certificate.") var url:
        String?
    @Option(help: "The Tidemark server whose accounts may sign in.") var server: String?
    @Option(help: "The sample journal: two people without passwords, a cloud in the folder of the stores, on this machine alone.")
    var demo: String?

    func validate() throws {
        guard (server == nil) != (demo == nil) else { throw ArgumentParser.ValidationError("name the cloud: --server or --demo") }
        if demo != nil, url != nil {
            throw ArgumentParser.ValidationError(
                "the demonstration asks for no password, and is not for other machines: leave out --url")
        }
        if let url, !url.hasPrefix("https://") && !url.hasPrefix("http://") || url.hasSuffix("/") {
            throw ArgumentParser.ValidationError("--url is a scheme and a host, without a path: https://journal.example.org")
        }
    }

    func run() async throws {
        let folder = URL(fileURLWithPath: data, isDirectory: true)
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let sessions = Sessions(in: folder.appendingPathComponent("people", isDirectory: true))
        let accounts: any Accounts
        if let demo {
            let cloud = try await DemoAccounts(at: folder.appendingPathComponent("cloud", isDirectory: true))
            try await Self.fill(Demo(sample: URL(fileURLWithPath: demo, isDirectory: true)), cloud, sessions)
            accounts = cloud
        } else {
            accounts = ServedAccounts(server: try ServerAddress(server ?? ""))
        }
        let site = Site(accounts: accounts, sessions: sessions, address: SiteAddress(url: url, port: port))
        try await Self.serve(site, port: port)
    }

    /// Fills the journals of the demonstration; they go on synchronising.
    static func fill(_ demo: Demo, _ accounts: DemoAccounts, _ sessions: Sessions) async throws {
        for (email, _) in DemoAccounts.people {
            try await demo.fill(sessions.open(accounts.signIn(email: email, password: "", code: nil)))
        }
    }

    /// Prints a line at once, also into a pipe.
    static func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

    /// Serves until the program is asked to end.
    ///
    /// - Parameter onRunning: Gets the port.
    static func serve(
        _ site: Site, port: Int,
        onRunning: @escaping @Sendable (Int) -> Void = { say("The journal is at http://127.0.0.1:\($0)") }
    ) async throws {
        var logger = Logger(label: "webjournal") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .warning
        let application = Application(
            router: site.router,
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: port), serverName: nil),
            onServerRunning: { onRunning($0.localAddress?.port ?? port) }, logger: logger)
        do {
            try await application.runService()
        } catch {
            await site.sessions.endAll()
            throw error
        }
        await site.sessions.endAll()
    }
}

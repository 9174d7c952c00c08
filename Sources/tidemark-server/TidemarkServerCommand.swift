import ArgumentParser
import CMalloc
import Foundation
import Logging
import NIOCore
import NIOPosix
import TidemarkCommands
import TidemarkEmbeddedCloud
import TidemarkServer

@main
struct TidemarkServerCommand: AsyncParsableCommand {
    /// The name with which messages begin. `tidemark serve` starts this program with that text as its argument 0.
    private static let name = CommandLine.arguments.first == "tidemark serve" ? "tidemark serve" : "tidemark-server"

    static let configuration = CommandConfiguration(
        commandName: name,
        abstract: "Serves a cloud to devices and programs on other machines.",
        usage: """
            \(name) [<options>] --data <directory>
            \(name) [<options>] --database <address> --assets <place>
            """,
        discussion: """
            It speaks CloudKit Web Services. The directory is that of an embedded cloud with at least one container that is served; \
            'tidemark admin' makes it, and can be used while the server runs. SIGTERM or Ctrl-C lets it finish the requests that run.

            Examples:
              tidemark admin container add iCloud.org.example.journal --data /srv/cloud
              \(name) --data /srv/cloud
              \(name) --data /srv/cloud --host 0.0.0.0 --port 443 \\
                  --tls-cert fullchain.pem --tls-key privkey.pem
              \(name) --data /srv/cloud --trust-proxy \\
                  --public-url https://cloud.example.org
              \(name) --database postgresql://tidemark@db1,db2/tidemark \\
                  --assets s3://journal --s3-endpoint https://s3.example.org
              \(name) --data /srv/cloud --port 0 --port-file port.txt
              TIDEMARK_DATA=/srv/cloud \(name) --config /etc/tidemark/server.conf

            Each option can stand in a file, as a line 'option = value', or in the environment, where --port-file is \
            TIDEMARK_PORT_FILE. The command line goes before the environment, and the environment before the file.

            Exit codes: 0 ended as told; 64 wrong usage; 66 the directory holds no cloud that can be served, or a certificate or the \
            configuration can't be read; 69 the address can't be listened on, the \
            database can't be reached or used, or the place of the assets is not there or refuses; 74 a file can't be read or written.
            """,
        version: "0.1.0")

    static var _errorPrefix: String { "\(name): " }

    static func main() async {
        let given = Array(CommandLine.arguments.dropFirst())
        if given.first == "admin" {
            // The tool is built without libpq. It executes this program to administer a cloud in a database.
            Tidemark.logToStandardError()
            return await AdminDatabases.$opener.withValue(ServedAdministration()) { await Tidemark.run(given) }
        }
        let sources: OptionSources
        do {
            sources = try OptionSources(of: Self.self, given: given, environment: ProcessInfo.processInfo.environment)
        } catch let failure as OptionSources.Failure {
            tell(failure.message)
            exit(withError: ExitCode(failure.isOfFile ? 66 : 64))
        } catch {
            exit(withError: error)
        }
        let arguments = sources.arguments + given
        // Without any argument the parser prints the whole help, in which its error is lost.
        guard !arguments.isEmpty else { exit(withError: ValidationError("say which cloud: --data <directory>")) }
        do {
            var command = try parseAsRoot(arguments)
            if let server = command as? Self { try await server.run() } else { try command.run() }
        } catch {
            if let place = sources.place(of: message(for: error)), exitCode(for: error) == .validationFailure {
                tell("\(place) is wrong:")
            }
            exitKeepingExamples(withError: error)
        }
    }

    @Option(help: ArgumentHelp("A file with options, a line 'option = value' for each.", valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp(
            "The cloud's directory; with --database a folder of this server for uploads on their way. (default with --database: in the "
                + "system's temporary folder)", valueName: "directory"))
    var data: String?

    @OptionGroup(title: "A cloud of several servers")
    var storage: StorageOptions

    @OptionGroup(title: "A cloud of several servers")
    var reading: AssetReadOptions

    @Option(help: ArgumentHelp("The address to listen on; 0.0.0.0 or :: for all.", valueName: "address"))
    var host = "127.0.0.1"

    @Option(help: ArgumentHelp("The port to listen on; 0 for any.", valueName: "port"))
    var port = 8080

    @Option(help: ArgumentHelp("A file that the port is written to, once the server can be reached.", valueName: "file"))
    var portFile: String?

    @Option(help: ArgumentHelp("The certificate in PEM, followed by those that vouch for it.", valueName: "file"))
    var tlsCert: String?

    @Option(help: ArgumentHelp("The certificate's private key in PEM.", valueName: "file"))
    var tlsKey: String?

    @Option(help: ArgumentHelp("What clients reach the server by, where that is not what they ask for.", valueName: "url"))
    var publicURL: String?

    @Flag(
        help: """
            Believes the headers X-Forwarded-For and X-Forwarded-Proto: only behind a proxy that sets them. Behind one, limits by \
            address count the proxy without it.
            """)
    var trustProxy = false

    @Option(
        help: ArgumentHelp(
            "A port of this machine where /metrics is served without a token; 0 for any. (default: none)", valueName: "port"))
    var metricsPort: Int?

    @Option(help: ArgumentHelp("The address to listen on for --metrics-port.", valueName: "address"))
    var metricsHost = "127.0.0.1"

    @Option(
        help: ArgumentHelp(
            "A file with a line that a client has to show for /metrics at the server's own port, as 'Authorization: Bearer'. (default: "
                + "nobody is shown them)", valueName: "file"))
    var metricsTokenFile: String?

    @Flag(help: "Prints one JSON object on standard output, with the address and the port, once the server can be reached.")
    var json = false

    @Option(help: ArgumentHelp("What is logged: trace, debug, info, notice, warning, error or critical.", valueName: "level"))
    var logLevel = "info"

    @OptionGroup(title: "Letters")
    var mail: MailOptions

    @OptionGroup(title: "Identity provider")
    var identity: IdentityOptions

    @OptionGroup(title: "Limits")
    var limits: LimitOptions

    func validate() throws {
        guard (0...65_535).contains(port) else { throw ValidationError("--port takes a number from 0 to 65535") }
        guard metricsPort.map({ (0...65_535).contains($0) }) ?? true else {
            throw ValidationError("--metrics-port takes a number from 0 to 65535")
        }
        guard (tlsCert == nil) == (tlsKey == nil) else { throw ValidationError("--tls-cert and --tls-key go together") }
        guard Logger.Level(rawValue: logLevel) != nil else {
            throw ValidationError("--log-level takes trace, debug, info, notice, warning, error or critical")
        }
        if let publicURL {
            let parts = URLComponents(string: publicURL)
            guard let scheme = parts?.scheme, scheme == "http" || scheme == "https", parts?.host?.isEmpty == false,
                parts?.user == nil, parts?.password == nil, parts?.query == nil, parts?.fragment == nil,
                parts?.path.isEmpty ?? false || parts?.path == "/"
            else { throw ValidationError("--public-url takes scheme and host, such as https://cloud.example.org") }
        }
        try limits.validate()
        try mail.validate()
        guard mail.smtpServer == nil || publicURL != nil else {
            throw ValidationError("--smtp-server needs --public-url: links in letters begin with it")
        }
        try identity.validate()
        guard identity.identityProvider == nil || publicURL != nil else {
            throw ValidationError("--identity-provider needs --public-url: the provider sends browsers there")
        }
        try reading.validate(
            with: storage, isSecure: publicURL.map { $0.lowercased().hasPrefix("https:") } ?? (tlsCert != nil))
        // Only the server waits for notifications; commands that administer a cloud do not.
        guard !storage.databasePooler || storage.databaseDirect != nil else {
            throw ValidationError("--database-direct is missing: \(ServerConfiguration.Database.needsListenAddress)")
        }
        guard data != nil || storage.database != nil else {
            throw ValidationError("say which cloud: --data <directory>, or --database and --assets")
        }
    }

    func run() async throws {
        Self.returnMemory()
        // Files that the server makes are for its own user only.
        _ = umask(0o077)
        // Tasks run on the threads that read and write connections, so that a request wakes no other thread.
        NIOSingletons.unsafeTryInstallSingletonPosixEventLoopGroupAsConcurrencyGlobalExecutor()
        let level = Logger.Level(rawValue: logLevel) ?? .info
        // The loggers of all modules write lines of the same form.
        LoggingSystem.bootstrap { _ in LogfmtHandler(level: level) }
        let logger = Logger(label: "tidemark-server")
        var temporary: TemporaryFolder?
        do throws(ServerError) {
            try checkData()
            if data == nil { temporary = try TemporaryFolder("tidemark-server") }
        } catch {
            Self.tell(error.message)
            throw ExitCode(error.exitStatus)
        }
        defer { temporary?.remove() }
        let directory = temporary?.url ?? URL(fileURLWithPath: data ?? "", isDirectory: true)
        var configuration = ServerConfiguration(
            directory: directory, host: host, port: port,
            tls: tlsCert.flatMap { cert in tlsKey.map { ServerConfiguration.TLS(certificateChain: cert, privateKey: $0) } },
            portFile: portFile, publicURL: publicURL.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 },
            trustsProxy: trustProxy, limits: limits.limits, logLevel: level)
        (configuration.metricsPort, configuration.metricsHost) = (metricsPort, metricsHost)
        let address = publicURL ?? "\(tlsCert == nil ? "http" : "https")://\(host.contains(":") ? "[\(host)]" : host)"
        let (isPublic, prints) = (publicURL != nil, json)
        do {
            configuration.metricsToken = try metricsToken()
            configuration.mail = try mail.server()
            configuration.identityProvider = try identity.provider()
            let redirectURI = configuration.identityRedirectURI
            let listening: @Sendable (Int) -> Void = { port in
                let reached = isPublic ? address : "\(address):\(port)"
                Self.tell("listening on \(reached)")
                Self.tell("the console is at \(reached)/console, people's own pages are at \(reached)/account")
                if let redirectURI { Self.tell("the identity provider sends browsers to \(redirectURI)") }
                if prints { Self.print(Listening(address: reached, port: port)) }
            }
            configuration.database = storage.place()
            configuration.database?.assetReads = reading.reads
            let server =
                if let database = configuration.database {
                    try await CloudServer.open(configuration, database, logger: logger, onListening: listening)
                } else {
                    try CloudServer(configuration, logger: logger, onListening: listening)
                }
            try await server.runUntilSignalled()
        } catch let error as ServerError {
            Self.tell(error.message)
            throw ExitCode(error.exitStatus)
        }
    }

    /// Reads the token for the figures from its file.
    private func metricsToken() throws(ServerError) -> String? {
        guard let metricsTokenFile else { return nil }
        guard let file = FileHandle(forReadingAtPath: metricsTokenFile), let bytes = try? file.read(upToCount: 4_097) else {
            throw ServerError(.io, "\(metricsTokenFile), the file of --metrics-token-file, can't be read")
        }
        let token = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard (16...4_096).contains(token.utf8.count), token.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw ServerError(
                .options,
                "\(metricsTokenFile) has no token: one line of 16 letters, digits or signs at least, such as of 'openssl rand -hex 32'"
            )
        }
        return token
    }

    private func checkData() throws(ServerError) {
        guard let data else { return }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: data, isDirectory: &isFolder), !isFolder.boolValue else { return }
        throw ServerError(.noData, "\(data) is a file: --data takes a cloud's directory")
    }

    #if os(Linux)
        nonisolated(unsafe) private static var trimming: (any DispatchSourceTimer)?
    #endif

    /// Makes the allocator return large buffers to the system when they are freed. Otherwise the process keeps the memory of many
    /// large answers.
    private static func returnMemory() {
        #if os(Linux)
            _ = mallopt(M_ARENA_MAX, 2)
            _ = mallopt(M_MMAP_THRESHOLD, 256 << 10)
            _ = mallopt(M_TRIM_THRESHOLD, 8 << 20)
            // The allocator seldom returns free memory between used blocks by itself.
            let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "tidemark.memory", qos: .utility))
            timer.schedule(deadline: .now() + 10, repeating: 10, leeway: .seconds(5))
            timer.setEventHandler { _ = malloc_trim(4 << 20) }
            timer.activate()
            trimming = timer
        #endif
    }

    /// The output of `--json`.
    private struct Listening: Encodable {
        var done = "serve"
        let address: String
        let port: Int
    }

    private static func print(_ listening: Listening) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Texts and a number can always be encoded.
        guard let line = try? encoder.encode(listening) else { return }
        // A closed standard output does not stop the server.
        try? FileHandle.standardOutput.write(contentsOf: line + Data("\n".utf8))
    }

    private static func tell(_ text: String) {
        // If standard error is closed, there is nowhere to report that.
        try? FileHandle.standardError.write(contentsOf: Data("\(name): \(text)\n".utf8))
    }
}

/// The server's limits.
struct LimitOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Bytes of a request's JSON.", valueName: "bytes"))
    var bodySize = ServerLimits().bodySize

    @Option(
        help: ArgumentHelp(
            "Bytes of bodies that are held at once, of all requests. (default: 67108864, more with larger bodies)",
            valueName: "bytes"))
    var bodiesSize: Int?

    @Option(
        help: ArgumentHelp(
            "Bytes of bodies that are held at once, of the requests from one address. (default: half of those of all)",
            valueName: "bytes"))
    var bodiesSizeOfAddress: Int?

    @Option(help: ArgumentHelp("Connections at once.", valueName: "n"))
    var connections = ServerLimits().connections

    @Option(
        help: ArgumentHelp(
            "Connections at once from one address, others are closed; 0 for no limit, none with --trust-proxy. (default: half of all)",
            valueName: "n"))
    var connectionsOfAddress: Int?

    @Option(
        help: ArgumentHelp(
            "Requests a second of an account and of an address, at this server; 0 for no limit.", valueName: "n"))
    var requestRate = Int(ServerLimits().requestsPerSecond)

    @Option(help: ArgumentHelp("Requests that may come at once before the rate counts.", valueName: "n"))
    var requestBurst = ServerLimits().burst

    @Option(
        help: ArgumentHelp(
            "Millions of instructions of SQLite that a query may take: 1 looks at some 50,000 records; of no effect with --database.",
            valueName: "n"))
    var queryCost = 50

    @Option(help: ArgumentHelp("Seconds after which a query ends.", valueName: "seconds"))
    var queryTime = 10

    @Option(
        help: ArgumentHelp(
            "Attempts to sign in a minute to an account from one address, five times as many from an address in all; 0 for no limit.",
            valueName: "n"))
    var signInAttempts = ServerLimits().signInAttempts

    @Option(help: ArgumentHelp("Passwords that are hashed at once, each in 128 MB; others wait.", valueName: "n"))
    var signInsAtOnce = ServerLimits().hashesAtOnce

    @Option(help: ArgumentHelp("Seconds that a connection may stay without a request.", valueName: "seconds"))
    var idleTime = 600

    func validate() throws {
        let numbers = [
            ("body-size", bodySize, 1_024), ("bodies-size", bodiesSize ?? 1_024, 1_024),
            ("bodies-size-of-address", bodiesSizeOfAddress ?? 1_024, 1_024), ("connections", connections, 1),
            ("connections-of-address", connectionsOfAddress ?? 0, 0),
            ("request-rate", requestRate, 0), ("request-burst", requestBurst, 1), ("sign-in-attempts", signInAttempts, 0),
            ("idle-time", idleTime, 1), ("sign-ins-at-once", signInsAtOnce, 1),
            ("query-cost", queryCost, 1), ("query-time", queryTime, 1),
        ]
        for (name, number, least) in numbers where number < least || number > 1 << 40 {
            throw ValidationError("--\(name) takes a number from \(least) on")
        }
        // A body that can never fit must not be answered with "try again later".
        let (all, own) = bodies
        guard own >= 2 * bodySize else {
            let name = bodiesSizeOfAddress == nil ? "--bodies-size" : "--bodies-size-of-address"
            throw ValidationError(
                "\(name) is less than twice --body-size: a body is held packed and unpacked. Take \(2 * bodySize) or more")
        }
        guard all >= own else {
            throw ValidationError("--bodies-size, \(all), is less than --bodies-size-of-address, \(own). Take \(own) or more")
        }
    }

    /// The most bytes of bodies that are held at once: of all requests, and of requests from one address. An option that is not
    /// given follows from the one that is.
    private var bodies: (all: Int, own: Int) {
        let usual = ServerLimits()
        let all = bodiesSize ?? max(usual.bodiesSize, 2 * (bodiesSizeOfAddress ?? 2 * bodySize))
        return (all, bodiesSizeOfAddress ?? min(all, max(all / 2, 2 * bodySize)))
    }

    var limits: ServerLimits {
        var limits = ServerLimits()
        (limits.bodySize, limits.connections) = (bodySize, connections)
        (limits.bodiesSize, limits.bodiesSizeOfAddress) = bodies
        limits.connectionsOfAddress = connectionsOfAddress ?? max(1, connections / 2)
        (limits.requestsPerSecond, limits.burst, limits.signInAttempts) = (Double(requestRate), requestBurst, signInAttempts)
        limits.idleTime = .seconds(idleTime)
        limits.hashesAtOnce = min(signInsAtOnce, 64)
        limits.queries.cost = Int64(queryCost) * 1_000_000
        limits.queries.time = .seconds(queryTime)
        return limits
    }
}

extension ServerError {
    /// The exit code, as in sysexits.h.
    var exitStatus: Int32 {
        switch code {
        case .noData, .certificate: 66
        case .address, .storage: 69
        case .options: 64
        case .io: 74
        case .busy: 75
        case .occupied: 73
        case .different: 65
        }
    }
}

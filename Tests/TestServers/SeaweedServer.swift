import Foundation

/// SeaweedFS with its gateway of S3, which the tests of a process share. It ends with the process, also where that is killed.
public final class SeaweedServer: Sendable {
    /// The program `weed`: `TIDEMARK_WEED` names it, the path of programs has it, or `Deployment/Cluster/weed.py` has installed it.
    private static let program: String? = {
        let environment = ProcessInfo.processInfo.environment
        let path = (environment["PATH"] ?? "").split(separator: ":").map { "\($0)/weed" }
        let home = FileManager.default.homeDirectoryForCurrentUser.path
        let caches = environment["XDG_CACHE_HOME"].flatMap { $0.isEmpty ? nil : $0 } ?? "\(home)/.cache"
        return ([environment["TIDEMARK_WEED"]].compactMap { $0 } + path + ["\(caches)/tidemark/seaweedfs/bin/weed"]).first {
            FileManager.default.isExecutableFile(atPath: $0)
        }
    }()
    /// Whether tests can start a server.
    public static let isInstalled = program != nil
    /// Why tests can't start a server, for the comment of a skipped test.
    public static let whyNot =
        "SeaweedFS is not installed: Deployment/Cluster/weed.py installs it, or TIDEMARK_WEED names its program weed"

    /// The server, with the bucket `journal`.
    public static func shared() throws -> SeaweedServer { try sharedServer.get() }
    private static let sharedServer = Result { try SeaweedServer() }

    /// As ``shared()``, but the caller waits without blocking a thread of the tests, which are few.
    public static func started() async throws -> SeaweedServer {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try shared() }) }
        }
    }

    public static let keyID = "AKTEST"
    /// Contains characters that have to be encoded in a path, a query and a header.
    public static let secret = "geheim/+=x"

    public let port: Int
    /// The address for requests.
    public var endpoint: String { "http://127.0.0.1:\(port)" }
    /// Where a process finds the keys.
    public static let environment = ["AWS_ACCESS_KEY_ID": keyID, "AWS_SECRET_ACCESS_KEY": secret]
    private let shell: LeashedShell

    private init() throws {
        guard let program = Self.program else { throw PostgresServer.Failure(description: Self.whyNot) }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tidemark-s3-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder.appendingPathComponent("data"), withIntermediateDirectories: true)
        port = try Self.freePorts()
        let settings = """
            {"identities": [{"name": "t", "credentials": [{"accessKey": "\(Self.keyID)", "secretKey": "\(Self.secret)"}],
             "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}
            """
        try Data(settings.utf8).write(to: folder.appendingPathComponent("s3.json"))
        // The server would also listen at fixed ports, which a second process could not take, and report statistics. Both are
        // turned off with the options that the installed version has.
        let script = """
            options= known=$("$1" server -h 2>&1 </dev/null)
            for option in s3.port.iceberg=0 s3.port.lance=0 master.telemetry=false; do
                if echo "$known" | grep -qE -e "^ +-${option%%=*}( |$)"; then options="$options -$option"; fi
            done
            TMPDIR="$2" "$1" server -dir="$2/data" -ip=127.0.0.1 -ip.bind=127.0.0.1 -master.port=\(port + 1) -volume.port=\(port + 2) \
            -filer.port=\(port + 3) -s3 -s3.port=\(port) -s3.config="$2/s3.json" $options -master.volumeSizeLimitMB=64 \
            -volume.max=40 >"$2/weed.log" 2>&1 </dev/null &
            server=$!
            cat >/dev/null
            kill -KILL $server
            wait $server
            rm -rf "$2"
            for port in \(port) \(port + 1) \(port + 2) \(port + 3); do
                rm -f /tmp/seaweedfs-*-$port.sock /tmp/seaweedfs-*-$((port + 10000)).sock
            done
            """
        shell = try LeashedShell(script, [program, folder.path])
        // The bucket can be made once all parts run. A try whose answer came too late has made it all the same: then the status
        // is 409.
        let make = """
            status=$(curl -s -o /dev/null -w '%{http_code}' --max-time 5 --aws-sigv4 aws:amz:us-east-1:s3 \
            --user '\(Self.keyID):\(Self.secret)' -X PUT http://127.0.0.1:\(port)/journal)
            [ "$status" = 200 ] || [ "$status" = 409 ]
            """
        for _ in 0..<120 {
            if try LeashedShell.run(make, []) == 0 { return }
            usleep(500_000)
        }
        let log = (try? String(contentsOf: folder.appendingPathComponent("weed.log"), encoding: .utf8)) ?? ""
        throw PostgresServer.Failure(description: "weed has not started: \(log.suffix(500))")
    }

    /// The first of four ports that are not in use. The ports of gRPC, 10,000 higher, are not in use either. All are below the
    /// ports that the system gives to outgoing connections.
    private static func freePorts() throws -> Int {
        for _ in 0..<100 {
            let port = Int.random(in: 220...450) * 50
            let ports = (0..<4).flatMap { [port + $0, port + $0 + 10_000] }
            if ports.allSatisfy(PostgresServer.isFree) { return port }
        }
        throw PostgresServer.Failure(description: "no ports from 11000 to 32503 are free")
    }
}

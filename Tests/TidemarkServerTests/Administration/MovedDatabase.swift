import Foundation
import TestServers
import TestSupport

/// A PostgreSQL database into and out of which a cloud is moved, with a place for the contents of its assets.
struct MovedDatabase: Sendable {
    let name, address: String
    /// The place of the contents: a directory, or a bucket, as `--assets` takes it.
    let assets: String
    private let endpoint: String?

    /// Makes an empty database, with an empty directory of a scratch folder.
    init(in scratch: Scratch) throws {
        let folder = scratch["assets-\(UUID().uuidString)"]
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try self.init(assets: folder.path, endpoint: nil)
    }

    /// Makes an empty database, with a bucket in memory.
    ///
    /// - Parameter prefix: The beginning of all keys.
    init(over bucket: StubBucket, prefix: String) throws {
        try self.init(assets: "s3://journal/\(prefix)", endpoint: bucket.endpoint)
    }

    private init(assets: String, endpoint: String?) throws {
        let server = try PostgresServer.shared()
        name = try server.makeDatabase()
        address = server.address(name)
        (self.assets, self.endpoint) = (assets, endpoint)
    }

    private var assetOptions: [String] { ["--assets", assets] + (endpoint.map { ["--s3-endpoint", $0] } ?? []) }

    /// The options by which servers and commands find the cloud.
    var options: [String] { ["--database", address] + assetOptions }

    /// The keys of the bucket.
    var environment: [String: String] {
        endpoint == nil ? [:] : ["AWS_ACCESS_KEY_ID": SeaweedServer.keyID, "AWS_SECRET_ACCESS_KEY": SeaweedServer.secret]
    }

    private func words(_ from: String, _ to: String) -> [String] {
        ["admin", "move", "--from", from, "--to", to] + assetOptions + ["--json"]
    }

    /// Runs a move to its end, or kills it.
    func move(_ tool: Tool, _ from: String, _ to: String, killingAfter delay: Duration? = nil) async throws -> Tool.Result {
        try await tool.run(words(from, to), killingAfter: delay, environment: environment)
    }

    /// Starts a move.
    func start(_ tool: Tool, _ from: String, _ to: String) throws -> RunningTool {
        try tool.start(words(from, to), environment: environment)
    }

    /// Waits for the end of the connections of killed servers and commands.
    func eventuallyUnused() throws {
        try PostgresServer.shared().sql(
            """
            DO $$ BEGIN
                FOR i IN 1..200 LOOP
                    EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = '\(name)' AND application_name = 'tidemark');
                    PERFORM pg_sleep(0.05), pg_stat_clear_snapshot();
                END LOOP;
            END $$
            """)
    }

    /// Whether the database has part of a cloud.
    var hasBegun: Bool {
        do {
            try PostgresServer.shared().sql("SELECT 1 / count(*) FROM tidemark_moves WHERE NOT is_done", in: name)
            return true
        } catch {
            return false
        }
    }
}

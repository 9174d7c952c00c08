import AsyncHTTPClient
import COpenSSL
import Foundation
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import ServiceLifecycle
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkOpenID
import TidemarkWire

@testable import TidemarkServer

/// A server on a port of its own, with operations that a test gives it, and all kinds of credentials.
final class StubbedServer: Sendable {
    static let container = "iCloud.org.example.journal"
    static let client = HTTPClient(
        eventLoopGroupProvider: .singleton, configuration: .init(redirectConfiguration: .disallow))

    /// A clock that stands still.
    static let stoppedTime: @Sendable () -> Double = { 100 }

    let server: CloudServer
    let access: CredentialStore
    var directory: URL { access.directory! }
    let port: Int
    let apiToken, webToken, deviceToken: String
    let key: SigningKey
    let keyID: String
    fileprivate let group: ServiceGroup

    private init(
        _ server: CloudServer, _ access: CredentialStore, port: Int, _ credentials: Credentials, log: Log, group: ServiceGroup
    ) {
        (self.server, self.access, self.port, self.group) = (server, access, port, group)
        (apiToken, webToken, deviceToken) = (credentials.api, credentials.web, credentials.device)
        (key, keyID) = (credentials.key, credentials.keyID)
        lines = log
    }

    private let lines: Log

    /// What was logged.
    var logged: String { lines.lines.withLock { $0.joined() } }

    private struct Credentials {
        let api, web, device, keyID: String
        let key: SigningKey
    }

    final class Log: Sendable {
        let lines = LockedValue<[String]>([])
    }

    /// Runs a server for as long as a test needs it.
    static func with<Result: Sendable>(
        limits: ServerLimits = ServerLimits(), trustsProxy: Bool = false, publicURL: String? = nil, metricsToken: String? = nil,
        metricsPort: Int? = nil, onMetrics: @escaping @Sendable (Int) -> Void = { _ in },
        identityProvider: OpenIDProvider? = nil, callback: SignInCallback? = nil,
        origins: [String] = [], signInTime: @escaping @Sendable () -> Double = ServerTime.seconds,
        operations: [TidemarkServer.Operation] = [], _ body: @escaping @Sendable (StubbedServer) async throws -> Result
    ) async throws -> Result {
        let scratch = try Scratch()
        let access = try CredentialStore(at: scratch.url, now: Timestamp.now, passwordLogN: 4)
        let cloud = try EmbeddedCloud(at: scratch.url)
        for container in [Self.container, "iCloud.org.example.other"] { try await access.addContainer(container) }
        let anna = try await cloud.addAccount("anna@example.org")
        let robot = try await cloud.addAccount("robot@example.org")
        try await access.setPassword("correct horse", of: anna.id)
        let api = try await access.addAPIToken(
            container: Self.container, environment: .development, name: "Journal",
            callback: callback ?? .redirect("https://journal.example.org/in?x=1"), origins: origins)
        let web = try await access.makeSession(
            account: anna.id, container: Self.container, environment: .development, kind: .web(staysSignedIn: false))
        let device = try await access.makeSession(
            account: anna.id, container: Self.container, environment: .development, kind: .device)
        let key = SigningKey()
        let serverKey = try await access.addKey(
            container: Self.container, environment: .development, name: "Robot", publicKeyPEM: key.publicPEM, account: robot.id)

        let log = Log()
        let logger = Logger(label: "test") { _ in
            LogfmtHandler(level: .debug) { line in log.lines.withLock { $0.append(line) } }
        }
        let (ports, told) = AsyncStream<Int>.makeStream()
        var configuration = ServerConfiguration(
            directory: scratch.url, port: 0, publicURL: publicURL, trustsProxy: trustsProxy, limits: limits)
        (configuration.metricsToken, configuration.metricsPort) = (metricsToken, metricsPort)
        configuration.identityProvider = identityProvider
        let server = try CloudServer(
            configuration, cloud: cloud, access: access, operations: operations.isEmpty ? StubOperations.all : operations,
            signInTime: signInTime, logger: logger, onMetrics: onMetrics
        ) { told.yield($0) }
        let group = ServiceGroup(
            configuration: .init(services: [server], logger: Logger(label: "group") { _ in SwiftLogNoOpLogHandler() }))
        return try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                defer { told.finish() }
                try await group.run()
            }
            var iterator = ports.makeAsyncIterator()
            let port = try #require(await iterator.next())
            let running = StubbedServer(
                server, access, port: port,
                Credentials(api: api.text, web: web.text, device: device.text, keyID: serverKey.id, key: key), log: log,
                group: group)
            do {
                let result = try await body(running)
                await group.triggerGracefulShutdown()
                try await tasks.waitForAll()
                _ = scratch
                return result
            } catch {
                await group.triggerGracefulShutdown()
                throw error
            }
        }
    }

    /// Asks the server to end, without waiting for it.
    func shutDown() async { await group.triggerGracefulShutdown() }

    // Requests

    struct Answer: Sendable {
        let status: Int
        let headers: HTTPHeaders
        let body: [UInt8]

        var text: String { String(decoding: body, as: UTF8.self) }
        /// The members of a JSON object that are strings.
        var code: String? { json["serverErrorCode"] as? String }
        var json: [String: Any] { (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:] }
    }

    func path(
        _ operation: String, container: String = StubbedServer.container, environment: String = "development",
        database: String = "public", query: String = ""
    ) -> String {
        "/database/1/\(container)/\(environment)/\(database)/\(operation)" + (query.isEmpty ? "" : "?\(query)")
    }

    var api: String { "ckAPIToken=\(apiToken)" }
    var web: String { "ckAPIToken=\(apiToken)&ckWebAuthToken=\(webToken)" }
    var bearer: HTTPHeaders { ["Authorization": "Bearer \(deviceToken)"] }

    func send(
        _ method: NIOHTTP1.HTTPMethod = .POST, _ path: String, headers: HTTPHeaders = [:], body: [UInt8]? = nil
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
        request.method = method
        request.headers = headers
        if let body { request.body = .bytes(body) } else if method == .POST { request.body = .bytes(Array("{}".utf8)) }
        let response = try await Self.client.execute(request, timeout: .seconds(60))
        let bytes = try await response.body.collect(upTo: 64 << 20)
        return Answer(status: Int(response.status.code), headers: response.headers, body: Array(bytes.readableBytesView))
    }

    /// The headers of a signed request.
    func signed(
        _ path: String, body: [UInt8], at date: Date = Date(), key: SigningKey? = nil, hash: String? = nil
    ) -> HTTPHeaders {
        let formatter = ISO8601DateFormatter()
        let date = formatter.string(from: date)
        let hash = hash ?? Data(SigningKey.sha256(body)).base64EncodedString()
        let signature = (key ?? self.key).signature(of: Array("\(date):\(hash):\(path)".utf8))
        return [
            "X-Apple-CloudKit-Request-KeyID": keyID, "X-Apple-CloudKit-Request-ISO8601Date": date,
            "X-Apple-CloudKit-Request-SignatureV1": Data(signature).base64EncodedString(),
        ]
    }
}

/// Operations that answer with what they were given.
enum StubOperations {
    private static let prefix = "/database/1/{container}/{environment}/{database}"

    static let all: [TidemarkServer.Operation] = [
        Operation("records.query", .post, "\(prefix)/records/query", isForKeys: true) { .json(Array(description($0).utf8)) },
        Operation("records.modify", .post, "\(prefix)/records/modify", isForKeys: true, isChanging: true) {
            .json(Array(description($0).utf8))
        },
        Operation("zones.list", .get, "\(prefix)/zones/list", body: .none, isForKeys: true) {
            .json(Array(description($0).utf8))
        },
        Operation("changes.database", .post, "\(prefix)/changes/database", scopes: [.private, .shared]) {
            .json(Array(description($0).utf8))
        },
        Operation("users.current", .get, "\(prefix)/users/current", body: .none, needsUser: true) {
            .json(Array(description($0).utf8))
        },
        Operation("fails", .post, "\(prefix)/fails") { _ in throw Surprise() },
        Operation("cloud.fails", .post, "\(prefix)/cloud/fails") { call in
            throw CloudError(.init(rawValue: call.query["code"] ?? ""), "as asked", retryAfter: .seconds(7))
        },
        Operation("echo", .post, "\(prefix)/echo") { .json($0.body) },
        Operation("count", .post, "/assets/upload/{capability}", body: .stream) { call in
            var count = 0
            for try await piece in call.stream! { count += piece.readableBytes }
            return .json(Array("{\"count\":\(count)}".utf8))
        },
        Operation("download", .get, "/assets/download/{capability}/{name}", body: .none) { call in
            Reply(body: .stream(type: "application/octet-stream", count: 5) { try await $0.write(ByteBuffer(string: "bytes")) })
        },
    ]

    struct Surprise: Error {}

    static func description(_ call: Call) -> String {
        let (caller, quoted) = (call.caller, JSONWriter.quoted)
        return """
            {"operation":\(quoted(call.operation.id)),"user":\(caller.account == nil ? "false" : "true"),"key":\(caller.isKey),\
            "scope":\(quoted(call.scope?.name ?? "")),"body":\(call.body.count),"extended":\(call.isExtended)}
            """
    }
}

/// A key pair of ECDSA over P-256.
final class SigningKey: @unchecked Sendable {
    // One test at a time uses the key, and OpenSSL only reads it.
    private let key: OpaquePointer

    init() {
        let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil)!
        defer { EVP_PKEY_CTX_free(context) }
        EVP_PKEY_keygen_init(context)
        EVP_PKEY_CTX_set_group_name(context, "P-256")
        var made: OpaquePointer?
        EVP_PKEY_generate(context, &made)
        key = made!
    }

    deinit { EVP_PKEY_free(key) }

    var publicPEM: String {
        var point: UnsafeMutablePointer<UInt8>?
        let count = EVP_PKEY_get1_encoded_public_key(key, &point)
        defer { CRYPTO_free(point, #file, #line) }
        // The DER prefix of a point of P-256.
        let head: [UInt8] = [
            0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
            0x3d,
            0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
        ]
        let text = Data(head + UnsafeBufferPointer(start: point, count: count)).base64EncodedString(
            options: .lineLength64Characters)
        return "-----BEGIN PUBLIC KEY-----\n\(text.replacingOccurrences(of: "\r", with: ""))\n-----END PUBLIC KEY-----\n"
    }

    func signature(of bytes: [UInt8]) -> [UInt8] {
        let context = EVP_MD_CTX_new()!
        defer { EVP_MD_CTX_free(context) }
        EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key)
        var count = 0
        EVP_DigestSign(context, nil, &count, bytes, bytes.count)
        var signature = [UInt8](repeating: 0, count: count)
        EVP_DigestSign(context, &signature, &count, bytes, bytes.count)
        return Array(signature.prefix(count))
    }

    static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha256(), nil)
        return digest
    }
}

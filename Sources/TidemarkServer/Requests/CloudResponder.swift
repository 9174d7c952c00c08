import Foundation
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTPTypes
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkConsole
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

/// Answers requests: finds the operation, admits the caller, reads the body, and writes the operation's answer.
final class CloudResponder: Sendable {
    /// The connection can't continue, because the rest of the request's body is not read.
    struct ConnectionAborted: Error {}

    let operations: [Operation]
    let limits: ServerLimits
    let metrics: ServerMetrics
    let bodies: BodyBudget
    let admission: Admission
    /// For each operation, whether it is one by which others monitor the server.
    private let watches: [Bool]
    /// For each operation, whether the console leaves it out: the console's own operations, and those for monitoring.
    private let isLeftOut: [Bool]
    private let history: RequestHistory
    private let syncFailures: SyncFailureWriter?
    private let routes: Routes
    private let signIn: SignIn
    private let logger: Logger
    private let requests: RequestRate
    /// The rate of monitoring requests. They have a rate of their own, since they matter most when the server is busiest.
    private let watchers: RequestRate
    private let publicURL: String?
    private let trustsProxy: Bool
    private let hasTLS: Bool
    /// Whether clients reach the server by TLS, by its public URL.
    private let hasPublicTLS: Bool
    private let instance: String

    init(
        operations: [Operation], signIn: SignIn, bodies: BodyBudget, configuration: ServerConfiguration,
        history: RequestHistory = RequestHistory(), syncFailures: SyncFailureWriter? = nil, logger: Logger
    ) {
        (self.history, self.syncFailures) = (history, syncFailures)
        self.operations = operations
        self.signIn = signIn
        self.bodies = bodies
        self.logger = logger
        metrics = signIn.metrics
        admission = Admission(access: signIn.access, cloud: signIn.cloud)
        routes = Routes(operations)
        watches = operations.map { Self.watching.contains($0.id) }
        isLeftOut = operations.map { operation in
            Self.watching.contains(operation.id)
                || [ServedConsole.prefix, ServedPeople.prefix].contains { operation.id.hasPrefix($0) }
        }
        limits = configuration.limits
        requests = RequestRate(perSecond: limits.requestsPerSecond, burst: Double(limits.burst))
        watchers = RequestRate(perSecond: limits.requestsPerSecond, burst: Double(limits.burst))
        publicURL = configuration.publicURL
        trustsProxy = configuration.trustsProxy
        hasTLS = configuration.tls != nil
        hasPublicTLS = configuration.publicURL?.lowercased().hasPrefix("https:") ?? false
        var generator = SystemRandomNumberGenerator()
        instance = "tidemark-" + String(UInt32.random(in: .min ... .max, using: &generator), radix: 16)
        metrics.name(operations.map(\.id))
    }

    func respond(to request: Request, _ writer: consuming ResponseWriter, _ channel: any Channel) async throws {
        metrics.began()
        var exchange = Exchange(request.head, address: address(request.headers, channel))
        exchange.isSecure = hasPublicTLS || isSecure(request.headers)
        var reply: Reply
        do {
            reply = try await answer(request, &exchange, writer)
        } catch let refusal as Refusal {
            reply = refuse(refusal, exchange)
        } catch let error as CloudError {
            reply = refuse(Refusal(error, redirectURL: exchange.caller.signInURL), exchange)
        } catch let error as CredentialError {
            reply = refuse(Refusal(error), exchange)
        } catch let error as BodyFailure {
            // The client is gone, or does not speak HTTP: no answer can reach it.
            bodies.giveBack(exchange.held, for: exchange.network)
            finish(exchange, status: 499, sent: 0)
            throw error.cause
        } catch is CancellationError {
            reply = refuse(.busy("the server is ending"), exchange)
        } catch {
            reply = refuse(Refusal(CloudError(.internalError, "\(error)")), exchange)
        }
        bodies.giveBack(exchange.held, for: exchange.network)
        var sent = 0
        do {
            sent = try await write(&reply, exchange, request, writer)
        } catch {
            // The client is gone, or the content is. The end of the connection tells the client that the answer is incomplete.
            logger.debug(
                "an answer broke off", metadata: ["uuid": .string(exchange.uuid), "error": .string("\(error)")])
            finish(exchange, status: reply.status.code, sent: sent, reply.failures)
            throw ConnectionAborted()
        }
        finish(exchange, status: reply.status.code, sent: sent, reply.failures)
        try await readOn(request, exchange)
    }

    private func refuse(_ refusal: Refusal, _ exchange: Exchange) -> Reply {
        metrics.refused(refusal.name)
        if refusal.error.hasInternalReason { log(refusal.error, exchange.uuid, exchange.operation) }
        var reply = refusal.reply(uuid: exchange.uuid, isExtended: exchange.isExtended)
        reply.failures = [
            Reply.Failure(
                code: refusal.name, reason: refusal.reasonForOperators ?? refusal.error.reasonForClients,
                session: refusal.endedSession, triedAccount: refusal.triedAccount, triedDevice: refusal.triedDevice)
        ]
        return reply
    }

    // Finding the operation

    private func answer(_ request: Request, _ exchange: inout Exchange, _ writer: borrowing ResponseWriter) async throws -> Reply
    {
        let (path, rest) = Self.parts(request.head.path ?? "")
        let match = routes.match(path, request.method)
        if case .operation(let index, _) = match { exchange.operation = index }
        let isWatching = exchange.operation.map { watches[$0] } ?? false
        if let wait = (isWatching ? watchers : requests).wait(for: exchange.network, at: exchange.began) {
            metrics.throttled()
            throw Refusal.throttled(wait)
        }
        try checkHost(request, isWatching: isWatching)
        let query = TextCoding.pairs(rest)
        // This comes before any refusal: it decides whether a page of another origin may read why it is refused.
        if exchange.origin != nil, let text = query["ckAPIToken"] {
            try await admission.access.refresh()
            exchange.apiToken = try admission.access.apiToken(text)
        }
        if request.method == .options { return Origins.preflight(origin: exchange.origin, apiToken: exchange.apiToken) }
        guard case .operation(let index, let parameters) = match else {
            switch match {
            case .otherMethods(let methods): throw Refusal.otherMethods(methods)
            case .refused(let reason): throw Refusal.badRequest(reason)
            default: throw Refusal.noHandler
            }
        }
        let operation = operations[index]
        if let scope = parameters.scope, let scopes = operation.scopes, !scopes.contains(scope) {
            throw Refusal.badRequest("endpoint not applicable in the database type '\(scope.name)db'")
        }
        exchange.baseURL = baseURL(request)
        (exchange.container, exchange.environment) = (parameters.container, parameters.environment.rawValue)
        exchange.scope = parameters.scope
        let credentials = try await admit(operation, parameters, query, request.headers, &exchange)
        let body = try await body(of: operation, request, &exchange, writer)
        if case .key(let key, let date, let signature) = credentials?.kind {
            try await admission.check(
                SignedRequest(
                    date: date, body: body, path: String(path), query: rest.isEmpty ? nil : String(rest), signature: signature),
                by: key, of: operation)
            try count(exchange.caller.account, exchange)
        }
        if case .user(let session) = credentials?.kind, session.isDueForRenewal(at: Timestamp.now()) {
            exchange.newToken = try await admission.access.renewed(session).text
        }
        let (uuid, reported) = (exchange.uuid, LoggedReasons())
        let handed = operation.body == .stream ? SharedRequestBody(request.body) : nil
        let call = Call(
            operation: operation, uuid: exchange.uuid, caller: exchange.caller, address: exchange.network,
            container: parameters.container, environment: parameters.environment, scope: parameters.scope,
            parameters: parameters.others, query: query, body: body, stream: handed.map { RequestBody(asyncSequence: $0) },
            headers: request.headers, isExtended: exchange.isExtended, baseURL: exchange.baseURL, isHead: exchange.isHead,
            onInternalReason: { [self] error in
                // Many items of a request may have failed for the same reason.
                guard reported.isNew(error.reason) else { return }
                log(error, uuid, index)
            })
        guard let handed, case .unread = exchange.reading else { return try await operation.answer(call) }
        // The responder reads the rest of the body, as of any other body.
        exchange.reading = .begun(RequestBody(asyncSequence: handed).makeAsyncIterator())
        defer {
            exchange.bodySize = handed.count
            if handed.isDone { exchange.reading = .done }
        }
        return try await operation.answer(call)
    }

    /// Admits the caller. If the path names no container, the path or the body is the permission, and no credentials are needed.
    private func admit(
        _ operation: Operation, _ parameters: Routes.Parameters, _ query: [String: String], _ headers: HTTPFields,
        _ exchange: inout Exchange
    ) async throws -> Admission.Credentials? {
        guard !parameters.container.isEmpty, !operation.isOpen else { return nil }
        let baseURL = exchange.baseURL
        let place = Admission.Place(
            operation: operation, container: parameters.container, environment: parameters.environment, scope: parameters.scope)
        let credentials = try await admission.credentials(for: place, query: query, headers: headers) {
            signIn.address(for: $0, baseURL: baseURL)
        }
        exchange.caller.account = credentials.account
        switch credentials.kind {
        case .program:
            exchange.name = "api:\(credentials.apiToken?.id ?? "")"
            exchange.caller.credential = credentials.apiToken.map { .apiToken($0.id) } ?? .none
        case .user(let session):
            exchange.caller.session = session.id
            exchange.caller.holder = session.holder
            exchange.caller.credential = .session(session.id)
            exchange.name = session.account
            admission.access.noteUse(of: session, from: exchange.network)
        case .key(let key, _, _):
            exchange.caller.isKey = true
            exchange.caller.credential = .key(key.id)
            exchange.name = "key:\(key.id)"
        }
        if let apiToken = credentials.apiToken {
            // A later refusal says where to sign in.
            if credentials.account == nil { exchange.caller.signInURL = signIn.address(for: apiToken, baseURL: baseURL) }
        }
        // The signature of a key was not checked yet.
        if !exchange.caller.isKey { try count(credentials.account, exchange) }
        if case .user(let session) = credentials.kind, logger.logLevel <= .info {
            exchange.name = EmbeddedCloud.userRecordName(session.account, in: parameters.container)
        }
        return credentials
    }

    /// Counts a request of an account against its rate.
    private func count(_ account: String?, _ exchange: Exchange) throws {
        guard let account, let wait = requests.wait(for: account, at: exchange.began) else { return }
        metrics.throttled()
        throw Refusal.throttled(wait)
    }

    private static func parts(_ address: String) -> (path: Substring, query: Substring) {
        guard let mark = address.utf8.firstIndex(of: UInt8(ascii: "?")) else { return (address[...], "") }
        return (address[..<mark], address[address.utf8.index(after: mark)...])
    }

    // The addresses of the client and of the server

    /// Returns the client's address. Behind a proxy it is the last entry of `X-Forwarded-For`, which the proxy itself has added.
    private func address(_ headers: HTTPFields, _ channel: any Channel) -> String {
        if trustsProxy, let last = headers[values: Self.forwardedFor].last?.split(separator: ",").last {
            // An entry that is no address, such as `unknown`, counts as the proxy's own address.
            if let address = NetworkAddress(forwarded: last.trimmingCharacters(in: .whitespaces)) { return address.text }
        }
        return channel.remoteAddress?.ipAddress ?? "unknown"
    }

    /// Returns the name by which limits know an address. For IPv6 it is the first half, because a client with one address has all
    /// addresses of the other half.
    static func network(_ address: String) -> String {
        // An IPv4 address is its own name.
        guard address.utf8.contains(UInt8(ascii: ":")) else { return address }
        return NetworkAddress(address)?.host ?? address
    }

    /// Returns whether a request has come by TLS, to this server or to a proxy in front of it.
    func isSecure(_ headers: HTTPFields) -> Bool {
        if hasTLS { return true }
        guard trustsProxy, let proto = headers[values: Self.forwardedProto].last?.split(separator: ",").last else { return false }
        return proto.trimmingCharacters(in: .whitespaces).lowercased() == "https"
    }

    private func baseURL(_ request: Request) -> String {
        if let publicURL { return publicURL }
        return "\(isSecure(request.headers) ? "https" : "http")://\(request.head.authority ?? "localhost")"
    }

    /// Checks that a request names this server, if that has a public URL. Monitoring requests may use any name.
    private func checkHost(_ request: Request, isWatching: Bool) throws(Refusal) {
        guard !isWatching else { return }
        guard let host = request.head.authority else {
            throw .badRequest("the request has no valid Host, or several: send one, with the server's name")
        }
        guard let publicURL, !WebAddress.host(host, isOf: publicURL) else { return }
        throw .otherHost
    }

    private static let watching: Set = ["health", "ready", "metrics"]

    private static let forwardedFor = HTTPField.Name("X-Forwarded-For")!
    private static let forwardedProto = HTTPField.Name("X-Forwarded-Proto")!

    // Reporting

    /// Logs an error with its full reason, which clients are not told.
    private func log(_ error: CloudError, _ uuid: String, _ operation: Int?) {
        logger.log(
            level: error.code == .internalError ? .error : .warning, "a request failed",
            metadata: [
                "uuid": .string(uuid), "error": .string("\(error)"),
                "operation": .string(operation.map { operations[$0].id } ?? "none"),
            ])
    }

    private func finish(_ exchange: Exchange, status: Int, sent: Int, _ failures: [Reply.Failure] = []) {
        let seconds = ServerTime.seconds() - exchange.began
        metrics.ended(exchange.operation, status: status, seconds: seconds)
        if let operation = exchange.operation, !isLeftOut[operation] {
            history.record(
                ServedRequest(
                    at: Timestamp.now(), operation: operations[operation].id, status: status, milliseconds: seconds * 1_000,
                    container: exchange.container, environment: exchange.container.isEmpty ? "" : exchange.environment,
                    account: exchange.caller.account ?? "", address: exchange.network))
            report(failures, of: operations[operation].id, exchange)
        }
        let level: Logger.Level = exchange.operation.map { watches[$0] } ?? false ? .debug : .info
        guard logger.logLevel <= level else { return }
        let operation = exchange.operation.map { operations[$0].id } ?? "none"
        var metadata: Logger.Metadata = [
            "uuid": .string(exchange.uuid), "operation": .string(operation), "status": .stringConvertible(status),
            "ms": .string(Self.milliseconds(seconds)), "in": .stringConvertible(exchange.bodySize),
            "out": .stringConvertible(sent), "address": .string(exchange.address),
        ]
        if let name = exchange.name { metadata["who"] = .string(name) }
        if !failures.isEmpty {
            var counts: [String: Int] = [:]
            for failure in failures { counts[failure.code, default: 0] += failure.count }
            let texts = counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            metadata["refused"] = .string(texts.joined(separator: ", "))
        }
        logger.log(level: level, "request", metadata: metadata)
    }

    /// Reports the failures of a client's request to the list of sync failures and to the log. Reasons may have private data, so
    /// the log has them only at the level `debug`.
    private func report(_ failures: [Reply.Failure], of operation: String, _ exchange: Exchange) {
        guard !failures.isEmpty else { return }
        let now = Timestamp.now()
        let rows = failures.map { failure in
            var row = SyncFailure(
                at: now, operation: operation, container: exchange.container, environment: exchange.environment,
                account: exchange.caller.account ?? "", scope: exchange.scope, record: failure.record,
                recordType: failure.recordType, zone: failure.zone, code: failure.code, reason: failure.reason,
                count: failure.count)
            row.session = failure.session
            row.sender = failure.session.isEmpty ? exchange.caller.session ?? "" : failure.session
            if !failure.triedAccount.isEmpty { row.sender = SyncFailure.sender(ofSignInTo: failure.triedAccount) }
            (row.device, row.field, row.fieldType) = (failure.triedDevice, failure.field, failure.fieldType)
            // A name may be as long as a request.
            row.fit()
            return row
        }
        if logger.logLevel <= .debug {
            for row in rows {
                logger.debug(
                    "refused",
                    metadata: [
                        "uuid": .string(exchange.uuid), "operation": .string(operation), "code": .string(row.code),
                        "type": .string(row.recordType), "record": .string(row.record),
                        "count": .stringConvertible(row.count), "reason": .string(row.reason),
                    ])
            }
        }
        // A failure without a container, or at an unknown address, does not concern devices.
        guard !exchange.container.isEmpty, !isDone(failures, operation) else { return }
        syncFailures?.record(rows)
    }

    /// Returns whether a refused operation was not needed any more: a device that signs in again ends its former session, which
    /// may have ended.
    private func isDone(_ failures: [Reply.Failure], _ operation: String) -> Bool {
        operation == SignIn.endOperation && failures.allSatisfy { $0.code.hasPrefix("AUTHENTICATION_") }
    }

    private static func milliseconds(_ seconds: Double) -> String {
        let tenths = Int((seconds * 10_000).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}

extension CloudResponder {
    // The answer's head

    static let requestID = HTTPField.Name("X-Apple-Request-UUID")!
    static let version = HTTPField.Name("X-Apple-CloudKit-Version")!
    static let respondingInstance = HTTPField.Name("X-Responding-Instance")!
    static let webAuthToken = HTTPField.Name("X-Apple-CloudKit-Web-Auth-Token")!

    /// Completes the headers of an operation's answer.
    func complete(_ headers: inout HTTPFields, _ exchange: Exchange) {
        headers[.date] = ServerTime.header()
        // A browser that has used TLS here does not come without it for two years.
        if exchange.isSecure { headers[.strictTransportSecurity] = "max-age=63072000" }
        headers[Self.requestID] = exchange.uuid
        headers[Self.version] = "1.0"
        headers[Self.respondingInstance] = instance
        if let token = exchange.newToken { headers[Self.webAuthToken] = token }
        if headers[.vary] == nil { Origins.add(to: &headers, origin: exchange.origin, apiToken: exchange.apiToken) }
    }
}

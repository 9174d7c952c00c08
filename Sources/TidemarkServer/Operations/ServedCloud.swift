import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkWire

/// What the operations work on: an embedded cloud, its credentials and its notifications.
struct ServedCloud: Sendable {
    let cloud: EmbeddedCloud
    let access: CredentialStore
    let subscriptions: SubscriptionStore
    let mailbox: any NotificationStorage
    let dispatcher: NotificationDispatcher
    let waits: LongPollLimiter
    /// The rate at which an account may look people up: 200 at once, then one every ten seconds.
    let lookUpRate = RequestRate(perSecond: 0.1, burst: 200)
    /// The folder of uploads that are not complete.
    let incoming: URL

    /// The limits of one request, as CloudKit Web Services has them.
    static let limits: CloudLimits = {
        var limits = CloudLimits()
        limits.operationsPerRequest = 200
        limits.recordsPerAnswer = 200
        return limits
    }()

    /// Bytes of an answer after which no further item is begun in it.
    static let answerSize = 2_000_000

    /// - Parameter directory: The embedded cloud's directory.
    init(
        at directory: URL, access: CredentialStore, metrics: ServerMetrics = ServerMetrics(), queries: QueryLimits = QueryLimits()
    ) throws {
        try self.init(ServedStorages(at: directory, access: access, metrics: metrics, queries: queries), metrics: metrics)
    }

    init(_ storages: ServedStorages, metrics: ServerMetrics) throws {
        (cloud, access, subscriptions) = (storages.cloud, storages.access, storages.subscriptions)
        (mailbox, incoming) = (storages.mailbox, storages.incoming)
        dispatcher = NotificationDispatcher(cloud, subscriptions, mailbox, metrics)
        waits = LongPollLimiter(metrics: metrics)
        try FileManager.default.createDirectory(
            at: incoming, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        // A killed server may have left uploads. Another server may still be receiving younger ones.
        let yesterday = Date(timeIntervalSinceNow: -86_400)
        for file in try FileManager.default.contentsOfDirectory(at: incoming, includingPropertiesForKeys: nil) {
            let attributes = try? FileManager.default.attributesOfItem(atPath: file.path)
            if let date = attributes?[.modificationDate] as? Date, date < yesterday { unlink(file.path) }
        }
    }

    static var now: Int64 { Int64((Date().timeIntervalSince1970 * 1e6).rounded()) }

    // What a call is about

    /// The database that a request's address names, as its sender sees it.
    func database(_ call: Call) async throws(CloudError) -> EmbeddedDatabase {
        try await database(call, call.scope ?? .private)
    }

    func database(_ call: Call, _ scope: DatabaseScope) async throws(CloudError) -> EmbeddedDatabase {
        try await cloud.open(call.container, environment: call.environment)
        var database = try cloud.database(
            scope, of: call.container, environment: call.environment, account: call.caller.account)
        database.client = call.address
        // A body that is read in pieces may take long, so the account is read again.
        if call.stream == nil { database.holder = call.caller.holder }
        return database
    }

    func dialect(_ call: Call, numbersAsStrings: Bool = false) -> WireDialect {
        var dialect = WireDialect(isExtended: call.isExtended, numbersAsStrings: numbersAsStrings)
        dialect.onInternalReason = call.onInternalReason
        // Tidemark's own clients fetch contents by their digests.
        guard !call.isExtended else { return dialect }
        let (scope, expires) = (call.scope ?? .private, Self.now + SignedAssetToken.downloadAge)
        dialect.downloadURL = { asset, record, _ in
            let pass = SignedAssetToken(
                container: call.container, environment: call.environment, scope: scope, zone: record.id.zone,
                account: call.caller.account, asset: asset, credential: call.caller.credential)
            return call.baseURL + "/assets/download/"
                + access.signedText(pass.data, for: SignedAssetToken.download, until: expires) + "/${f}"
        }
        return dialect
    }

    /// The types of the fields of a container's record types.
    func schema(_ call: Call) async throws(CloudError) -> (String) -> [String: FieldType] {
        let types = try await cloud.schema(of: call.container, environment: call.environment).types
        return { type in types[type]?.fields.compactMapValues(\.fieldType) ?? [:] }
    }

    /// Reads a request, first without the schema: most requests don't need it.
    func read<Request>(
        _ call: Call, _ body: (JSONNode, (String) -> [String: FieldType]) throws(CloudError) -> Request
    ) async throws(CloudError) -> Request {
        var isAsked = false
        let found = Self.result {
            () throws(CloudError) in
            try JSONText.read(call.body) { node throws(CloudError) in
                try body(node) { _ in
                    isAsked = true
                    return [:]
                }
            }
        }
        guard isAsked else { return try found.get() }
        let schema = try await schema(call)
        var known: [String: [String: FieldType]] = [:]
        return try JSONText.read(call.body) { node throws(CloudError) in
            try body(node) { type in
                if let fields = known[type] { return fields }
                known[type] = schema(type)
                return known[type] ?? [:]
            }
        }
    }

    private static func result<Value>(_ body: () throws(CloudError) -> Value) -> Result<Value, CloudError> {
        do throws(CloudError) {
            return .success(try body())
        } catch {
            return .failure(error)
        }
    }
}

extension Call {
    /// Reads the body. A missing body counts as an empty object.
    func read<Request>(_ body: (JSONNode) throws(CloudError) -> Request) throws(CloudError) -> Request {
        try JSONText.read(self.body.isEmpty ? Array("{}".utf8) : self.body) { node throws(CloudError) in
            guard node.isObject else { throw node.refusal("is not an object") }
            return try body(node)
        }
    }

    /// Whether the client wants a zone's token in every answer. Clients write `true` and `True`.
    var wantsSyncToken: Bool { query["getCurrentSyncToken"]?.lowercased() == "true" }
}

extension Reply {
    /// An object.
    static func object(reserving count: Int = 256, _ members: (inout JSONWriter) -> Void) -> Reply {
        var json = JSONWriter(reserving: count)
        json.object(members)
        return .json(json.bytes)
    }
}

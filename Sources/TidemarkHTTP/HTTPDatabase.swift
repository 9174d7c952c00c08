import Foundation
public import TidemarkCloud
public import TidemarkModel
import TidemarkWire

/// One database of a server's cloud container, for one account.
///
/// Requests follow CloudKit Web Services. Operations that the protocol lacks are in Documentation/Formats/http.md.
public struct HTTPDatabase: SharingDatabase {
    /// Whether this is the private, the shared or the public database.
    public let scope: DatabaseScope
    let cloud: HTTPCloud

    /// Returns the server's limits. `CloudDatabase` has the contract of `limits()`.
    public func limits() async throws(CloudError) -> CloudLimits {
        try await cloud.value(HTTPCall(kind: .look, method: .get, target: own("limits"))) { node throws(CloudError) in
            try CloudLimits(node)
        }
    }

    /// Returns the account. `CloudDatabase` has the contract of `account()`.
    ///
    /// - Throws: `CloudError` `notAuthenticated` when there is a session that the server no longer accepts.
    public func account() async throws(CloudError) -> CloudAccount {
        let isSignedIn = try cloud.session() != nil
        do throws(CloudError) {
            return try await cloud.value(HTTPCall(kind: .look, method: .get, target: own("account"))) { node throws(CloudError) in
                try CloudAccount(node)
            }
        } catch {
            guard error.code == .notAuthenticated else { throw error }
            guard !isSignedIn else {
                // Signing in again would not help.
                guard error.containerIsServed else { throw CloudError(.notAuthenticated, "\(cloud.server): \(error.reason)") }
                // The server seldom says why.
                let isGeneral = Self.generalReasons.contains { error.reason.hasPrefix($0) }
                let cause =
                    isGeneral
                    ? "perhaps it was ended on another device or by the server's operator, the password was changed, the account was "
                        + "deleted, or nobody used it for half a year"
                    : error.reason
                throw CloudError(
                    .notAuthenticated, "the session with \(cloud.server) has ended: \(cause); sign in again", remedy: .signIn)
            }
            return CloudAccount(status: .noAccount)
        }
    }

    /// The beginnings of the general reasons that a server gives for credentials that it does not accept, and of answers without
    /// a reason.
    private static let generalReasons = [
        "bad credentials", "no auth method found", "request needs authorization", "AUTHENTICATION_",
    ]

    // Zones

    /// Returns the zones of the database. `CloudDatabase` has the contract of `zones()`.
    public func zones() async throws(CloudError) -> [CloudZoneID] {
        try await look("zones/list") { _ in
        } reading: { node throws(CloudError) in
            var zones: [CloudZoneID] = []
            for zone in try node.required("zones").asArray() { zones.append(try CloudZoneID(zone.required("zoneID"))) }
            return zones
        }
    }

    /// Makes and deletes zones. `CloudDatabase` has the contract of `modifyZones(saving:deleting:)`.
    public func modifyZones(saving: [CloudZoneID], deleting: [CloudZoneID]) async throws(CloudError) {
        // The request is atomic, so the error of one zone is the error of the request.
        let refused = try await change("zones/modify") {
            $0.list("operations") { json in
                for (zones, type) in [(saving, "create"), (deleting, "delete")] {
                    for zone in zones {
                        json.object {
                            $0.member("operationType", type)
                            $0.member("zone") { $0.member("zoneID") { zone.writeMembers(&$0) } }
                        }
                    }
                }
            }
            $0.member("tidemark") { $0.member("atomic", true) }
        } reading: { node throws(CloudError) -> CloudError? in
            for zone in try node.required("zones").asArray() {
                if let error = try CloudError(answered: zone, in: .default) { return error }
            }
            return nil
        }
        if let refused { throw refused.shown }
    }

    // Records

    /// Saves and deletes records of a zone. `CloudDatabase` has the contract of `modify(_:)`.
    public func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] {
        guard let unencodable = UnencodableOperations(request) else { return try await send(request) }
        return try await unencodable.answer(request) { request throws(CloudError) in try await send(request) }
    }

    private func send(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] {
        var json = JSONWriter(reserving: request.operations.reduce(256) { $0 + 256 + $1.record.fields.count * 64 })
        request.write(&json)
        let call = HTTPCall(kind: .change, target: path("records/modify"), body: json.bytes)
        return try await cloud.value(call) { node throws(CloudError) in
            var outcomes: [RecordOutcome] = []
            outcomes.reserveCapacity(request.operations.count)
            for (index, record) in try Self.items(node, "records", request.operations.count).enumerated() {
                let name = request.operations[index].record.id.recordName
                try Self.check(record, isOf: name, in: request.zone)
                let outcome = try RecordOutcome(answered: record, in: request.zone)
                if case .failed(let error) = outcome {
                    // The caller merges with the record of a conflict, so it must be the requested record.
                    guard
                        error.serverRecord.map({ $0.id.recordName == name && $0.id.zone.zoneName == request.zone.zoneName })
                            ?? true
                    else { throw CloudError(.internalError, Self.notAskedFor) }
                    outcomes.append(.failed(error.shownOfItem))
                } else {
                    outcomes.append(outcome)
                }
            }
            return outcomes
        }
    }

    /// Returns records by their names. `CloudDatabase` has the contract of `lookup(_:in:desiredKeys:)`.
    public func lookup(
        _ names: [String], in zone: CloudZoneID, desiredKeys: Set<String>?
    ) async throws(CloudError) -> [Result<CloudRecord, CloudError>] {
        var found = try await lookUp(names, zone, desiredKeys)
        var open = Self.leftOver(found)
        var isOver = open.count == names.count
        // A server limits the bytes of an answer. The records that it has left out are requested again, as long as each answer
        // has some of them.
        while !open.isEmpty, !isOver {
            let more = try await lookUp(open.map { names[$0] }, zone, desiredKeys)
            for (index, result) in zip(open, more) { found[index] = result }
            let left = Self.leftOver(found)
            isOver = left.count >= open.count
            open = left
        }
        return found
    }

    /// The places of the records that an answer has left out.
    private static func leftOver(_ found: [Result<CloudRecord, CloudError>]) -> [Int] {
        found.indices.filter { index in
            if case .failure(let error) = found[index] { error.code == .serviceUnavailable } else { false }
        }
    }

    private func lookUp(
        _ names: [String], _ zone: CloudZoneID, _ desiredKeys: Set<String>?
    ) async throws(CloudError) -> [Result<CloudRecord, CloudError>] {
        try await look("records/lookup") {
            $0.member("zoneID") { zone.writeMembers(&$0) }
            $0.list("records") { json in for name in names { json.object { $0.member("recordName", name) } } }
            $0.writeKeys("desiredKeys", desiredKeys)
        } reading: { node throws(CloudError) in
            var found: [Result<CloudRecord, CloudError>] = []
            found.reserveCapacity(names.count)
            for (index, record) in try Self.items(node, "records", names.count).enumerated() {
                try Self.check(record, isOf: names[index], in: zone)
                if let error = try CloudError(answered: record, in: zone) {
                    found.append(.failure(error.shownOfItem))
                } else {
                    found.append(.success(try CloudRecord(answered: record, in: zone)))
                }
            }
            return found
        }
    }

    /// Returns records that match a query. `CloudDatabase` has the contract of `query(_:in:limit:desiredKeys:continuation:)`.
    public func query(
        _ query: CloudQuery, in zone: CloudZoneID, limit: Int?, desiredKeys: Set<String>?, continuation: QueryContinuation?
    ) async throws(CloudError) -> QueryAnswer {
        guard query.isSpeakable else { throw CloudError(.invalidArguments, "a number of the query is no number") }
        let answer: QueryAnswer = try await Self.withFewer(limit) { limit throws(CloudError) in
            try await look("records/query") {
                $0.member("zoneID") { zone.writeMembers(&$0) }
                $0.name("query")
                query.write(&$0, zone: zone)
                $0.member("resultsLimit", limit.map { Int64($0) })
                $0.writeKeys("desiredKeys", desiredKeys)
                $0.member("continuationMarker", continuation?.rawValue)
            } reading: { node throws(CloudError) in
                let list = try node.required("records")
                guard list.isArray else { throw list.refusal("is not an array") }
                var answer = QueryAnswer(
                    records: [], continuation: try node.string("continuationMarker").map(QueryContinuation.init(rawValue:)))
                answer.records.reserveCapacity(list.elementCount)
                for record in list.elements {
                    if let failure = try RecordFailure(answered: record, in: zone) {
                        answer.failed.append(failure)
                    } else {
                        answer.records.append(try CloudRecord(answered: record, in: zone))
                    }
                }
                return answer
            }
        }
        guard answer.records.allSatisfy({ $0.id.zone.zoneName == zone.zoneName }) else { throw notAskedFor }
        return answer
    }

    // Changes

    /// Returns the zones that changed since a token. `CloudDatabase` has the contract of `databaseChanges(since:limit:)`.
    public func databaseChanges(since token: CloudToken?, limit: Int?) async throws(CloudError) -> DatabaseChanges {
        try Self.check(token)
        return try await look("changes/database") {
            $0.member("syncToken", token?.rawValue)
            $0.member("resultsLimit", limit.map { Int64($0) })
        } reading: { node throws(CloudError) in
            try DatabaseChanges(answered: node)
        }
    }

    /// Returns records of a zone that changed since a token. `CloudDatabase` has the contract of `zoneChanges(_:since:limit:desiredKeys:)`.
    public func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges {
        try Self.check(token)
        let changes: ZoneChanges = try await Self.withFewer(limit) { limit throws(CloudError) in
            try await page(of: zone, since: token, limit: limit, desiredKeys: desiredKeys)
        }
        var names: Set<String> = []
        names.reserveCapacity(changes.changes.count)
        for change in changes.changes {
            let id =
                switch change {
                case .saved(let record): record.id
                case .deleted(let deletion): deletion.id
                }
            guard id.zone.zoneName == zone.zoneName, names.insert(id.recordName).inserted else { throw notAskedFor }
        }
        for failure in changes.failed where !names.insert(failure.id.recordName).inserted { throw notAskedFor }
        return changes
    }

    private func page(
        of zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges {
        let answer: Result<ZoneChanges, CloudError> = try await look("changes/zone") {
            $0.list("zones") {
                $0.object {
                    $0.member("zoneID") { zone.writeMembers(&$0) }
                    $0.member("syncToken", token?.rawValue)
                    $0.member("resultsLimit", limit.map { Int64($0) })
                    $0.writeKeys("desiredKeys", desiredKeys)
                }
            }
        } reading: { node throws(CloudError) in
            let answered = try Self.items(node, "zones", 1)[0]
            if let own = answered["zoneID"], try CloudZoneID(own).zoneName != zone.zoneName { return .failure(notAskedFor) }
            if let error = try CloudError(answered: answered, in: zone) { return .failure(error.shown) }
            return .success(try ZoneChanges(answered: answered, in: zone))
        }
        return try answer.get()
    }
}

extension HTTPDatabase {
    /// Makes sure that a token is not empty: in the protocol, an empty token means that there is none.
    private static func check(_ token: CloudToken?) throws(CloudError) {
        guard token?.rawValue != "" else {
            throw CloudError(.invalidArguments, "the token is empty; the cloud issues no empty tokens")
        }
    }

    /// Makes sure that an item of an answer is about the requested record. The server is not trusted in this.
    private static func check(_ node: JSONNode, isOf name: String, in zone: CloudZoneID) throws(CloudError) {
        let isOther = try node.string("recordName").map { $0 != name } ?? false
        guard !isOther else { throw CloudError(.internalError, notAskedFor) }
        if let own = node["zoneID"], try CloudZoneID(own).zoneName != zone.zoneName {
            throw CloudError(.internalError, notAskedFor)
        }
    }

    private static let notAskedFor = "the server answers with records that were not asked for"

    private var notAskedFor: CloudError { CloudError(.internalError, "\(Self.notAskedFor): \(cloud.server)") }

    /// Repeats a request with a lower limit while the answer is too large. Records can be large.
    private static func withFewer<Answer>(
        _ limit: Int?, _ ask: (Int?) async throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer {
        var limit = limit
        while true {
            do throws(CloudError) {
                return try await ask(limit)
            } catch {
                guard error.code == .limitExceeded, limit ?? 2 > 1 else { throw error }
                limit = limit.map { max(1, $0 / 8) } ?? 25
            }
        }
    }
}

// Requests
extension HTTPDatabase {
    private func place(_ root: String) -> String {
        "/\(root)/1/\(PercentCoding.encoded(cloud.container))/\(cloud.environment.rawValue)/\(scope.name)"
    }

    /// The path of an operation of CloudKit Web Services.
    private func path(_ operation: String) -> String { "\(place("database"))/\(operation)" }

    /// The path of an operation that CloudKit Web Services lacks.
    func own(_ operation: String) -> String { "\(place("tidemark"))/\(operation)" }

    private func call(_ kind: HTTPCall.Kind, _ target: String, _ members: (inout JSONWriter) -> Void) -> HTTPCall {
        var json = JSONWriter()
        json.object(members)
        return HTTPCall(kind: kind, target: target, body: json.bytes)
    }

    /// Sends a request that only reads.
    private func look<Value>(
        _ operation: String, _ members: (inout JSONWriter) -> Void, reading read: (JSONNode) throws(CloudError) -> Value
    ) async throws(CloudError) -> Value {
        var call = call(.look, path(operation), members)
        call.canAskForLess = operation == "changes/zone" || operation == "records/query"
        return try await cloud.value(call, read)
    }

    private func change<Value>(
        _ operation: String, _ members: (inout JSONWriter) -> Void, reading read: (JSONNode) throws(CloudError) -> Value
    ) async throws(CloudError) -> Value {
        try await cloud.value(call(.change, path(operation), members), read)
    }

    /// Sends a request for an operation that CloudKit Web Services lacks.
    func own<Value>(
        _ kind: HTTPCall.Kind, _ operation: String, _ members: (inout JSONWriter) -> Void,
        reading read: (JSONNode) throws(CloudError) -> Value
    ) async throws(CloudError) -> Value {
        try await cloud.value(call(kind, own(operation), members), read)
    }

    /// Returns the elements of an array, which must be as many as were requested.
    private static func items(_ node: JSONNode, _ name: StaticString, _ count: Int) throws(CloudError) -> [JSONNode] {
        let list = try node.required(name)
        let items = try list.asArray()
        guard items.count == count else { throw list.refusal("has \(items.count) elements, and \(count) were asked about") }
        return items
    }
}

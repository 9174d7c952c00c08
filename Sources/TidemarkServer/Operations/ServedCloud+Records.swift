import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkWire

/// Records by their names, and by what they have.
extension ServedCloud {
    func lookup(_ call: Call) async throws -> Reply {
        struct Wanted {
            let zone: CloudZoneID
            var names: [String] = []
            var keys: [Set<String>?] = []
            let numbersAsStrings: Bool
        }
        let wanted = try call.read { node throws(CloudError) in
            var wanted = Wanted(zone: try CloudZoneID(ofRequest: node), numbersAsStrings: try node.numbersAsStrings)
            let all = try node.keys("desiredKeys")
            for node in try node.required("records").asArray(most: Self.limits.operationsPerRequest) {
                wanted.names.append(try node.required("recordName").asString())
                wanted.keys.append(try node.keys("desiredKeys") ?? all)
            }
            return wanted
        }
        let isSame = wanted.keys.dropFirst().allSatisfy { $0 == wanted.keys[0] }
        let found = try await database(call).lookup(
            wanted.names, in: wanted.zone, desiredKeys: isSame ? wanted.keys.first ?? nil : nil)
        let dialect = dialect(call, numbersAsStrings: wanted.numbersAsStrings)
        return .object(reserving: 256 + found.count * 1024) { json in
            json.list("records") { json in
                for ((name, keys), found) in zip(zip(wanted.names, wanted.keys), found) {
                    switch found {
                    case .success(var record):
                        if !isSame, let keys { record.fields = record.fields.filter { keys.contains($0.key) } }
                        record.write(&json, dialect)
                    case .failure(let error):
                        json.object {
                            $0.member("recordName", name)
                            error.writeMembers(&$0, dialect)
                        }
                    }
                }
            }
        }
    }

    // Queries

    /// A query as it has come.
    private struct Wanted {
        let query: CloudQuery
        /// `nil` for all zones.
        let zone: CloudZoneID?
        let limit: Int
        let keys: Set<String>?
        let continuation: String?
        let numbersAsStrings: Bool

        init(_ node: JSONNode, _ schema: (String) -> [String: FieldType]) throws(CloudError) {
            let isWide = try node.bool("zoneWide") ?? false
            zone = isWide && node["zoneID"] == nil ? nil : try CloudZoneID(ofRequest: node)
            query = try CloudQuery(node, zone: zone ?? .default, schema: schema)
            limit = try ServedCloud.limit(node)
            keys = try node.keys("desiredKeys")
            continuation = try node.string("continuationMarker")
            numbersAsStrings = try node.numbersAsStrings
        }
    }

    /// How many records an answer may have; more than there may be in one are no error.
    static func limit(_ node: JSONNode) throws(CloudError) -> Int {
        guard let limit = try node.integer("resultsLimit") else { return limits.recordsPerAnswer }
        guard limit > 0 else { throw CloudError(.invalidArguments, "resultsLimit is \(limit), and at least 1 is expected") }
        return Int(min(limit, Int64(limits.recordsPerAnswer)))
    }

    func query(_ call: Call) async throws -> Reply {
        let wanted = try await read(call) { node, schema throws(CloudError) in try Wanted(node, schema) }
        var json = JSONWriter(reserving: 16_384)
        try await answer(wanted, call, &json)
        return .json(json.bytes)
    }

    /// Several queries at once, as web clients of Apple's ask them.
    func queryBatch(_ call: Call) async throws -> Reply {
        let batch = try await read(call) { node, schema throws(CloudError) in
            var batch: [Wanted] = []
            for node in try node.required("batch").asArray(most: 50) { batch.append(try Wanted(node, schema)) }
            return batch
        }
        var json = JSONWriter(reserving: 16_384)
        json.beginObject()
        json.name("batch")
        json.beginArray()
        for wanted in batch {
            do throws(CloudError) {
                guard json.bytes.count <= Self.answerSize else {
                    throw CloudError(
                        .serviceUnavailable, "the answer is full: ask this query again, with fewer beside it", retryAfter: .zero)
                }
                try await answer(wanted, call, &json)
            } catch {
                json.object { error.writeMembers(&$0, dialect(call)) }
            }
        }
        json.endArray()
        json.endObject()
        return .json(json.bytes)
    }

    private func answer(_ wanted: Wanted, _ call: Call, _ json: inout JSONWriter) async throws(CloudError) {
        let database = try database(call)
        let answer: QueryAnswer
        if let zone = wanted.zone {
            answer = try await database.query(
                wanted.query, in: zone, limit: wanted.limit, desiredKeys: wanted.keys,
                continuation: wanted.continuation.map { QueryContinuation(rawValue: $0) })
        } else {
            answer = try await queryAll(wanted, database)
        }
        var token: CloudToken?
        if call.wantsSyncToken, let zone = wanted.zone, !zone.isDefault { token = try await database.currentToken(of: zone) }
        let dialect = dialect(call, numbersAsStrings: wanted.numbersAsStrings)
        json.object { json in
            json.list("records") { json in for record in answer.records { record.write(&json, dialect) } }
            json.member("continuationMarker", answer.continuation?.rawValue)
            json.member("syncToken", token?.rawValue)
        }
    }

    /// Zone by zone, in the order of their names. A marker says in which one it goes on, and where.
    private func queryAll(_ wanted: Wanted, _ database: EmbeddedDatabase) async throws(CloudError) -> QueryAnswer {
        var (name, place): (String?, QueryContinuation?)
        if let marker = wanted.continuation {
            let parts = marker.split(separator: "|", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                throw CloudError(.invalidArguments, "the continuationMarker is none that this query has been answered with")
            }
            name = String(parts[0])
            place = parts[1].isEmpty ? nil : QueryContinuation(rawValue: String(parts[1]))
        }
        var records: [CloudRecord] = []
        let zones = try await database.zones().sorted { ($0.zoneName, $0.ownerName) < ($1.zoneName, $1.ownerName) }
        for zone in zones where name.map({ zone.zoneName >= $0 }) ?? true {
            if records.count == wanted.limit {
                return QueryAnswer(records: records, continuation: QueryContinuation(rawValue: "\(zone.zoneName)|"))
            }
            let answer = try await database.query(
                wanted.query, in: zone, limit: wanted.limit - records.count, desiredKeys: wanted.keys,
                continuation: zone.zoneName == name ? place : nil)
            records += answer.records
            if let next = answer.continuation {
                return QueryAnswer(records: records, continuation: QueryContinuation(rawValue: "\(zone.zoneName)|\(next.rawValue)"))
            }
        }
        return QueryAnswer(records: records, continuation: nil)
    }
}

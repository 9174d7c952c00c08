import Foundation
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkWire

/// Looks records up by name, and runs queries.
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
        let database = try await database(call)
        let dialect = dialect(call, numbersAsStrings: wanted.numbersAsStrings)
        var json = JSONWriter(reserving: 256 + wanted.names.count * 1024)
        json.beginObject()
        json.name("records")
        json.beginArray()
        // The records are read in parts, so that only one part may be read without fitting into the answer.
        var begin = 0
        repeat {
            let part = begin..<min(begin + Self.lookUpPart, wanted.names.count)
            let isFull = json.bytes.count > Self.answerSize
            let found =
                isFull
                ? part.map { _ in .failure(Self.answerIsFull) }
                : try await database.lookup(
                    Array(wanted.names[part]), in: wanted.zone, desiredKeys: isSame ? wanted.keys.first ?? nil : nil)
            for (place, found) in zip(part, found) {
                switch found {
                case .success(var record) where json.bytes.count <= Self.answerSize:
                    if !isSame, let keys = wanted.keys[place] { record.fields = record.fields.filter { keys.contains($0.key) } }
                    record.write(&json, dialect)
                case .success: Self.answerIsFull.write(&json, of: wanted.names[place], dialect)
                case .failure(let error): error.write(&json, of: wanted.names[place], dialect)
                }
            }
            begin = part.upperBound
        } while begin < wanted.names.count
        json.endArray()
        json.endObject()
        return .json(json.bytes)
    }

    /// The number of records that are looked up at a time.
    private static let lookUpPart = 20
    static let answerIsFull = CloudError(
        .serviceUnavailable, forClients: "the answer is full: ask for this one again, with fewer beside it", retryAfter: .zero)

    // Queries

    /// A query in a request.
    private struct Wanted {
        let query: CloudQuery
        /// `nil` for all zones.
        let zone: CloudZoneID?
        let limit: Int
        let keys: Set<String>?
        let continuation: String?
        let numbersAsStrings: Bool

        init(_ node: JSONNode, in scope: DatabaseScope?, _ schema: (String) -> [String: FieldType]) throws(CloudError) {
            let isWide = try node.bool("zoneWide") ?? false
            if isWide, node["zoneID"] == nil, scope == .shared {
                throw CloudError(.invalidArguments, "SharedDB does not support Zone Wide queries. Name a zone in zoneID")
            }
            zone = isWide && node["zoneID"] == nil ? nil : try CloudZoneID(ofRequest: node)
            query = try CloudQuery(node, zone: zone ?? .default, schema: schema)
            limit = try ServedCloud.limit(node)
            keys = try node.keys("desiredKeys")
            continuation = try node.string("continuationMarker")
            numbersAsStrings = try node.numbersAsStrings
        }
    }

    /// Returns the most records of an answer. A larger number than a reply may have is no error.
    static func limit(_ node: JSONNode) throws(CloudError) -> Int {
        guard let limit = try node.integer("resultsLimit") else { return limits.recordsPerAnswer }
        guard limit > 0 else { throw CloudError(.invalidArguments, "resultsLimit is \(limit), and at least 1 is expected") }
        return Int(min(limit, Int64(limits.recordsPerAnswer)))
    }

    func query(_ call: Call) async throws -> Reply {
        let wanted = try await read(call) { node, schema throws(CloudError) in try Wanted(node, in: call.scope, schema) }
        var json = JSONWriter(reserving: 16_384)
        try await answer(wanted, call, &json)
        return .json(json.bytes)
    }

    /// Answers several queries at once, as Apple's web clients send them.
    func queryBatch(_ call: Call) async throws -> Reply {
        let batch = try await read(call) { node, schema throws(CloudError) in
            var batch: [Wanted] = []
            for node in try node.required("batch").asArray(most: 50) { batch.append(try Wanted(node, in: call.scope, schema)) }
            return batch
        }
        var json = JSONWriter(reserving: 16_384)
        json.beginObject()
        json.name("batch")
        json.beginArray()
        for wanted in batch {
            do throws(CloudError) {
                guard json.bytes.count <= Self.answerSize else {
                    throw Self.answerIsFull
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
        let database = try await database(call)
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
            json.list("records") { json in
                for record in answer.records { record.write(&json, dialect) }
                for failure in answer.failed { failure.write(&json, dialect) }
            }
            json.member("continuationMarker", answer.continuation?.rawValue)
            json.member("syncToken", token?.rawValue)
        }
    }

    /// Queries zone by zone, in the order of their names. The continuation has the zone and the place in it.
    private func queryAll(_ wanted: Wanted, _ database: EmbeddedDatabase) async throws(CloudError) -> QueryAnswer {
        // Neither name has a space.
        func mark(_ zone: CloudZoneID) -> String { "\(zone.zoneName) \(zone.ownerName)" }
        // Base64, as all continuations: some clients decode them.
        func continuation(_ zone: CloudZoneID, _ place: String) -> QueryContinuation {
            QueryContinuation(rawValue: Data("\(mark(zone)) \(place)".utf8).base64EncodedString())
        }
        var (begin, place): (String?, QueryContinuation?)
        if let marker = wanted.continuation {
            let text = Data(base64Encoded: marker).flatMap { String(data: $0, encoding: .utf8) } ?? ""
            let parts = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else {
                throw CloudError(.invalidArguments, "the continuationMarker does not belong to this query")
            }
            begin = "\(parts[0]) \(parts[1])"
            place = parts[2].isEmpty ? nil : QueryContinuation(rawValue: String(parts[2]))
        }
        var (records, failed): ([CloudRecord], [RecordFailure]) = ([], [])
        for zone in try await database.zones().sorted(by: { mark($0) < mark($1) }) where begin.map({ mark(zone) >= $0 }) ?? true {
            if records.count == wanted.limit {
                return QueryAnswer(records: records, continuation: continuation(zone, ""), failed: failed)
            }
            let answer = try await database.query(
                wanted.query, in: zone, limit: wanted.limit - records.count, desiredKeys: wanted.keys,
                continuation: mark(zone) == begin ? place : nil)
            records += answer.records
            failed += answer.failed
            if let next = answer.continuation {
                return QueryAnswer(records: records, continuation: continuation(zone, next.rawValue), failed: failed)
            }
        }
        return QueryAnswer(records: records, continuation: nil, failed: failed)
    }
}

extension CloudError {
    /// Writes the result for a record.
    fileprivate func write(_ json: inout JSONWriter, of name: String, _ dialect: WireDialect) {
        json.object {
            $0.member("recordName", name)
            writeMembers(&$0, dialect)
        }
    }
}

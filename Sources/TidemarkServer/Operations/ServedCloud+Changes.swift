import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkWire

/// Answers requests for the changes since a token.
extension ServedCloud {
    /// The part of a request for one zone.
    private struct Wanted {
        let zone: CloudZoneID
        let token: String?
        let limit: Int
        let keys: Set<String>?
        let types: Set<String>?
        let numbersAsStrings: Bool

        /// - Parameter usual: The values of the whole request, for what the zone does not set.
        init(_ node: JSONNode, usual: Usual) throws(CloudError) {
            zone = try CloudZoneID(ofRequest: node)
            token = try node.string("syncToken")
            limit = try node["resultsLimit"] == nil ? usual.limit : ServedCloud.limit(node)
            keys = try node["desiredKeys"] == nil ? usual.keys : node.keys("desiredKeys")
            types = try node["desiredRecordTypes"] == nil ? usual.types : node.keys("desiredRecordTypes")
            let own = try node.numbersAsStrings
            numbersAsStrings = own || usual.numbersAsStrings
        }
    }

    /// The values that a request sets for all of its zones.
    private struct Usual {
        let limit: Int
        let keys: Set<String>?
        let types: Set<String>?
        let numbersAsStrings: Bool

        init(_ node: JSONNode) throws(CloudError) {
            limit = try ServedCloud.limit(node)
            keys = try node.keys("desiredKeys")
            types = try node.keys("desiredRecordTypes")
            numbersAsStrings = try node.numbersAsStrings
        }
    }

    func zoneChanges(_ call: Call) async throws -> Reply {
        let wanted = try call.read { node throws(CloudError) in
            let usual = try Usual(node)
            var wanted: [Wanted] = []
            for zone in try node.required("zones").asArray(most: Self.limits.operationsPerRequest) {
                wanted.append(try Wanted(zone, usual: usual))
            }
            return wanted
        }
        let database = try await database(call)
        let user = database.user ?? CloudZoneID.defaultOwner
        var json = JSONWriter(reserving: 65_536)
        json.beginObject()
        json.name("zones")
        json.beginArray()
        for wanted in wanted {
            let dialect = dialect(call, numbersAsStrings: wanted.numbersAsStrings)
            do throws(CloudError) {
                let isFull = json.bytes.count > Self.answerSize
                let changes = try await isFull ? later(wanted, database) : changes(wanted, database)
                let zone =
                    wanted.zone.ownerName == CloudZoneID.defaultOwner
                    ? CloudZoneID(wanted.zone.zoneName, owner: user) : wanted.zone
                json.object {
                    $0.member("zoneID") { zone.writeMembers(&$0) }
                    changes.writeMembers(&$0, types: wanted.types, dialect)
                }
            } catch {
                if error.code == .notAuthenticated { throw error }
                json.object {
                    $0.member("zoneID") { wanted.zone.writeMembers(&$0) }
                    error.writeMembers(&$0, dialect)
                }
            }
        }
        json.endArray()
        json.endObject()
        return .json(json.bytes)
    }

    /// Returns the answer for a zone that no longer fits into the reply: there is more to fetch.
    private func later(_ wanted: Wanted, _ database: EmbeddedDatabase) async throws(CloudError) -> ZoneChanges {
        var token = wanted.token.map { CloudToken(rawValue: $0) }
        if token == nil { token = try await database.firstToken(of: wanted.zone) }
        return ZoneChanges(changes: [], token: token!, moreComing: true)
    }

    private func changes(_ wanted: Wanted, _ database: EmbeddedDatabase) async throws(CloudError) -> ZoneChanges {
        // An empty token stands for the present state.
        guard wanted.token != "" else {
            return ZoneChanges(changes: [], token: try await database.currentToken(of: wanted.zone), moreComing: false)
        }
        return try await database.zoneChanges(
            wanted.zone, since: wanted.token.map { CloudToken(rawValue: $0) }, limit: wanted.limit, desiredKeys: wanted.keys)
    }

    /// Answers the older form of the request, for one zone.
    func recordChanges(_ call: Call) async throws -> Reply {
        let wanted = try call.read { node throws(CloudError) in try Wanted(node, usual: try Usual(node)) }
        let changes = try await changes(wanted, try await database(call))
        let dialect = dialect(call, numbersAsStrings: wanted.numbersAsStrings)
        return .object(reserving: 16_384) {
            changes.writeMembers(&$0, types: wanted.types, dialect)
            $0.member("reverse", false)
        }
    }

    func databaseChanges(_ call: Call) async throws -> Reply {
        let (token, limit) = try call.read { node throws(CloudError) in (try node.string("syncToken"), try Self.limit(node)) }
        let changes = try await databaseChanges(since: token, limit: limit, database(call))
        var json = JSONWriter()
        changes.write(&json, dialect(call))
        return .json(json.bytes)
    }

    private func databaseChanges(
        since token: String?, limit: Int, _ database: EmbeddedDatabase
    ) async throws(CloudError) -> DatabaseChanges {
        try await database.databaseChanges(since: token.flatMap { $0.isEmpty ? nil : CloudToken(rawValue: $0) }, limit: limit)
    }

    // Zones

    func listZones(_ call: Call) async throws -> Reply {
        let database = try await database(call)
        let zones = try await database.zonesWithTokens()
        var token: CloudToken?
        if call.scope != .public { token = try await lastToken(database) }
        return .object {
            $0.list("zones") { json in for (zone, token) in zones { Self.write(zone, token, &json) } }
            $0.member("syncToken", token?.rawValue)
            $0.member("moreComing", false)
        }
    }

    /// Writes a zone as CloudKit's zone dictionary has it. The default zone has no feed of changes and no atomic requests.
    private static func write(_ zone: CloudZoneID, _ token: CloudToken?, _ json: inout JSONWriter) {
        json.object {
            $0.member("zoneID") { zone.writeMembers(&$0) }
            $0.member("syncToken", token?.rawValue)
            $0.member("atomic", !zone.isDefault)
        }
    }

    /// Returns the present token of the database.
    func lastToken(_ database: EmbeddedDatabase) async throws(CloudError) -> CloudToken {
        var token: CloudToken?
        while true {
            let changes = try await database.databaseChanges(since: token, limit: nil)
            token = changes.token
            if !changes.moreComing { return changes.token }
        }
    }

    func lookupZones(_ call: Call) async throws -> Reply {
        let wanted = try call.read { node throws(CloudError) in
            var zones: [CloudZoneID] = []
            // Zones are named directly, or each in an object.
            for node in try node.required("zones").asArray(most: Self.limits.operationsPerRequest) {
                zones.append(try CloudZoneID(node["zoneID"] ?? node))
            }
            return zones
        }
        let database = try await database(call)
        let there = try await database.zonesWithTokens()
        let user = database.user
        let dialect = dialect(call)
        return .object {
            $0.list("zones") { json in
                for zone in wanted {
                    let owner = zone.ownerName == CloudZoneID.defaultOwner ? user : zone.ownerName
                    // The public database has one zone, without an owner.
                    let isOwned = database.scope != .public
                    if let (found, token) = there.first(where: { known, _ in
                        known.zoneName == zone.zoneName && (!isOwned || known.ownerName == owner || owner == nil)
                    }) {
                        Self.write(found, token, &json)
                        continue
                    }
                    json.object {
                        $0.member("zoneID") { zone.writeMembers(&$0) }
                        CloudError(.zoneNotFound, "Zone '\(zone.zoneName)' does not exist").writeMembers(&$0, dialect)
                    }
                }
            }
        }
    }

    func modifyZones(_ call: Call) async throws -> Reply {
        struct Wanted {
            var operations: [(zone: CloudZoneID, isDeletion: Bool)] = []
            let isAtomic: Bool
        }
        let wanted = try call.read { node throws(CloudError) in
            var wanted = Wanted(isAtomic: try node["tidemark"]?.bool("atomic") ?? false)
            for node in try node.required("operations").asArray(most: Self.limits.operationsPerRequest) {
                let kind = try node.required("operationType")
                guard kind.isString("create") || kind.isString("delete") else {
                    throw kind.refusal("is neither create nor delete")
                }
                let zone = try node.required("zone")
                wanted.operations.append((try CloudZoneID(zone["zoneID"] ?? zone), kind.isString("delete")))
            }
            return wanted
        }
        let database = try await database(call)
        var failures: [CloudError?] = wanted.operations.map { _ in nil }
        if wanted.isAtomic {
            try await database.modifyZones(
                saving: wanted.operations.filter { !$0.isDeletion }.map(\.zone),
                deleting: wanted.operations.filter(\.isDeletion).map(\.zone))
        } else {
            for (place, operation) in wanted.operations.enumerated() {
                do throws(CloudError) {
                    try await database.modifyZones(
                        saving: operation.isDeletion ? [] : [operation.zone],
                        deleting: operation.isDeletion ? [operation.zone] : [])
                } catch {
                    if error.code == .notAuthenticated { throw error }
                    failures[place] = error
                }
            }
        }
        let user = database.user ?? CloudZoneID.defaultOwner
        let dialect = dialect(call)
        return .object {
            $0.list("zones") { json in
                for (operation, failure) in zip(wanted.operations, failures) {
                    let zone =
                        operation.zone.ownerName == CloudZoneID.defaultOwner
                        ? CloudZoneID(operation.zone.zoneName, owner: user) : operation.zone
                    json.object {
                        $0.member("zoneID") { zone.writeMembers(&$0) }
                        if let failure {
                            failure.writeMembers(&$0, dialect)
                        } else if operation.isDeletion {
                            $0.member("deleted", true)
                        }
                    }
                }
            }
        }
    }

    /// Answers the older form of the request for the database's changes.
    func zonesChanged(_ call: Call) async throws -> Reply {
        let token = try call.read { node throws(CloudError) in try node.string("metaSyncToken") }
        let changes = try await databaseChanges(since: token, limit: Self.limits.recordsPerAnswer, database(call))
        return .object {
            $0.list("zones") { json in
                for zone in changes.changed { json.object { $0.member("zoneID") { zone.writeMembers(&$0) } } }
                for zone in changes.deleted + changes.purged {
                    json.object {
                        $0.member("zoneID") { zone.writeMembers(&$0) }
                        $0.member("deleted", true)
                    }
                }
            }
            $0.member("metaSyncToken", changes.token.rawValue)
            $0.member("moreComing", changes.moreComing)
        }
    }
}

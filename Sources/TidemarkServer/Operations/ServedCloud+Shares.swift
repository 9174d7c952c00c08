import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkWire

/// Sharing for Tidemark's own clients: everything that `SharingDatabase` has.
extension ServedCloud {
    /// Reads the record of a share.
    private static func share(_ node: JSONNode) throws(CloudError) -> CloudRecordID {
        CloudRecordID(try node.required("recordName").asString(), in: try CloudZoneID(node.required("zoneID")))
    }

    private func answer(_ share: CloudShare, _ call: Call) -> Reply {
        var json = JSONWriter()
        share.write(&json, dialect(call))
        return .json(json.bytes)
    }

    func listShares(_ call: Call) async throws -> Reply {
        let zone = try call.read { node throws(CloudError) in try CloudZoneID(ofRequest: node) }
        let shares = try await database(call).shares(in: zone)
        let dialect = dialect(call)
        return .object { $0.list("shares") { json in for share in shares { share.write(&json, dialect) } } }
    }

    func createShare(_ call: Call) async throws -> Reply {
        let (zone, root, title, permission) = try call.read { node throws(CloudError) in
            (
                try CloudZoneID(ofRequest: node), try node.string("rootRecordName"), try node.string("title"),
                try ShareParticipant.Permission(wire: node.required("publicPermission"))
            )
        }
        return answer(
            try await database(call).createShare(
                in: zone, coverage: .init(root: root), title: title, publicPermission: permission), call)
    }

    func changeShare(_ call: Call) async throws -> Reply {
        let (share, changes) = try call.read { node throws(CloudError) in
            var changes: [ShareChange] = []
            for node in try node.required("changes").asArray(most: Self.limits.operationsPerRequest) {
                changes.append(try ShareChange(node))
            }
            return (try Self.share(node), changes)
        }
        return answer(try await database(call).changeShare(share, changes), call)
    }

    func deleteShare(_ call: Call) async throws -> Reply {
        try await database(call).deleteShare(try call.read(Self.share))
        return .object { _ in }
    }

    func auditShares(_ call: Call) async throws -> Reply {
        let (zone, time) = try call.read { node throws(CloudError) in
            (try CloudZoneID(ofRequest: node), try node.integer("after"))
        }
        let entries = try await database(call).shareAudit(in: zone, after: time)
        return .object { $0.list("entries") { json in for entry in entries { entry.write(&json) } } }
    }

    // Links

    func makeLink(_ call: Call) async throws -> Reply {
        let (share, participant) = try call.read { node throws(CloudError) in
            (try Self.share(node), try node.string("participantId"))
        }
        let link = try await database(call).makeLink(to: share, for: participant)
        var json = JSONWriter()
        link.write(&json)
        return .json(json.bytes)
    }

    func revokeLink(_ call: Call) async throws -> Reply {
        let (share, id) = try call.read { node throws(CloudError) in (try Self.share(node), try node.required("id").asString()) }
        try await database(call).revokeLink(id, to: share)
        return .object { _ in }
    }

    private func token(_ call: Call) throws(CloudError) -> String {
        try call.read { node throws(CloudError) in try node.required("token").asString() }
    }

    private func answer(_ metadata: ShareMetadata, _ call: Call) -> Reply {
        var json = JSONWriter()
        metadata.write(&json, dialect(call))
        return .json(json.bytes)
    }

    func resolveLink(_ call: Call) async throws -> Reply {
        answer(try await database(call).resolveLink(try token(call)), call)
    }

    func acceptLink(_ call: Call) async throws -> Reply {
        answer(try await database(call).acceptLink(try token(call)), call)
    }

    func declineLink(_ call: Call) async throws -> Reply {
        try await database(call).declineLink(try token(call))
        return .object { _ in }
    }

    // The account, and other accounts

    func account(_ call: Call) async throws -> Reply {
        let account = try await database(call).account()
        var json = JSONWriter()
        account.write(&json)
        var reply = Reply.json(json.bytes)
        // The device stops here. Without this failure, administrators would not learn that it was kept out.
        if account.status == .restricted {
            let error = CloudError(.notAuthenticated, "the account is disabled")
            reply.failures = [Reply.Failure(code: error.code.wire.name, reason: error.reason)]
        }
        return reply
    }

    /// Changes settings of the caller's account: whether others can find it.
    func setAccount(_ call: Call) async throws -> Reply {
        let isDiscoverable = try call.read { node throws(CloudError) in
            _ = try node.required("discoverable")
            return try node.bool("discoverable") ?? false
        }
        try await database(call, .private).setDiscoverable(isDiscoverable)
        return .object { _ in }
    }

    func limits(_ call: Call) async throws -> Reply {
        let limits = try await database(call).limits()
        var json = JSONWriter()
        limits.write(&json)
        return .json(json.bytes)
    }

    private func lookUps(_ call: Call) throws(CloudError) -> [UserLookUp] {
        try call.read { node throws(CloudError) in
            var lookUps: [UserLookUp] = []
            for node in try node.required("lookupInfos").asArray(most: Self.limits.operationsPerRequest) {
                lookUps.append(try UserLookUp(node))
            }
            return lookUps
        }
    }

    /// Counts the people that an account looks up, so that nobody can try out a list of addresses.
    func countLookUps(_ count: Int, _ call: Call) throws(CloudError) {
        let now = ServerTime.seconds()
        for _ in 0..<count {
            guard let wait = lookUpRate.wait(for: call.caller.account ?? "", at: now) else { continue }
            throw CloudError(
                .requestRateLimited, "the account has looked for many people: wait, then look for the others",
                retryAfter: .seconds(max(1, Int64(wait.rounded(.up)))))
        }
    }

    /// Answers Tidemark's path and the protocol's alike: people who are not found are left out.
    func findUsers(_ call: Call) async throws -> Reply {
        let lookUps = try lookUps(call)
        try countLookUps(lookUps.count, call)
        let users = try await database(call, call.scope == .shared ? .shared : .private).users(matching: lookUps)
        return .object { $0.list("users") { json in for user in users { user.write(&json) } } }
    }
}

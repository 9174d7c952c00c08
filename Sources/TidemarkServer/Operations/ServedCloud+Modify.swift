import Foundation
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkWire

/// Changes of records.
extension ServedCloud {
    func modify(_ call: Call) async throws -> Reply {
        let database = try await database(call)
        var request = try await read(call) { node, schema throws(CloudError) in
            try WireModify(
                node, operations: Self.limits.operationsPerRequest, schema: schema,
                asset: { claim, type, field, node throws(CloudError) in try asset(claim, type, field, node, call) },
                newName: { UUID().uuidString.lowercased() })
        }
        try await resolveChecksums(&request, database)
        let isAtomic = request.isAtomic ?? !request.zone.isDefault
        // Tidemark's own clients have operations for shares. For them a share's record can't be changed like other records.
        let outcomes = try await outcomes(request, isAtomic: isAtomic, hasShares: !call.isExtended, database, call)
        await tell(call, request, outcomes, database)
        // The records are saved, even if the token can't be read. A client without the token fetches once more.
        var token: CloudToken?
        if call.wantsSyncToken, !request.zone.isDefault { token = try? await database.currentToken(of: request.zone) }
        let dialect = dialect(call, numbersAsStrings: request.numbersAsStrings)
        var reply: Reply = .object(reserving: 256 + outcomes.count * 512) { json in
            json.list("records") { json in
                for (item, outcome) in zip(request.items, outcomes) {
                    let id = item.operation.record.id
                    guard case .saved(var record) = outcome, let keys = item.desiredKeys else {
                        outcome.write(&json, of: id, dialect)
                        continue
                    }
                    record.fields = record.fields.filter { keys.contains($0.key) }
                    RecordOutcome.saved(record).write(&json, of: id, dialect)
                }
            }
            json.member("syncToken", token?.rawValue)
        }
        reply.failures = Self.failures(outcomes, of: request)
        return reply
    }

    /// Returns the failures of a request: each refused record, and all conflicts as one, since they are no fault. The failure of
    /// an atomic request as a whole is no failure of its own.
    private static func failures(_ outcomes: [RecordOutcome], of request: WireModify) -> [Reply.Failure] {
        var (failures, conflicts): ([Reply.Failure], Reply.Failure?) = ([], nil)
        for (outcome, item) in zip(outcomes, request.items) {
            guard case .failed(let error) = outcome, error.code != .batchRequestFailed else { continue }
            var failure = Reply.Failure(code: error.code.wire.name, reason: error.reasonForClients)
            failure.zone = request.zone.zoneName
            guard error.code != .serverRecordChanged else {
                failure.count += conflicts?.count ?? 0
                conflicts = failure
                continue
            }
            (failure.record, failure.recordType) = (item.operation.record.id.recordName, item.operation.record.type)
            if let mismatch = error.schemaMismatch {
                (failure.field, failure.fieldType) = (mismatch.field, mismatch.fieldType)
            }
            failures.append(failure)
        }
        return failures + (conflicts.map { [$0] } ?? [])
    }

    /// Returns the outcome of each item, in their order.
    ///
    /// - Parameter hasShares: Whether shares are made and changed by their records.
    private func outcomes(
        _ request: WireModify, isAtomic: Bool, hasShares: Bool, _ database: EmbeddedDatabase, _ call: Call
    ) async throws(CloudError) -> [RecordOutcome] {
        let items = request.items
        var outcomes: [RecordOutcome?] = items.map { $0.failure.map { .failed($0) } }
        func failTheRest() -> [RecordOutcome] {
            outcomes.map { $0 ?? .failed(CloudError(.batchRequestFailed, "another operation of the atomic request failed")) }
        }
        if isAtomic, outcomes.contains(where: { $0 != nil }) { return failTheRest() }

        var shares: Set<String> = []
        if hasShares, database.scope != .public {
            let deleted = items.filter(\.operation.isDeletion).map(\.operation.record.id.recordName)
            if !deleted.isEmpty { shares = try await database.shareNames(among: deleted, in: request.zone) }
        }
        let records = items.indices.filter { place in
            let item = items[place]
            let isShare =
                hasShares
                && (item.share != nil || item.operation.isDeletion && shares.contains(item.operation.record.id.recordName))
            return outcomes[place] == nil && !isShare
        }
        // An empty request is sent, too: it tells whether the zone exists.
        if !records.isEmpty || items.isEmpty {
            let answers = try await database.modify(
                ModifyRecordsRequest(
                    zone: request.zone, operations: records.map { items[$0].operation }, isAtomic: isAtomic,
                    clientToken: request.clientToken,
                    desiredKeys: items.contains { $0.desiredKeys != nil } ? nil : request.desiredKeys))
            for (place, answer) in zip(records, answers) { outcomes[place] = answer }
            let hasFailed = answers.contains { if case .failed = $0 { true } else { false } }
            if isAtomic, hasFailed { return failTheRest() }
        }
        // Shares come after their records, each in a request of its own.
        for place in items.indices where outcomes[place] == nil {
            var failure: CloudError?
            do throws(CloudError) {
                outcomes[place] = try await changeShare(items[place], database)
            } catch {
                outcomes[place] = .failed(error)
                failure = error
            }
            try await auditing { () throws(CredentialError) in try await audit(items[place], failure, call) }
        }
        return failTheRest()
    }

    // Assets

    /// Returns the asset that a field is to name; `nil` where only the stored record can tell.
    private func asset(
        _ claim: AssetClaim, _ type: String, _ field: String, _ node: JSONNode, _ call: Call
    ) throws(CloudError) -> CloudAsset? {
        if let receipt = claim.receipt {
            let opened = try reading { () throws(CredentialError) in try access.open(receipt, for: SignedAssetToken.receipt) }
            guard let pass = opened.flatMap(SignedAssetToken.init),
                let asset = pass.asset,
                pass.container == call.container, pass.environment == call.environment, pass.account == call.caller.account,
                pass.fieldName == field, pass.recordType.isEmpty || pass.recordType == type
            else {
                throw node.refusal(
                    "has a bad upload receipt: it is altered, expired, or for another field. Upload the asset again")
            }
            guard claim.size == nil || claim.size == asset.size,
                claim.fileChecksum == nil || claim.fileChecksum == asset.fileChecksum
            else { throw node.refusal("has a bad upload receipt: it is for another content than size and fileChecksum say") }
            return asset
        }
        guard let digest = claim.digest else { return nil }
        guard let size = claim.size else { throw node.refusal("lacks the member 'size'") }
        return CloudAsset(digest: digest, size: size)
    }

    /// Reads the stored records whose assets came back as they were read, without a receipt.
    private func resolveChecksums(_ request: inout WireModify, _ database: EmbeddedDatabase) async throws(CloudError) {
        let places = request.items.indices.filter { !request.items[$0].checksums.isEmpty && request.items[$0].failure == nil }
        guard !places.isEmpty else { return }
        let names = places.map { request.items[$0].operation.record.id.recordName }
        let found = try await database.lookup(names, in: request.zone, desiredKeys: nil)
        for (place, found) in zip(places, found) {
            let item = request.items[place]
            var record = item.operation.record
            for field in item.checksums.keys {
                var known: [String: CloudAsset] = [:]
                if case .success(let stored) = found {
                    for case .asset(let asset) in stored.fields[field]?.scalars ?? [] { known[asset.fileChecksum] = asset }
                }
                guard let value = record.fields[field]?.replacing(known) else {
                    request.items[place].failure = CloudError(
                        .invalidArguments,
                        "fields.\(field) names an asset without a receipt that the record does not have (bad upload receipt). Upload it with assets/upload"
                    )
                    break
                }
                record.fields[field] = value
            }
            request.items[place].operation = RecordOperation(item.operation.kind, record, clearing: item.operation.cleared)
        }
    }
}

extension CloudValue {
    /// Returns the value with the assets that its checksums stand for; `nil` where one is not known.
    fileprivate func replacing(_ known: [String: CloudAsset]) -> CloudValue? {
        switch self {
        case .asset(let asset):
            guard asset.digest.hasPrefix(WireModify.checksumMark) else { return self }
            return known[String(asset.digest.dropFirst(WireModify.checksumMark.count))].map { .asset($0) }
        case .list(let elements, let scalar):
            let replaced = elements.compactMap { $0.replacing(known) }
            return replaced.count == elements.count ? .list(replaced, of: scalar) : nil
        case .string, .int64, .double, .timestamp, .bytes, .location, .reference: return self
        }
    }
}

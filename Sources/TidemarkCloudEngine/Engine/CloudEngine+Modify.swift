import Foundation
package import TidemarkCloud
import TidemarkModel

extension CloudEngine {
    /// Changes records; see `CloudDatabase`.
    ///
    /// - Returns: The outcomes, and whether something is left to be removed.
    package func modify(
        _ request: ModifyRecordsRequest, _ assetStorage: any AssetStorage, _ caller: Caller
    ) async throws(CloudError) -> (outcomes: [RecordOutcome], isUnfinished: Bool) {
        try check(request)
        do throws(CloudError) {
            return try await modifyNow(request, assetStorage, caller)
        } catch {
            if error.code == .changeTokenExpired { try await noteAhead(tagsOf: request, in: place(request.zone, caller).owner) }
            throw error
        }
    }

    private func modifyNow(
        _ request: ModifyRecordsRequest, _ assetStorage: any AssetStorage, _ caller: Caller
    ) async throws(CloudError) -> (outcomes: [RecordOutcome], isUnfinished: Bool) {
        // A stored reply is a row of the account that asks.
        let asks = request.clientToken == nil && caller.scope != .public ? [] : [caller.user]
        let place = try place(request.zone, caller)
        let owners = WrittenOwners([place.owner] + asks)
        var reads: ExpectedReads?
        if caller.scope == .private {
            reads = ExpectedReads(
                place: place, names: request.composedNames, user: caller.user, token: request.clientToken)
        }
        let (outcomes, released, isUnfinished) = try await write(owners: owners, expecting: reads) {
            rows, found throws(CloudError) in
            // A participant who was removed gets no reply, not even a stored one.
            let access = try accessToWrite(request.zone, caller, rows)
            if let token = request.clientToken, let answer = try rows.answer(to: token, of: caller.user) {
                return (try repeated(answer, request, access, rows), ReleasedAssets(), false)
            }
            var batch = try ModifyBatch(engine: self, request: request, access: access, finding: found, rows)
            let outcomes = try batch.run(rows)
            if let token = request.clientToken {
                let time = now()
                try rows.forgetAnswers(of: caller.user, AnswerAge(at: time))
                try keep(
                    IdempotencyRecord(to: request, outcomes).data, to: token, isNeeded: batch.hasChanged, at: time, caller, rows)
            }
            return (outcomes, batch.released, !batch.left.isEmpty)
        }
        await remove(released, assetStorage)
        return (outcomes, isUnfinished)
    }

    /// Stores a reply, which counts against the quota of the account that asks. Where the quota is full, only replies to requests
    /// that changed something are stored: repeating the others does no harm.
    private func keep(
        _ answer: Data, to token: String, isNeeded: Bool, at time: Int64, _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) {
        let size = StoredAnswer.size(answer, token: token)
        if !isNeeded, try rows.used(by: caller.user) + size > caller.account?.quota ?? .max { return }
        try rows.keep(answer, to: token, of: caller.user, at: time)
        try rows.addUsed(size, by: caller.user)
    }

    /// Checks what can be decided without reading rows.
    private func check(_ request: ModifyRecordsRequest) throws(CloudError) {
        guard request.operations.count <= limits.operationsPerRequest else {
            throw CloudError(
                .limitExceeded,
                "a request has \(limits.operationsPerRequest) operations at the most, not \(request.operations.count). Halve it")
        }
        guard !request.isAtomic || !request.zone.isDefault else {
            throw CloudError(.invalidArguments, "atomic operations not supported in default zone")
        }
        var names: Set<[UInt8]> = []
        var bytes = 0
        for operation in request.operations {
            let name = operation.record.id.recordName
            guard names.insert(Array(name.utf8)).inserted else {
                throw CloudError(.invalidArguments, "the request has two operations for the record '\(name)'")
            }
            bytes += name.utf8.count + operation.record.fields.reduce(0) { $0 + $1.key.utf8.count + $1.value.byteCount }
        }
        guard bytes <= limits.bytesPerRequest || request.operations.count == 1 else {
            throw CloudError(
                .limitExceeded, "a request has \(limits.bytesPerRequest) bytes at the most, not \(bytes). Halve it")
        }
        if let token = request.clientToken, !(1...255).contains(token.utf8.count) {
            throw CloudError(.invalidArguments, "a client token has 1 to 255 bytes")
        }
    }

    /// Returns the reply to a repeated request: its first outcomes, with the records as they are now.
    private func repeated(
        _ answer: Data, _ request: ModifyRecordsRequest, _ access: ShareAccess, _ rows: any CloudTransaction
    ) throws(CloudError) -> [RecordOutcome] {
        let kept = try IdempotencyRecord(answer)
        guard kept.items.count == request.operations.count,
            zip(kept.items, request.operations).allSatisfy({ $0.name == $1.record.id.recordName })
        else { throw CloudError(.invalidArguments, "the client token belongs to another request") }
        let zoneID = id(of: access.zone, access.caller)
        let found = try seen(kept.items.map(\.name), access, rows)
        var outcomes: [RecordOutcome] = []
        for (name, item) in kept.items {
            switch item {
            case .failed(let code, let reason):
                var error = CloudError(.init(rawValue: code), reason)
                if error.code == .serverRecordChanged, let stored = found[name], !stored.isDeleted {
                    // With all its fields, as the first time: the client merges them.
                    error.serverRecord = try record(stored, in: zoneID, keys: nil, access, rows)
                }
                outcomes.append(.failed(error))
            case .refused(let code, let reason, let decision):
                var error = CloudError(.init(rawValue: code), reason)
                error.denial = decision
                outcomes.append(.failed(error))
            case .deleted: outcomes.append(.deleted(CloudRecordID(name, in: zoneID)))
            case .saved(let tag):
                guard let stored = found[name] else {
                    outcomes.append(.failed(Self.noRecord))
                    continue
                }
                // A record that others have changed since gets the tag of the first reply, so that the client's next change
                // conflicts with theirs. A record that others have deleted has no fields.
                var saved =
                    stored.isDeleted
                    ? CloudRecord(CloudRecordID(name, in: zoneID), type: stored.type)
                    : try record(stored, in: zoneID, keys: request.desiredKeys, access, rows)
                saved.changeTag = tag
                outcomes.append(.saved(saved))
            }
        }
        return outcomes
    }
}

extension ModifyRecordsRequest {
    /// The names in Unicode's normal form C. No record has a name in another form, and a dictionary would take it for the
    /// composed one.
    var composedNames: [String] { operations.map(\.record.id.recordName).filter(\.isComposed) }
}

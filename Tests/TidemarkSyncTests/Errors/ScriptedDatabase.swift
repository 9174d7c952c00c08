import Foundation
import TestSupport
import TidemarkCloud
import TidemarkModel

/// A database that answers one kind of request with an error, a given number of times, and does all other requests.
final class ScriptedDatabase: ForwardingDatabase {
    /// The kind of request, or of record, that gets the error.
    enum Operation: String, CaseIterable, Sendable {
        case account, makeZone
        case listZones, fetch
        /// A request as a whole, with a save or with a deletion.
        case saveRequest, deleteRequest
        case missingAssets
        /// The record ``ScriptedDatabase/record`` of a request: a new one, a changed one, its deletion.
        case save, edit, delete
        case upload, download
    }

    private struct Script: Sendable {
        let operation: Operation
        let code: CloudError.Code
        var times: Int
    }

    private struct State: Sendable {
        var script: Script?
        var requests = 0
        var failures = 0
    }

    /// The record that the errors are about.
    static let record = "bad"
    /// After so many requests none fails any more, so that an endless synchronisation does not hang the test.
    static let requestsMax = 5000

    let base: any CloudDatabase
    private let state = LockedValue(State())

    init(_ base: any CloudDatabase) { self.base = base }

    /// The number of requests since ``answer(_:_:times:)``.
    var requests: Int { state.withLock(\.requests) }
    /// The number of these that have failed.
    var failures: Int { state.withLock(\.failures) }

    /// Answers requests of a kind with an error from now on.
    func answer(_ operation: Operation, _ code: CloudError.Code, times: Int) {
        state.withLock { $0 = State(script: Script(operation: operation, code: code, times: times)) }
    }

    /// Answers all requests from now on.
    func heal() { state.withLock { $0.script = nil } }

    /// The error of a request, and the kind that it answers; `nil` if the request is done.
    private func injected(_ operations: [Operation]) -> (operation: Operation, error: CloudError)? {
        let script = state.withLock { state -> Script? in
            state.requests += 1
            if state.requests > Self.requestsMax { state.script = nil }
            guard let script = state.script, script.times > 0, operations.contains(script.operation) else { return nil }
            state.script?.times -= 1
            state.failures += 1
            return script
        }
        return script.map { ($0.operation, CloudError($0.code, "the cloud answers \($0.code.rawValue)")) }
    }

    private func check(_ operation: Operation) throws(CloudError) {
        if let failure = injected([operation]) { throw failure.error }
    }

    func account() async throws(CloudError) -> CloudAccount {
        try check(.account)
        return try await base.account()
    }

    func modifyZones(saving: [CloudZoneID], deleting: [CloudZoneID]) async throws(CloudError) {
        try check(.makeZone)
        try await base.modifyZones(saving: saving, deleting: deleting)
    }

    func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] {
        let isAbout = request.operations.contains { $0.record.id.recordName == Self.record }
        let whole: [Operation] = [.saveRequest, .deleteRequest]
        let single: [Operation] = [.save, .edit, .delete]
        guard let failure = injected(isAbout ? whole + single : whole) else { return try await base.modify(request) }
        if whole.contains(failure.operation) { throw failure.error }
        return try await refusing(request, failure.error)
    }

    /// Refuses the record, and so the atomic request. The details in the error fit the record.
    private func refusing(
        _ request: ModifyRecordsRequest, _ error: CloudError
    ) async throws(CloudError) -> [RecordOutcome] {
        var error = error
        for operation in request.operations
        where operation.record.id.recordName == Self.record && operation.record.changeTag != nil {
            if error.code == .unknownItem {
                let deletion = RecordOperation.delete(operation.record.id)
                _ = try await base.modify(ModifyRecordsRequest(zone: request.zone, operations: [deletion]))
            } else if error.code == .serverRecordChanged {
                let found = try await base.lookup([Self.record], in: request.zone, desiredKeys: nil)
                if case .success(let record)? = found.first { error.serverRecord = record }
            }
        }
        var outcomes: [RecordOutcome] = []
        for operation in request.operations {
            let isIt = operation.record.id.recordName == Self.record
            outcomes.append(.failed(isIt ? error : CloudError(.batchRequestFailed, "another record is to blame")))
        }
        return outcomes
    }

    func databaseChanges(since token: CloudToken?, limit: Int?) async throws(CloudError) -> DatabaseChanges {
        try check(.listZones)
        return try await base.databaseChanges(since: token, limit: limit)
    }

    func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges {
        try check(.fetch)
        return try await base.zoneChanges(zone, since: token, limit: limit, desiredKeys: desiredKeys)
    }

    func missingAssets(_ assets: [CloudAsset], in zone: CloudZoneID) async throws(CloudError) -> [CloudAsset: Int64] {
        try check(.missingAssets)
        return try await base.missingAssets(assets, in: zone)
    }

    func upload(
        _ piece: Data, of asset: CloudAsset, at offset: Int64, in zone: CloudZoneID
    ) async throws(CloudError) -> Int64 {
        try check(.upload)
        return try await base.upload(piece, of: asset, at: offset, in: zone)
    }

    func download(
        _ asset: CloudAsset, in zone: CloudZoneID, from offset: Int64, count: Int
    ) async throws(CloudError) -> Data {
        try check(.download)
        return try await base.download(asset, in: zone, from: offset, count: count)
    }
}

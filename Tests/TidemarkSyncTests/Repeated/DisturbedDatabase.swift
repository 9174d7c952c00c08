import Foundation
import TestSupport
import TidemarkCloud
import TidemarkModel

/// The requests of all devices of a run in one sequence. One of them is disturbed.
final class RequestSequence: Sendable {
    enum Disturbance: String, CaseIterable, Sendable {
        /// The request is done, and its answer is lost.
        case lostAnswer
        /// The request arrives twice, and the first answer counts.
        case doubled
        /// The request arrives twice, and the last answer counts.
        case doubledWithLastAnswer
    }

    let disturbance: Disturbance?
    private let disturbed: Int
    private let names = LockedValue<[String]>([])

    /// - Parameters:
    ///   - disturbance: The disturbance of a request; `nil` for none.
    ///   - number: The number of the disturbed request, from 1 on.
    init(_ disturbance: Disturbance? = nil, at number: Int = 0) { (self.disturbance, disturbed) = (disturbance, number) }

    /// The names of the requests so far.
    var requests: [String] { names.withLock(\.self) }

    /// Records a request, and returns its disturbance.
    fileprivate func next(_ name: String) -> Disturbance? {
        let number = names.withLock { names -> Int in
            names.append(name)
            return names.count
        }
        return number == disturbed ? disturbance : nil
    }
}

/// A device's connection to the cloud, on which one request of a sequence is disturbed. It sends two records per request, and
/// small pieces of contents.
final class DisturbedDatabase: ForwardingDatabase {
    let base: any CloudDatabase
    private let sequence: RequestSequence

    init(_ base: any CloudDatabase, _ sequence: RequestSequence) { (self.base, self.sequence) = (base, sequence) }

    private func request<Answer>(
        _ name: String, _ body: () async throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer {
        switch sequence.next(name) {
        case nil: return try await body()
        case .lostAnswer:
            _ = try await body()
            throw CloudError(.networkFailure, "the answer was lost")
        case .doubled:
            let answer = try await body()
            do throws(CloudError) { _ = try await body() } catch {}
            return answer
        case .doubledWithLastAnswer:
            let answer = try await body()
            do throws(CloudError) {
                return try await body()
            } catch {
                // A piece that arrived before has the wrong offset now.
                return answer
            }
        }
    }

    func limits() async throws(CloudError) -> CloudLimits {
        var limits = try await base.limits()
        (limits.operationsPerRequest, limits.bytesPerAssetPiece) = (2, 300)
        return limits
    }

    func account() async throws(CloudError) -> CloudAccount {
        try await request("account") { () async throws(CloudError) in try await base.account() }
    }

    func zones() async throws(CloudError) -> [CloudZoneID] {
        try await request("zones") { () async throws(CloudError) in try await base.zones() }
    }

    func modifyZones(saving: [CloudZoneID], deleting: [CloudZoneID]) async throws(CloudError) {
        try await request("modifyZones") { () async throws(CloudError) in
            try await base.modifyZones(saving: saving, deleting: deleting)
        }
    }

    func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] {
        try await self.request("modify") { () async throws(CloudError) in try await base.modify(request) }
    }

    func lookup(
        _ names: [String], in zone: CloudZoneID, desiredKeys: Set<String>?
    ) async throws(CloudError) -> [Result<CloudRecord, CloudError>] {
        try await request("lookup") { () async throws(CloudError) in
            try await base.lookup(names, in: zone, desiredKeys: desiredKeys)
        }
    }

    func databaseChanges(since token: CloudToken?, limit: Int?) async throws(CloudError) -> DatabaseChanges {
        try await request("databaseChanges") { () async throws(CloudError) in
            try await base.databaseChanges(since: token, limit: limit)
        }
    }

    func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges {
        // Several pages.
        try await request("zoneChanges") { () async throws(CloudError) in
            try await base.zoneChanges(zone, since: token, limit: 3, desiredKeys: desiredKeys)
        }
    }

    func missingAssets(_ assets: [CloudAsset], in zone: CloudZoneID) async throws(CloudError) -> [CloudAsset: Int64] {
        try await request("missingAssets") { () async throws(CloudError) in try await base.missingAssets(assets, in: zone) }
    }

    func upload(
        _ piece: Data, of asset: CloudAsset, at offset: Int64, in zone: CloudZoneID
    ) async throws(CloudError) -> Int64 {
        try await request("upload") { () async throws(CloudError) in
            try await base.upload(piece, of: asset, at: offset, in: zone)
        }
    }

    func download(
        _ asset: CloudAsset, in zone: CloudZoneID, from offset: Int64, count: Int
    ) async throws(CloudError) -> Data {
        try await request("download") { () async throws(CloudError) in
            try await base.download(asset, in: zone, from: offset, count: count)
        }
    }
}

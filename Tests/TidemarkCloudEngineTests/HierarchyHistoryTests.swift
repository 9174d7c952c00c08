import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel

/// Goal: participants of hierarchies always see the records below their roots, after any moves, deletions and shares, and the
/// feed of changes alone tells them.
///
/// Method: an owner and two participants change a zone at random. After each request, the records that each participant has
/// gathered from the feed, can look up and can query are compared with those that the owner's records and their parents imply. A
/// deletion is only told of records that the participant knew. The seed of the first history is printed, and can be given by
/// `TIDEMARK_SEED`; the seeds of the others follow it. There is one history for each 50 of `TIDEMARK_SHARING_RUNS`.
@Suite(.timeLimit(.minutes(RunProgress.minutes))) struct HierarchyHistoryTests {
    private let container = "iCloud.org.example.journal"
    private let zone = CloudZoneID("Journal")

    /// A participant's device.
    private final class Device {
        let database: EmbeddedDatabase
        let zone: CloudZoneID
        var token: CloudToken?
        var records: [String: CloudRecord] = [:]
        /// The names of all records that the participant was ever told of.
        var seen: Set<String> = []

        init(_ database: EmbeddedDatabase, _ zone: CloudZoneID) { (self.database, self.zone) = (database, zone) }

        /// Returns `nil` if the token has expired, or nothing is shared any more.
        private func page(_ limit: Int) async throws -> ZoneChanges? {
            do {
                return try await database.zoneChanges(zone, since: token, limit: limit, desiredKeys: nil)
            } catch {
                guard error.code == .changeTokenExpired || error.code == .zoneNotFound else { throw error }
                return nil
            }
        }

        /// Fetches; returns the names of deleted records that the participant never saw.
        func fetch(limit: Int) async throws -> [String] {
            var strange: [String] = []
            while true {
                guard let page = try await page(limit) else {
                    let isOut = token == nil
                    (token, records) = (nil, [:])
                    if isOut { return strange }
                    continue
                }
                for change in page.changes {
                    switch change {
                    case .saved(let record):
                        records[record.id.recordName] = record
                        seen.insert(record.id.recordName)
                    case .deleted(let deletion):
                        if !seen.contains(deletion.id.recordName) { strange.append(deletion.id.recordName) }
                        records[deletion.id.recordName] = nil
                    }
                }
                token = page.token
                if !page.moreComing { return strange }
            }
        }
    }

    @Test func `participants see what is below their roots at all times`() async throws {
        let runs = ProcessInfo.processInfo.environment["TIDEMARK_SHARING_RUNS"].flatMap { UInt64($0) } ?? 600
        let histories = max(1, runs / 50)
        let progress = RunProgress("hierarchies that change", runs: histories, interval: 10)
        for run in progress.begin..<histories {
            var random = Randomness(seed: progress.seed &+ run)
            guard try await history(&random) else { return }
            try progress.note(run + 1)
        }
    }

    @Test(arguments: [true, false])
    func `a record that enters a share and leaves it within one request is in no participant's changes`(
        isDeleted: Bool
    ) async throws {
        let scratch = try Scratch()
        let cloud = try EmbeddedCloud(inMemoryBeside: scratch["cloud"], now: { Int64(Date().timeIntervalSince1970 * 1e6) })
        let owner = try cloud.database(.private, of: container, account: try await cloud.addAccount("anna@example.org").id)
        try await owner.modifyZones(saving: [zone], deleting: [])
        func node(_ name: String, below parent: String?) -> RecordOperation {
            var record = CloudRecord(CloudRecordID(name, in: zone), type: "Node", fields: ["n": .int64(1)])
            record.parent = parent
            return RecordOperation(.forceReplace, record)
        }
        let tree = [node("root", below: nil), node("trip", below: nil), node("secret", below: "trip")]
        _ = try await owner.modify(ModifyRecordsRequest(zone: zone, operations: tree))
        let share = try await owner.createShare(in: zone, coverage: .hierarchy(root: "root"), title: nil, publicPermission: .none)
        let theirs = CloudZoneID("Journal", owner: try await owner.account().userRecordName ?? "")
        let ben = try cloud.database(.shared, of: container, account: try await cloud.addAccount("ben@example.org").id)
        let invited = try await owner.changeShare(
            share.id, [.invite(.emailAddress("ben@example.org"), role: .privateUser, permission: .readOnly)])
        _ = try await ben.acceptLink(try await owner.makeLink(to: invited.id, for: nil).token)
        let device = Device(ben, theirs)
        _ = try await device.fetch(limit: 100)
        // The trip brings the record along, which leaves in the same request.
        let leaving = isDeleted ? RecordOperation.delete(CloudRecordID("secret", in: zone)) : node("secret", below: nil)
        _ = try await owner.modify(ModifyRecordsRequest(zone: zone, operations: [node("trip", below: "root"), leaving]))
        #expect(try await device.fetch(limit: 100) == [])
        #expect(device.records.values.filter { $0.type == "Node" }.map(\.id.recordName).sorted() == ["root", "trip"])
    }

    /// - Returns: Whether each participant saw exactly the expected records.
    private func history(_ random: inout Randomness) async throws -> Bool {
        let scratch = try Scratch()
        let cloud = try EmbeddedCloud(inMemoryBeside: scratch["cloud"], now: { Int64(Date().timeIntervalSince1970 * 1e6) })
        let owner = try cloud.database(.private, of: container, account: try await cloud.addAccount("anna@example.org").id)
        try await owner.modifyZones(saving: [zone], deleting: [])
        let theirs = CloudZoneID("Journal", owner: try await owner.account().userRecordName ?? "")
        var devices: [Device] = []
        for name in ["ben", "cleo"] {
            let account = try await cloud.addAccount("\(name)@example.org")
            devices.append(Device(try cloud.database(.shared, of: container, account: account.id), theirs))
        }
        var names = (0..<14).map { "n\($0)" }
        func name(_ random: inout Randomness) -> String { names.randomElement(using: &random)! }
        for step in 0..<60 {
            var (operations, told): ([RecordOperation], String) = ([], "")
            var (database, place) = (owner, zone)
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<10:
                let isTheirs = Int.random(in: 0..<3, using: &random) == 0
                if isTheirs { (database, place) = (devices.randomElement(using: &random)!.database, theirs) }
                var used: Set<String> = []
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    var target = name(&random)
                    if isTheirs, Bool.random(using: &random) {
                        // A UUID of version 4 that follows from the seed.
                        let digits = String(format: "%012x", UInt64.random(in: 0..<1 << 48, using: &random))
                        target = "00000000-0000-4000-8000-\(digits)"
                        names.append(target)
                    }
                    guard used.insert(target).inserted else { continue }
                    var record = CloudRecord(
                        CloudRecordID(target, in: place), type: "Node", fields: ["n": .int64(Int64(step))])
                    switch Int.random(in: 0..<6, using: &random) {
                    case 0: operations.append(.delete(record.id))
                    case 1: operations.append(RecordOperation(.forceReplace, record))
                    case 2:
                        record.fields["with"] = .reference(CloudReference(name(&random), action: .deleteSelf))
                        operations.append(RecordOperation(.forceUpdate, record))
                    default:
                        record.parent = name(&random)
                        operations.append(RecordOperation(.forceUpdate, record))
                    }
                }
                let request = ModifyRecordsRequest(
                    zone: place, operations: operations, isAtomic: Bool.random(using: &random))
                told = "\(String(describing: try? await database.modify(request)))"
            case 10..<14:
                let root = name(&random)
                if let share = try? await owner.createShare(
                    in: zone, coverage: .hierarchy(root: root), title: nil, publicPermission: .none)
                {
                    told = "shared \(root)"
                    try await invite(share, owner, devices, &random)
                }
            case 14..<16:
                if let share = try await owner.shares(in: zone).randomElement(using: &random) {
                    try await invite(share, owner, devices, &random)
                }
            case 16..<18:
                guard let share = try await owner.shares(in: zone).randomElement(using: &random),
                    let other = share.participants.dropFirst().randomElement(using: &random)
                else { continue }
                told = "removed \(other)"
                _ = try await owner.changeShare(share.id, [.remove(participant: other.id)])
            case 18:
                if let share = try await owner.shares(in: zone).randomElement(using: &random) {
                    try await owner.deleteShare(share.id)
                }
            default:
                guard let share = try await owner.shares(in: zone).randomElement(using: &random) else { continue }
                try? await devices[0].database.deleteShare(CloudRecordID(share.id.recordName, in: theirs))
            }
            for device in devices {
                let limit = Int.random(in: 1...5, using: &random)
                let isRight = try await check(device, owner, limit: limit)
                #expect(isRight, "step \(step), seed \(random.seed): \(operations) \(told)")
                guard isRight else { return false }
            }
        }
        return true
    }

    private func invite(
        _ share: CloudShare, _ owner: EmbeddedDatabase, _ devices: [Device], _ random: inout Randomness
    ) async throws {
        let index = Int.random(in: 0..<2, using: &random)
        let permission: ShareParticipant.Permission = Bool.random(using: &random) ? .readWrite : .readOnly
        let invited = try await owner.changeShare(
            share.id,
            [
                .invite(
                    .emailAddress(index == 0 ? "ben@example.org" : "cleo@example.org"), role: .privateUser, permission: permission
                )
            ])
        _ = try await devices[index].database.acceptLink(try await owner.makeLink(to: invited.id, for: nil).token)
    }

    /// Returns whether a device has exactly the expected records.
    private func check(_ device: Device, _ owner: EmbeddedDatabase, limit: Int) async throws -> Bool {
        let user = try await device.database.account().userRecordName
        var all: [String: CloudRecord] = [:]
        var (token, more): (CloudToken?, Bool) = (nil, true)
        while more {
            let page = try await owner.zoneChanges(zone, since: token, limit: nil, desiredKeys: nil)
            for case .saved(let record) in page.changes { all[record.id.recordName] = record }
            (token, more) = (page.token, page.moreComing)
        }
        // The expected records, from the parents of the owner's records.
        var wanted: [String: String?] = [:]
        for share in try await owner.shares(in: zone) {
            guard case .hierarchy(let root) = share.coverage,
                share.participants.contains(where: { $0.identity.userRecordName == user && $0.acceptanceStatus == .accepted })
            else { continue }
            wanted.updateValue(all[share.id.recordName]?.changeTag, forKey: share.id.recordName)
            for (name, record) in all {
                var (next, passed): (String?, Set<String>) = (name, [])
                while let here = next, here != root, passed.insert(here).inserted { next = all[here]?.parent }
                if next == root { wanted.updateValue(record.changeTag, forKey: name) }
            }
        }
        let strange = try await device.fetch(limit: limit)
        let gathered = device.records.mapValues(\.changeTag)
        var isRight = strange.isEmpty && gathered == wanted
        if !isRight {
            let roots = try await owner.shares(in: zone).map { "\($0.id.recordName): \($0.coverage)" }
            let parents = all.mapValues { $0.parent ?? "–" }
            Issue.record("told \(gathered), not \(wanted); strange \(strange); of \(roots), parents \(parents)")
        }
        let names = all.keys.sorted()
        if let found = try? await device.database.lookup(names, in: device.zone, desiredKeys: nil) {
            let there = Set(zip(names, found).compactMap { (try? $1.get()) == nil ? nil : $0 })
            if there != Set(wanted.keys) {
                Issue.record("found \(there), not \(wanted.keys)")
                isRight = false
            }
        } else if !wanted.isEmpty {
            isRight = false
        }
        return isRight
    }
}

import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// A cloud that is restored to earlier states, and the devices of a person. Each state is in a directory of its own.
final class RestoredCloud {
    private let scratch: Scratch
    private(set) var directory: URL
    private(set) var cloud: EmbeddedCloud
    private var account: String
    private let urls: [URL]
    private(set) var devices: [Device] = []
    private let policy: MergePolicy
    private var states = 0

    init(_ scratch: Scratch, devices count: Int = 2, policy: MergePolicy = .mergeByPropertyObjectTrump) async throws {
        self.scratch = scratch
        self.policy = policy
        directory = scratch["cloud"]
        cloud = try EmbeddedCloud(at: directory)
        account = try await cloud.addAccount("anna@example.org").id
        urls = (0..<count).map { scratch["device-\($0).tidemark"] }
        try open()
    }

    private func open() throws {
        var configuration = SyncConfiguration()
        let policy = policy
        configuration.mergePolicy = { _ in policy }
        devices = try urls.map { try Device($0, database: database(), configuration: configuration) }
    }

    func database() throws -> EmbeddedDatabase { try cloud.database(.private, of: TestCloud.container, account: account) }

    func backup() throws -> URL {
        states += 1
        let copy = scratch["backup-\(states)"]
        #expect(try CloudBackup(of: directory, to: copy).run().problems == [])
        return copy
    }

    /// Copies the databases file by file, as 'cp' does.
    func copy() throws -> URL {
        states += 1
        let copy = scratch["copy-\(states)"]
        for name in ["accounts.sqlite", "containers/\(TestCloud.container)/development/records.sqlite"] {
            let place = copy.appendingPathComponent(name)
            try FileManager.default.createDirectory(at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
            for suffix in ["", "-wal"] {
                let source = directory.appendingPathComponent(name).path + suffix
                guard FileManager.default.fileExists(atPath: source) else { continue }
                try FileManager.default.copyItem(atPath: source, toPath: place.path + suffix)
            }
        }
        return copy
    }

    func restore(_ backup: URL) async throws {
        states += 1
        let place = scratch["cloud-\(states)"]
        _ = try CloudRestoration(of: backup, to: place).run()
        try await use(place)
    }

    /// Moves the devices to a cloud in another directory.
    func use(_ place: URL) async throws {
        for device in devices { device.engine.close() }
        devices = []
        directory = place
        cloud = try EmbeddedCloud(at: place)
        account = try #require(try await cloud.account("anna@example.org")).id
        try open()
    }

    @discardableResult
    func sync(_ number: Int) async throws -> SyncReport { try await devices[number].engine.sync() }

    /// Synchronises all devices until nothing changes any more.
    func syncAll() async throws {
        for _ in 0..<4 {
            for number in devices.indices {
                let report = try await sync(number)
                #expect(report.failure == nil && report.outbox.pending == 0, "device \(number): \(report)")
            }
        }
    }

    /// The first page of the cloud's changes.
    func changes() async throws -> ZoneChanges {
        try await database().zoneChanges(CloudZoneID(SyncConfiguration().zoneName), since: nil, limit: nil, desiredKeys: nil)
    }

    /// The cloud's values, by record and field.
    func records() async throws -> [String: [String: CloudValue]] {
        var (records, token): ([String: [String: CloudValue]], CloudToken?) = ([:], nil)
        while true {
            let page = try await database().zoneChanges(
                CloudZoneID(SyncConfiguration().zoneName), since: token, limit: nil, desiredKeys: nil)
            for change in page.changes {
                switch change {
                case .saved(let record): records[record.id.recordName] = record.fields.filter { $0.key != "tide_edited" }
                case .deleted(let deletion): records[deletion.id.recordName] = nil
                }
            }
            token = page.token
            if !page.moreComing { return records }
        }
    }
}

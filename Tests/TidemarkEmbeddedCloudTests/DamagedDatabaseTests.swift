import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

@testable import TidemarkEmbeddedCloud

/// Goal: a damaged page of a cloud's database is reported as damage, and does not crash a server. Method: each column in turn has
/// NULL in all rows, and all stored values are read.
@Suite(.timeLimit(.minutes(30))) struct DamagedDatabaseTests {
    private typealias Reading = @Sendable (SQLiteCloudTransaction) throws -> Void

    private static let zone = StoredZone.ID(owner: "1", number: 1)
    private static let share = StoredShare.ID(owner: "1", number: 1)

    private static let readings: [Reading] = [
        { _ = try $0.lastChange(of: "1") },
        { _ = try $0.newestChange(of: "1") },
        { _ = try $0.zones(of: "1", after: 0, limit: 9) },
        { _ = try $0.zone(zone) },
        { _ = try $0.records(["1"], in: zone) },
        { _ = try $0.records(in: zone, after: 0, limit: 9) },
        { _ = try $0.parent(of: "1", in: zone) },
        { _ = try $0.children(of: ["1"], in: zone, limit: 9) },
        { _ = try $0.dependents(of: ["1"], in: zone, before: 9, limit: 9) },
        { _ = try $0.nextRemoval(of: "1") },
        { _ = try $0.removals(in: zone) },
        { _ = try $0.ownerOfNextRemoval() },
        { _ = try $0.countRecords(of: "1") { _ in true } },
        { _ = try $0.recordSpread(of: "1") { _ in true } },
        { _ = try $0.recordCounts(in: zone) },
        { _ = try $0.totals() },
        { _ = try $0.assets(["1"], owner: "1") },
        { _ = try $0.assetsNamed(by: ["1"], in: zone) },
        { _ = try $0.unnamedAssets(of: "1", after: "", limit: 9) },
        { _ = try $0.answer(to: "1", of: "1") },
        { _ = try $0.used(by: "1") },
        { _ = try $0.allUsed() },
        { _ = try $0.countUsed() },
        { _ = try $0.reserved(by: "1") },
        { _ = try $0.reservations(of: "1") },
        { _ = try $0.reservations(of: nil) },
        { _ = try $0.schema() },
        { _ = try $0.share(share) },
        { _ = try $0.shares(in: zone) },
        { _ = try $0.participants(of: share) },
        { _ = try $0.participants(called: "1", in: zone) },
        { _ = try $0.sharedZones(of: "1") },
        { _ = try $0.ownerOfLink(Data([1])) },
        { _ = try $0.link(Data([1]), of: "1") },
        { _ = try $0.links(to: share) },
        { _ = try $0.shares(covering: ["1"], in: zone) },
        { _ = try $0.covered(by: [share], after: 0, limit: 9) },
        { _ = try $0.uploads(["1"], owner: "1", by: "1") },
        { _ = try $0.named(["1"], in: zone, shares: nil) },
        { _ = try $0.auditEntries(in: zone, after: 0) },
        { _ = try $0.incarnation() },
        { _ = try $0.highestChange() },
        { _ = try $0.lives(of: zone) },
        { _ = try $0.writerNonce(of: 1, in: "1") },
        { _ = try $0.isOfLostTime(1, in: "1") },
        { _ = try $0.damagedRecords() },
        { _ = try $0.damagedShares(in: zone) },
    ]

    /// A folder for a database.
    private func made(in scratch: Scratch) throws -> URL {
        try FileManager.default.createDirectory(at: scratch["made"], withIntermediateDirectories: true)
        return scratch["made"]
    }

    @Test func `a missing value in a container's row is reported with the file, and does not crash`() throws {
        let (scratch, file) = (try Scratch(), "records.sqlite")
        let database = try made(in: scratch).appendingPathComponent(file)
        _ = try SQLiteCloudStorage(at: database)
        var told: [String: [CloudError]] = [:]
        for column in try NullColumn.allow(in: database, values: ["audit.kind": "'invited'"]) {
            let folder = scratch[column.description]
            try column.copy(scratch["made"], to: folder, database: file)
            let path = folder.appendingPathComponent(file).path
            let queue = try DatabaseQueue(path: path)
            try queue.read { db in
                let context = SQLiteCloudContext(path: path, writer: Data(count: 8), commonChanges: 0)
                for reading in Self.readings {
                    do {
                        try reading(SQLiteCloudTransaction(db, context))
                    } catch let error as CloudError {
                        told[column.description, default: []].append(error)
                    }
                }
            }
            try queue.close()
            try FileManager.default.removeItem(at: folder)
        }
        for column in [
            "audit.user", "covered.is_gone", "covered.type", "links.digest", "records.type", "removals.target",
            "reservations.time", "usage.bytes", "zone_lives.purged",
        ] {
            let errors = told[column] ?? []
            let isNamed = errors.contains { $0.code == .internalError && $0.reason.contains("\(file) is damaged") }
            #expect(isNamed, "\(column): \(errors)")
        }
    }

    @Test func `a missing value in an account's row is reported with the file, and does not crash`() async throws {
        let (scratch, file) = (try Scratch(), "accounts.sqlite")
        let database = try made(in: scratch).appendingPathComponent(file)
        _ = try AccountStore(at: database)
        let readings: [@Sendable (AccountStore) async throws -> Void] = [
            { _ = try await $0.account(id: "1") }, { _ = try await $0.accounts() },
        ]
        var told: Set<String> = []
        for column in try NullColumn.allow(in: database) {
            let folder = scratch[column.description]
            try column.copy(scratch["made"], to: folder, database: file)
            let accounts = try AccountStore(at: folder.appendingPathComponent(file))
            for reading in readings {
                do {
                    try await reading(accounts)
                } catch let error as CloudError {
                    let isNamed = error.code == .internalError && error.reason.contains("\(file) is damaged")
                    #expect(isNamed, "\(column): \(error)")
                    told.insert(column.name)
                }
            }
        }
        #expect(told == ["email", "quota", "status", "discoverable"])
    }
}

import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TestServers
@testable import TidemarkCloudEngine
@testable import TidemarkPostgres

/// Goal: a database whose disk is full loses nothing that it has acknowledged, says what is wrong, and goes on when there is room. Method: small
/// file systems for the tables, and for the log.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(20)))
struct PostgresFullDiskTests {
    /// A small file system for one test.
    private final class SmallDisk: Sendable {
        let folder: URL

        /// Why a test is skipped if none can be mounted.
        static let whyNot: Comment =
            "a small file system can't be mounted: that takes root with the right to mount (CAP_SYS_ADMIN)"
        static let isPossible: Bool = {
            guard let disk = try? SmallDisk(megabytes: 1) else { return false }
            return FileManager.default.fileExists(atPath: disk.folder.path)
        }()

        init(megabytes: Int) throws {
            folder = FileManager.default.temporaryDirectory.appendingPathComponent("tidemark-disk-\(UUID().uuidString.prefix(8))")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            guard try LeashedShell.run("mount -t tmpfs -o size=\(megabytes)m tmpfs \"$1\" 2>/dev/null", [folder.path]) == 0 else {
                throw PostgresServer.Failure(description: "no file system can be mounted")
            }
            if let user = getpwnam("postgres") { chown(folder.path, user.pointee.pw_uid, user.pointee.pw_gid) }
        }

        func resize(megabytes: Int) throws {
            _ = try LeashedShell.run("mount -o remount,size=\(megabytes)m \"$1\"", [folder.path])
        }

        deinit {
            _ = try? LeashedShell.run("umount -l \"$1\"", [folder.path])
            try? FileManager.default.removeItem(at: folder)
        }
    }

    @Test(.enabled(if: SmallDisk.isPossible, SmallDisk.whyNot))
    func `a database whose disk is full says so, has all that it has acknowledged, and goes on when there is room`() async throws
    {
        let (disk, server) = try await apart { (try SmallDisk(megabytes: 24), try PostgresServer()) }
        try await apart { try server.sql("CREATE TABLESPACE small LOCATION '\(disk.folder.path)'") }
        let records = try await RecordsFixture(on: server, options: "TABLESPACE small") { $0.patience = .seconds(2) }
        let storage = try await records.storage()
        let zone = try await HostileRows.makeZone(storage)
        var (saved, error): (Int, CloudError?) = (0, nil)
        while error == nil, saved < 1000 {
            error = await HostileRows.failure {
                try await HostileRows.save(10, "record \(saved)", on: storage, in: zone, bytes: 20_000)
            }
            if error == nil { saved += 10 }
        }
        #expect(saved > 0)
        #expect(error?.code == .serviceUnavailable)
        #expect(error?.retryAfter == .seconds(60))
        #expect(error?.reason.contains("has no room") == true, "\(error?.reason ?? "")")
        // The disk stays full, and reads go on.
        let again = await HostileRows.failure { try await HostileRows.save(10, "more", on: storage, in: zone, bytes: 200_000) }
        #expect(again?.code == .serviceUnavailable)
        #expect(records.fixture.database.isFull)
        #expect(try await HostileRows.count(storage, zone) == saved)
        try await apart { try disk.resize(megabytes: 200) }
        try await HostileRows.save(10, "room", on: storage, in: zone, bytes: 20_000)
        #expect(!records.fixture.database.isFull)
        #expect(try await HostileRows.count(storage, zone) == saved + 10)
    }

    /// PostgreSQL ends all its sessions if it can't write its log, and may not start again before there is room. A service
    /// manager starts it then.
    @Test(.enabled(if: SmallDisk.isPossible, SmallDisk.whyNot))
    func `a database whose log has no room loses nothing that it has acknowledged, and requests go on when there is room`()
        async throws
    {
        let disk = try await apart { try SmallDisk(megabytes: 64) }
        // No checkpoint makes room meanwhile.
        let settings = ["max_wal_size = 1GB", "checkpoint_timeout = 1h"]
        let server = try await apart { try PostgresServer(settings: settings, log: disk.folder) }
        let records = try await RecordsFixture(on: server) { $0.patience = .seconds(2) }
        let storage = try await records.storage()
        let zone = try await HostileRows.makeZone(storage)
        @Sendable func save(_ number: Int) async throws {
            try await HostileRows.save(10, "request \(number)", on: storage, in: zone, bytes: 50_000)
        }
        var (acknowledged, error): (Int, CloudError?) = (0, nil)
        while error == nil, acknowledged < 400 {
            error = await HostileRows.failure { try await save(acknowledged) }
            if error == nil { acknowledged += 1 }
        }
        #expect(acknowledged > 0 && acknowledged < 400, "\(acknowledged)")
        // Other requests come while there is no room. A small one may find some.
        var unanswered = [acknowledged]
        var errors = [error]
        for number in (acknowledged + 1)...(acknowledged + 3) {
            errors.append(await HostileRows.failure { try await save(number) })
            unanswered.append(number)
        }
        errors.append(await HostileRows.failure { _ = try await HostileRows.count(storage, zone) })
        for error in errors.compactMap({ $0 }) {
            // Its client sends the request again.
            #expect([.serviceUnavailable, .networkFailure].contains(error.code) && error.retryAfter != nil, "\(error.reason)")
        }
        try await apart {
            try disk.resize(megabytes: 400)
            try server.restart()
        }
        // Acknowledged saves are there. Of the others some may be done, without an answer.
        let found = try await HostileRows.count(storage, zone)
        #expect((10 * acknowledged...10 * (acknowledged + unanswered.count)).contains(found), "\(found)")
        let names = (0..<acknowledged).map { "request \($0) 9" }
        let kept = try await storage.read { rows throws(CloudError) in try rows.records(names, in: zone).count }
        #expect(kept == acknowledged)
        for number in unanswered { try await save(number) }
        #expect(try await HostileRows.count(storage, zone) == 10 * (acknowledged + unanswered.count))
        await records.fixture.database.close()
    }
}

import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

@testable import TidemarkPostgres

/// Goal: in a cloud with many accounts, a container gets the names of all of them, and no request waits for long. Method: more
/// accounts than one transaction names, and requests with a time limit of zero.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(10)))
struct AccountNameTests {
    private static let container = "iCloud.org.example.journal"
    private static let count = 5_000

    private static func filled() async throws -> Fixture {
        let fixture = try await Fixture()
        _ = try await PostgresAccountStorage.open(fixture.database)
        try await fixture.sql(
            """
            INSERT INTO accounts (id, email, quota, status, discoverable)
            SELECT 'a' || n, 'a' || n || '@example.org', 1, 'available', true FROM generate_series(1, \(count)) AS n
            """)
        return fixture
    }

    private static func name(of id: String) -> String { StoredAccount.userRecordName(of: id, in: container) }

    @Test func `names are written in steps, and a request that would wait for too long is asked to come again`() async throws {
        let fixture = try await Self.filled()
        let storage = try await PostgresAccountStorage.open(fixture.database, namingPatience: .zero)
        var refusals = 0
        while true {
            do throws(CloudError) {
                let found = try await storage.account(userRecordName: Self.name(of: "a4999"), in: Self.container)
                #expect(found?.id == "a4999")
                break
            } catch {
                #expect(error.code == .serviceUnavailable && error.retryAfter == .seconds(1), "\(error)")
                refusals += 1
                try #require(refusals < 10)
                // An account that is added meanwhile is found, and one that is removed is not.
                let id = "new\(refusals)"
                _ = try await storage.add(
                    StoredAccount(id: id, email: "\(id)@example.org", name: nil, quota: 1, status: .available))
                try await storage.remove("a\(refusals)")
            }
        }
        #expect(refusals == 2)
        for number in 1...refusals {
            #expect(
                try await storage.account(userRecordName: Self.name(of: "new\(number)"), in: Self.container)?.id == "new\(number)"
            )
            #expect(try await storage.account(userRecordName: Self.name(of: "a\(number)"), in: Self.container) == nil)
        }
        let left = try await fixture.database.read { rows in
            try rows.query("SELECT (SELECT count(*) FROM account_names), (SELECT count(*) FROM account_namings)")
        }
        #expect(try left[0].value(0, as: Int64.self) == Int64(Self.count) && left[0].value(1, as: Int64.self) == 0)
    }

    @Test func `servers that are asked at once for the first name of a container all find it`() async throws {
        let fixture = try await Self.filled()
        try await withThrowingTaskGroup(of: String?.self) { group in
            for number in 0..<4 {
                let storage = try await PostgresAccountStorage.open(try fixture.other())
                group.addTask {
                    try await storage.account(userRecordName: Self.name(of: "a\(4_000 + number)"), in: Self.container)?.id
                }
            }
            #expect(try await group.reduce(into: Set<String?>()) { $0.insert($1) } == ["a4000", "a4001", "a4002", "a4003"])
        }
    }

    /// Runs a body while another server writes names.
    private static func whileNaming(in fixture: Fixture, _ body: () async throws -> Void) async throws {
        let holder = try fixture.other()
        let (isHeld, mayEnd) = (Shared(false), Shared(false))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await holder.transaction { transaction in
                    try transaction.query("SELECT named_to FROM account_namings FOR UPDATE")
                    isHeld.change { $0 = true }
                    for _ in 0..<20_000 where !mayEnd.value { usleep(1000) }
                }
            }
            #expect(try await eventually { isHeld.value })
            try await body()
            mayEnd.change { $0 = true }
            try await group.waitForAll()
        }
        await holder.close()
    }

    @Test func `requests that wait for the names leave the connections to others`() async throws {
        let fixture = try await Self.filled()
        let few = try await PostgresAccountStorage.open(fixture.database, namingPatience: .zero)
        await #expect(throws: CloudError.self) {
            try await few.account(userRecordName: Self.name(of: "a1"), in: Self.container)
        }
        let asked = try fixture.other { $0.connections = 2 }
        let storage = try await PostgresAccountStorage.open(asked, namingPatience: .milliseconds(500))
        try await Self.whileNaming(in: fixture) {
            try await withThrowingTaskGroup(of: Void.self) { asking in
                for _ in 0..<8 {
                    asking.addTask {
                        let error = await #expect(throws: CloudError.self) {
                            try await storage.account(userRecordName: Self.name(of: "a1"), in: Self.container)
                        }
                        #expect(error?.code == .serviceUnavailable && error?.retryAfter == .seconds(1), "\(error?.reason ?? "")")
                    }
                }
                for _ in 0..<20 { #expect(try await storage.account(id: "a2")?.id == "a2") }
                try await asking.waitForAll()
            }
        }
    }

    @Test func `an account is added while a step of the names runs`() async throws {
        let fixture = try await Self.filled()
        let storage = try await PostgresAccountStorage.open(fixture.database, namingPatience: .zero)
        await #expect(throws: CloudError.self) {
            try await storage.account(userRecordName: Self.name(of: "a1"), in: Self.container)
        }
        try await Self.whileNaming(in: fixture) {
            _ = try await storage.add(StoredAccount(id: "new", email: "new@example.org", name: nil, quota: 1, status: .available))
        }
        let patient = try await PostgresAccountStorage.open(try fixture.other())
        #expect(try await patient.account(userRecordName: Self.name(of: "new"), in: Self.container)?.id == "new")
    }
}

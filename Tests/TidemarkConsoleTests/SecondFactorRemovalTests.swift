import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: removing a second factor is done as a whole, or can be tried again. Method: a file of credentials that refuses a part of
/// it for a while.
@Suite(.timeLimit(.minutes(30))) struct SecondFactorRemovalTests {
    @Test func `a second factor stays until its sessions have ended, and another try removes it`() async throws {
        let fixture = try await ConsoleFixture()
        let (credentials, cleo) = (fixture.credentials, fixture.cleo)
        let role = try #require(try await credentials.operatorRole(of: fixture.anna.id))
        let layer = Administration(fixture.cloud, credentials, by: .console(role, address: "192.0.2.1"))
        let made = credentials.newSecondFactor(of: cleo.id)
        let code = TimeCode.code(try PersonPageTests.bytes(made.secret), step: credentials.time / 30_000_000)
        _ = try #require(try await credentials.setSecondFactor(of: cleo.id, to: made.form, code: code))
        let device = try await credentials.makeSession(
            account: cleo.id, container: ConsoleFixture.journal, environment: .development, kind: .device, device: "Phone",
            system: "Linux")
        // Sessions can't be ended for a while.
        let queue = try DatabaseQueue(path: fixture.scratch["cloud/access.sqlite"].path)
        try await queue.write { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER kept BEFORE DELETE ON sessions BEGIN SELECT RAISE(ABORT, 'kept'); END
                    """)
        }
        await #expect(throws: AdministrationError.self) { try await layer.removeSecondFactor(of: cleo.email) }
        #expect(try await credentials.hasSecondFactor(cleo.id))
        try await queue.write { db in try db.execute(sql: "DROP TRIGGER kept") }
        #expect(try await layer.removeSecondFactor(of: cleo.email).hadOne)
        #expect(try await !credentials.hasSecondFactor(cleo.id))
        #expect(try await credentials.session(device.text) == .failure(.revoked))
        let entries = try await credentials.auditLog().filter { $0.event.action.rawValue == "admin.second-factor.remove" }
        #expect(entries.count == 1)
    }
}

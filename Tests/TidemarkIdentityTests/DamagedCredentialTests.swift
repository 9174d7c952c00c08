import Foundation
import TestSupport
import Testing
import TidemarkCloudEngine

@testable import TidemarkIdentity

/// Goal: a damaged page of `access.sqlite` is reported as damage, and does not crash a server. Method: each column in turn has
/// NULL in all rows, and all stored values are read.
@Suite(.timeLimit(.minutes(30))) struct DamagedCredentialTests {
    private typealias Reading = @Sendable (SQLiteCredentialStorage) async throws -> Void

    private static let readings: [Reading] = [
        { _ = try await $0.session([1]) },
        { _ = try await $0.password(of: "1") },
        { _ = try await $0.passwordVersion(of: "1") },
        { _ = try await $0.accountsWithPassword() },
        { _ = try await $0.sessions(keptFrom: 0) },
        { _ = try await $0.sessions(of: "1", keptFrom: 0) },
        { _ = try await $0.addresses(of: "1", keptFrom: 0) },
        { _ = try await $0.isKnown("1", to: "1", at: 0) },
        { _ = try await $0.auditLog(AuditLogFilter(since: 0), limit: 9) },
        { _ = try await $0.operators() },
        { _ = try await $0.storedOperator("1") },
        { _ = try await $0.consoleSession([1]) },
        { _ = try await $0.consoleSessions(of: nil, at: 0) },
        { _ = try await $0.secondFactor(of: "1") },
        { _ = try await $0.identity(IdentityKey(issuer: "1", subject: "1")) },
        { _ = try await $0.identities(of: "1") },
        { _ = try await $0.syncFailures(SyncFailureFilter(since: 0), limit: 9) },
        { _ = try await $0.signIn(ofSession: "1") },
    ]

    private static func open(_ folder: URL) throws -> SQLiteCredentialStorage {
        try SQLiteCredentialStorage(at: folder, second: 0) { [UInt8](repeating: 1, count: $0) }
    }

    @Test func `a missing value in a row is reported with the file, and does not crash`() async throws {
        let (scratch, file) = (try Scratch(), "access.sqlite")
        _ = try Self.open(scratch["made"])
        let columns = try NullColumn.allow(
            in: scratch["made/\(file)"],
            values: [
                "environment": "'development'", "origins": "'[]'", "operators.containers": "'[]'",
                "console_sessions.kind": "'console'", "action": "'sign-in'", "outcome": "'done'", "audit.subject": "'session 1'",
            ])
        let whole = try Self.open(scratch["made"])
        for reading in Self.readings { try await reading(whole) }
        var told: Set<String> = []
        for column in columns {
            let folder = scratch[column.description]
            try column.copy(scratch["made"], to: folder, database: file)
            do {
                let storage = try Self.open(folder)
                for reading in Self.readings {
                    do {
                        try await reading(storage)
                    } catch let error as CredentialError {
                        #expect(error.code == .storage && error.message.contains(file), "\(column): \(error)")
                        told.insert(column.description)
                    }
                }
            } catch let error as CredentialError {
                #expect(error.code == .storage && error.message.contains(file), "\(column): \(error)")
                told.insert(column.description)
            }
            try FileManager.default.removeItem(at: folder)
        }
        let expected: Set = [
            "audit.actor", "console_sessions.device", "containers.added", "identities.label", "keys.account", "operators.role",
            "passwords.r", "second_factors.step", "secrets.content", "sessions.kind", "sync_failures.code", "tokens.name",
        ]
        #expect(expected.subtracting(told) == [], "\(told.sorted())")
    }
}

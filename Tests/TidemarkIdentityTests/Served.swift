import Foundation
import GRDB
import TestSupport
import TidemarkCloudEngine
import TidemarkModel

@testable import TidemarkIdentity

/// A clock that a test sets: microseconds since 1970 UTC.
final class HandClock: Sendable {
    private let time: LockedValue<Int64>

    init(_ seconds: Int64) { time = LockedValue(seconds * 1_000_000) }

    var now: Int64 { time.withLock { $0 } }
    func set(microseconds: Int64) { time.withLock { $0 = microseconds } }
    func advance(seconds: Int64) { time.withLock { $0 += seconds * 1_000_000 } }
    func advance(microseconds: Int64) { time.withLock { $0 += microseconds } }
}

/// A credential store in a folder of its own, which serves one container.
struct Served {
    let scratch: Scratch
    /// At 1,800,000,000 seconds once the credential store is open; it was opened a second before.
    let clock = HandClock(1_799_999_999)
    let credentials: CredentialStore
    let container = "iCloud.org.example.journal"

    init() async throws {
        scratch = try Scratch()
        credentials = try CredentialStore(at: scratch["cloud"], now: { [clock] in clock.now }, passwordLogN: 4)
        clock.advance(seconds: 1)
        try await credentials.addContainer(container)
    }

    /// Another opening of the store, as another process would have.
    func opening() throws -> CredentialStore {
        try CredentialStore(at: scratch["cloud"], now: { [clock] in clock.now }, passwordLogN: 4)
    }

    func session(_ account: String = "anna", _ kind: Session.Kind = .device) async throws -> SessionToken {
        try await credentials.makeSession(account: account, container: container, environment: .development, kind: kind)
    }

    func failure(_ text: String, in other: CredentialStore? = nil) async throws -> SessionFailure? {
        switch try await (other ?? credentials).session(text) {
        case .success: nil
        case .failure(let failure): failure
        }
    }
}

extension CredentialStore {
    /// Writes and reads the file without going through the credential store.
    var writer: CredentialWriter { (storage as! SQLiteCredentialStorage).writer }
    /// The rows of sessions in the cache of this opening.
    var rows: SQLiteCredentialCache { (storage as! SQLiteCredentialStorage).cache }
}

extension PasswordHash {
    /// The stored hash of an account's password.
    init?(of account: String, _ db: Database) throws {
        guard let row = try StoredPassword(of: account, db) else { return nil }
        try self.init(row)
    }
}

/// The error that an action throws, reduced to its code; `nil` if it throws none.
func refusal(_ body: () async throws -> Void) async -> CredentialError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? CredentialError
    }
}

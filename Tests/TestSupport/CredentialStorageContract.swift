import TidemarkCloudEngine
import TidemarkModel

/// The checks of what every ``CredentialStorage`` does.
package enum CredentialStorageContract {
    /// Makes another server's storage of the same credentials. At first these are a secret and nothing else.
    package typealias Subject = @Sendable () async throws -> any CredentialStorage

    private static let container = "iCloud.org.example.journal"
    private static let now: Int64 = 1_800_000_000_000_000

    private static func session(
        _ number: Int, of account: String = "anna", began: Int64 = now, kept: Int64 = now + 1_000, address: String = "192.0.2.1",
        device: String = "Laptop ä"
    ) -> StoredSession {
        StoredSession(
            id: [UInt8](repeating: 0, count: 14) + [UInt8(number / 256), UInt8(number % 256)], account: account,
            container: container, environment: .production, kind: "device", began: began, kept: kept, device: device,
            system: "Debian GNU/Linux 12 ä", used: began, address: address)
    }

    private static func token(_ id: String, name: String = "Web ä") -> StoredAPIToken {
        StoredAPIToken(
            id: id, digest: Array(id.utf8), container: container, environment: .development, name: name,
            redirect: "https://journal.example.org/", popup: nil, origins: ["https://a.example.org", "https://b.example.org"],
            made: now)
    }

    private static func key(_ id: String, of account: String = "importer") -> StoredServerKey {
        StoredServerKey(
            id: id, container: container, environment: .development, name: "Importer ä", account: account, publicKey: [1, 0, 2],
            made: now)
    }

    private static func password(_ byte: UInt8) -> StoredPassword {
        StoredPassword(logN: 4, r: 8, p: 1, salt: [byte, 0], digest: [0, byte])
    }

    private static func event(
        _ action: String, account: String = "anna", actor: String = "", container: String = container
    ) -> StoredAuditEvent {
        StoredAuditEvent(
            action: action, actor: actor, account: account, address: "192.0.2.1", container: container, subject: "s",
            outcome: "done")
    }

    /// All checks.
    package static let checks: [StorageCheck<Subject>] =
        lookedUp + sessions + others + operatorChecks + identityChecks + syncFailureChecks

    private static let lookedUp: [StorageCheck<Subject>] = [
        StorageCheck("all servers have one secret, even if they start at once") { open in
            let storages = try await withThrowingTaskGroup(of: (any CredentialStorage).self) { group in
                for _ in 0..<6 { group.addTask { try await open() } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let secrets = Set(try storages.map { try $0.current().secret })
            try requireEqual(secrets.count, 1, "secrets")
            try requireEqual(secrets.first?.count, 32, "bytes")
            try require(try storages[0].current().previous == nil, "there is a secret before")
        },
        StorageCheck("containers, tokens and keys count in all servers after the next refresh") { open in
            let (storage, other) = (try await open(), try await open())
            func both(_ body: (StoredCredentials) throws -> Void) async throws {
                for storage in [storage, other] {
                    try await storage.refresh()
                    try body(try storage.current())
                }
            }
            try requireEqual(try await storage.add(token("t")), .containerIsNotServed, "a token without a container")
            try requireEqual(try await storage.add(key("k")), .containerIsNotServed, "a key without a container")
            try await storage.addContainer(container, at: now)
            try await other.addContainer(container, at: now + 5)
            try await both { try requireEqual($0.containers, [container: now], "containers") }
            try requireEqual(try await other.add(token("t")), .added, "a token")
            try requireEqual(try await storage.add(key("k")), .added, "a key")
            try requireEqual(try await other.add(key("k")), .exists, "the same key")
            try await both {
                try requireEqual($0.tokens, [token("t")], "tokens")
                try requireEqual($0.keys, [key("k")], "keys")
            }
            try requireEqual(try await storage.removeContainer(container), true, "a container's end")
            try requireEqual(try await other.removeContainer(container), false, "its second end")
            try await both {
                try requireEqual($0.containers, [:], "containers at the end")
                try requireEqual($0.tokens.count + $0.keys.count, 2, "tokens and keys of a container that is not served")
            }
            try requireEqual(try await other.removeAPIToken("t"), true, "a token's end")
            try requireEqual(try await storage.removeAPIToken("t"), false, "its second end")
            try requireEqual(try await storage.removeKey("k"), true, "a key's end")
            for text in ["", "k", "\0"] {
                try requireEqual(try await other.removeKey(text), false, "a key that is not there")
                try requireEqual(try await other.removeContainer(text), false, "a container that is not there")
            }
            try await both { try require($0.tokens.isEmpty && $0.keys.isEmpty, "tokens or keys are left") }
        },
        StorageCheck("unchanged credentials are the same object, and a session does not change them") { open in
            let (storage, other) = (try await open(), try await open())
            try await storage.addContainer(container, at: now)
            try await storage.refresh()
            let before = try storage.current()
            _ = try await other.add(session(1), ifPasswordIs: nil, auditing: nil)
            try await other.keepSession(session(1).id, until: now + 50)
            try await storage.refresh()
            try require(try storage.current() === before, "it was read again")
            try await other.addContainer("b", at: now)
            try await storage.refresh()
            try require(try storage.current() !== before, "it was not read again")
        },
        StorageCheck("a new secret keeps the former one for the given time, or ends all sessions") { open in
            let (storage, other) = (try await open(), try await open())
            try await storage.addContainer(container, at: now)
            _ = try await storage.add(session(1), ifPasswordIs: nil, auditing: nil)
            let first = try storage.current().secret
            let (second, third) = ([UInt8](repeating: 2, count: 32), [UInt8](repeating: 3, count: 32))
            try requireEqual(try await storage.replaceSecret(by: second, keepingPreviousUntil: 77), 0, "ended sessions")
            try await other.refresh()
            try requireEqual(try other.current().secret, second, "the secret")
            try requireEqual(try other.current().previous?.secret, first, "the one before")
            try requireEqual(try other.current().previous?.until, 77, "until when that is valid")
            try require(try await other.session(session(1).id) != nil, "the session has ended")
            try requireEqual(try await other.replaceSecret(by: third, keepingPreviousUntil: nil), 1, "ended sessions")
            try await storage.refresh()
            try requireEqual(try storage.current().secret, third, "the last secret")
            try require(try storage.current().previous == nil, "there is one before")
            try requireEqual(try await storage.session(session(1).id), nil, "the session")
        },
        StorageCheck("a session that has ended is gone in all servers when the call returns") { open in
            let (storage, other) = (try await open(), try await open())
            try await storage.addContainer(container, at: now)
            for round in 0..<50 {
                let row = session(round)
                let (one, two) = round % 2 == 0 ? (storage, other) : (other, storage)
                try requireEqual(try await one.add(row, ifPasswordIs: nil, auditing: nil), .added, "a session")
                try requireEqual(try await two.session(row.id), row, "the session there")
                try requireEqual(try await one.session(row.id), row, "the session here")
                try requireEqual(try await one.endSession(row.id), true, "its end")
                try requireEqual(try await two.session(row.id), nil, "the session that has ended")
                try requireEqual(try await two.endSession(row.id), false, "its second end")
            }
        },
        StorageCheck("simultaneous requests each get their own session") { open in
            let storage = try await open()
            try await storage.addContainer(container, at: now)
            for number in 0..<40 { _ = try await storage.add(session(number), ifPasswordIs: nil, auditing: nil) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<400 {
                    group.addTask {
                        let wanted = session(number % 50)
                        try requireEqual(
                            try await storage.session(wanted.id), number % 50 < 40 ? wanted : nil, "session \(number % 50)")
                    }
                }
                try await group.waitForAll()
            }
        },
        StorageCheck("a signed request is admitted once, by one server") { open in
            let (storage, other) = (try await open(), try await open())
            let second = now / 1_000_000
            let isShared = storage.notedSince == nil
            func admit(
                _ mark: UInt8, _ key: String = "k", in storage: any CredentialStorage
            ) async throws -> SignedRequestAdmission {
                try await storage.admit(
                    [UInt8](repeating: mark, count: 16), of: key, signed: second, at: second, tolerance: 600)
            }
            try requireEqual(try await admit(1, in: storage), .admitted, "the first")
            try requireEqual(try await admit(1, in: storage), .replayed, "again")
            try requireEqual(try await admit(1, "other", in: storage), .admitted, "of another key")
            try requireEqual(try await admit(1, in: other), isShared ? .replayed : .admitted, "in another server")
            let admitted = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<20 {
                    let server = isShared && number % 2 == 0 ? other : storage
                    group.addTask {
                        try await server.admit(
                            [UInt8](repeating: 2, count: 16), of: "k", signed: second, at: second, tolerance: 600) == .admitted
                    }
                }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            try requireEqual(admitted, 1, "admitted of twenty at once")
            if let since = storage.notedSince {
                let early = try await storage.admit(
                    [UInt8](repeating: 3, count: 16), of: "k", signed: since, at: second, tolerance: 600)
                try requireEqual(early, .beforeStart, "one of the second of the start")
            }
        },
    ]

    private static let sessions: [StorageCheck<Subject>] = [
        StorageCheck("a session needs its container, and its password if one is given") { open in
            let (storage, other) = (try await open(), try await open())
            try requireEqual(
                try await storage.add(session(1), ifPasswordIs: nil, auditing: event("a")), .containerIsNotServed, "no container")
            try await storage.addContainer(container, at: now)
            try requireEqual(
                try await storage.add(session(1), ifPasswordIs: password(1), auditing: event("a")), .passwordIsAnother,
                "no password")
            try await other.setPassword(password(1), of: "anna", at: now)
            try requireEqual(
                try await storage.add(session(1), ifPasswordIs: password(2), auditing: event("a")), .passwordIsAnother,
                "another password")
            try requireEqual(try await storage.session(session(1).id), nil, "a session that was refused")
            try requireEqual(try await storage.auditLog(.init(since: 0), limit: 10).count, 0, "entries of refused ones")
            try requireEqual(try await storage.isKnown("192.0.2.1", to: "anna", at: now), false, "a refused one's address")
            try requireEqual(
                try await storage.add(session(1), ifPasswordIs: password(1), auditing: event("b")), .added, "the password")
            try requireEqual(
                try await other.auditLog(.init(since: 0), limit: 10).map(\.event), [event("b")], "the audit log")
            try requireEqual(try await other.isKnown("192.0.2.1", to: "anna", at: now), true, "its address")
            try requireEqual(try await other.isKnown("192.0.2.1", to: "ben", at: now), false, "its address, of another")
        },
        StorageCheck("passwords are kept, replaced if they are still the same, and end sessions when they change") { open in
            let (storage, other) = (try await open(), try await open())
            try await storage.addContainer(container, at: now)
            try requireEqual(try await storage.password(of: "anna"), nil, "a password at first")
            for account in ["anna", "ben"] {
                _ = try await storage.add(
                    session(account == "anna" ? 1 : 2, of: account), ifPasswordIs: nil, auditing: nil)
            }
            try await storage.setPassword(password(1), of: "anna", at: now)
            try requireEqual(try await other.password(of: "anna"), password(1), "the password")
            try requireEqual(try await other.session(session(1).id), nil, "the session from before the password")
            try require(try await other.session(session(2).id) != nil, "another account's session has ended")
            try requireEqual(
                try await other.replacePassword(password(2), by: password(3), of: "anna"), false, "another one replaced")
            _ = try await storage.add(session(3), ifPasswordIs: password(1), auditing: nil)
            try requireEqual(try await other.replacePassword(password(1), by: password(4), of: "anna"), true, "the same replaced")
            try requireEqual(try await storage.password(of: "anna"), password(4), "what it was replaced by")
            try require(try await storage.session(session(3).id) != nil, "a replacement has ended the session")
            try requireEqual(try await storage.accountsWithPassword(), ["anna"], "who has a password")
            let version = try await other.passwordVersion(of: "anna")
            try await storage.setPassword(nil, of: "anna", at: now)
            try requireEqual(try await other.password(of: "anna"), nil, "the password at the end")
            try requireEqual(try await other.accountsWithPassword(), [], "who has a password at the end")
            // Removing a password is a change, too, so an earlier link is no longer valid.
            let removed = try await other.passwordVersion(of: "anna")
            try require(removed > version && version > 0, "the versions are \(version) and \(removed)")
            try requireEqual(
                try await storage.add(session(4), ifPasswordIs: password(4), auditing: nil), .passwordIsAnother, "after that")
            func set(_ number: UInt8, _ account: String, _ version: Int64) async throws -> Bool {
                try await storage.setPassword(password(number), of: account, at: now, ifVersionIs: version)
            }
            try require(try await !set(5, "anna", version), "set at an old version")
            try require(try await set(5, "anna", removed), "not set at its version")
            try require(try await !set(6, "anna", removed), "set twice at one version")
            try requireEqual(try await other.password(of: "anna"), password(5), "the password by its version")
            try requireEqual(try await other.passwordVersion(of: "cleo"), 0, "the version of none")
            try require(try await set(1, "cleo", 0), "a first one was refused")
            try require(try await !set(2, "cleo", 0), "a first one twice")
            try requireEqual(try await other.session(session(3).id), nil, "the session at the end")
        },
        StorageCheck("no session of an old password is left, in either order") { open in
            let (storage, other) = (try await open(), try await open())
            try await storage.addContainer(container, at: now)
            try await storage.setPassword(password(0), of: "anna", at: now)
            for round in 0..<20 {
                let old = password(UInt8(round))
                async let added = storage.add(session(round), ifPasswordIs: old, auditing: nil)
                async let changed: Void = other.setPassword(password(UInt8(round + 1)), of: "anna", at: now)
                _ = try await (added, changed)
                try requireEqual(try await storage.session(session(round).id), nil, "a session of the password before")
            }
        },
        StorageCheck("a session is renamed by its account alone, in all servers") { open in
            let (storage, other) = (try await open(), try await open())
            try await storage.addContainer(container, at: now)
            for row in [session(1), session(2)] { _ = try await storage.add(row, ifPasswordIs: nil, auditing: nil) }
            try requireEqual(try await other.session(session(1).id), session(1), "the session before")
            try requireEqual(try await storage.renameSession(session(1).id, of: "ben", to: "Mine"), false, "by another")
            try requireEqual(
                try await storage.renameSession(session(3).id, of: "anna", to: "Mine"), false, "one that is not there")
            try requireEqual(try await storage.renameSession(session(1).id, of: "anna", to: "Phone ö"), true, "by its account")
            let renamed = session(1, device: "Phone ö")
            try requireEqual(try await storage.session(session(1).id), renamed, "the session here")
            try requireEqual(try await other.session(session(1).id), renamed, "the session there")
            try requireEqual(try await other.sessions(of: "anna", keptFrom: 0), [renamed, session(2)], "the list")
        },
        StorageCheck("sessions are listed, extended, used, and removed when they have expired") { open in
            let (storage, other) = (try await open(), try await open())
            try await storage.addContainer(container, at: now)
            let rows = [
                session(2, began: now, kept: now + 10), session(1, began: now, kept: now + 20),
                session(3, of: "ben", began: now - 5, kept: now + 30, address: ""),
            ]
            for row in rows { _ = try await storage.add(row, ifPasswordIs: nil, auditing: nil) }
            try requireEqual(try await other.sessions(keptFrom: now + 10), [rows[2], rows[1], rows[0]], "sessions")
            try requireEqual(try await other.sessions(keptFrom: now + 11), [rows[2], rows[1]], "sessions that are kept longer")
            try await other.keepSession(rows[0].id, until: now + 15)
            try await other.keepSession(rows[1].id, until: now + 15)
            try requireEqual(try await other.session(rows[0].id)?.kept, now + 15, "kept longer")
            try requireEqual(try await other.session(rows[1].id)?.kept, now + 20, "not less long")
            try await storage.note([
                SessionUse(session: rows[0].id, at: now + 1, address: "192.0.2.7"),
                SessionUse(session: rows[2].id, at: now - 6, address: "192.0.2.8"),
                SessionUse(session: [9], at: now, address: "192.0.2.9"),
            ])
            let listed = try await storage.sessions(keptFrom: 0)
            try requireEqual(listed.first { $0.id == rows[0].id }?.used, now + 1, "a use")
            try requireEqual(listed.first { $0.id == rows[2].id }?.used, now - 5, "an earlier use")
            try requireEqual(try await other.addresses(of: "anna", keptFrom: now), ["192.0.2.7", "192.0.2.1"], "addresses")
            try requireEqual(try await other.addresses(of: "ben", keptFrom: now), [], "addresses of ben")
            try requireEqual(try await other.isKnown("192.0.2.7", to: "anna", at: now), true, "a used address")
            try requireEqual(try await other.isKnown("192.0.2.8", to: "ben", at: now), true, "an earlier used address")
            // Another sign-in removes sessions that have expired.
            _ = try await storage.add(session(4, began: now + 18, kept: now + 40), ifPasswordIs: nil, auditing: nil)
            try requireEqual(try await storage.sessions(keptFrom: 0).map(\.id), [rows[2], rows[1], session(4)].map(\.id), "left")
            try requireEqual(try await storage.endSessions(of: "anna"), 2, "ended of anna's")
            try requireEqual(try await other.endAllSessions(), 1, "ended of all")
            try requireEqual(try await storage.session(rows[2].id), nil, "a session at the end")
        },
    ]

    private static let others: [StorageCheck<Subject>] = [
        StorageCheck("an account's twenty latest addresses are known, for 400 days") { open in
            let (storage, other) = (try await open(), try await open())
            try await storage.addContainer(container, at: now)
            try await storage.setPassword(password(1), of: "anna", at: now)
            for number in 0..<25 {
                _ = try await (number % 2 == 0 ? storage : other).add(
                    session(number, began: now + Int64(number), address: "192.0.2.\(number)"), ifPasswordIs: password(1),
                    auditing: nil)
            }
            _ = try await storage.endAllSessions()
            for number in 0..<25 {
                try requireEqual(
                    try await other.isKnown("192.0.2.\(number)", to: "anna", at: now), number >= 5, "address \(number)")
            }
            let later = now + 24 + CredentialLimits.knownAge
            try requireEqual(try await other.isKnown("192.0.2.24", to: "anna", at: later - 1), true, "the last one in time")
            try requireEqual(try await other.isKnown("192.0.2.24", to: "anna", at: later), false, "the last one too late")
            try requireEqual(try await other.isKnown("\0", to: "anna", at: now), false, "no address")
        },
        StorageCheck("nothing but the audit log is left of an account") { open in
            let (storage, other) = (try await open(), try await open())
            try await storage.addContainer(container, at: now)
            for (number, account) in ["anna", "ben"].enumerated() {
                try await storage.setPassword(password(1), of: account, at: now)
                _ = try await storage.add(
                    session(number, of: account), ifPasswordIs: password(1), auditing: event("sign-in", account: account))
                _ = try await storage.add(key("k\(number)", of: account))
            }
            try await other.removeAccount("anna")
            try await storage.refresh()
            try requireEqual(try storage.current().keys.map(\.id), ["k1"], "keys")
            try requireEqual(try await storage.accountsWithPassword(), ["ben"], "passwords")
            try requireEqual(try await storage.sessions(keptFrom: 0).map(\.account), ["ben"], "sessions")
            try requireEqual(try await storage.isKnown("192.0.2.1", to: "anna", at: now), false, "addresses of anna")
            try requireEqual(try await storage.isKnown("192.0.2.1", to: "ben", at: now), true, "addresses of ben")
            try requireEqual(try await storage.auditLog(.init(since: 0, account: "anna"), limit: 9).count, 1, "entries")
            try await other.removeAccount("\0")
        },
        StorageCheck("the audit log is read from the newest entry back, and old entries are removed") { open in
            let (storage, other) = (try await open(), try await open())
            let day = CredentialLimits.day
            try await storage.audit(event("old"), at: now - CredentialLimits.auditAge - 1)
            try await storage.audit(event("kept"), at: now - CredentialLimits.auditAge + day)
            try await other.audit(event("a", account: "ben", actor: "anna"), at: now)
            try await storage.audit(event("b", account: "ben"), at: now + 1)
            func actions(_ since: Int64, _ account: String?, _ limit: Int) async throws -> [String] {
                try await other.auditLog(.init(since: since, account: account), limit: limit).map(\.event.action)
            }
            try requireEqual(try await actions(0, nil, 9), ["b", "a", "kept"], "all")
            try requireEqual(try await actions(0, nil, 2), ["b", "a"], "two")
            try requireEqual(try await actions(now + 1, nil, 9), ["b"], "since then")
            try requireEqual(try await actions(0, "anna", 9), ["a", "kept"], "of anna")
            try requireEqual(try await actions(0, "nobody", 9), [], "of nobody")
            try await storage.audit(event(AuditLogFilter.consent, account: "anna", actor: "anna"), at: now + 1)
            let consents = try await other.auditLog(.init(since: 0, account: "anna", isOfConsent: true), limit: 9)
            try requireEqual(consents.map(\.event.action), [AuditLogFilter.consent], "consents")
            let place = "iCloud.org.example.place"
            for container in [place, "\(place)/production", "\(place)2"] {
                try await storage.audit(event("at", account: "cleo", container: container), at: now + 1)
            }
            let here = try await other.auditLog(.init(since: 0, container: place), limit: 9)
            try requireEqual(here.map(\.event.container), ["\(place)/production", place], "of a container")
            let both = try await other.auditLog(.init(since: 0, account: "cleo", container: place), limit: 1)
            try requireEqual(both.map(\.event.container), ["\(place)/production"], "of an account in a container")
            let older = try await other.auditLog(.init(since: 0, container: place, before: here.first?.number), limit: 9)
            try requireEqual(older.map(\.event.container), [place], "before that")
            let entries = try await storage.auditLog(.init(since: 0, before: consents.first?.number), limit: 9)
            try require(zip(entries, entries.dropFirst()).allSatisfy { $0.number > $1.number }, "numbers don't grow")
            try requireEqual(entries.first?.at, now + 1, "time")
            try requireEqual(entries.first?.event, event("b", account: "ben"), "event")
        },
    ]
}

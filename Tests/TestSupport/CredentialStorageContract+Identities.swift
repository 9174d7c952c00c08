import TidemarkCloudEngine
import TidemarkModel

extension CredentialStorageContract {
    private static let now: Int64 = 1_800_000_000_000_000
    private static let container = "iCloud.org.example.journal"
    private static let password = StoredPassword(logN: 4, r: 8, p: 1, salt: [1], digest: [1])

    private static func key(_ subject: String, at issuer: String = "https://id.example.org") -> IdentityKey {
        IdentityKey(issuer: issuer, subject: subject)
    }

    private static func identity(
        _ subject: String, of account: String = "anna", at issuer: String = "https://id.example.org", added: Int64 = now
    ) -> StoredIdentity {
        StoredIdentity(key: key(subject, at: issuer), account: account, label: "\(subject) ä", added: added)
    }

    private static func page(
        _ number: UInt8, of account: String = "anna", _ kind: StoredConsoleSession.Kind = .account
    )
        -> StoredConsoleSession
    {
        StoredConsoleSession(
            id: [UInt8](repeating: number, count: 32), kind: kind, account: account, began: now, expires: now + 1_000, used: now,
            confirmed: 0, device: "Browser ä", address: "192.0.2.1")
    }

    private static func session(_ number: UInt8, of account: String = "anna") -> StoredSession {
        StoredSession(
            id: [UInt8](repeating: number, count: 16), account: account, container: container, environment: .production,
            kind: "web", began: now, kept: now + 1_000, device: "Browser", used: now, address: "192.0.2.7")
    }

    private static func event(_ action: String) -> StoredAuditEvent {
        StoredAuditEvent(
            action: action, actor: "anna", account: "anna", address: "192.0.2.1", container: "", subject: "s", outcome: "done")
    }

    /// Checks of identities of identity providers.
    static let identityChecks: [StorageCheck<Subject>] = [
        StorageCheck("an identity leads to one account, in all servers, until it is disconnected") { open in
            let (storage, other) = (try await open(), try await open())
            try requireEqual(try await storage.identity(key("a")), nil, "an identity of a new storage")
            try requireEqual(try await storage.add(identity("a", added: now + 1), most: 9), .added, "the first")
            try requireEqual(try await other.add(identity("a"), most: 9), .exists(account: "anna"), "again")
            try requireEqual(try await other.add(identity("a", of: "ben"), most: 9), .exists(account: "anna"), "of another")
            try requireEqual(try await other.identity(key("a")), identity("a", added: now + 1), "the identity")
            // A key counts as it is: case, a slash, a space and another provider make another key.
            for stranger in [key("A"), key("a", at: "https://id.example.org/"), key("a "), key("ä"), key("a\0")] {
                try requireEqual(try await storage.identity(stranger), nil, "'\(stranger)'")
            }
            try requireEqual(
                try await storage.add(identity("a", at: "https://other.example.org"), most: 9), .added, "of another provider")
            try requireEqual(try await storage.add(identity("b", of: "ben"), most: 9), .added, "another person's")
            try requireEqual(
                try await other.identities(of: "anna"),
                [identity("a", at: "https://other.example.org"), identity("a", added: now + 1)], "of the account")
            try requireEqual(try await other.identities(of: "cleo"), [], "of who has none")
            try requireEqual(try await other.add(identity("c"), most: 2), .tooMany, "one too many")
            try requireEqual(try await storage.removeIdentity(key("a"), of: "ben"), .notFound, "by another")
            try requireEqual(try await storage.removeIdentity(key("a"), of: "anna"), .removed, "disconnected")
            try requireEqual(try await other.removeIdentity(key("a"), of: "anna"), .notFound, "disconnected again")
            try requireEqual(try await other.identity(key("a")), nil, "a disconnected one")
        },
        StorageCheck("an identity that is the only way to sign in is not disconnected") { open in
            let (storage, other) = (try await open(), try await open())
            for subject in ["a", "b"] { _ = try await storage.add(identity(subject), most: 9) }
            try requireEqual(try await other.removeIdentity(key("a"), of: "anna"), .removed, "one of two")
            try requireEqual(try await storage.removeIdentity(key("b"), of: "anna"), .isLast, "the last")
            try requireEqual(
                try await storage.removeIdentity(key("b"), of: "ben", evenIfLast: true), .notFound, "the last, by another")
            try requireEqual(
                try await storage.removeIdentity(key("b"), of: "anna", evenIfLast: true), .removed, "the last all the same")
            try requireEqual(try await other.identities(of: "anna"), [], "left")
            _ = try await storage.add(identity("b"), most: 9)
            try await storage.setPassword(password, of: "anna", at: now)
            try requireEqual(try await other.removeIdentity(key("b"), of: "anna"), .removed, "beside a password")
            for round in 0..<20 {
                try await storage.setPassword(nil, of: "anna", at: now)
                for subject in ["a", "b"] { _ = try await storage.add(identity(subject), most: 9) }
                async let one = storage.removeIdentity(key("a"), of: "anna")
                async let two = other.removeIdentity(key("b"), of: "anna")
                let removals = try await [one, two]
                try require(removals.contains(.removed) && removals.contains(.isLast), "round \(round): \(removals)")
            }
        },
        StorageCheck("if two accounts connect an identity at the same time, only one gets it") { open in
            let (storage, other) = (try await open(), try await open())
            for round in 0..<20 {
                async let one = storage.add(identity("s\(round)"), most: 99)
                async let two = other.add(identity("s\(round)", of: "ben"), most: 99)
                let (first, second) = try await (one, two)
                let owner = try await storage.identity(key("s\(round)"))?.account
                try requireEqual(owner, first == .added ? "anna" : "ben", "the owner")
                try requireEqual(
                    first == .added ? second : first, .exists(account: owner ?? ""), "who came second, in round \(round)")
            }
        },
        StorageCheck("a session by an identity needs the identity to belong to the account still") { open in
            let (storage, other) = (try await open(), try await open())
            try await storage.addContainer(container, at: now)
            _ = try await storage.add(identity("a"), most: 9)
            for wrong in [key("b"), key("a", at: "https://other.example.org"), key("a\0")] {
                try requireEqual(
                    try await other.add(page(1), ifIdentityIs: wrong, auditing: event("x")), .identityIsGone, "of pages")
                try requireEqual(
                    try await other.add(session(1), ifIdentityIs: wrong, auditing: event("x")), .identityIsGone, "of a program")
            }
            try requireEqual(
                try await other.add(page(1, of: "ben"), ifIdentityIs: key("a"), auditing: event("x")), .identityIsGone,
                "another's")
            try requireEqual(
                try await other.add(session(1, of: "ben"), ifIdentityIs: key("a"), auditing: event("x")), .identityIsGone,
                "another's, of a program")
            try requireEqual(
                try await other.add(page(1, .console), ifIdentityIs: key("a"), auditing: event("x")), .isNoOperator, "no operator"
            )
            try requireEqual(try await storage.auditLog(.init(), limit: 9).count, 0, "entries of refused ones")
            try requireEqual(try await other.add(page(1), ifIdentityIs: key("a"), auditing: event("p")), .added, "the right one")
            try requireEqual(try await storage.consoleSession(page(1).id), page(1), "the session")
            try requireEqual(
                try await other.add(session(2), ifIdentityIs: key("a"), auditing: event("s")), .added, "of a program")
            try require(try await storage.session(session(2).id) != nil, "the session of the program is not there")
            try requireEqual(try await storage.auditLog(.init(), limit: 9).map(\.event.action), ["s", "p"], "the audit log")
            try require(try await storage.isKnown("192.0.2.7", to: "anna", at: now), "the address is not known")
            _ = try await storage.removeContainer(container)
            try requireEqual(
                try await other.add(session(3), ifIdentityIs: key("a"), auditing: event("x")), .containerIsNotServed,
                "of a container that is not served")
            // Another password ends them, as all sessions.
            try await storage.setPassword(password, of: "anna", at: now)
            try requireEqual(try await other.consoleSession(page(1).id), nil, "after another password")
            try await storage.removeAccount("anna")
            try requireEqual(try await other.identity(key("a")), nil, "of an account that was removed")
        },
        StorageCheck("a sign-in during an account's removal leaves no session") { open in
            let (storage, other) = (try await open(), try await open())
            for round in 0..<20 {
                _ = try await storage.add(identity("a"), most: 9)
                async let added = storage.add(page(1), ifIdentityIs: key("a"), auditing: event("x"))
                async let removed: Void = other.removeAccount("anna")
                _ = try await (added, removed)
                try requireEqual(try await storage.consoleSession(page(1).id), nil, "the session of round \(round)")
            }
        },
    ]
}

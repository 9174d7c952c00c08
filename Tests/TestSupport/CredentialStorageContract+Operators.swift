import TidemarkCloudEngine

extension CredentialStorageContract {
    private static let now: Int64 = 1_800_000_000_000_000
    private static let password = StoredPassword(logN: 4, r: 8, p: 1, salt: [1, 0], digest: [0, 1])

    private static func console(
        _ number: UInt8, of account: String = "anna", expires: Int64 = now + 1_000
    ) -> StoredConsoleSession {
        StoredConsoleSession(
            id: [UInt8](repeating: number, count: 32), account: account, began: now, expires: expires, used: now, confirmed: now,
            device: "Browser ä", address: "192.0.2.1")
    }

    private static func event(_ action: String, container: String = "") -> StoredAuditEvent {
        StoredAuditEvent(
            action: action, actor: "anna", account: "", address: "192.0.2.1", container: container, subject: "s", outcome: "done",
            before: "{\"a\":1}", after: "ä")
    }

    /// Adds an operator who has a password.
    private static func addOperator(_ account: String, to storage: any CredentialStorage) async throws {
        try await storage.setPassword(password, of: account, at: now)
        try await storage.setOperator(StoredOperator(account: account, role: "operator", containers: [], added: now))
    }

    /// Checks of operators and their sessions of the console.
    static let operatorChecks: [StorageCheck<Subject>] = [
        StorageCheck("an operator is there in all servers, with another role when it gets one, until it is removed") { open in
            let (storage, other) = (try await open(), try await open())
            try requireEqual(try await storage.operators(), [], "operators of a new storage")
            let anna = StoredOperator(account: "anna", role: "developer", containers: ["a", "b"], added: now)
            try await storage.setOperator(anna)
            let ben = StoredOperator(account: "ben", role: "operator", containers: [], added: now + 1)
            try await other.setOperator(ben)
            try requireEqual(try await other.operators(), [anna, ben], "operators")
            try requireEqual(try await other.storedOperator("anna"), anna, "an operator")
            try requireEqual(try await other.storedOperator("cleo"), nil, "who is none")
            try await other.setOperator(StoredOperator(account: "anna", role: "operator", containers: [], added: now + 9))
            try requireEqual(
                try await storage.storedOperator("anna"),
                StoredOperator(account: "anna", role: "operator", containers: [], added: now), "with another role")
            try require(try await storage.removeOperator("anna"), "there was none")
            try require(try await !other.removeOperator("anna"), "it was removed twice")
            try requireEqual(try await other.operators(), [ben], "operators left")
        },
        StorageCheck("a session of a person's pages needs a password alone, and stays when the role ends") { open in
            let (storage, other) = (try await open(), try await open())
            try await storage.setPassword(password, of: "anna", at: now)
            var own = console(1)
            own = StoredConsoleSession(
                id: own.id, kind: .account, account: own.account, began: own.began, expires: own.expires, used: own.used,
                confirmed: own.confirmed, device: own.device, address: own.address)
            try requireEqual(try await storage.add(own, ifPasswordIs: password, auditing: event("a")), .added, "no operator")
            let wrong = StoredPassword(logN: 4, r: 8, p: 1, salt: [2], digest: [2])
            try requireEqual(
                try await storage.add(own, ifPasswordIs: wrong, auditing: event("a")), .passwordIsAnother, "wrong password")
            try await addOperator("anna", to: storage)
            // The password is set again, which ends all sessions.
            try requireEqual(try await other.consoleSession(own.id), nil, "after another password")
            _ = try await storage.add(own, ifPasswordIs: password, auditing: event("b"))
            _ = try await storage.add(console(2), ifPasswordIs: password, auditing: event("c"))
            try requireEqual(try await other.consoleSessions(of: "anna", at: now), [own, console(2)], "both")
            try requireEqual(try await other.consoleSessions(of: nil, at: now), [own, console(2)], "of all accounts")
            try requireEqual(try await other.consoleSessions(of: "ben", at: now), [], "of another account")
            _ = try await other.removeOperator("anna")
            try requireEqual(try await storage.consoleSessions(of: "anna", at: now), [own], "without the role")
            _ = try await other.endSessions(of: "anna")
            try requireEqual(try await storage.consoleSession(own.id), nil, "after signing out everywhere")
        },
        StorageCheck("a console session needs an operator and its password, and is noted with its entry") { open in
            let (storage, other) = (try await open(), try await open())
            try await storage.setPassword(password, of: "anna", at: now)
            try requireEqual(
                try await storage.add(console(1), ifPasswordIs: password, auditing: event("a")), .isNoOperator, "no operator")
            try await addOperator("anna", to: storage)
            let wrong = StoredPassword(logN: 4, r: 8, p: 1, salt: [2], digest: [2])
            try requireEqual(
                try await storage.add(console(1), ifPasswordIs: wrong, auditing: event("a")), .passwordIsAnother, "wrong password"
            )
            try requireEqual(try await storage.auditLog(.init(), limit: 9).count, 0, "entries of refused ones")
            try requireEqual(
                try await storage.add(console(1), ifPasswordIs: password, auditing: event("b")), .added, "the right one")
            try requireEqual(try await other.consoleSession(console(1).id), console(1), "the session")
            try requireEqual(try await other.auditLog(.init(), limit: 9).map(\.event), [event("b")], "the audit log")
            try await other.noteConsoleSession(console(1).id, used: now + 5, confirmed: 0)
            try await other.noteConsoleSession(console(1).id, used: now + 4, confirmed: now + 3)
            var noted = console(1)
            (noted.used, noted.confirmed) = (now + 5, now + 3)
            try requireEqual(try await storage.consoleSession(noted.id), noted, "a use")
            try requireEqual(try await storage.consoleSessions(of: "anna", at: now), [noted], "of the account")
            try requireEqual(try await storage.consoleSessions(of: "anna", at: noted.expires), [], "when it has expired")
            try require(try await other.endConsoleSession(noted.id), "there was none")
            try require(try await !storage.endConsoleSession(noted.id), "it ended twice")
            try requireEqual(try await storage.consoleSession(noted.id), nil, "an ended one")
        },
        StorageCheck("ending an account's password, role or sessions ends its console sessions, and no other account's") { open in
            let storage = try await open()
            typealias End = @Sendable (any CredentialStorage) async throws -> Void
            let ends: [(String, End)] = [
                ("another password", { try await $0.setPassword(password, of: "anna", at: now) }),
                ("no password", { try await $0.setPassword(nil, of: "anna", at: now) }),
                ("no role", { _ = try await $0.removeOperator("anna") }),
                ("signed out", { _ = try await $0.endSessions(of: "anna") }),
                ("removed", { try await $0.removeAccount("anna") }),
            ]
            try await addOperator("ben", to: storage)
            _ = try await storage.add(console(9, of: "ben"), ifPasswordIs: password, auditing: event("a"))
            for (what, end) in ends {
                try await addOperator("anna", to: storage)
                try requireEqual(try await storage.add(console(1), ifPasswordIs: password, auditing: event("a")), .added, what)
                try await end(storage)
                try requireEqual(try await storage.consoleSession(console(1).id), nil, what)
                try require(try await storage.consoleSession(console(9).id) != nil, "\(what): the other's has ended")
            }
            try requireEqual(try await storage.storedOperator("anna"), nil, "the role of who was removed")
            _ = try await storage.endAllSessions()
            try requireEqual(try await storage.consoleSession(console(9).id), nil, "when all end")
            _ = try await storage.add(console(8, of: "ben"), ifPasswordIs: password, auditing: event("a"))
            _ = try await storage.replaceSecret(by: [UInt8](repeating: 1, count: 32), keepingPreviousUntil: now + 9)
            try require(try await storage.consoleSession(console(8).id) != nil, "a secret with time has ended it")
            _ = try await storage.replaceSecret(by: [UInt8](repeating: 2, count: 32), keepingPreviousUntil: nil)
            try requireEqual(try await storage.consoleSession(console(8).id), nil, "with another secret")
        },
        StorageCheck("a second factor is set, accepts a code once, and is removed") { open in
            let (storage, other) = (try await open(), try await open())
            try requireEqual(try await storage.secondFactor(of: "anna"), nil, "none")
            let factor = StoredSecondFactor(account: "anna", secret: [0, 1], recovery: [2, 0], step: 7, added: now)
            try await storage.setSecondFactor(factor, of: "anna")
            try requireEqual(try await other.secondFactor(of: "anna"), factor, "set")
            var used = factor
            (used.step, used.recovery) = (8, [])
            try require(try await other.replaceSecondFactor(factor, by: used), "it was not replaced")
            try require(try await !storage.replaceSecondFactor(factor, by: used), "it was replaced twice")
            try requireEqual(try await storage.secondFactor(of: "anna"), used, "used")
            try await other.setSecondFactor(factor, of: "anna")
            try requireEqual(try await storage.secondFactor(of: "anna"), factor, "set again")
            try await other.setSecondFactor(nil, of: "anna")
            try requireEqual(try await storage.secondFactor(of: "anna"), nil, "removed")
            try await storage.setSecondFactor(factor, of: "anna")
            try await other.removeAccount("anna")
            try requireEqual(try await storage.secondFactor(of: "anna"), nil, "of an account that was removed")
        },
        StorageCheck("expired console sessions are removed with the next one") { open in
            let storage = try await open()
            try await addOperator("anna", to: storage)
            _ = try await storage.add(console(1, expires: now), ifPasswordIs: password, auditing: event("a"))
            _ = try await storage.add(console(2), ifPasswordIs: password, auditing: event("a"))
            try requireEqual(try await storage.consoleSession(console(1).id), nil, "the expired one")
            try require(try await storage.consoleSession(console(2).id) != nil, "the next is not there")
        },
        StorageCheck("the audit log is read by container and page, and keeps the values before and after") { open in
            let storage = try await open()
            for (offset, container) in ["a", "a/development", "a/production", "ab", "b/a", ""].enumerated() {
                try await storage.audit(event("\(offset)", container: container), at: now + Int64(offset))
            }
            @Sendable func actions(_ filter: AuditLogFilter, _ limit: Int = 9) async throws -> [String] {
                try await storage.auditLog(filter, limit: limit).map(\.event.action)
            }
            try requireEqual(try await actions(.init(container: "a")), ["2", "1", "0"], "of a container")
            try requireEqual(try await actions(.init(container: "c")), [], "of no container")
            let page = try await storage.auditLog(.init(), limit: 2)
            try requireEqual(page.map(\.event.action), ["5", "4"], "a page")
            try requireEqual(try await actions(.init(before: page.last?.number), 3), ["3", "2", "1"], "the next page")
            try requireEqual(page.last?.event.before, "{\"a\":1}", "what was before")
            try requireEqual(page.last?.event.after, "ä", "what is after")
        },
    ]
}

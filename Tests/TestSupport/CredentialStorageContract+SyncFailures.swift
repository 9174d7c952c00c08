import TidemarkCloudEngine
import TidemarkModel

extension CredentialStorageContract {
    private static let now: Int64 = 1_800_000_000_000_000

    private static func failure(
        _ record: String = "a", of account: String = "anna", at time: Int64 = now, container: String = "journal",
        environment: String = "production", reason: String = "why 5 ä"
    ) -> SyncFailure {
        SyncFailure(
            at: time, operation: "records.modify", container: container, environment: environment, account: account,
            scope: .private, record: record, recordType: "Trip", zone: "TidemarkZone", code: "BAD_REQUEST", reason: reason,
            count: 2)
    }

    /// The checks of the failures of devices.
    static let syncFailureChecks: [StorageCheck<Subject>] = [
        StorageCheck("failures are read by all servers, the newest first, and by place and account") { open in
            let (storage, other) = (try await open(), try await open())
            try requireEqual(try await storage.syncFailures(.init(), limit: 9), [], "failures of a new storage")
            var ofNobody = failure("", of: "", at: now + 3, container: "other", environment: "")
            ofNobody.scope = nil
            let all = [
                ofNobody, failure("c", of: "ben", at: now + 2), failure("b", at: now + 1, environment: "development"), failure(),
            ]
            try await storage.record(Array(all[..<2]), at: now)
            try await other.record(Array(all[2...]), at: now)
            func found(_ filter: SyncFailureFilter, _ limit: Int = 9) async throws -> [SyncFailure] {
                try await other.syncFailures(filter, limit: limit)
            }
            try requireEqual(try await found(.init()), all, "all")
            try requireEqual(try await found(.init(), 2), Array(all[..<2]), "two")
            try requireEqual(try await found(.init(since: now + 2)), Array(all[..<2]), "since then")
            try requireEqual(try await found(.init(container: "journal")), Array(all[1...]), "of a container")
            try requireEqual(try await found(.init(environment: .development)), [all[2]], "of an environment")
            try requireEqual(try await found(.init(account: "anna")), [all[2], all[3]], "of an account")
            try requireEqual(
                try await found(.init(container: "journal", environment: .production, account: "ben")), [all[1]], "of all three")
            try requireEqual(try await found(.init(container: "\0")), [], "of no container")
            try requireEqual(try await found(.init(code: "BAD_REQUEST")).count, 4, "of a code")
            try requireEqual(try await found(.init(code: "CONFLICT")), [], "of another code")
            try requireEqual(try await other.syncFailureValues(of: .code, .init()), ["BAD_REQUEST"], "codes")
            try requireEqual(
                try await other.syncFailureValues(of: .account, .init(container: "journal")), ["anna", "ben"], "accounts")
            try requireEqual(try await other.syncFailureValues(of: .code, .init(code: "CONFLICT")), [], "no codes")
        },
        StorageCheck("equal failures of any server are one row, with their count, the first time and the last") { open in
            let (storage, other) = (try await open(), try await open())
            try await storage.record([failure(at: now + 5)], at: now)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for server in [storage, other] {
                    for time in [now + 9, now + 1] {
                        group.addTask { try await server.record([failure(at: time), failure("b", at: time)], at: now) }
                    }
                }
                try await group.waitForAll()
            }
            let found = try await storage.syncFailures(.init(), limit: 9).sorted { $0.record < $1.record }
            try requireEqual(found.map(\.record), ["a", "b"], "records")
            try requireEqual(found.map(\.count), [10, 8], "counts")
            try requireEqual(found.map(\.firstAt), [now + 1, now + 1], "first times")
            try requireEqual(found.map(\.at), [now + 9, now + 9], "last times")
            for other in [failure(of: "ben"), failure(environment: "development")] {
                try await storage.record([other], at: now)
            }
            try requireEqual(try await storage.syncFailures(.init(), limit: 9).count, 4, "different ones")
            for (time, number) in [(now + 20, 20), (now + 3, 300)] {
                var attempt = failure(at: time, reason: "why \(number) ä")
                (attempt.field, attempt.fieldType, attempt.device) = ("field \(number)", "type \(number)", "phone \(number)")
                try await storage.record([attempt], at: now)
            }
            let row = try await storage.syncFailures(.init(), limit: 1)
            try requireEqual(row.map(\.reason), ["why 20 ä"], "the reason")
            try requireEqual(row.map(\.field), ["field 20"], "the field")
            try requireEqual(row.map(\.fieldType), ["type 20"], "the type of the field")
            try requireEqual(row.map(\.count), [14], "the count with every number in the reason")
            try requireEqual(row.map(\.device), ["phone 20"], "the device")
            try await storage.record([failure(at: now + 21)], at: now)
            try requireEqual(
                try await storage.syncFailures(.init(), limit: 1).map(\.device), ["phone 20"],
                "the device, whose session has ended")
            var ofAnother = failure(at: now + 30)
            ofAnother.sender = "another session"
            try await storage.record([ofAnother, failure(at: now + 31, reason: "another reason")], at: now)
            let apart = try await storage.syncFailures(.init(), limit: 9)
            try requireEqual(apart.count, 6, "rows with those of another session and with another reason")
            try requireEqual(apart.prefix(2).map(\.sender), ["", "another session"], "the sessions")
        },
        StorageCheck("each container keeps its newest failures, and rows without an account take no room") { open in
            let storage = try await open()
            let (most, own) = (SyncFailureLimits.ofAccounts, SyncFailureLimits.ofAccount)
            try await storage.record((0..<(own + 5)).map { failure("r\($0)", at: now + Int64($0)) }, at: now)
            let first = try await storage.syncFailures(.init(account: "anna"), limit: 9_999)
            try requireEqual(first.count, own, "rows of one account")
            try requireEqual(first.last?.record, "r5", "the oldest of one account")
            try await storage.record(
                [failure("elsewhere", container: "other"), failure("before", of: "cleo", environment: "development")], at: now)
            // Five failures more than there is room for, together with those of the first account.
            let others = (0..<(most - own + 5)).map { failure("o\($0)", of: "a\($0 / own)", at: now + 1_000 + Int64($0)) }
            try await storage.record(others, at: now)
            let ofNobody = (0..<(SyncFailureLimits.ofNobody + 50)).map { failure("n\($0)", of: "", at: now + 9_000 + Int64($0)) }
            try await storage.record(ofNobody, at: now)
            let found = try await storage.syncFailures(.init(container: "journal"), limit: 9_999)
            let kept = found.filter { !$0.account.isEmpty && $0.environment == "production" }
            try requireEqual(kept.count, most, "rows of accounts")
            try requireEqual(kept.last?.record, "r10", "the oldest")
            try requireEqual(found.count { $0.record == "before" }, 1, "rows of another environment")
            try requireEqual(found.count { $0.account.isEmpty }, SyncFailureLimits.ofNobody, "rows of nobody")
            try requireEqual(try await storage.syncFailures(.init(container: "other"), limit: 9).count, 1, "of another container")
            let spread = (0..<(SyncFailureLimits.ofNobodyInAll + 50)).map {
                failure(of: "", at: now + 20_000 + Int64($0), container: "c\($0)")
            }
            try await storage.record(spread, at: now)
            let all = try await storage.syncFailures(.init(), limit: 9_999)
            try requireEqual(all.count { $0.account.isEmpty }, SyncFailureLimits.ofNobodyInAll, "rows of nobody in all")
            try requireEqual(all.count { !$0.account.isEmpty }, most + 2, "rows of accounts in all")
            let later = now + SyncFailureLimits.age
            try await storage.record([failure("new", at: later + 8_000)], at: later + 8_000)
            try requireEqual(
                Set(try await storage.syncFailures(.init(), limit: 9_999).filter { !$0.account.isEmpty }.map(\.record)), ["new"],
                "a week later")
            try await storage.sweepSyncFailures(at: later + later)
            try requireEqual(try await storage.syncFailures(.init(), limit: 9).count, 0, "after a sweep")
        },
        StorageCheck("refused sign-ins and other failures take no room from each other") { open in
            let storage = try await open()
            let (most, ofSignIns) = (SyncFailureLimits.ofNobody, SyncFailureLimits.ofSignIns)
            func signIns(_ number: Int, at time: Int64, _ container: (Int) -> String) -> [SyncFailure] {
                (0..<number).map { index in
                    var signIn = failure("", of: "", at: time + Int64(index), container: container(index))
                    signIn.operation = SyncFailure.signInOperation
                    signIn.sender = SyncFailure.sender(ofSignInTo: "a\(index)")
                    return signIn
                }
            }
            func found(_ filter: SyncFailureFilter = .init()) async throws -> (signIns: [SyncFailure], others: [SyncFailure]) {
                let rows = try await storage.syncFailures(filter, limit: 9_999)
                return (rows.filter(\.isSignInOfNobody), rows.filter { !$0.isSignInOfNobody })
            }
            try await storage.record([failure()], at: now)
            try await storage.record((0..<most).map { failure("n\($0)", of: "", at: now + Int64($0)) }, at: now)
            try await storage.record(signIns(most + 50, at: now + 1_000) { _ in "journal" }, at: now)
            let flooded = try await found()
            try requireEqual(flooded.others.count, most + 1, "other rows behind sign-ins")
            try requireEqual(flooded.signIns.count, ofSignIns, "sign-ins")
            try requireEqual(flooded.signIns.first?.triedAccount, "a\(most + 49)", "the newest sign-in")
            try await storage.record((0..<(most + 50)).map { failure("m\($0)", of: "", at: now + 9_000 + Int64($0)) }, at: now)
            let later = try await found()
            try requireEqual(later.signIns, flooded.signIns, "sign-ins behind other rows")
            try requireEqual(later.others.filter(\.account.isEmpty).count, most, "other rows of nobody")
            // A sign-in failure that names a signed-in account is among the rows of that account.
            var ofAnna = signIns(1, at: now) { _ in "journal" }[0]
            ofAnna.account = "anna"
            try await storage.record([ofAnna], at: now)
            try requireEqual(try await found(.init(account: "anna")).others.count, 2, "rows of an account")
            let inAll = SyncFailureLimits.ofSignInsInAll
            try await storage.record(signIns(inAll + 50, at: now + 20_000) { "c\($0)" }, at: now)
            let spread = try await found()
            try requireEqual(spread.signIns.count, inAll, "sign-ins in all")
            try requireEqual(spread.others.count, most + 2, "other rows behind sign-ins in all")
        },
        StorageCheck("the number of accounts' failures is limited for the whole cloud, in all containers") { open in
            let storage = try await open()
            let most = SyncFailureLimits.ofAccountsInAll
            let spread = (0..<(most + 50)).map { number in
                failure(of: "a\(number)", at: now + Int64(number), container: "c\(number / 500)")
            }
            try await storage.record(spread, at: now)
            let found = try await storage.syncFailures(.init(), limit: most + 99)
            try requireEqual(found.count, most, "rows")
            try requireEqual(found.last?.account, "a50", "the oldest")
        },
        StorageCheck("an account's failures are removed with it, and an ended session still gives its account") { open in
            let storage = try await open()
            try await storage.record([failure(), failure("b", of: "ben")], at: now)
            var signIn = failure("", of: "")
            for account in ["anna", "ben"] {
                signIn.sender = SyncFailure.sender(ofSignInTo: account)
                try await storage.record([signIn], at: now)
            }
            try await storage.removeAccount("anna")
            let tried = try await storage.syncFailures(.init(account: ""), limit: 9).map(\.triedAccount)
            try requireEqual(tried, ["ben"], "accounts whose sign-in was refused")
            signIn.sender = SyncFailure.sender(ofSignInTo: "cleo")
            try await storage.record([signIn], at: now)
            try await storage.removeSyncFailures(of: "ben")
            try await storage.removeSyncFailures(of: "cleo")
            try await storage.record([failure("b", of: "ben")], at: now)
            try requireEqual(try await storage.syncFailures(.init(), limit: 9).map(\.account), ["ben"], "accounts")
            try await storage.removeSyncFailures(of: "cleo")
            try requireEqual(try await storage.syncFailures(.init(), limit: 9).count, 1, "rows of others")
            try await storage.removeSyncFailures(of: "ben")
            try requireEqual(try await storage.syncFailures(.init(), limit: 9), [], "rows of an account that is gone")
            for (outcome, account) in [("wrong password", "cleo"), ("done", "anna")] {
                try await storage.audit(
                    StoredAuditEvent(
                        action: "sign-in", actor: "", account: account, address: "", container: "journal",
                        subject: "session 00ff", outcome: outcome, after: "phone"), at: now)
            }
            let found = try await storage.signIn(ofSession: "00ff")
            try requireEqual(
                [found?.account, found?.container, found?.after], ["anna", "journal", "phone"],
                "which account has signed in, where, and on what")
            try require(try await storage.signIn(ofSession: "00fe") == nil, "a session of nobody was found")
            try require(try await storage.signIn(ofSession: "00\0ff") == nil, "a session with U+0000 was found")
        },
    ]
}

import Foundation
import Logging
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Performs the steps that the synchronisation's ``SyncMachine`` asks for.
extension SyncEngine {
    func perform(_ step: SyncMachine.Step) async throws {
        if step != .setUp, try await !accountIsOn() { return }
        switch step {
        case .setUp: try await setUp()
        case .importPage: try await importPage()
        case .exportBatch: try await exportBatch()
        case .wait, .halt: break
        }
    }

    /// Whether the account's switches are still on. If not, the engine sets up again, and the set-up reports what is wrong.
    func accountIsOn() async throws -> Bool {
        let now = environment.now()
        guard now > accountSeen + 1_000_000 || now < accountSeen else { return true }
        accountSeen = now
        guard !configuration.accountState().isAvailable else { return true }
        try await recorder.endAll()
        machine.begin()
        return false
    }

    func setUp() async throws {
        await zoneSyncs.forgetNext()
        await zoneSyncs.forgetImports()
        machine.noteChangedZones(areKnown: false)
        await recorder.beginSetUp()
        var failures: [ContainerEvent.Failure] = []
        let user = try await store.syncState().user
        let answer = try await accounts.check()
        switch answer {
        case .available:
            if try await store.syncState().user != user { await zoneSyncs.forgetExports() }
            do {
                try await prepare()
                machine.answered(.setUp, at: environment.now())
                machine.setUpSucceeded()
            } catch let error as CloudError {
                let isStopped = ErrorReaction(error.code) == .ask
                failures = [.init(error, code: SyncErrorCode.notInitialized)]
                if isStopped {
                    machine.halt(failures[0])
                } else {
                    note(error)
                    machine.setUpFailed(at: environment.now(), retryAfter: error.retryAfter, random: environment.random())
                }
            }
        case .unavailable(let failure, let error):
            failures = [failure]
            note(error)
            machine.setUpFailed(at: environment.now(), retryAfter: error?.retryAfter, random: environment.random())
        case .stopped(let all):
            failures = all
            machine.halt(all[0])
        }
        try await recorder.endSetUp(failures, accountChange(since: user, answer))
    }

    /// Returns the change of the account since the last set-up. Only the engine of the private store reports it.
    private func accountChange(since known: String?, _ answer: AccountMonitor.Answer) -> AccountChange? {
        guard store.scope == .private else { return nil }
        switch answer {
        case .available(let account):
            defer { accountIsOut = false }
            guard let user = account.userRecordName else { return nil }
            guard let known, !accountIsOut || known != user else { return .signedIn(user: user) }
            return known == user ? nil : .switched(from: known, to: user)
        case .stopped(let failures):
            guard let known, !accountIsOut, failures.contains(where: { [.signedOut, .switchedOff].contains($0.cause) }) else {
                return nil
            }
            accountIsOut = true
            return .signedOut(user: known)
        case .unavailable: return nil
        }
    }

    /// Makes the zone, and applies deferred records again.
    func prepare() async throws {
        limits = try await database.limits().bounded
        var state = try await store.syncState()
        if state.isPurged {
            throw CloudError(
                .permissionFailure,
                "the cloud's copy was deleted for good, and nothing is uploaded. Sign in again to start from the records here")
        }
        if !state.zoneIsMade, store.scope == .private {
            try await database.modifyZones(saving: [CloudZoneID(configuration.zoneName)], deleting: [])
            state = try await store.updateSyncState { $0.zoneIsMade = true }
        }
        // A person may have removed the causes of these errors.
        try await store.tryAgain(
            [CloudError.Code.quotaExceeded, .notAuthenticated, .secondFactorRequired, .permissionFailure, .invalidArguments]
                .map(\.rawValue) + [StoreError.Code.damaged.rawValue])
        // A record that was too large for the limits of the last set-up may not be for these.
        let announced = try limits.text
        if state.limits != announced {
            try await store.tryAgain([CloudError.Code.limitExceeded.rawValue])
            try await store.updateSyncState { $0.limits = announced }
        }
        for zoneSync in try await zoneSyncs.all() { _ = try await zoneSync.resolver.applyDeferred(limits: limits) }
        if try await store.beginRefetchOfRemadeFields() {
            log.info("a field is there again that the cloud may have values of, and everything is fetched again")
            await zoneSyncs.forgetImports()
            machine.wantImport()
        }
    }

    func importPage() async throws {
        await recorder.begin(.import)
        // Changes that are sent in between change the next page.
        let looksAhead = environment.looksAhead && !machine.exportIsWanted
        let outcome = try await nextPage(looksAhead: looksAhead)
        report.imported += outcome.records
        if outcome.records > 0 { shareTitlesAreDue = true }
        report.conflicts += outcome.conflicts
        try await recorder.progress(.import, records: outcome.records, conflicts: outcome.conflicts)
        if let error = outcome.error {
            try await recorder.fail(.import, error)
            note(error)
            try await react(to: error, of: .import) {
                machine.importFailed(at: environment.now(), retryAfter: error.retryAfter, random: environment.random())
            }
        } else {
            machine.answered(.import, at: environment.now())
            machine.imported(moreComing: outcome.moreComing)
            // A merge may leave something to send, or make a refused change possible.
            if outcome.conflicts > 0 || outcome.leavesExports { machine.wantExport() }
            if !outcome.moreComing {
                await updateShareTitles()
                try await recorder.end(.import)
            }
        }
    }

    func exportBatch() async throws {
        await zoneSyncs.forgetImports()
        if await recorder.begin(.export) {
            let (records, bytes) = (try await store.outbox().pending, try await store.pendingBytes())
            await recorder.expect(.export, records: records, bytes: bytes)
            noRoom = records >= Self.bulk ? await quotaFailure(bytes) : nil
        }
        let outcome = try await nextBatch(hasRoom: noRoom == nil)
        // A reply or a look-up may have brought the deletion of a record that has moved.
        if await store.needsImportRound { machine.wantImport() }
        if noRoom != nil, !outcome.didWork, outcome.error == nil {
            // Deletions have gone, and may have made room.
            noRoom = await quotaFailure(try await store.pendingBytes())
            guard let noRoom else { return }
            machine.exportLacksRoom(at: environment.now())
            return try await recorder.fail(.export, noRoom)
        }
        report.exported += outcome.sent
        if outcome.sent > 0 { shareTitlesAreDue = true }
        report.conflicts += outcome.conflicts
        try await recorder.progress(.export, records: outcome.sent, conflicts: outcome.conflicts)
        if let error = outcome.error {
            try await recorder.fail(.export, error)
            note(error)
            try await react(to: error, of: .export) {
                machine.exportFailed(
                    at: environment.now(), retryAfter: error.retryAfter, random: environment.random())
            }
        } else {
            // A change that may be tried again and did not go waits for a pause.
            let left = outcome.didWork ? nil : try await store.outbox()
            let now = environment.now()
            // No change waits longer, unless the clock was set back.
            let next = left?.nextTry.map { min(max($0, now + Self.pause), now + ExportReaction.limitPause) }
            machine.exported(
                sent: outcome.sent, didWork: outcome.didWork, nextTry: next, at: environment.now(), random: environment.random())
            if let left {
                await updateShareTitles()
                try await recorder.end(.export, refused: left.blocked)
            }
        }
    }

    private static let pause: Int64 = 1_000_000

    /// From this number of changes on, the engine checks the quota before it uploads.
    private static let bulk = 1000

    /// The error of an upload that is larger than the quota; `nil` if there is room.
    func quotaFailure(_ bytes: Int64) async -> CloudError? {
        // If the cloud does not report the quota, the upload finds out.
        guard let account = try? await database.account(), let quota = account.quota, let used = account.used else { return nil }
        guard used.addingReportingOverflow(bytes).partialValue > quota else { return nil }
        return CloudError(
            .quotaExceeded,
            "\(bytes) bytes are to be uploaded, and the account has \(max(0, quota.subtractingReportingOverflow(used).partialValue)) left of \(quota)"
        )
    }

    /// Records whether the cloud could be reached.
    func note(_ error: CloudError?) {
        let codes: [CloudError.Code?] = [.networkUnavailable, .networkFailure]
        machine.failed(isUnreached: error?.retryAfter == nil && codes.contains(error?.code))
    }

    /// Reacts to an error that concerns the whole synchronisation; any other error is tried again.
    func react(to error: CloudError, of operation: SyncMachine.Operation, retry: () -> Void) async throws {
        switch ErrorReaction(error.code) {
        case _ where error.storeError != nil: throw error.storeError!
        // The errors of other zones are found when these have their turn.
        case .remakeZone:
            // The server has lost the zone, or never had it: all of its records are sent again.
            log.warning("the zone is gone, and is created again")
            try await remakeDefaultZone()
            // Nothing is sent before the first page has come.
            machine.wantImport()
            machine.renewSetUp(for: operation, at: environment.now(), retryAfter: nil, random: environment.random())
        case .wipe:
            log.warning("the zone's data was deleted for good")
            let told = try await purgeDefaultZone(error)
            try await recorder.noteFailureAgain(operation == .export ? .export : .import, adding: told)
            machine.halt(.init(code: SyncErrorCode.other, reason: error.reason + told))
        // The store is older or newer than the cloud: fetch first.
        case .refetch:
            machine.wantImport()
            retry()
        case .ask where error.code == .notAuthenticated:
            machine.renewAll()
            machine.renewSetUp(
                for: operation, at: environment.now(), retryAfter: error.retryAfter, random: environment.random())
        default: retry()
        }
    }
}

extension CloudLimits {
    /// The limits as text, which the store keeps to notice at the next set-up whether they have changed.
    fileprivate var text: String {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            return String(decoding: try encoder.encode(self), as: UTF8.self)
        }
    }
}

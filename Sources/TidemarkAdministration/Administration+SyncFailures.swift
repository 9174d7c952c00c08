import TidemarkCloud
package import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
package import TidemarkModel

/// Sync failures, as operators and developers see them.
extension Administration {
    /// A sync failure with the name of its account.
    package struct KnownSyncFailure: Sendable {
        /// Without its reason, its record and its field where ``isHidden`` is set.
        package let failure: SyncFailure
        /// The account: its address for operators, its user record name for developers; empty for nobody.
        package let account: String
        /// Whether reason, record and field are hidden: they may name private data, which the actor may not see.
        package let isHidden: Bool
        /// Whether the account is gone.
        package let isOfDeletedAccount: Bool
        /// The present state of the record in the cloud; `unknown` where ``isHidden`` is set.
        package let record: RefusedRecord
        /// The device that was refused; `nil` where it is not known, or the actor may not see it. For a developer, failures of
        /// public records in production name no devices. The device of a refused sign-in has only the name from the request, and
        /// only operators see it.
        package let device: SendingDevice?
        /// Whether the account has access or room again since its request was refused; `false` where ``isHidden`` is set.
        package let hasAccessAgain: Bool
        /// The address of the account that a refused sign-in named; `nil` for an address without an account, and for developers.
        package let triedAccount: String?
    }

    /// Returns the sync failures of the last 7 days, the newest first. A developer gets those of one of their containers.
    ///
    /// - Parameters:
    ///   - container: Only failures in this container; a developer names one.
    ///   - environment: Only failures in this environment.
    ///   - account: Only failures of this account: an address or an identifier; for a developer, the name by which the container knows it.
    ///   - code: Only failures with this code of the protocol.
    ///   - since: Only failures that were answered then or later: microseconds since 1970 UTC.
    package func syncFailures(
        in container: String? = nil, _ environment: StoreEnvironment? = nil, account: String? = nil, code: String? = nil,
        since: Int64 = 0, limit: Int = 100
    ) async throws(AdministrationError) -> [KnownSyncFailure] {
        try await syncFailurePage(in: container, environment, account: account, code: code, since: since, limit: limit).failures
    }

    /// Returns sync failures as ``syncFailures(in:_:account:code:since:limit:)`` does, from one of them on.
    ///
    /// - Parameters:
    ///   - skipped: How many of the newest are left out.
    /// - Returns: The failures, and whether there are older ones.
    package func syncFailurePage(
        in container: String? = nil, _ environment: StoreEnvironment? = nil, account: String? = nil, code: String? = nil,
        since: Int64 = 0, skipping skipped: Int = 0, limit: Int
    ) async throws(AdministrationError) -> (failures: [KnownSyncFailure], hasOlder: Bool) {
        if let container { try await demand(container) } else { try demandOperator("the sync errors of the whole cloud") }
        var filter = SyncFailureFilter(since: since, container: container, environment: environment, code: code)
        if let account {
            guard let id = try await accountOfFailures(account, in: container) else { return ([], false) }
            filter.account = id
        }
        let wanted = filter
        return try await wrapped {
            // A developer's refused sign-ins are merged before the page is cut: single rows would tell which addresses have an account.
            let most = isOperator ? skipped + limit + 1 : SyncFailureLimits.ofPlaceInAll * StoreEnvironment.allCases.count
            let stored = try await credentials.syncFailures(wanted, limit: most)
            let failures = (isOperator ? stored : SyncFailure.withoutTriedAccounts(stored)).dropFirst(skipped)
            return (try await visible(Array(failures.prefix(limit))), failures.count > limit)
        }
    }

    /// The identifier of an account whose errors are looked for; `nil` where a developer's container knows none by the name.
    private func accountOfFailures(_ name: String, in container: String?) async throws(AdministrationError) -> String? {
        guard !isOperator, let container else { return try await account(name).id }
        return try await wrapped { try await cloud.account(userRecordName: name, in: container)?.id }
    }

    /// Returns the codes of sync failures, in a container or in the whole cloud.
    package func syncFailureCodes(
        in container: String?, _ environment: StoreEnvironment?
    ) async throws(AdministrationError) -> Set<String> {
        if let container { try await demand(container) } else { try demandOperator("the sync errors of the whole cloud") }
        let filter = SyncFailureFilter(container: container, environment: environment)
        return try await wrapped { try await credentials.syncFailureValues(of: .code, filter) }
    }

    /// Hides what the actor may not see. What a developer sees with an account's consent is in the audit log.
    ///
    /// - Parameter failures: For a developer, without the accounts that sign-ins have tried.
    private func visible(_ failures: [SyncFailure]) async throws -> [KnownSyncFailure] {
        var consents: [String: Bool] = [:]
        // The containers where something was shown with consent, by the account.
        var shown: [String: Set<String>] = [:]
        var visible: [KnownSyncFailure] = []
        let accounts = try await knownAccounts(of: failures)
        let records = try await refusedRecords(failures, accounts)
        let devices = try await sendingDevices(failures)
        let restored = try await failuresWithRestoredAccess(failures, accounts)
        for (found, record) in zip(failures, records) {
            var failure = found
            let account = failure.account
            let name =
                isOperator || account.isEmpty
                ? accounts[account]?.email ?? account : userRecordName(ofAccount: account, in: failure.container)
            let maySeePrivate = maySeePrivate(StoreEnvironment(rawValue: failure.environment) ?? .production)
            // Why a sign-in was refused may tell which addresses have an account.
            let isForOperators = !isOperator && failure.operation == SyncFailure.signInOperation
            var maySee = !isForOperators && (failure.scope == .public || maySeePrivate)
            // Shared records are their owner's, whom the failure doesn't name. A participant can't give consent for them.
            if !maySee, !isForOperators, failure.scope != .shared, !account.isEmpty {
                if consents[account] == nil { consents[account] = try await hasConsent(of: account, in: failure.container) }
                maySee = consents[account] == true
                if maySee { shown[account, default: []].insert(failure.container) }
            }
            if !maySee {
                (failure.reason, failure.record, failure.zone) = ("", "", "")
                (failure.field, failure.fieldType) = ("", "")
            }
            let maySeeDevice = maySeePrivate || maySee && failure.scope != .public
            if !maySeeDevice { failure.device = "" }
            visible.append(
                KnownSyncFailure(
                    failure: failure, account: name, isHidden: !maySee,
                    isOfDeletedAccount: !account.isEmpty && accounts[account] == nil,
                    record: maySee ? record : .unknown, device: maySeeDevice ? Self.device(of: found, devices) : nil,
                    hasAccessAgain: maySee && restored.contains(found),
                    triedAccount: isOperator ? found.triedAccount.flatMap { accounts[$0]?.email } : nil))
        }
        for (account, containers) in shown {
            for container in containers {
                try await audit(
                    "records.read", account: account, container: container, environment: .production, subject: "sync errors",
                    outcome: "done with consent")
            }
        }
        return visible
    }

    /// Returns the device that was refused. The name in a refused sign-in may be any, and leads to no session.
    ///
    /// - Parameter known: Devices by their sessions.
    private static func device(of failure: SyncFailure, _ known: [String: SendingDevice]) -> SendingDevice? {
        guard failure.isSignInOfNobody, !failure.device.isEmpty else { return known[failure.sender] }
        return SendingDevice(name: failure.device, system: "", session: "", hasEnded: false)
    }

    /// Whether an account allows developers of a container to see what is private in production.
    private func hasConsent(of account: String, in container: String) async throws -> Bool {
        try await Consent.all(of: account, credentials).contains { $0.container == container }
    }

    /// Whether the actor may see why one of the newest failures of a place was refused.
    ///
    /// - Complexity: For a developer and production, O(accounts) of the newest 100 failures.
    private func maySeeReason(
        ofOneOf failures: [SyncFailure], in container: String, _ environment: StoreEnvironment
    ) async throws -> Bool {
        if maySeePrivate(environment) { return true }
        let newest = failures.filter { $0.code != SyncFailure.conflict }.prefix(100)
        if newest.contains(where: { $0.scope == .public }) { return true }
        for account in Set(newest.filter { $0.scope != .shared }.map(\.account)) {
            if try await hasConsent(of: account, in: container) { return true }
        }
        return false
    }

    /// Counts of what devices were refused lately.
    package struct RefusedDevices: Hashable, Sendable {
        /// How many records, and of how many accounts.
        package var records = 0, accountsOfRecords = 0
        /// How many accounts had whole requests refused until a person acts: they are disabled, signed out, or have no room.
        package var accountsOfRequests = 0
        /// How many devices, whose sessions have ended, sent these requests.
        package var devicesOfEndedSessions = 0
        /// How many of these accounts are disabled now, and how many have no room in their own quotas.
        package var disabledAccounts = 0, accountsWithoutRoom = 0
        /// How many of these accounts sent something too large, or something for which the server or the zone's owner has no room.
        package var accountsWithoutOtherRoom = 0
        /// Whether there may be more than the cloud has kept.
        package var isCut = false
        /// When the last counted failure was answered, in microseconds since 1970 UTC; 0 for none.
        package var lastAt: Int64 = 0
        /// The span of time that was counted, in microseconds.
        package var span: Int64 = 0
        /// Whether the actor may see the reasons of at least some failures.
        package var hasVisibleReasons = true

        package var isEmpty: Bool { records == 0 && accountsOfRequests == 0 }
    }

    /// Counts the sync failures of accounts in a container and an environment. Conflicts are not counted, since they are no
    /// fault. Records that the account has saved since, accounts that have access again, and accounts that are gone are not
    /// counted either.
    ///
    /// - Parameter spans: How far back, in microseconds, the shortest first.
    /// - Returns: The counts of the first span that has failures.
    package func refusedDevices(
        in container: String, _ environment: StoreEnvironment, within spans: [Int64]
    ) async throws(AdministrationError) -> RefusedDevices {
        try await demand(container)
        return try await wrapped {
            let now = credentials.time
            let filter = SyncFailureFilter(
                since: now - (spans.last ?? 0), container: container, environment: environment)
            let all = try await credentials.syncFailures(filter, limit: SyncFailureLimits.ofPlaceInAll).filter {
                !$0.account.isEmpty
            }
            // What was looked up for a shorter span is not asked for again.
            var accounts: [String: StoredAccount] = [:]
            var states: [SyncFailure: RefusedRecord] = [:]
            for span in spans {
                let recent = all.filter { $0.at >= now - span }
                accounts = try await knownAccounts(of: recent, besides: accounts)
                let kept = recent.filter { accounts[$0.account] != nil }
                let wanted = kept.filter { Self.isOfRecord($0) && states[$0] == nil }
                for (failure, state) in zip(wanted, try await refusedRecords(wanted, accounts)) { states[failure] = state }
                let restored = try await failuresWithRestoredAccess(kept, accounts)
                var found = Self.count(kept.filter { !restored.contains($0) }, states, accounts, isCut: Self.isCut(kept))
                found.span = span
                guard found.isEmpty else {
                    found.hasVisibleReasons = try await maySeeReason(ofOneOf: kept, in: container, environment)
                    return found
                }
            }
            return RefusedDevices()
        }
    }

    /// Whether a failure is of a record, and no conflict.
    private static func isOfRecord(_ failure: SyncFailure) -> Bool {
        failure.code != SyncFailure.conflict && !failure.record.isEmpty
    }

    /// - Parameters:
    ///   - states: What the cloud has of the records.
    ///   - accounts: The accounts of the failures, by their identifiers.
    private static func count(
        _ failures: [SyncFailure], _ states: [SyncFailure: RefusedRecord], _ accounts: [String: StoredAccount], isCut: Bool
    ) -> RefusedDevices {
        let ofRecords = failures.filter { isOfRecord($0) && states[$0]?.isSaved != true }
        let ofRequests = failures.filter(isOfAccess)
        let records = Set(ofRecords.map { [$0.account, $0.scope?.name ?? "", $0.zone, $0.record] })
        var found = RefusedDevices(records: records.count, accountsOfRecords: Set(ofRecords.map(\.account)).count, isCut: isCut)
        found.accountsOfRequests = Set(ofRequests.map(\.account)).count
        found.lastAt = (ofRecords + ofRequests).map(\.at).max() ?? 0
        let disabled = Set(ofRequests.map(\.account).filter { accounts[$0]?.status != .available })
        found.disabledAccounts = disabled.count
        let ofQuota = ofRequests.filter { $0.code == SyncFailure.quotaExceeded }
        found.accountsWithoutRoom = Set(ofQuota.filter(\.isOfOwnQuota).map(\.account)).count
        found.accountsWithoutOtherRoom = Set(ofQuota.filter { !$0.isOfOwnQuota }.map(\.account)).count
        // A session in a browser that has ended has the code of a disabled account.
        let ended = ofRequests.filter { failure in
            switch failure.code {
            case "AUTHENTICATION_FAILED": true
            case "AUTHENTICATION_REQUIRED": !disabled.contains(failure.account)
            default: false
            }
        }
        // A device that signed in again may have had several sessions.
        found.devicesOfEndedSessions = Set(ended.map { [$0.account, $0.device.isEmpty ? $0.sender : $0.device] }).count
        return found
    }

    /// Whether there may be more failures than the cloud has kept.
    private static func isCut(_ failures: [SyncFailure]) -> Bool {
        var counts: [String: Int] = [:]
        for failure in failures { counts[failure.account, default: 0] += 1 }
        return failures.count >= SyncFailureLimits.ofAccounts || counts.values.contains { $0 >= SyncFailureLimits.ofAccount }
    }
}

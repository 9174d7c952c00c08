public import TidemarkCloud
public import TidemarkCloudEngine
public import TidemarkModel

/// What accounts have stored.
extension EmbeddedCloud {
    /// What one account has stored in one container and environment. An account's quota applies to each of these by itself.
    public struct Usage: Hashable, Sendable {
        /// The container's identifier.
        public let container: String
        /// The environment of the container.
        public let environment: StoreEnvironment
        /// The account's user record name in the container.
        public let userRecordName: String
        /// The bytes that count against the quota. Reserved bytes are not among them.
        public let bytes: Int64
        /// The bytes that unfinished uploads have reserved.
        public let reserved: Int64
    }

    /// The result of counting all rows of one container and environment.
    public struct Recount: Hashable, Sendable {
        /// The container's identifier.
        public let container: String
        /// The environment of the container.
        public let environment: StoreEnvironment
        /// The accounts whose number was wrong, by user record name; empty where all were right.
        public let corrected: [String: Correction]

        /// A number of bytes that was wrong.
        public struct Correction: Hashable, Sendable {
            /// The bytes that were counted before, and those that the rows have.
            public let counted, found: Int64
        }
    }

    /// The containers of the cloud, sorted. Folders with other names are left out.
    private func sortedContainers() async throws(CloudError) -> [(String, StoreEnvironment)] {
        try await containers().filter { (try? Self.check(container: $0.0)) != nil }
            .sorted { ($0.0, $0.1.rawValue) < ($1.0, $1.1.rawValue) }
    }

    /// Returns the user record name by which a container knows an account. It can't be led back to the account.
    public func userRecordName(of account: StoredAccount, in container: String) -> String {
        Self.userRecordName(account.id, in: container)
    }

    /// Returns what an account has stored, in the containers where it has something. Opens all containers of the cloud.
    ///
    /// - Throws: `CloudError` `internalError`.
    public func usage(of account: StoredAccount) async throws(CloudError) -> [Usage] {
        var usage: [Usage] = []
        for (name, environment) in try await sortedContainers() {
            if let used = try await self.usage(of: account, in: name, environment) { usage.append(used) }
        }
        return usage
    }

    /// Returns what an account has stored in a container; `nil` for nothing.
    package func usage(
        of account: StoredAccount, in name: String, _ environment: StoreEnvironment
    ) async throws(CloudError) -> Usage? {
        let user = Self.userRecordName(account.id, in: name)
        let (bytes, reserved) = try await openedContainer(name, environment).engine.storage.read { rows throws(CloudError) in
            (try rows.used(by: user), try rows.reserved(by: user).bytes)
        }
        guard bytes != 0 || reserved != 0 else { return nil }
        return Usage(container: name, environment: environment, userRecordName: user, bytes: bytes, reserved: reserved)
    }

    /// Counts what is stored for all accounts from the rows, and corrects the numbers that are wrong. O(records + assets); other
    /// writers of a container wait meanwhile.
    ///
    /// - Returns: One element for each container and environment, also where nothing was wrong.
    /// - Throws: `CloudError` `zoneBusy`, `internalError`.
    public func recountUsage() async throws(CloudError) -> [Recount] {
        var recounts: [Recount] = []
        for (name, environment) in try await sortedContainers() {
            let corrected = try await openedContainer(name, environment).engine.storage.write(owners: .all) {
                rows throws(CloudError) in
                let (counted, found) = (try rows.allUsed(), try rows.countUsed())
                var corrected: [String: Recount.Correction] = [:]
                for user in Set(counted.keys).union(found.keys) where counted[user] ?? 0 != found[user] ?? 0 {
                    corrected[user] = .init(counted: counted[user] ?? 0, found: found[user] ?? 0)
                }
                if !corrected.isEmpty { try rows.replaceUsed(found) }
                return corrected
            }
            recounts.append(Recount(container: name, environment: environment, corrected: corrected))
        }
        return recounts
    }
}

/// The limits of one query's cost.
///
/// The cost is counted in instructions of SQLite's virtual machine, some 20 for each record or index entry that is examined. So it
/// doesn't depend on the machine and its load. A query that exceeds a limit ends with the records that it has found and a continuation,
/// or with `limitExceeded` where it has found none.
public struct QueryLimits: Hashable, Sendable {
    /// The most instructions.
    public var cost: Int64 = 50_000_000
    /// The time after which a query ends, whatever it has cost.
    public var time = Duration.seconds(10)
    /// As `QueryBudget.frequent`, for tests.
    package var frequent = 5_000

    /// Makes the default limits.
    public init() {}
}

extension QueryLanes.Limits {
    init(_ limits: QueryLimits) {
        self.init()
        (long.steps, long.time) = (limits.cost, limits.time)
        quick.steps = min(quick.steps, limits.cost)
        (quick.frequent, long.frequent) = (limits.frequent, limits.frequent)
    }
}

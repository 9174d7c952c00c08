import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// What accounts have stored.
extension EmbeddedCloud {
    /// What one account has stored in one container and environment. An account's quota is for each of these.
    public struct Usage: Hashable, Sendable {
        public let container: String
        public let environment: StoreEnvironment
        /// The account's user record name in the container.
        public let userRecordName: String
        /// Bytes that count against the quota.
        public let bytes: Int64
        /// Bytes that uploads which have begun will take.
        public let reserved: Int64
    }

    /// What counting all rows has found in one container and environment.
    public struct Recount: Hashable, Sendable {
        public let container: String
        public let environment: StoreEnvironment
        /// Accounts whose number was another one, by user record name: the bytes that were counted, and those that there are.
        public let corrected: [String: Correction]

        public struct Correction: Hashable, Sendable {
            public let counted, found: Int64
        }
    }

    /// The containers that there are; others' folders may lie beside them.
    private func sortedContainers() -> [(String, StoreEnvironment)] {
        containers().filter { (try? Self.check(container: $0.0)) != nil }
            .sorted { ($0.0, $0.1.rawValue) < ($1.0, $1.1.rawValue) }
    }

    /// The name by which a container knows an account.
    public func userRecordName(of account: StoredAccount, in container: String) -> String {
        Self.userRecordName(account.id, in: container)
    }

    /// What an account has stored, in the containers in which it has something.
    public func usage(of account: StoredAccount) async throws(CloudError) -> [Usage] {
        var usage: [Usage] = []
        for (name, environment) in sortedContainers() {
            let user = Self.userRecordName(account.id, in: name)
            let (bytes, reserved) = try await container(name, environment).engine.storage.read { rows throws(CloudError) in
                (try rows.used(by: user), try rows.reserved(by: user).bytes)
            }
            guard bytes != 0 || reserved != 0 else { continue }
            usage.append(
                Usage(container: name, environment: environment, userRecordName: user, bytes: bytes, reserved: reserved))
        }
        return usage
    }

    /// Counts what is stored for all accounts from the beginning, and corrects the numbers. O(records); other writers wait meanwhile.
    public func recountUsage() async throws(CloudError) -> [Recount] {
        var recounts: [Recount] = []
        for (name, environment) in sortedContainers() {
            let corrected = try await container(name, environment).engine.storage.write { rows throws(CloudError) in
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

/// What a query may cost.
///
/// The cost is counted in instructions of SQLite's virtual machine, so that it is the same whatever the machine and its load: some 20 for each
/// record or index entry that is looked at.
public struct QueryLimits: Hashable, Sendable {
    /// Instructions.
    public var cost: Int64 = 50_000_000
    /// The time after which a query ends, whatever it has cost.
    public var time = Duration.seconds(10)

    public init() {}
}

extension QueryLanes.Limits {
    init(_ limits: QueryLimits) {
        self.init()
        (long.steps, long.time) = (limits.cost, limits.time)
        quick.steps = min(quick.steps, limits.cost)
    }
}

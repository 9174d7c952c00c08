import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// The room that accounts have now in containers. Each is asked for once.
struct FreeRoom {
    private struct Place: Hashable {
        let account, container: String
        let environment: StoreEnvironment
    }

    private let cloud: EmbeddedCloud
    /// Bytes; `nil` where the cloud does not tell.
    private var known: [Place: Int64?] = [:]

    init(_ cloud: EmbeddedCloud) { self.cloud = cloud }

    /// Returns whether the bytes that an account's own quota had no room for fit into it now.
    ///
    /// - Returns: `false` where the failure has another reason, and where the cloud does not tell what the account has.
    mutating func fits(_ failure: SyncFailure, _ account: StoredAccount) async -> Bool {
        guard failure.isOfOwnQuota else { return false }
        guard account.quota < .max else { return true }
        guard let needed = failure.neededBytes, let environment = StoreEnvironment(rawValue: failure.environment) else {
            return false
        }
        let place = Place(account: account.id, container: failure.container, environment: environment)
        let room: Int64?
        if let found = known[place] {
            room = found
        } else {
            room = await free(in: place, account)
            known.updateValue(room, forKey: place)
        }
        return room.map { needed <= $0 } ?? false
    }

    private func free(in place: Place, _ account: StoredAccount) async -> Int64? {
        do throws(CloudError) {
            // A question about a container that was never used would make it.
            guard try await cloud.hasContainer(place.container, place.environment) else { return account.quota }
            let usage = try await cloud.usage(of: account, in: place.container, place.environment)
            return account.quota - (usage?.bytes ?? 0) - (usage?.reserved ?? 0)
        } catch {
            // The list of failures can be shown without this.
            return nil
        }
    }
}

package import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
package import TidemarkModel

/// Shares of a person, and those of others in which the person takes part.
extension PersonalAccount {
    /// A share and where it is.
    package struct PersonalShare: Sendable {
        package let container: String
        package let environment: StoreEnvironment
        package let share: CloudShare
        /// Whether it is the person's own.
        package let isOwn: Bool

        /// Names the share among those of the person.
        package var key: String {
            "\(container)/\(environment.rawValue)/\(share.id.zone.ownerName)/\(share.id.zone.zoneName)/\(share.id.recordName)"
        }
    }

    /// What is found of a person's shares.
    package struct FoundShares: Sendable {
        /// Those of others first.
        package var shares: [PersonalShare] = []
        /// The containers, with their environments, that can't be read now.
        package var unread: [UnreadContainer] = []
    }

    /// Returns the shares in served containers. What is damaged is left out.
    package func shares() async throws(AdministrationError) -> FoundShares {
        try await wrapped {
            try await credentials.refresh()
            let served = Set(try credentials.containers())
            // A look-up makes no container.
            let containers = try await cloud.containers().filter { served.contains($0.0) }
                .sorted { ($0.0, $0.1.rawValue) < ($1.0, $1.1.rawValue) }
            var found = FoundShares()
            for scope in [DatabaseScope.shared, .private] {
                for (container, environment) in containers {
                    do throws(CloudError) {
                        for share in try await shares(scope, of: container, environment) {
                            found.shares.append(
                                PersonalShare(
                                    container: container, environment: environment, share: share, isOwn: scope == .private))
                        }
                    } catch {
                        let unread = UnreadContainer(
                            container: container, environment: environment, part: .shares, error: error)
                        // The container may be listed already, for the other database.
                        guard !found.unread.contains(where: { $0.place == unread.place }) else { continue }
                        found.unread.append(unread)
                        onUnread(unread)
                    }
                }
            }
            return found
        }
    }

    private func shares(
        _ scope: DatabaseScope, of container: String, _ environment: StoreEnvironment
    ) async throws(CloudError) -> [CloudShare] {
        let database = try await cloud.administeredDatabase(scope, of: container, environment: environment, account: account)
        var found: [CloudShare] = []
        for zone in try await database.zones() where !zone.isDefault {
            do throws(CloudError) {
                found += try await database.shares(in: zone)
            } catch {
                guard error.code == .recordDamaged || error.code == .zoneNotFound else { throw error }
            }
        }
        return found
    }

    /// Leaves the share of another account. The person's devices lose its records.
    package func leave(_ shared: PersonalShare) async throws(AdministrationError) {
        let id = shared.share.id
        try await wrapped {
            let database = try cloud.database(
                .shared, of: shared.container, environment: shared.environment, account: account.id)
            try await database.deleteShare(id)
        }
        // Without the title, which is its owner's: with the person's consent developers read this entry.
        try await audit(
            "share.leave", container: "\(shared.container)/\(shared.environment.rawValue)",
            subject: "\(id.zone.ownerName)/\(id.zone.zoneName)/\(id.recordName)")
    }
}

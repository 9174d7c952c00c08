package import TidemarkCloud
package import TidemarkCloudEngine
import TidemarkEmbeddedCloud
package import TidemarkModel

/// Zones, and what is stored.
extension Administration {
    /// A zone with the number of its records.
    package struct ZoneSummary: Sendable {
        package let zone: CloudZoneID
        /// The numbers of records, by the names of their types.
        package let records: [String: Int]
        /// The number of the zone's shares.
        package let shares: Int

        package var total: Int { records.values.reduce(0, +) }
    }

    /// Returns the zones of a database with the numbers of their records. O(records).
    package func zones(in place: RecordPlace) async throws(AdministrationError) -> [ZoneSummary] {
        let opened = try await open(place)
        let found = try await wrapped {
            var found: [ZoneSummary] = []
            for zone in try await opened.database.zones() {
                let shares = zone.isDefault ? 0 : try await opened.database.shares(in: zone).count
                found.append(
                    ZoneSummary(zone: zone, records: try await opened.database.recordCounts(in: zone), shares: shares))
            }
            return found
        }
        try await auditReading(place, opened, "zones")
        return found
    }

    /// Returns the other zones of a database. If a query in one zone finds nothing, the records may be in these.
    ///
    /// - Parameter isNoted: Whether the audit log already has an entry that the database is looked at.
    package func otherZones(
        than place: RecordPlace, isNoted: Bool = false
    ) async throws(AdministrationError) -> [CloudZoneID] {
        let opened = try await open(place)
        let zones = try await wrapped { try await opened.database.zones() }
        if !isNoted { try await auditReading(place, opened, "zones") }
        return zones.filter { $0 != place.zoneID && !$0.isDefault }
    }

    /// Returns a zone with records, if the default zone of an account's private database has none: devices have their records in
    /// a zone of their own. The audit log gets an entry if a zone is returned.
    ///
    /// - Returns: `nil` where the default zone has records, or no zone has any.
    package func zoneWithRecords(in place: RecordPlace) async throws(AdministrationError) -> CloudZoneID? {
        let opened = try await open(place)
        let found = try await wrapped { () -> CloudZoneID? in
            let others = try await opened.database.zones().filter { !$0.isDefault }
            guard !others.isEmpty, try await !opened.database.hasRecords(in: .default) else { return nil }
            for zone in others where try await opened.database.hasRecords(in: zone) { return zone }
            return nil
        }
        if found != nil { try await auditReading(place, opened, "zones") }
        return found
    }

    /// What one account has stored in a container.
    package struct AccountUsage: Sendable {
        /// The account's address; `nil` where its user record name leads to no account.
        package let email: String?
        package let userRecordName: String
        package let bytes: Int64
        /// `nil` for no limit.
        package let quota: Int64?
    }

    /// What a container has in one environment.
    package struct ContainerUsage: Sendable {
        package let container: String
        package let environment: StoreEnvironment
        package let totals: StoredTotals
        /// The bytes that count against quotas.
        package let bytes: Int64
    }

    /// Counts what the containers of the actor have. O(records + assets).
    ///
    /// - Parameter container: Only this one.
    package func usage(of container: String? = nil) async throws(AdministrationError) -> [ContainerUsage] {
        var names = try await containers()
        if let container {
            try await demand(container)
            names = [container]
        }
        let wanted = names
        return try await wrapped {
            var usage: [ContainerUsage] = []
            for name in wanted {
                for environment in StoreEnvironment.allCases {
                    // A question about an environment that was never used would make it.
                    guard try await cloud.hasContainer(name, environment) else { continue }
                    let bytes = try await cloud.storedBytes(of: name, environment: environment)
                    usage.append(
                        ContainerUsage(
                            container: name, environment: environment,
                            totals: try await cloud.totals(of: name, environment: environment), bytes: bytes.values.reduce(0, +)))
                }
            }
            return usage
        }
    }

    /// Returns what accounts have stored in a container, the most first. O(accounts).
    package func accountUsage(
        of container: String, environment: StoreEnvironment
    ) async throws(AdministrationError) -> [AccountUsage] {
        try await demand(container)
        return try await wrapped {
            var names: [String: StoredAccount] = [:]
            for account in try await cloud.allAccounts() { names[cloud.userRecordName(of: account, in: container)] = account }
            return try await cloud.storedBytes(of: container, environment: environment)
                .map { name, bytes in
                    let account = names[name]
                    return AccountUsage(
                        // In production a developer must not learn who is behind a name.
                        email: maySeePrivate(environment) ? account?.email : nil, userRecordName: name, bytes: bytes,
                        quota: account.flatMap { $0.quota == .max ? nil : $0.quota })
                }
                .sorted { ($1.bytes, $0.userRecordName) < ($0.bytes, $1.userRecordName) }
        }
    }
}

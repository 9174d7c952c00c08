import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

/// The present state in the cloud of records that the cloud has refused to devices.
extension Administration {
    /// The present state of a record that the cloud has refused to a device.
    package enum RefusedRecord: Hashable, Sendable {
        /// The failure names no record, or it can't be looked up.
        case unknown
        /// The cloud has no such record.
        case absent
        /// The account has not saved the record since the failure.
        case unsaved
        /// The account has saved the record since: microseconds since 1970 UTC.
        case savedSince(Int64)

        var isSaved: Bool { if case .savedSince = self { true } else { false } }
    }

    /// The place of records that devices were refused.
    private struct RefusedPlace: Hashable {
        let container, account, zone: String
        let environment: StoreEnvironment
        let scope: DatabaseScope

        /// `nil` for a failure that names no record.
        init?(_ failure: SyncFailure) {
            guard let scope = failure.scope, let environment = StoreEnvironment(rawValue: failure.environment),
                !failure.record.isEmpty, !failure.zone.isEmpty, !failure.account.isEmpty
            else { return nil }
            (container, account, zone) = (failure.container, failure.account, failure.zone)
            (self.environment, self.scope) = (environment, scope)
        }
    }

    /// The present states of the records of a zone.
    private struct FoundRecords {
        /// The user and the time of each record's last change, by the names of records.
        var stamps: [String: CloudRecord.Stamp] = [:]
        /// The names of records that are damaged.
        var damaged: Set<String> = []
    }

    /// Looks up the records of failures, those of an account and a zone at once.
    ///
    /// - Parameter accounts: The accounts of the failures, by their identifiers.
    /// - Returns: One element for each failure, in their order.
    func refusedRecords(
        _ failures: [SyncFailure], _ accounts: [String: StoredAccount]
    ) async throws -> [RefusedRecord] {
        var names: [RefusedPlace: Set<String>] = [:]
        for failure in failures {
            if let place = RefusedPlace(failure) { names[place, default: []].insert(failure.record) }
        }
        var found: [RefusedPlace: FoundRecords] = [:]
        let containers = try await served(names.keys)
        for (place, wanted) in names where containers.contains([place.container, place.environment.rawValue]) {
            guard let account = accounts[place.account] else { continue }
            found[place] = await modifications(of: wanted.sorted(), in: place, account)
        }
        return failures.map { failure in
            guard let place = RefusedPlace(failure), let records = found[place] else { return .unknown }
            guard let stamp = records.stamps[failure.record] else {
                // Nobody can tell who has changed a damaged record.
                return records.damaged.contains(failure.record) ? .unsaved : .absent
            }
            let user = userRecordName(ofAccount: failure.account, in: failure.container)
            return stamp.time > failure.at && stamp.userRecordName == user ? .savedSince(stamp.time) : .unsaved
        }
    }

    /// Returns the containers and environments of places, as far as they are served and exist. A look-up makes no container.
    private func served(_ places: some Sequence<RefusedPlace>) async throws -> Set<[String]> {
        try await credentials.refresh()
        var containers: Set<[String]> = []
        for place in places where try credentials.hasContainer(place.container) {
            guard !containers.contains([place.container, place.environment.rawValue]),
                try await cloud.hasContainer(place.container, place.environment)
            else { continue }
            containers.insert([place.container, place.environment.rawValue])
        }
        return containers
    }

    /// Returns who has changed records last. A failure in a shared database names no owner, so all owners' zones of its name are
    /// asked.
    ///
    /// - Returns: `nil` where the cloud does not tell. The list of failures is shown all the same.
    private func modifications(
        of names: [String], in place: RefusedPlace, _ account: StoredAccount
    ) async -> FoundRecords? {
        do throws(CloudError) {
            let database = try await cloud.administeredDatabase(
                place.scope, of: place.container, environment: place.environment, account: account)
            var zones = [CloudZoneID(place.zone)]
            if place.scope == .shared { zones = try await database.zones().filter { $0.zoneName == place.zone } }
            var found = FoundRecords()
            for zone in zones {
                let (stamps, damaged) = try await database.modifications(of: names, in: zone)
                for (name, stamp) in stamps where stamp.time > found.stamps[name]?.time ?? .min { found.stamps[name] = stamp }
                found.damaged.formUnion(damaged)
            }
            return found
        } catch {
            return error.code == .zoneNotFound ? FoundRecords() : nil
        }
    }

    /// A device that was refused.
    package struct SendingDevice: Hashable, Sendable {
        /// The device's name and operating system; empty where they are not known. For a session that has ended, the name is that
        /// at the time of the refusal.
        package let name, system: String
        /// The session's identifier.
        package let session: String
        /// Whether the session has ended.
        package let hasEnded: Bool
    }

    /// Returns the devices that were refused, by their sessions.
    func sendingDevices(_ failures: [SyncFailure]) async throws -> [String: SendingDevice] {
        var devices: [String: SendingDevice] = [:]
        for account in Set(failures.filter { !$0.sender.isEmpty }.map(\.account)) where !account.isEmpty {
            for session in try await credentials.sessions(of: account) {
                devices[session.id] = SendingDevice(
                    name: session.device, system: session.system, session: session.id, hasEnded: false)
            }
        }
        for failure in failures where !failure.sender.isEmpty && failure.triedAccount == nil {
            // The newest that has a name.
            if let known = devices[failure.sender], !known.hasEnded || !known.name.isEmpty { continue }
            devices[failure.sender] = SendingDevice(name: failure.device, system: "", session: failure.sender, hasEnded: true)
        }
        return devices
    }

    /// Reads each account of failures once, and each account whose sign-in was refused. Accounts that are gone are left out: the
    /// next sweep removes their failures.
    ///
    /// - Parameter known: Accounts that were read before, by their identifiers.
    /// - Returns: These, and those of the failures.
    func knownAccounts(
        of failures: [SyncFailure], besides known: [String: StoredAccount] = [:]
    ) async throws -> [String: StoredAccount] {
        var accounts = known
        for id in Set(failures.flatMap { [$0.account, $0.triedAccount ?? ""] }) where !id.isEmpty && accounts[id] == nil {
            accounts[id] = try await cloud.account(id: id)
        }
        return accounts
    }
}

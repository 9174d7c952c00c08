import GRDB
import TidemarkContainers
public import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Reports what the user may do with records, and why: with one record, with the records of a query, or with all records of a
/// container.
///
/// ```swift
/// let permission = try await journal.permissions.permission(of: senja)
/// deleteButton.isEnabled = permission?.canDelete ?? false
/// explanation.text = permission?.reason        // "the permission is Read-Only; ask the owner for the permission Read-Write"
/// ```
///
/// Every answer reads the records and the shares in one transaction, so it never mixes two states and is never out of date. The
/// answers follow ``SharePolicy``, as the cloud's decisions do.
public actor PermissionReporter {
    private nonisolated let sources: RecordSources
    private nonisolated let notifications: @Sendable () throws(StoreError) -> ContainerNotifications
    /// The permissions of zones, with the shares that they were computed from.
    private var known = BoundedCache<Place, (shares: ZoneShares, permissions: ZonePermissions)>(capacity: 1_000)

    private struct Place: Hashable {
        let scope: StoreScope
        let zone: Int64
    }

    init(_ sources: RecordSources, notifications: @escaping @Sendable () throws(StoreError) -> ContainerNotifications) {
        self.sources = sources
        self.notifications = notifications
    }

    // One

    /// Returns what the user may do with a record; `nil` when there is no record of that name.
    ///
    /// - Parameters:
    ///   - record: The record's type and name.
    ///   - zone: The zone of the record. With `nil`, it is the record that a fetch finds, if several have the name.
    /// - Throws: ``StoreError`` `corrupt`, `moved`, `busy` or `io`.
    public func permission(of record: RecordName, in zone: ZoneName? = nil) async throws -> RecordPermission? {
        for source in sources.all {
            let found = try await source.read { db in
                guard let type = try source.type(db, named: record.type) else { return [Found]() }
                return try source.found(db, type, named: record.name)
            }
            if let first = found.first(where: { zone == nil || $0.shares.zone == zone }) {
                return try permission(of: first, source.scope)
            }
        }
        return nil
    }

    /// Returns what the user may do with a record; `nil` when it is not saved yet.
    public func permission<R: Record>(of record: R) async throws -> RecordPermission? {
        try await permission(of: RecordName(record))
    }

    /// Returns what the user may do with the records of a name. Usually this is one record, but several types, stores and zones
    /// may have it.
    ///
    /// - Parameter type: The record type; `nil` for all types.
    public func permissions(named name: String, type: String? = nil) async throws -> [RecordPermission] {
        var all: [RecordPermission] = []
        for source in sources.all {
            let found = try await source.read { db in
                try source.types(db).filter { type == nil || $0.name == type }.flatMap { try source.found(db, $0, named: name) }
            }
            for it in found { all.append(try permission(of: it, source.scope)) }
        }
        return all
    }

    private func permission(of found: Found, _ scope: StoreScope) throws -> RecordPermission {
        let place = Place(scope: scope, zone: found.zone)
        let permissions: ZonePermissions
        if let known = known[place], known.shares == found.shares {
            permissions = known.permissions
        } else {
            permissions = try ZonePermissions(found.shares, scope: scope)
            known[place] = (found.shares, permissions)
        }
        return RecordPermission(found.record, permissions.permission(of: found.record.name, isUnsaved: found.isUnsaved))
    }

    // Many

    /// Reports what the user may do with all records.
    public nonisolated func report(only filter: PermissionFilter? = nil) -> PermissionReport {
        PermissionReport(sources: sources, type: nil, condition: { _ in nil }, filter: filter)
    }

    /// Reports what the user may do with the records of a type. The report is empty if no store has the type.
    public nonisolated func report(on type: String, only filter: PermissionFilter? = nil) -> PermissionReport {
        PermissionReport(sources: sources, type: type, condition: { _ in nil }, filter: filter)
    }

    /// Reports what the user may do with the records that match.
    ///
    /// ```swift
    /// let report = journal.permissions.report(on: Destination.self, where: \.rating >= 4, only: .editable)
    /// ```
    public nonisolated func report<R: Record>(
        on type: R.Type, where predicate: RecordPredicate<R>? = nil, only filter: PermissionFilter? = nil
    ) -> PermissionReport {
        let sources = sources
        return PermissionReport(
            sources: sources, type: R.recordType,
            condition: { queried in
                try predicate.map { predicate in
                    try sources.withKnownFields(of: R.recordType) { known in
                        try predicate.node.condition(queried, FieldNaming(type), known: known)
                    }
                }
            }, filter: filter)
    }

    // Again

    /// Returns the times from now on at which a report may have changed: after commits of this process, and of others.
    ///
    /// Nothing is polled. Changes that come while no iterator waits become one. The sequence throws when the container has moved
    /// away or can't be read. The sequence of a snapshot ends at once.
    ///
    /// ```swift
    /// for try await _ in try await journal.permissions.changes() { view.reload() }
    /// ```
    ///
    /// - Throws: ``StoreError`` `io` when the system has no more watches to give.
    public func changes() async throws -> AsyncThrowingStream<PermissionChange, any Error> {
        // Listening comes first, so that nothing is missed between reading and listening.
        let notifications = try notifications()
        let watch = SharingWatch(sources, notifications)
        try await watch.begin()
        return AsyncThrowingStream { try await watch.next() }
    }
}

/// A change after which permissions may differ.
public struct PermissionChange: Hashable, Sendable {
    /// The zones that were added or removed, and the zones with a share that was added, changed or removed.
    public let zones: Set<ZoneName>
    /// Whether records were written: records may have been added, removed or moved to another zone.
    public let hasRecords: Bool

    /// Makes a change.
    public init(zones: Set<ZoneName>, hasRecords: Bool) {
        self.zones = zones
        self.hasRecords = hasRecords
    }
}

/// The notifications of a container, and the object that must stay alive to post them.
struct ContainerNotifications: Sendable {
    let stream: AsyncStream<Void>
    var notifier: (any Sendable)?
}

/// A record that was looked up, with the shares of its zone at that moment.
private struct Found: Sendable {
    let record: RecordName
    let zone: Int64
    let isUnsaved: Bool
    let shares: ZoneShares
}

extension RecordSource {
    /// Returns the records of a name. The first one is the one that a fetch finds.
    fileprivate func found(_ db: Database, _ type: QueriedType, named name: String) throws -> [Found] {
        let rows = try places(db, of: type, named: name)
        let page = PlacePage(capacity: 8)
        var found: [Found] = []
        var isLast = false
        while !isLast {
            isLast = try !rows.read(db, into: page)
            for index in 0..<page.count {
                let (zone, isUnsaved) = page[index]
                found.append(
                    Found(
                        record: RecordName(type: type.name, name: try page.name(index)), zone: zone, isUnsaved: isUnsaved,
                        shares: try shares(db, ofZone: zone)))
            }
        }
        return found
    }
}

/// Compares the stores' present shares with those of the last comparison.
private actor SharingWatch {
    private let sources: RecordSources
    private let notifications: ContainerNotifications
    private var seen: [StoreScope: SharingMark] = [:]

    init(_ sources: RecordSources, _ notifications: ContainerNotifications) {
        self.sources = sources
        self.notifications = notifications
    }

    func begin() async throws { seen = try await marks() }

    private func marks() async throws -> [StoreScope: SharingMark] {
        var marks: [StoreScope: SharingMark] = [:]
        for source in sources.all { marks[source.scope] = try await source.read { db in try source.sharingMark(db) } }
        return marks
    }

    func next() async throws -> PermissionChange? {
        var stream = notifications.stream.makeAsyncIterator()
        while await stream.next(isolation: self) != nil {
            let marks = try await marks()
            let before = seen
            seen = marks
            var (zones, hasRecords): (Set<ZoneName>, Bool) = ([], false)
            for (scope, mark) in marks {
                let old = before[scope]
                hasRecords = hasRecords || mark.transaction != old?.transaction
                for zone in Set(mark.shares.keys).union(old?.shares.keys ?? [:].keys)
                where mark.shares[zone] != old?.shares[zone] { zones.insert(zone) }
            }
            if hasRecords || !zones.isEmpty { return PermissionChange(zones: zones, hasRecords: hasRecords) }
        }
        return nil
    }
}

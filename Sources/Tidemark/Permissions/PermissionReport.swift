import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// The user's permissions for the records of a container. First come the records of the private store, then those of the shared
/// one; in each store they are ordered by type and by insertion.
///
/// ```swift
/// for try await permission in journal.permissions.report(only: .readOnly) {
///     print(permission.record.name, permission.reason)
/// }
/// ```
///
/// Each iteration pins the state of the stores at its beginning, as a ``ContainerSnapshot`` does. So the records and the shares
/// of one store are of one moment, whatever is written or shared meanwhile. Until the iteration ends or is released, the stores'
/// logs can't be emptied: do long work with the records afterwards.
///
/// An iteration throws ``StoreError`` `corrupt` for a record or a share that is not valid; `moved` when the container has moved
/// away; `sql`, `schema` or `invalid` for a condition that can't be used; `changed` when another process began to write to a
/// store that had no `-shm` file. After `changed`, begin again.
///
/// - Complexity: O(n) in the records of the reported types; memory is constant.
public struct PermissionReport: AsyncSequence, Sendable {
    public typealias Element = RecordPermission

    /// The condition for a type of one store.
    typealias Condition = @Sendable (QueriedType) throws -> SQLCondition?

    let sources: RecordSources
    /// The type of the reported records; `nil` for all types.
    let type: String?
    let condition: Condition
    let filter: PermissionFilter?

    /// Makes an iterator that reads the report from its beginning. It pins the state when the first permission is requested.
    public func makeAsyncIterator() -> Iterator { Iterator(PermissionReading(self)) }

    /// Reads a report page by page, in one state of the stores.
    public struct Iterator: AsyncIteratorProtocol {
        private let reading: PermissionReading
        private var page: [RecordPermission] = []
        private var position = 0
        private var hasEnded = false

        init(_ reading: PermissionReading) { self.reading = reading }

        /// The next permission; `nil` at the end of the report.
        ///
        /// - Throws: ``StoreError``; `CancellationError`.
        public mutating func next() async throws -> RecordPermission? { try await next(isolation: nil) }

        /// The next permission, on the caller's actor; `nil` at the end of the report.
        ///
        /// - Throws: ``StoreError``; `CancellationError`.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> RecordPermission? {
            while position == page.count {
                if hasEnded { return nil }
                try Task.checkCancellation()
                // The memory of the page is used again.
                let used = page
                page = []
                (page, hasEnded) = try await reading.next(in: used)
                position = 0
            }
            defer { position += 1 }
            return page[position]
        }
    }
}

/// Reads a report page by page, on a queue of its own and not on the threads of Swift's tasks.
actor PermissionReading {
    private nonisolated let executor = StoreExecutor(label: "tidemark.permissions")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// The most rows that are read for one page. So a task can be cancelled even if the filter accepts few records.
    private static let rowLimit = 50_000

    private let report: PermissionReport
    private var walks: [ReportWalk] = []
    private var hasBegun = false

    init(_ report: PermissionReport) { self.report = report }

    /// Returns the next page. It may be empty before the end, if the filter accepts none of the records.
    ///
    /// - Parameter page: An array whose memory is used for the page.
    func next(in page: consuming [RecordPermission]) throws -> (page: [RecordPermission], isLast: Bool) {
        if !hasBegun {
            walks = try report.sources.all.map { try ReportWalk($0, report) }
            hasBegun = true
        }
        page.removeAll(keepingCapacity: true)
        while let walk = walks.first {
            let before = page.count
            do {
                guard try walk.fill(&page, rowLimit: Self.rowLimit) else { return (page, false) }
                walks.removeFirst()
            } catch  where RecordSource.isVoid(error) && walk.canBeginAgain {
                page.removeLast(page.count - before)
                walks[0] = try walk.again()
            } catch {
                walks = []
                throw error is StoreError ? error : StoreError(error, doing: "report what may be done with the records")
            }
        }
        return (page, true)
    }
}

/// Reads the records of one store, in a pinned state.
private final class ReportWalk {
    private let source: RecordSource
    private let pinned: RecordSource
    private let report: PermissionReport
    private let tries: Int

    private var types: [QueriedType]
    private var type = ""
    private var rows: RecordZoneCursor?
    private let places = PlacePage(capacity: 1000)
    private var zones: [Int64: ZonePermissions] = [:]
    /// Whether a record was returned.
    private var hasTold = false

    init(_ source: RecordSource, _ report: PermissionReport, tries: Int = 20) throws {
        (self.source, self.report, self.tries) = (source, report, tries)
        let pinned = try source.pinned()
        types = try pinned.readPinned { db in try pinned.types(db).filter { report.type == nil || report.type == $0.name } }
        self.pinned = pinned
    }

    deinit {
        // The statement belongs to the connection, so it is released on the connection's queue. The read fails only if the
        // connection is closed, and then the statement has ended, too.
        try? pinned.database.unsafeReentrantRead { _ in rows = nil }
    }

    var canBeginAgain: Bool { !hasTold && tries > 0 }

    func again() throws -> ReportWalk { try ReportWalk(source, report, tries: tries - 1) }

    /// Adds records to a page.
    ///
    /// - Returns: Whether the store has no more records.
    func fill(_ page: inout [RecordPermission], rowLimit: Int) throws -> Bool {
        let before = page.count
        let isLast = try pinned.readPinned { db in
            var seen = 0
            while page.count == before, seen < rowLimit {
                guard let rows = try rows ?? nextType(db) else { return true }
                if try !rows.read(db, into: places) { self.rows = nil }
                seen += places.count
                try add(places, to: &page, db)
            }
            return false
        }
        hasTold = hasTold || page.count > before
        return isLast
    }

    private func add(_ places: PlacePage, to page: inout [RecordPermission], _ db: Database) throws {
        let (type, filter) = (type, report.filter)
        var (last, permissions): (Int64?, ZonePermissions?) = (nil, nil)
        for index in 0..<places.count {
            let (zone, isUnsaved) = places[index]
            if zone != last { (last, permissions) = (zone, try self.permissions(zone, db)) }
            let (name, permission): (String, EffectivePermission)
            if let common = permissions!.common(isUnsaved: isUnsaved) {
                guard filter?.includes(common) ?? true else { continue }
                (name, permission) = (try places.name(index), common)
            } else {
                name = try places.name(index)
                permission = permissions!.permission(of: name, isUnsaved: isUnsaved)
                guard filter?.includes(permission) ?? true else { continue }
            }
            page.append(RecordPermission(RecordName(type: type, name: name), permission))
        }
    }

    private func nextType(_ db: Database) throws -> RecordZoneCursor? {
        guard !types.isEmpty else { return nil }
        let next = types.removeFirst()
        let condition = try report.condition(next)
        for it in condition?.extensions ?? [] { try it.install(on: db) }
        type = next.name
        rows = try pinned.places(db, of: next, where: condition?.sql, arguments: condition?.arguments ?? StatementArguments())
        return rows
    }

    private func permissions(_ zone: Int64, _ db: Database) throws -> ZonePermissions {
        if let known = zones[zone] { return known }
        let read = try ZonePermissions(pinned.shares(db, ofZone: zone), scope: pinned.scope)
        zones[zone] = read
        return read
    }
}

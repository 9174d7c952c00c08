import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// What one may do with each of a container's records, one after the other: those of the private store, then those of the shared one; in each
/// by type, in the order in which they came.
///
/// ```swift
/// for try await permission in journal.permissions.report(only: .readOnly) {
///     print(permission.record.name, permission.reason)
/// }
/// ```
///
/// Each iteration pins the state that the stores have when it begins, as a ``ContainerSnapshot`` does, and tells of that to its end: the
/// records and the shares of one store are of one moment, whatever is written or shared meanwhile. Until it ends, or is dropped, the
/// stores' logs can't be emptied: do long work with the records afterwards, or elsewhere.
///
/// It fails with ``StoreError`` `corrupt` on a record or a share that can't be one; with `moved` when the container has moved away; with
/// `sql`, `schema` or `invalid` on a condition that can't be used; with `changed` when another process began to write to a store that
/// had no `-shm` file: begin again.
///
/// - Complexity: O(n) in the records of the types that are asked for; memory is constant.
public struct PermissionReport: AsyncSequence, Sendable {
    public typealias Element = RecordPermission

    /// The condition for a type of one store.
    typealias Condition = @Sendable (QueriedType) throws -> SQLCondition?

    let sources: RecordSources
    /// `nil` for all.
    let type: String?
    let condition: Condition
    let filter: PermissionFilter?

    /// An iterator that reads the report from its beginning, as the store is when the first permission is asked for.
    public func makeAsyncIterator() -> Iterator { Iterator(PermissionReading(self)) }

    /// Reads a report page by page, within one state of the store.
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
                // Its memory is used again.
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

/// Reads a report page by page, off the threads that Swift's tasks share.
actor PermissionReading {
    private nonisolated let executor = StoreExecutor(label: "tidemark.permissions")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// So that a filter which lets few through does not keep whoever waits from being cancelled.
    private static let rowLimit = 50_000

    private let report: PermissionReport
    private var walks: [ReportWalk] = []
    private var hasBegun = false

    init(_ report: PermissionReport) { self.report = report }

    /// The next records; none at all may be some that are not wanted.
    ///
    /// - Parameter page: Memory for them.
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

/// Goes through one store's records, in the state that it has pinned.
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
    /// Whether something was handed out.
    private var hasTold = false

    init(_ source: RecordSource, _ report: PermissionReport, tries: Int = 20) throws {
        (self.source, self.report, self.tries) = (source, report, tries)
        let pinned = try source.pinned()
        types = try pinned.readPinned { db in try pinned.types(db).filter { report.type == nil || report.type == $0.name } }
        self.pinned = pinned
    }

    deinit {
        // The statement belongs to the connection, and so to its queue. The read fails only where the connection is closed, and then the statement
        // has ended with it.
        try? pinned.database.unsafeReentrantRead { _ in rows = nil }
    }

    var canBeginAgain: Bool { !hasTold && tries > 0 }

    func again() throws -> ReportWalk { try ReportWalk(source, report, tries: tries - 1) }

    /// Adds records to a page.
    ///
    /// - Returns: Whether there are no more.
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

import Foundation
public import TidemarkCloud
public import TidemarkModel

/// What every cloud has to fulfil, as checks that any test framework can run.
///
/// ```swift
/// @Test(arguments: CloudContract.checks) func `the cloud fulfils the contract`(check: CloudContract.Check) async throws {
///     try await check.run(MyCloudUnderTest())
/// }
/// ```
public enum CloudContract {
    /// A cloud that nobody has used yet. Each check gets one of its own.
    public protocol Subject: Sendable {
        /// A database of the development environment, as an account of that address sees it, which is made if need be.
        func database(_ scope: DatabaseScope, account: String?) async throws -> any CloudDatabase
        /// The same in production, with the schema that the development environment has now.
        func deployed(_ scope: DatabaseScope, account: String) async throws -> any CloudDatabase
        /// Makes a field queryable, sortable and, where it is text, searchable; `recordName` the type as such.
        func index(_ field: String, of type: String) async throws
        /// Sets how many bytes an account may store.
        func setQuota(_ bytes: Int64, of account: String) async throws
        /// Sets the status of an account, as `CKAccountStatus`.
        func setStatus(_ status: CloudAccount.Status, of account: String) async throws
        /// Deletes a zone as its owner does in the system's settings: devices learn that it was purged.
        func purge(_ zone: CloudZoneID, of account: String) async throws
        /// Gives an account, which is made if need be, a name and a phone number.
        func describe(_ account: String, name: PersonName, phone: String) async throws
    }

    /// A rule, in a sentence, and what shows that it is kept.
    public struct Check: Sendable, CustomStringConvertible {
        /// The rule that the check looks at, as a sentence.
        public let name: String
        private let body: @Sendable (any Subject) async throws -> Void

        init(_ name: String, _ body: @escaping @Sendable (any Subject) async throws -> Void) {
            self.name = name
            self.body = body
        }

        public var description: String { name }

        /// - Throws: ``Violation``, and what the cloud throws where it must not.
        public func run(_ subject: any Subject) async throws { try await body(subject) }
    }

    /// A rule is broken.
    public struct Violation: Error, CustomStringConvertible {
        /// The name of the check.
        public let description: String
    }

    /// All checks of the contract.
    public static let checks: [Check] = [
        records, changes, assets, queries, accounts, shares, participants, links, sharedZones, hierarchies, removals, secrets,
    ].flatMap { $0 }

    // For the checks

    static let zone = CloudZoneID("Journal")
    static let anna = "anna@example.org"
    static let ben = "ben@example.org"

    static func expect(
        _ condition: Bool, _ what: @autoclosure () -> String, line: Int = #line, file: String = #fileID
    ) throws {
        guard condition else { throw Violation(description: "\(file):\(line): \(what())") }
    }

    static func equal<Value: Equatable>(_ found: Value, _ wanted: Value, line: Int = #line, file: String = #fileID) throws {
        try expect(found == wanted, "found \(found), not \(wanted)", line: line, file: file)
    }

    /// That a call fails so.
    static func refused<Value>(
        _ code: CloudError.Code, _ body: () async throws -> Value, line: Int = #line, file: String = #fileID
    ) async throws {
        do {
            let value = try await body()
            throw Violation(description: "\(file):\(line): not \(code.rawValue), but \(value)")
        } catch let error as CloudError {
            try expect(error.code == code, "not \(code.rawValue), but \(error)", line: line, file: file)
        }
    }

    /// What the cloud says when a call fails; `nil` when it does not.
    static func failure<Value>(_ body: () async throws -> Value) async -> CloudError? {
        do {
            _ = try await body()
            return nil
        } catch {
            return error as? CloudError ?? CloudError(.internalError, "\(error)")
        }
    }

    static func journal(_ subject: any Subject, account: String = anna) async throws -> any CloudDatabase {
        let database = try await subject.database(.private, account: account)
        try await database.modifyZones(saving: [zone], deleting: [])
        return database
    }

    static func record(
        _ name: String, _ fields: [String: CloudValue] = [:], tag: String? = nil, in zone: CloudZoneID = zone
    ) -> CloudRecord {
        CloudRecord(CloudRecordID(name, in: zone), type: "Destination", fields: fields, changeTag: tag)
    }

    /// The one record that a request of one operation saves.
    @discardableResult
    static func save(
        _ record: CloudRecord, _ kind: RecordOperation.Kind, to database: any CloudDatabase, clearing: Set<String> = []
    ) async throws -> CloudRecord {
        let outcome = try await one(RecordOperation(kind, record, clearing: clearing), to: database)
        guard case .saved(let saved) = outcome else {
            throw Violation(description: "\(kind) of \(record.id.recordName): \(outcome)")
        }
        return saved
    }

    static func one(_ operation: RecordOperation, to database: any CloudDatabase) async throws -> RecordOutcome {
        let outcomes = try await database.modify(
            ModifyRecordsRequest(zone: operation.record.id.zone, operations: [operation]))
        try equal(outcomes.count, 1)
        return outcomes[0]
    }

    static func failed(
        _ outcome: RecordOutcome, _ code: CloudError.Code, line: Int = #line, file: String = #fileID
    ) throws {
        guard case .failed(let error) = outcome, error.code == code else {
            throw Violation(description: "\(file):\(line): not \(code.rawValue), but \(outcome)")
        }
    }

    /// The record of a name; `nil` when there is none.
    static func lookup(_ name: String, in database: any CloudDatabase, zone: CloudZoneID = zone) async throws -> CloudRecord? {
        let found = try await database.lookup([name], in: zone, desiredKeys: nil)
        try equal(found.count, 1)
        switch found[0] {
        case .success(let record): return record
        case .failure(let error):
            try equal(error.code, .unknownItem)
            return nil
        }
    }

    /// All changes since a token, page by page.
    static func allChanges(
        in database: any CloudDatabase, since token: CloudToken? = nil, limit: Int? = nil, zone: CloudZoneID = zone
    ) async throws -> (changes: [ZoneChanges.Change], token: CloudToken) {
        var (changes, token): ([ZoneChanges.Change], CloudToken?) = ([], token)
        while true {
            let page = try await database.zoneChanges(zone, since: token, limit: limit, desiredKeys: nil)
            changes += page.changes
            token = page.token
            if !page.moreComing { return (changes, page.token) }
        }
    }

    static func names(_ changes: [ZoneChanges.Change]) -> [String] {
        changes.map { change in
            switch change {
            case .saved(let record): record.id.recordName
            case .deleted(let deletion): "-\(deletion.id.recordName)"
            }
        }
    }
}

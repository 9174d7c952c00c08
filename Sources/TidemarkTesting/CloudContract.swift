import Foundation
public import TidemarkCloud
public import TidemarkModel

/// The contract that every cloud fulfils, as checks that any test framework can run.
///
/// ```swift
/// @Test(arguments: CloudContract.checks) func `the cloud fulfils the contract`(check: CloudContract.Check) async throws {
///     try await check.run(MyCloudUnderTest())
/// }
/// ```
public enum CloudContract {
    /// The cloud under test. Each check needs a new, empty one.
    public protocol Subject: Sendable {
        /// Returns a database of the development environment for an account.
        ///
        /// - Parameter account: The email address of the account, which is created if it is missing; `nil` for requests without
        ///   an account.
        func database(_ scope: DatabaseScope, account: String?) async throws -> any CloudDatabase
        /// Deploys the present schema of the development environment, and returns the database of the production environment.
        func deployed(_ scope: DatabaseScope, account: String) async throws -> any CloudDatabase
        /// Makes a field queryable, sortable and, if it is text, searchable. The field `recordName` stands for the type itself.
        func index(_ field: String, of type: String) async throws
        /// Sets the number of bytes that an account may store.
        func setQuota(_ bytes: Int64, of account: String) async throws
        /// Sets the status of an account, as `CKAccountStatus`.
        func setStatus(_ status: CloudAccount.Status, of account: String) async throws
        /// Deletes a zone as its owner does in the system's settings: devices learn that it was purged.
        func purge(_ zone: CloudZoneID, of account: String) async throws
        /// Gives an account a name and a phone number. The account is created if it is missing.
        func describe(_ account: String, name: PersonName, phone: String) async throws
    }

    /// A check of one rule of the contract.
    public struct Check: Sendable, CustomStringConvertible {
        /// The rule, as a sentence.
        public let name: String
        private let body: @Sendable (any Subject) async throws -> Void

        init(_ name: String, _ body: @escaping @Sendable (any Subject) async throws -> Void) {
            self.name = name
            self.body = body
        }

        public var description: String { name }

        /// Runs the check.
        ///
        /// - Throws: ``Violation``; errors of the cloud that the contract does not allow.
        public func run(_ subject: any Subject) async throws { try await body(subject) }
    }

    /// The error of a check whose rule the cloud breaks.
    public struct Violation: Error, CustomStringConvertible {
        /// The place in the check, and the difference from the contract.
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

    /// Makes sure that a call fails with a code.
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

    /// Returns the error of a call; `nil` when it succeeds.
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

    /// Saves a record by a request of one operation, and returns the saved record.
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

    /// Returns the record of a name; `nil` when there is none.
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

    /// Fetches all changes since a token, page by page.
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

import Foundation
package import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkWire

/// Records.
extension Administration {
    /// Some of the records that a query has found.
    package struct RecordPage: Sendable {
        package let records: [CloudRecord]
        /// Damaged records that the query would have found.
        package let failed: [RecordFailure]
        /// Where the next page begins; `nil` after the last.
        package let continuation: QueryContinuation?
    }

    /// Runs a query.
    ///
    /// - Throws: ``AdministrationError`` `missingIndex` with the index that a field lacks; `notFound` for a type, `invalid` for a field that the
    ///   schema lacks; `forbidden`, `busy`.
    package func records(
        _ query: RecordQuery, in place: RecordPlace, limit: Int = 50, continuation: QueryContinuation? = nil
    ) async throws(AdministrationError) -> RecordPage {
        let opened = try await open(place)
        let schema = try await schema(of: place.container, environment: place.environment)
        try query.check(schema, place.environment)
        let wanted = try query.cloudQuery(schema)
        let answer = try await wrapped {
            try await opened.database.query(wanted, in: place.zoneID, limit: limit, continuation: continuation)
        }
        if continuation == nil { try await auditReading(place, opened, query.type) }
        return RecordPage(records: answer.records, failed: answer.failed, continuation: answer.continuation)
    }

    /// Returns the request by which a client would run a query.
    package func request(
        of query: RecordQuery, in place: RecordPlace, limit: Int = 50
    ) async throws(AdministrationError) -> RecordRequest {
        try await demand(place.container)
        return RecordRequest(
            try query.cloudQuery(try await schema(of: place.container, environment: place.environment)), in: place, limit: limit)
    }

    /// Returns a record.
    ///
    /// - Parameter subject: The subject of the entry in the audit log; `nil` if the log has an entry already.
    package func record(
        _ name: String, in place: RecordPlace, noting subject: String?
    ) async throws(AdministrationError) -> CloudRecord {
        let opened = try await open(place)
        let record = try await wrapped { try await opened.database.record(name, in: place.zoneID) }
        if let subject { try await auditReading(place, opened, subject) }
        return record
    }

    /// Returns a record. The audit log gets an entry for it.
    package func record(_ name: String, in place: RecordPlace) async throws(AdministrationError) -> CloudRecord {
        try await record(name, in: place, noting: name)
    }

    /// Makes a record, or changes one.
    ///
    /// - Parameters:
    ///   - record: With a tag, the record is changed if it still has that tag. Without a tag, it is new. Fields that it does not
    ///     name stay.
    ///   - cleared: Fields that lose their values.
    /// - Returns: The record as it is now.
    /// - Throws: ``AdministrationError`` `conflict` with the record that is there; `invalid`, `notFound`, `forbidden`, `busy`.
    package func save(
        _ record: CloudRecord, clearing cleared: Set<String> = [], in place: RecordPlace
    ) async throws(AdministrationError) -> CloudRecord {
        let opened = try await open(place)
        let name = record.id.recordName
        var before: CloudRecord?
        if record.changeTag != nil { before = try await known(name, in: place, opened) }
        do throws(AdministrationError) {
            let saved = try await wrapped {
                try await opened.database.modify(.save(record, clearing: cleared), in: place.zoneID)
            }
            guard let saved else {
                throw AdministrationError(.failed, "the cloud has saved the record, and not answered with it")
            }
            notify(name, saved.type, saved.created == saved.modified ? .created : .updated, place, opened)
            try await auditChange("records.save", place, opened, name, before: before, after: saved)
            return saved
        } catch {
            try await auditChange("records.save", place, opened, name, before: before, after: nil, outcome: error.code.rawValue)
            throw error
        }
    }

    /// Deletes a record.
    ///
    /// - Parameter tag: The tag that the record still has to have; `nil` for any.
    package func delete(_ name: String, ifTag tag: String?, in place: RecordPlace) async throws(AdministrationError) {
        let opened = try await open(place)
        let before = try await known(name, in: place, opened)
        do throws(AdministrationError) {
            _ = try await wrapped {
                try await opened.database.modify(
                    .delete(CloudRecordID(name, in: place.zoneID), changeTag: tag), in: place.zoneID)
            }
        } catch {
            try await auditChange("records.delete", place, opened, name, before: before, after: nil, outcome: error.code.rawValue)
            throw error
        }
        notify(name, before?.type ?? "", .deleted, place, opened)
        try await auditChange("records.delete", place, opened, name, before: before, after: nil)
    }

    private func notify(
        _ name: String, _ type: String, _ event: RecordChange.Event, _ place: RecordPlace, _ opened: OpenedPlace
    ) {
        let owner =
            switch place.scope {
            case .public: ""
            case .private: userRecordName(ofAccount: opened.account, in: place.container)
            case .shared: place.zoneOwner
            }
        changed?(RecordChange(place: place, zoneOwner: owner, record: name, type: type, event: event))
    }

    /// The record as it is before a change; `nil` where it is not there, or is damaged.
    private func known(
        _ name: String, in place: RecordPlace, _ opened: OpenedPlace
    ) async throws(AdministrationError) -> CloudRecord? {
        do throws(AdministrationError) {
            return try await wrapped { try await opened.database.record(name, in: place.zoneID) }
        } catch {
            guard error.code == .notFound || error.code == .damaged else { throw error }
            return nil
        }
    }

    private func auditChange(
        _ action: String, _ place: RecordPlace, _ opened: OpenedPlace, _ name: String, before: CloudRecord?, after: CloudRecord?,
        outcome: String? = nil
    ) async throws(AdministrationError) {
        for account in opened.persons {
            try await audit(
                action, account: account, container: place.container, environment: place.environment,
                subject: Self.subject(name, place), outcome: outcome ?? opened.done, before: before.map(Self.json) ?? "",
                after: after.map(Self.json) ?? "")
        }
    }

    /// A record as JSON, as in answers of the protocol.
    package static func json(_ record: CloudRecord) -> String {
        var json = JSONWriter()
        record.write(&json, WireDialect(isExtended: true))
        return String(decoding: json.bytes, as: UTF8.self)
    }
}

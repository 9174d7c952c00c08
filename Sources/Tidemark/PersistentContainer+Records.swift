public import TidemarkModel

extension RecordName {
    /// Makes the name of a record, by which containers, shares and history know it.
    ///
    /// ```swift
    /// let shares = try await journal.fetchShares(matching: trips.map { RecordName($0) })
    /// ```
    public init<R: Record>(_ record: R) { self.init(type: R.recordType, name: record.recordName) }
}

/// Questions about a record, which need not be named first.
extension PersistentContainer {
    /// Returns the share that a record is in; `nil` for a record that is not shared, or is not there.
    ///
    /// - Throws: ``StoreError``.
    public func fetchShare<R: Record>(of record: R) async throws -> Share? {
        let name = RecordName(record)
        return try await fetchShares(matching: [name])[name]
    }

    /// Returns a record and all that hangs on it: what a share of the record would share. As `graph(of:)` of names.
    ///
    /// - Throws: ``StoreError`` `notFound` for a record that is not there, or is somebody else's.
    public func graph<R: Record>(of record: R) async throws -> [RecordName] { try await graph(of: [RecordName(record)]) }

    /// Returns whether a record is shared, by whomever; `false` where it is not there.
    public func isShared<R: Record>(_ record: R) async throws -> Bool { try await isShared(RecordName(record)) }

    /// Returns whether a record is one's own.
    public func isOwner<R: Record>(_ record: R) async throws -> Bool { try await isOwner(RecordName(record)) }

    /// Returns whether a record may be edited, by what the cloud said last.
    public func canEdit<R: Record>(_ record: R) async throws -> Bool { try await canEdit(RecordName(record)) }

    /// Returns whether a record may be deleted, by what the cloud said last.
    public func canDelete<R: Record>(_ record: R) async throws -> Bool { try await canDelete(RecordName(record)) }

    /// Returns whether a record may be shared, or its share offered to more people.
    public func canShare<R: Record>(_ record: R) async throws -> Bool { try await canShare(RecordName(record)) }
}

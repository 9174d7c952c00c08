public import TidemarkModel

extension RecordName {
    /// Makes the name of a record, which identifies it in containers, shares and history.
    ///
    /// ```swift
    /// let shares = try await journal.fetchShares(matching: trips.map { RecordName($0) })
    /// ```
    public init<R: Record>(_ record: R) { self.init(type: R.recordType, name: record.recordName) }
}

/// The questions about a record's name, for a record.
extension PersistentContainer {
    /// Returns the share that a record is in; `nil` for a record that is not shared, or that the container does not have.
    ///
    /// - Throws: ``StoreError``.
    public func fetchShare<R: Record>(of record: R) async throws -> Share? {
        let name = RecordName(record)
        return try await fetchShares(matching: [name])[name]
    }

    /// Returns a record and all records that sharing it would share; see `graph(of:)` of names.
    ///
    /// - Throws: ``StoreError`` `notFound` for a record that the private store does not have.
    public func graph<R: Record>(of record: R) async throws -> [RecordName] { try await graph(of: [RecordName(record)]) }

    /// Returns whether a record is shared, by the user or by another owner; `false` if the container does not have it.
    public func isShared<R: Record>(_ record: R) async throws -> Bool { try await isShared(RecordName(record)) }

    /// Returns whether the user owns a record.
    public func isOwner<R: Record>(_ record: R) async throws -> Bool { try await isOwner(RecordName(record)) }

    /// Returns whether the user may edit a record, by the last state of the shares that the cloud has sent.
    public func canEdit<R: Record>(_ record: R) async throws -> Bool { try await canEdit(RecordName(record)) }

    /// Returns whether the user may delete a record, by the last state of the shares that the cloud has sent.
    public func canDelete<R: Record>(_ record: R) async throws -> Bool { try await canDelete(RecordName(record)) }

    /// Returns whether the user may share a record, by the last state of the shares that the cloud has sent. A record that is
    /// shared already can't be shared again.
    public func canShare<R: Record>(_ record: R) async throws -> Bool { try await canShare(RecordName(record)) }
}

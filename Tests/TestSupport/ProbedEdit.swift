import Tidemark

/// A record that the journal probe edits at random.
public struct ProbedNote: Record, Equatable {
    public var id: String
    public var a: Int?
    public var b: Int?
    public var c: String?
    public var recordName: String { id }

    public init(id: String, a: Int? = nil, b: Int? = nil, c: String? = nil) {
        (self.id, self.a, self.b, self.c) = (id, a, b, c)
    }
}

/// What one transaction of the journal probe did, so that a model can do the same.
public struct ProbedEdit: Codable, Sendable {
    public enum Operation: String, Codable, Sendable { case save, edit, delete, update }

    public let transaction: Int64
    public let operation: Operation
    /// The names of the records.
    public let names: [String]
    /// The note that was saved.
    public let saved: ProbedNote?
    /// For an edit: the note that was loaded before.
    public let loaded: ProbedNote?
    /// For a batch update: the new value of `c`.
    public let value: String?

    public init(
        transaction: Int64, operation: Operation, names: [String], saved: ProbedNote? = nil, loaded: ProbedNote? = nil,
        value: String? = nil
    ) {
        self.transaction = transaction
        self.operation = operation
        self.names = names
        self.saved = saved
        self.loaded = loaded
        self.value = value
    }
}

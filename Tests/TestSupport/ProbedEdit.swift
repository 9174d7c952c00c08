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

/// What one transaction of the journal probe did: what a model needs to do the same.
public struct ProbedEdit: Codable, Sendable {
    public enum Operation: String, Codable, Sendable { case save, edit, delete, update }

    public let transaction: Int64
    public let operation: Operation
    /// The names that it concerns.
    public let names: [String]
    /// What was saved.
    public let saved: ProbedNote?
    /// Of an edit: what had been loaded.
    public let loaded: ProbedNote?
    /// Of a batch update: the new value of `c`.
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

import TidemarkCloud

/// A check of what every storage of a kind does. It throws if the storage does something else.
package struct StorageCheck<Subject: Sendable>: Sendable, CustomStringConvertible {
    package let description: String
    private let body: @Sendable (Subject) async throws -> Void

    init(_ description: String, _ body: @escaping @Sendable (Subject) async throws -> Void) {
        (self.description, self.body) = (description, body)
    }

    /// Runs the check.
    ///
    /// - Throws: ``BrokenStorage``, or what the storage throws.
    package func run(_ subject: Subject) async throws { try await body(subject) }
}

/// What a storage does wrong.
package struct BrokenStorage: Error, CustomStringConvertible {
    package let description: String
}

func require(_ holds: Bool, _ what: @autoclosure () -> String) throws {
    if !holds { throw BrokenStorage(description: what()) }
}

func requireEqual<Value: Equatable>(_ value: Value, _ other: Value, _ what: String) throws {
    try require(value == other, "\(what): \(value), not \(other)")
}

func requireError(_ code: CloudError.Code, _ what: String, _ body: () async throws -> Void) async throws {
    do {
        try await body()
    } catch let error as CloudError {
        return try requireEqual(error.code.rawValue, code.rawValue, what)
    }
    throw BrokenStorage(description: "\(what): no error")
}

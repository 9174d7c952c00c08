import Tidemark

/// Bounds what people do at once, each and together.
actor Limits {
    private let each, all: Int
    private let refusal: PageError
    private var counts: [Person: Int] = [:]
    private var sum = 0

    init(each: Int, all: Int, _ refusal: PageError) { (self.each, self.all, self.refusal) = (each, all, refusal) }

    func check(for person: Person) throws {
        guard counts[person, default: 0] < each, sum < all else { throw refusal }
    }

    func begin(for person: Person) throws {
        try check(for: person)
        counts[person, default: 0] += 1
        sum += 1
    }

    func end(for person: Person) {
        counts[person]? -= 1
        if counts[person] == 0 { counts[person] = nil }
        sum -= 1
    }

    func run<Value: Sendable>(for person: Person, _ body: @Sendable () async throws -> Value) async throws -> Value {
        try begin(for: person)
        defer { end(for: person) }
        return try await body()
    }
}

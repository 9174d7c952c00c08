/// The statements that a connection has prepared, with their names on the server. At the limit, a new statement replaces the
/// least recently used.
struct PreparedStatements {
    /// A text whose parameters have other types is another statement.
    struct Statement: Hashable {
        let sql: String
        let types: [UInt32]

        init(_ command: PostgresCommand) { (sql, types) = (command.sql, command.types) }
    }

    /// What a connection does before it uses a statement.
    struct Use: Equatable {
        /// The statement's name on the server.
        let name: String
        /// Whether the server has to prepare it first.
        let isNew: Bool
        /// The name of a statement that the server has to forget before; `nil` for none.
        let evicted: String?
    }

    private struct Prepared {
        let name: String
        var lastUse: Int
    }

    private let capacity: Int
    private var prepared: [Statement: Prepared] = [:]
    /// The number of names given so far. No name is used twice.
    private var count = 0
    private var uses = 0

    /// - Parameter capacity: How many statements the connection may keep.
    init(capacity: Int) { self.capacity = capacity }

    /// Whether a statement is prepared.
    func contains(_ statement: Statement) -> Bool { prepared[statement] != nil }

    /// Names a statement that is about to be used. A new one counts as prepared until ``forget(_:)``.
    ///
    /// - Complexity: O(1); O(n) where another one makes room.
    mutating func use(_ statement: Statement) -> Use {
        uses += 1
        if let known = prepared[statement] {
            prepared[statement]?.lastUse = uses
            return Use(name: known.name, isNew: false, evicted: nil)
        }
        var evicted: String?
        if prepared.count >= capacity, let (other, oldest) = prepared.min(by: { $0.value.lastUse < $1.value.lastUse }) {
            prepared[other] = nil
            evicted = oldest.name
        }
        count += 1
        let name = "t\(count)"
        prepared[statement] = Prepared(name: name, lastUse: uses)
        return Use(name: name, isNew: true, evicted: evicted)
    }

    /// Forgets a statement that the server has failed to prepare.
    mutating func forget(_ statement: Statement) { prepared[statement] = nil }
}

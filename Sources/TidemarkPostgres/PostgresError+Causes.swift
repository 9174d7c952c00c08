extension PostgresError {
    /// The codes of SQLSTATEs. A key is a whole SQLSTATE, its first three characters, or its class, which has two.
    private static let codes: [String: Code] = [
        "08": .connectionLost,
        "23": .constraint,
        "25006": .readOnly, "25P03": .connectionLost, "25P04": .connectionLost,
        // A role that may not sign in, a wrong password, a database that is not there.
        "28": .refused, "3D": .refused, "3F": .refused,
        "40001": .serialization, "40P01": .deadlock,
        // A right that was taken away. Without the right to use a schema its tables seem not to be there.
        "42501": .refused, "42P01": .refused,
        "53": .full, "53300": .unreachable,
        "55": .refused, "55P03": .lockTimeout,
        "57014": .statementTimeout, "57P": .connectionLost,
        "58": .full,
        "XX001": .damaged, "XX002": .damaged,
    ]

    /// Returns the code of a SQLSTATE.
    static func code(of state: String) -> Code {
        for length in [5, 3, 2] {
            if let code = codes[String(state.prefix(length))] { return code }
        }
        return .statement
    }

    /// Makes the error of a statement that a server has refused.
    ///
    /// - Parameters:
    ///   - reason: The server's own words.
    ///   - sql: The text of the statement.
    ///   - database: The database's name, for messages.
    init(
        _ code: Code, _ reason: String, state: String, constraint: String?, in sql: String, of database: String,
        _ configuration: PostgresConfiguration
    ) {
        let statement = sql.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        let sentence =
            switch code {
            case .serialization: "another transaction has changed the same rows of the \(database)"
            case .deadlock: "two transactions of the \(database) waited for each other"
            case .lockTimeout:
                "another transaction of the \(database) holds a lock for longer than \(configuration.lockTimeout)"
            case .statementTimeout: "a statement of the \(database) has taken longer than \(configuration.statementTimeout)"
            case .readOnly: Self.readOnlySentence(database)
            case .staleStatement: "the tables of the \(database) have changed"
            case .connectionLost: "the \(database) has ended the connection: \(reason)"
            case .unreachable: "the \(database) has no connection left: \(reason)"
            case .full: "the \(database) has no room: \(reason)"
            case .refused:
                "the \(database) refuses what Tidemark needs: \(reason)\(Self.remedy(of: state, in: statement))"
            case .damaged: "the \(database) is damaged: \(reason)"
            default:
                "the \(database) refuses a statement: \(reason) (SQLSTATE \(state), in '\(statement.prefix(120))')"
            }
        self.init(code, sentence, state: state, constraint: constraint)
    }

    /// Makes the error of a database that takes no writes.
    ///
    /// - Parameter database: The database's name, for messages.
    static func readOnly(_ database: String) -> PostgresError {
        PostgresError(.readOnly, readOnlySentence(database), state: "25006")
    }

    private static func readOnlySentence(_ database: String) -> String {
        "the \(database) takes no writes: it is a standby, or read-only. Name the hosts of all its servers in the address, with target_session_attrs=read-write, or end default_transaction_read_only"
    }

    /// What to do about a statement that was refused, as further sentences.
    private static func remedy(of state: String, in statement: String) -> String {
        switch state {
        case "42501" where statement.hasPrefix("CREATE"), "3F000":
            ". Make Tidemark's role the owner of the database (ALTER DATABASE … OWNER TO …), or GRANT CREATE, USAGE ON SCHEMA public to it"
        case "42501": ". Make Tidemark's role the owner of its tables and sequences, or GRANT ALL on them to it"
        case "42P01": ". Tidemark's tables are not there, or its role has no USAGE of their schema"
        default: ""
        }
    }

    // Connecting

    /// Makes the error of a connection that was not made.
    ///
    /// - Parameters:
    ///   - database: The database's name, for messages.
    ///   - reason: libpq's message on one line, by ``PostgresText``.
    ///   - needsPassword: Whether a password is missing.
    ///   - usedPassword: Whether a server has asked for a password and got one.
    init(connectingTo database: String, _ reason: String, needsPassword: Bool, usedPassword: Bool) {
        var remedy = ""
        if needsPassword {
            remedy = ". Give the password by PGPASSWORD, PGPASSFILE or a service file"
        } else if usedPassword, reason.contains("password authentication failed") {
            remedy = ". The password is the one in PGPASSWORD, in the file that PGPASSFILE names, or in a service file"
        } else if reason.contains("FATAL: database \"") && reason.contains("does not exist") {
            remedy = ". Make it: CREATE DATABASE … OWNER … ENCODING 'UTF8' TEMPLATE template0"
        }
        let isRefused = needsPassword || usedPassword && !Self.passes(reason)
        self.init(isRefused ? .refused : .unreachable, "cannot connect to the \(database): \(reason)\(remedy)")
    }

    /// Whether the reason that libpq gives passes by itself, such as a host that is down, starts, or has no connection left.
    /// After a failover a host may accept the password and yet be a standby: that is no refusal of the user.
    private static func passes(_ reason: String) -> Bool {
        [
            "session is read-only", "hot standby", "Connection refused", "timeout expired", "timed out", "No route to host",
            "unreachable", "closed the connection", "starting up", "shutting down", "in recovery", "too many connections",
            "too many clients", "remaining connection slots", "not currently accepting connections",
        ].contains { reason.contains($0) }
    }
}

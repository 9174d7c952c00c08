package import TidemarkCloud

/// An error of PostgreSQL, or of the connection to it. Two errors are equal if their codes are.
package struct PostgresError: Error, Sendable {
    /// The kind of failure.
    package enum Code: Hashable, Sendable {
        // The same transaction may succeed when it runs again.
        /// Another transaction has changed rows that this transaction read (SQLSTATE 40001).
        case serialization
        /// Two transactions waited for each other (40P01).
        case deadlock
        /// The connection broke, or the server ended it, before the transaction was to be committed. Nothing is written.
        case connectionLost
        /// There is no connection to the server: its address is wrong, it is down, or it starts.
        case unreachable
        /// The server takes no writes, such as a primary that has become a standby.
        case readOnly
        /// A prepared statement no longer fits its tables, since another server has migrated them.
        case staleStatement

        // Later.
        /// Another transaction holds a lock for too long (55P03).
        case lockTimeout
        /// A statement has run for too long (57014).
        case statementTimeout
        /// All connections of the pool were in use for too long.
        case poolExhausted
        /// The server has no room, such as on its disk (classes 53, 54 and 58, but for 53300).
        case full
        /// The task was cancelled. Nothing is written.
        case cancelled
        /// The connection broke after COMMIT was sent: the transaction is committed, or it is not.
        case commitUnknown

        // A person has to mend something.
        /// The connection string can't be read, or contains a password.
        case address
        /// The server does not accept the user, the user lacks a right, or the database or its tables are missing. A running
        /// server waits for an operator to mend it, since the database accepted the server at its start.
        case refused
        /// Tidemark can't work with the server, or with one of its settings.
        case unsupported
        /// A newer version of Tidemark has migrated the database, and servers of this version may not use it any more.
        case newerVersion
        /// The server has found damaged data (XX001, XX002).
        case damaged

        // A fault of the caller.
        /// A row breaks a constraint (class 23).
        case constraint
        /// A value of a result has another type.
        case decoding
        /// The pool was closed.
        case closed
        /// Any other error of a statement.
        case statement
    }

    package let code: Code
    /// What happened and where, in a sentence without a final period. It never contains a password.
    package let message: String
    /// The server's SQLSTATE, where it has sent one.
    package let state: String?
    /// With ``Code/constraint``, the name of the constraint.
    package let constraint: String?
    /// Whether a COMMIT at the end of the pipeline may have taken effect in spite of this error. It may if the last statement
    /// failed, since the server skipped nothing, or if the error ended the session.
    var skipsNothing = false

    package init(_ code: Code, _ message: String, state: String? = nil, constraint: String? = nil) {
        (self.code, self.message, self.state, self.constraint) = (code, message, state, constraint)
    }

    /// Whether the transaction may succeed if it runs again, from its beginning.
    package var mayRunAgain: Bool {
        switch code {
        case .serialization, .deadlock, .connectionLost, .unreachable, .readOnly, .staleStatement: true
        default: false
        }
    }

    /// Whether a COMMIT that failed with this error may have taken effect. A server whose log is on a full disk may answer COMMIT
    /// with an error, and then close the connection.
    func leavesCommitOpen(isBroken: Bool) -> Bool { code == .connectionLost || (isBroken && skipsNothing && !endsConnection) }

    /// Whether the connection is of no use any more.
    var endsConnection: Bool {
        switch code {
        case .connectionLost, .commitUnknown, .unreachable, .readOnly, .staleStatement, .cancelled: true
        default: false
        }
    }
}

extension PostgresError: Hashable {
    package static func == (left: PostgresError, right: PostgresError) -> Bool { left.code == right.code }
    package func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

extension PostgresError: CustomStringConvertible {
    package var description: String { message }
}

extension CloudError {
    /// Makes the error that a cloud throws when its storage has failed.
    ///
    /// A failure that passes by itself becomes `zoneBusy` or `serviceUnavailable` with ``CloudError/retryAfter``. A COMMIT whose
    /// outcome is unknown becomes `networkFailure`: the client learns the outcome when it repeats the request with its client
    /// token.
    package init(postgres error: any Error) {
        guard let error = error as? PostgresError else {
            self = error as? CloudError ?? CloudError(.internalError, "the database has failed: \(error)")
            return
        }
        switch error.code {
        case .serialization, .deadlock, .lockTimeout: self.init(.zoneBusy, error.message, retryAfter: .seconds(1))
        case .connectionLost, .unreachable, .readOnly, .staleStatement, .poolExhausted, .statementTimeout, .closed, .cancelled,
            .newerVersion, .refused:
            // newerVersion: a server of the newer version may serve the client's next attempt. refused: only an operator can mend
            // it, such as a changed password, so the client can only try again later.
            self.init(.serviceUnavailable, error.message, retryAfter: .seconds(2))
        case .full: self.init(.serviceUnavailable, error.message, retryAfter: .seconds(60))
        case .commitUnknown: self.init(.networkFailure, error.message, retryAfter: .seconds(1))
        case .address, .unsupported, .damaged, .constraint, .decoding, .statement:
            self.init(.internalError, error.message)
        }
    }
}

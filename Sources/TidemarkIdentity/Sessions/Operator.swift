import TidemarkCloudEngine

/// An account that administers a served cloud, and what of it.
package struct Operator: Hashable, Identifiable, Sendable {
    /// What an operator may do. The raw values are stored.
    package enum Role: String, CaseIterable, Sendable {
        /// Everything, in all containers.
        case `operator`
        /// What concerns the containers that are named.
        case developer
    }

    /// The account's identifier.
    package let id: String
    package let role: Role
    /// The containers of a developer; empty for an operator, who has all.
    package let containers: [String]
    /// Microseconds since 1970 UTC.
    package let added: Int64

    package init(id: String, role: Role, containers: [String], added: Int64) {
        (self.id, self.role, self.containers, self.added) = (id, role, containers, added)
    }

    /// Whether a container is one of the operator's.
    package func mayUse(_ container: String) -> Bool { role == .operator || containers.contains(container) }
}

extension Operator {
    init(_ row: StoredOperator) throws(CredentialError) {
        guard let role = Role(rawValue: row.role) else { throw CredentialError(damaged: "role of an operator") }
        self.init(id: row.account, role: role, containers: row.containers, added: row.added)
    }
}

/// A session of the console, as it is now.
package struct ConsoleSession: Hashable, Sendable {
    /// SHA-256 of what its cookie has, in hexadecimal digits.
    package let id: String
    package let `operator`: Operator
    /// Microseconds since 1970 UTC.
    package let began: Int64
    /// When the account's password was entered last: microseconds since 1970 UTC.
    package let confirmed: Int64
    /// What a form has to carry.
    package let formToken: String
}

import TidemarkCloudEngine

/// An account that administers a served cloud, or some containers of it.
package struct Operator: Hashable, Identifiable, Sendable {
    /// What an operator may do. The raw values are stored.
    package enum Role: String, CaseIterable, Sendable {
        /// Everything, in all containers.
        case `operator`
        /// Only what concerns the named containers.
        case developer
    }

    /// The account's identifier.
    package let id: String
    package let role: Role
    /// The containers of a developer; empty for an operator, who may use all.
    package let containers: [String]
    /// Microseconds since 1970 UTC.
    package let added: Int64

    package init(id: String, role: Role, containers: [String], added: Int64) {
        (self.id, self.role, self.containers, self.added) = (id, role, containers, added)
    }

    /// Whether the operator may use a container.
    package func mayUse(_ container: String) -> Bool { role == .operator || containers.contains(container) }
}

extension Operator {
    init(_ row: StoredOperator) throws(CredentialError) {
        guard let role = Role(rawValue: row.role) else { throw CredentialError(damaged: "role of an operator") }
        self.init(id: row.account, role: role, containers: row.containers, added: row.added)
    }
}

/// The present state of a session of the console.
package struct ConsoleSession: Hashable, Sendable {
    /// SHA-256 of the cookie's secret, in hexadecimal digits.
    package let id: String
    package let `operator`: Operator
    /// Microseconds since 1970 UTC.
    package let began: Int64
    /// When the account's password was entered last: microseconds since 1970 UTC.
    package let confirmed: Int64
    /// The token that a form has to carry.
    package let formToken: String
}

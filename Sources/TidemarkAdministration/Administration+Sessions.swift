import TidemarkCloudEngine
import TidemarkEmbeddedCloud
package import TidemarkIdentity
import TidemarkModel

/// Sessions of devices and browsers.
extension Administration {
    /// Returns the sessions of all accounts, or of one.
    ///
    /// - Parameter name: The account's address or identifier.
    package func sessions(of name: String? = nil) async throws(AdministrationError) -> [Session] {
        try demandOperator("the list of sessions")
        guard let name else { return try await wrapped { try await credentials.sessions() } }
        let account = try await account(name)
        return try await wrapped { try await credentials.sessions(of: account.id) }
    }

    /// Ends all sessions of an account, those of the console among them.
    ///
    /// - Returns: How many sessions of devices and browsers there were.
    package func signOutEverywhere(_ name: String) async throws(AdministrationError) -> Int {
        try demandOperator("ending sessions")
        let account = try await account(name)
        let count = try await wrapped { try await credentials.endSessions(of: account.id) }
        try await audit("session.end", account: account.id, subject: "all of the account", before: "\(count) sessions")
        return count
    }

    /// Ends one session.
    ///
    /// - Parameter name: The account that it has to be of; `nil` for any.
    /// - Throws: ``AdministrationError`` `notFound`, also for a session of another account.
    package func endSession(_ id: String, of name: String? = nil) async throws(AdministrationError) {
        guard let session = try await sessions(of: name).first(where: { $0.id == id }) else {
            throw AdministrationError(.notFound, "there is no such session; it may have ended")
        }
        try await wrapped { try await credentials.endSession(id: id) }
        try await audit("session.end", account: session.account, subject: id, before: session.device)
    }

    /// Ends all sessions of all accounts.
    ///
    /// - Returns: How many sessions of devices and browsers there were.
    package func endAllSessions() async throws(AdministrationError) -> Int {
        try demandOperator("ending sessions")
        let count = try await wrapped { try await credentials.endAllSessions() }
        try await audit("session.end", subject: "all", before: "\(count) sessions")
        return count
    }
}

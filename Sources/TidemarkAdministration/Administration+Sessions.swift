import TidemarkCloudEngine
import TidemarkEmbeddedCloud
package import TidemarkIdentity
import TidemarkModel

/// Sessions of devices, browsers and pages.
extension Administration {
    /// Returns the sessions of devices and browsers of all accounts, or of one.
    ///
    /// - Parameter name: The account's address or identifier.
    package func sessions(of name: String? = nil) async throws(AdministrationError) -> [Session] {
        try demandOperator("the list of sessions")
        guard let name else { return try await wrapped { try await credentials.sessions() } }
        let account = try await account(name)
        return try await wrapped { try await credentials.sessions(of: account.id) }
    }

    /// Returns the sessions of the console and of people's own pages of all accounts, or of one.
    ///
    /// - Parameter name: The account's address or identifier.
    package func pageSessions(of name: String? = nil) async throws(AdministrationError) -> [PageSession] {
        try demandOperator("the list of sessions")
        guard let name else { return try await wrapped { try await credentials.pageSessions(of: nil) } }
        let account = try await account(name)
        return try await wrapped { try await credentials.pageSessions(of: account.id) }
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

    /// Ends one session: of a device, a browser, the console, or a person's own pages.
    ///
    /// - Parameter name: The account that has to have the session; `nil` for any.
    /// - Throws: ``AdministrationError`` `notFound`, also for a session of another account.
    package func endSession(_ id: String, of name: String? = nil) async throws(AdministrationError) {
        if let session = try await sessions(of: name).first(where: { $0.id == id }) {
            try await wrapped { try await credentials.endSession(id: id) }
            return try await audit("session.end", account: session.account, subject: id, before: session.device)
        }
        guard let session = try await pageSessions(of: name).first(where: { $0.id == id }) else {
            throw AdministrationError(.notFound, "there is no such session; it may have ended")
        }
        try await wrapped { try await credentials.endPageSession(id) }
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

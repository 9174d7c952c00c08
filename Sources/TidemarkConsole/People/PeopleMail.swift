import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkModel

/// How pages send letters to people, and what these say.
package final class PeopleMail: Sendable {
    /// What people reach the server by, such as `https://cloud.example.org`. Links in letters begin with it, and never with what a request
    /// says: whoever sends that could choose where the key goes.
    let serverURL: String
    let send: @Sendable (_ recipient: String, _ subject: String, _ text: String) async throws -> Void
    /// When an account was last sent a letter: milliseconds since whenever, by account.
    private let sent = LockedValue<[String: Int64]>([:])
    private let now: @Sendable () -> Int64
    /// Whether a letter that was not sent may be taken later.
    private let isTemporary: @Sendable (any Error) -> Bool

    /// How long is waited before a letter is sent again that was not taken.
    private let pauses: [Duration]

    /// Milliseconds before an account is sent the next letter of that kind: nobody's mailbox is filled.
    package static let pause: Int64 = 5 * 60 * 1_000
    /// Accounts that are remembered.
    private static let sentMost = 10_000

    /// - Parameters:
    ///   - serverURL: What people reach the server by, without a slash at the end.
    ///   - now: Microseconds, of any beginning.
    ///   - isTemporary: Whether a letter that `send` has not sent may be taken later.
    ///   - pauses: How long is waited before each time that it is sent again.
    ///   - send: Sends a letter, and returns when a mail server has taken it.
    package init(
        serverURL: String, now: @escaping @Sendable () -> Int64 = Timestamp.now,
        isTemporary: @escaping @Sendable (any Error) -> Bool = { _ in false },
        pauses: [Duration] = [.seconds(5), .seconds(30), .seconds(120)],
        send: @escaping @Sendable (_ recipient: String, _ subject: String, _ text: String) async throws -> Void
    ) {
        (self.serverURL, self.now, self.send) = (serverURL, now, send)
        (self.isTemporary, self.pauses) = (isTemporary, pauses)
    }

    /// Sends a letter that nobody waits for, again where it may be taken later.
    func sendPatiently(_ letter: () async throws -> Void) async throws {
        for pause in pauses {
            do {
                return try await letter()
            } catch {
                guard isTemporary(error) else { throw error }
                try await Task.sleep(for: pause)
            }
        }
        try await letter()
    }

    /// Whether an account may be sent a letter of a kind now; then it is taken as sent.
    func mayBeSent(_ kind: String, to account: String) -> Bool {
        let time = now() / 1_000
        return sent.withLock { sent in
            let key = "\(kind) \(account)"
            if let last = sent[key], time - last < Self.pause { return false }
            if sent.count >= Self.sentMost { sent = sent.filter { time - $0.value < Self.pause } }
            guard sent.count < Self.sentMost else { return false }
            sent[key] = time
            return true
        }
    }

    /// The letter with a link that sets a password.
    func sendPasswordLink(_ path: String, to account: StoredAccount) async throws {
        try await send(
            account.email, "Choose another password",
            """
            Somebody, probably you, has asked for another password for your account
            \(account.email) at \(serverURL).

            Choose it here, within a day:

            \(serverURL)\(path)

            If it was not you, do nothing: your password stays as it is.

            """)
    }

    /// Has an account be sent the next letter of a kind at once: the last one was not sent.
    func forget(_ kind: String, to account: String) { sent.withLock { _ = $0.removeValue(forKey: "\(kind) \(account)") } }

    /// The letter that tells the address before that the account has another one.
    func sendAddressNote(_ after: String, to before: String) async throws {
        try await send(
            before, "Your account has another address",
            """
            Your account at \(serverURL) has the address
            \(after) from now on. You sign in with it, here and on your devices.

            If it was not you who changed it, tell those who run the server at once.

            """)
    }

    /// The letter that asks whether an address belongs to who has given it.
    func sendAddressLink(_ path: String, to address: String) async throws {
        try await send(
            address, "Is this your address?",
            """
            Somebody, probably you, wants to sign in at \(serverURL)
            with the address \(address).

            If that is you, open this page within a day, in a browser in which you are
            signed in to your account, and say so:

            \(serverURL)\(path)

            If not, do nothing: the address is not taken.

            """)
    }
}

import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkModel

/// Writes and sends the letters of pages to people.
package final class PeopleMail: Sendable {
    /// The server's address for people, such as `https://cloud.example.org`. Links in letters begin with it, and never with an
    /// address from a request: the sender of the request could then choose where the link's key goes.
    let serverURL: String
    let send: @Sendable (_ recipient: String, _ subject: String, _ text: String) async throws -> Void
    /// The times of the last letters by kind and account: milliseconds of the clock.
    private let sent = LockedValue<[String: Int64]>([:])
    private let now: @Sendable () -> Int64
    /// Whether a later try to send a letter may succeed, by the error of the first.
    private let isTemporary: @Sendable (any Error) -> Bool

    /// The pauses before each further try to send a letter.
    private let pauses: [Duration]

    /// The pause between two letters of a kind to an account: milliseconds. It keeps anybody from filling a person's mailbox.
    package static let pause: Int64 = 5 * 60 * 1_000
    /// The most times in ``sent``.
    private static let sentMost = 10_000

    /// - Parameters:
    ///   - serverURL: The server's address for people, without a slash at the end.
    ///   - now: The clock: microseconds since any time.
    ///   - isTemporary: Whether a later try may succeed, by the error that `send` has thrown.
    ///   - pauses: The pauses before each further try.
    ///   - send: Sends a letter, and returns when a mail server has accepted it.
    package init(
        serverURL: String, now: @escaping @Sendable () -> Int64 = Timestamp.now,
        isTemporary: @escaping @Sendable (any Error) -> Bool = { _ in false },
        pauses: [Duration] = [.seconds(5), .seconds(30), .seconds(120)],
        send: @escaping @Sendable (_ recipient: String, _ subject: String, _ text: String) async throws -> Void
    ) {
        (self.serverURL, self.now, self.send) = (serverURL, now, send)
        (self.isTemporary, self.pauses) = (isTemporary, pauses)
    }

    /// Sends a letter for which no request waits. It tries again if a later try may succeed.
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

    /// Whether an account may be sent a letter of a kind now. If so, the letter counts as sent.
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

    /// Sends the letter with a link with which a person sets a password.
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

    /// Lets the next letter of a kind to an account be sent at once, because the last one was not sent.
    func forget(_ kind: String, to account: String) { sent.withLock { _ = $0.removeValue(forKey: "\(kind) \(account)") } }

    /// Sends the letter that tells the previous address of an account's new one.
    func sendAddressNote(_ after: String, to before: String) async throws {
        try await send(
            before, "Your account has another address",
            """
            Your account at \(serverURL) has the address
            \(after) from now on. You sign in with it, here and on your devices.

            If it was not you who changed it, tell those who run the server at once.

            """)
    }

    /// Sends the letter with a link that proves an address.
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

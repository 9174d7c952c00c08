import CCurl
import Foundation
import TidemarkModel

/// Sends letters through a mail server.
package final class MailSender: Sendable {
    /// Why a letter was not sent.
    package struct Failure: Error, CustomStringConvertible {
        /// Whether a later try may succeed.
        package let isTemporary: Bool
        package let description: String
    }

    private let server: MailServer
    private let running = LockedValue(0)
    private let waiting = LockedValue(0)

    /// The most letters that are sent at once, each on a thread of its own; the most that wait for their turn; and the pause
    /// between two looks for a turn.
    private static let runningMost = 4
    private static let waitingMost = 100
    private static let look = Duration.milliseconds(50)
    private static let connecting = Duration.seconds(10)
    private static let total = Duration.seconds(60)

    package init(_ server: MailServer) { self.server = server }

    /// Sends a letter, and returns when the server has accepted it.
    ///
    /// - Throws: ``Failure`` where it was refused, or the server can't be reached.
    package func send(_ message: MailMessage) async throws(Failure) {
        guard MailMessage.isAddress(message.recipient) else {
            throw Failure(isTemporary: false, description: "'\(message.recipient.prefix(100))' is no address that letters go to")
        }
        try await waitForTurn()
        defer { running.withLock { $0 -= 1 } }
        let letter = message.encoded(from: server.sender, now: Timestamp.now() / 1_000_000)
        let (server, recipient) = (server, message.recipient)
        let failure: Failure? = await withCheckedContinuation { continuation in
            // libcurl blocks its thread while it waits for the network.
            Thread.detachNewThread { continuation.resume(returning: Self.hand(letter, for: recipient, to: server)) }
        }
        if let failure { throw failure }
    }

    private func waitForTurn() async throws(Failure) {
        let isPlace = waiting.withLock { waiting in
            guard waiting < Self.waitingMost else { return false }
            waiting += 1
            return true
        }
        guard isPlace else { throw Failure(isTemporary: true, description: "\(Self.waitingMost) letters wait to be sent") }
        defer { waiting.withLock { $0 -= 1 } }
        while true {
            let isTurn = running.withLock { running in
                guard running < Self.runningMost else { return false }
                running += 1
                return true
            }
            if isTurn { return }
            do {
                try await Task.sleep(for: Self.look)
            } catch {
                throw Failure(isTemporary: true, description: "the letter was not sent: the server is ending")
            }
        }
    }

    /// The bytes of a letter that libcurl has not read yet.
    private final class Rest {
        let bytes: [UInt8]
        var offset = 0

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        func read(_ buffer: UnsafeMutablePointer<CChar>?, _ most: Int) -> Int {
            let count = min(most, bytes.count - offset)
            guard count > 0, let buffer else { return 0 }
            bytes.withUnsafeBytes { _ = memcpy(buffer, $0.baseAddress! + offset, count) }
            offset += count
            return count
        }
    }

    /// Blocks the calling thread.
    private static func hand(_ letter: [UInt8], for recipient: String, to server: MailServer) -> Failure? {
        // libcurl's text of an error has the code of the server's answer, and nothing of the letter.
        let message = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
        message.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        defer { message.deallocate() }
        guard tide_curl_global_init() == CURLE_OK, let easy = curl_easy_init() else {
            return Failure(isTemporary: true, description: "there is no memory for a connection")
        }
        defer { curl_easy_cleanup(easy) }
        let recipients = curl_slist_append(nil, "<\(recipient)>")
        defer { curl_slist_free_all(recipients) }
        let rest = Rest(letter)
        return withExtendedLifetime(rest) {
            var isSet = recipients != nil
            func set(_ code: CURLcode) { isSet = isSet && code == CURLE_OK }
            set(tide_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, message))
            set(tide_curl_set_text(easy, CURLOPT_URL, server.address))
            set(tide_curl_set_mail_scheme(easy, server.beginsWithTLS ? 1 : 0))
            set(tide_curl_set_text(easy, CURLOPT_PROXY, ""))
            set(tide_curl_set_number(easy, CURLOPT_NOSIGNAL, 1))
            set(tide_curl_set_open_socket(easy))
            set(tide_curl_set_number(easy, CURLOPT_CONNECTTIMEOUT_MS, Int(connecting / .milliseconds(1))))
            set(tide_curl_set_number(easy, CURLOPT_TIMEOUT_MS, Int(total / .milliseconds(1))))
            set(tide_curl_set_number(easy, CURLOPT_USE_SSL, Int(server.security.rawValue)))
            set(tide_curl_set_number(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)))
            if let authorities = server.authorities { set(tide_curl_set_text(easy, CURLOPT_CAINFO, authorities)) }
            if let login = server.login {
                set(tide_curl_set_text(easy, CURLOPT_USERNAME, login.user))
                set(tide_curl_set_text(easy, CURLOPT_PASSWORD, login.password))
            }
            set(tide_curl_set_text(easy, CURLOPT_MAIL_FROM, "<\(server.sender)>"))
            set(tide_curl_set_list(easy, CURLOPT_MAIL_RCPT, recipients))
            set(tide_curl_set_number(easy, CURLOPT_UPLOAD, 1))
            set(tide_curl_set_pointer(easy, CURLOPT_READDATA, Unmanaged.passUnretained(rest).toOpaque()))
            set(
                tide_curl_set_callback(easy, CURLOPT_READFUNCTION) { buffer, size, count, context in
                    guard let context else { return 0 }
                    return Unmanaged<Rest>.fromOpaque(context).takeUnretainedValue().read(buffer, size * count)
                })
            guard isSet else {
                return Failure(isTemporary: false, description: "libcurl can't send letters: it is built without SMTP")
            }
            let code = curl_easy_perform(easy)
            guard code != CURLE_OK else { return nil }
            let told = String(cString: message)
            let reason = told.isEmpty ? String(cString: curl_easy_strerror(code)) : told
            // Such as "RCPT failed: 550".
            return Failure(
                isTemporary: told.firstMatch(of: /: 5\d\d$/) == nil,
                description: "the mail server \(server.address) has not taken a letter: \(reason)")
        }
    }
}

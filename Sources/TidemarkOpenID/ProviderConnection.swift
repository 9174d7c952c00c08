import Foundation
import TidemarkHTTP

/// Sends requests to a provider. The size of an answer and the time for it are limited. Redirects are not followed.
struct ProviderConnection: Sendable {
    private let transport: CurlTransport
    private let times: HTTPTimes

    /// The most bytes of an answer. A provider's answers have some thousand.
    private static let answerSize = 256 << 10

    /// - Parameter patience: The time within which the provider has to answer.
    init(_ provider: OpenIDProvider, patience: Duration) {
        transport = CurlTransport(trustRoots: provider.trustRoots, isSecure: provider.issuer.hasPrefix("https:"))
        times = HTTPTimes(
            connecting: min(.seconds(5), patience), sendingSilence: patience, receivingSilence: patience, total: patience)
    }

    /// Fetches a document.
    ///
    /// - Throws: ``OpenIDError`` `unreachable`.
    func document(_ address: String, headers: [(String, String)] = []) async throws(OpenIDError) -> [UInt8] {
        let (status, body) = try await send(.get, address, headers, nil)
        guard status == 200 else { throw OpenIDError(.unreachable, "\(address) answers with status \(status)") }
        return body
    }

    /// Sends a form.
    ///
    /// - Throws: ``OpenIDError`` `unreachable`.
    func post(
        _ form: [(name: String, value: String)], _ headers: [(String, String)], to address: ProviderAddress
    ) async throws(OpenIDError) -> (status: Int, body: [UInt8]) {
        try await send(
            .post, address.text, headers + [("Content-Type", "application/x-www-form-urlencoded")],
            Array(FormText.encoded(form).utf8))
    }

    private func send(
        _ method: HTTPMethod, _ address: String, _ headers: [(String, String)], _ body: [UInt8]?
    ) async throws(OpenIDError) -> (status: Int, body: [UInt8]) {
        do throws(TransportFailure) {
            let answer = try await transport.send(
                HTTPRequest(
                    lane: .calls, method: method, url: address, headers: headers + [("Accept", "application/json")], body: body,
                    acceptsPacked: true, answerSizeMax: Self.answerSize, times: times))
            return (answer.status.code, answer.body)
        } catch {
            throw OpenIDError(.unreachable, "\(address) \(Self.text(error))")
        }
    }

    private static func text(_ failure: TransportFailure) -> String {
        switch failure {
        case .unknownHost: "names no host that is known"
        case .refused(let number): "can't be reached: \(number > 0 ? String(cString: strerror(number)) : "refused")"
        case .connectTimeout, .handshakeTimeout, .late, .silent, .noConnection: "does not answer in time"
        case .untrusted: "has a certificate that is not trusted; --identity-ca names another authority"
        case .noTLS, .oldTLS, .handshakeFailed: "does not come to an encrypted connection"
        case .tooLarge: "answers with more than \(answerSize) bytes"
        case .malformed, .notUnpackable: "does not answer with HTTP"
        case .broken: "breaks the connection off"
        case .closed, .cancelled: "was not asked to the end"
        case .outOfMemory: "could not be asked: there is no memory"
        case .other(let reason): "could not be asked: \(reason)"
        }
    }
}

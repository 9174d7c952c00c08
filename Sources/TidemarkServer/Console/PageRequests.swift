import Foundation
import HTTPTypes
import HummingbirdCore
import NIOCore
import TidemarkCloud
import TidemarkConsole
import TidemarkModel

// Requests to pages of TidemarkConsole, and their answers, over a connection

extension ConsoleRequest {
    private static let fetchSite = HTTPField.Name("Sec-Fetch-Site")!
    private static let fetchMode = HTTPField.Name("Sec-Fetch-Mode")!
    private static let background = HTTPField.Name(ConsoleRequest.backgroundHeader)!

    /// - Parameter formValues: The most names and values of a form that are read.
    init(_ call: Call, _ page: String, isPost: Bool, formValues: Int) {
        let type = call.headers[.contentType]
        let form = isPost ? PostedForm(call.body, contentType: type, most: formValues) : PostedForm()
        self.init(
            isPost: isPost, page: page, query: call.query, form: form.values, files: form.files,
            cookies: call.headers[.cookie] ?? "",
            origin: call.headers[.origin], fetchSite: call.headers[Self.fetchSite], fetchMode: call.headers[Self.fetchMode],
            isBackground: call.headers[Self.background] != nil,
            userAgent: call.headers[.userAgent] ?? "", address: call.address, baseURL: call.baseURL)
    }
}

extension Reply {
    private static let pieceSize = 256 << 10

    init(_ reply: ConsoleReply) {
        var headers = HTTPFields()
        for (name, value) in reply.headers {
            if let name = HTTPField.Name(name) { headers.append(HTTPField(name: name, value: value)) }
        }
        let body: Body
        switch reply.body {
        case .text(let text): body = .text(text, type: reply.type)
        case .pieces(let count, let read):
            body = .stream(type: reply.type, count: count) { writer in
                var offset: Int64 = 0
                while offset < count {
                    let piece = try await read(offset, Int(min(Int64(Self.pieceSize), count - offset)))
                    // Where content is missing, the connection breaks off, so that no client takes a part for the whole.
                    guard !piece.isEmpty else { return }
                    try await writer.write(ByteBuffer(bytes: piece))
                    offset += Int64(piece.count)
                }
            }
        }
        self.init(status: HTTPResponse.Status(code: reply.status), headers: headers, body: body)
    }
}

extension SignIn {
    /// Counts an attempt as ``countPageAttempt(_:_:)`` does, without looking an account up.
    @Sendable func countOnly(_ email: String, _ address: String) async throws {
        if let wait = try await limitedWait(email: email, address: address) {
            throw Console.Delay(seconds: max(1, Int(wait.rounded(.up))))
        }
    }

    /// Counts an attempt to sign in to pages together with attempts to sign in elsewhere.
    @Sendable func countPageAttempt(_ email: String, _ address: String) async throws -> Console.Attempt {
        do {
            let attempt = try await attempt(email: email, address: address, deviceToken: nil)
            return Console.Attempt(account: attempt.account, isKnown: attempt.isKnown)
        } catch let refusal as Refusal where refusal.status == .tooManyRequests {
            throw Console.Delay(seconds: Int(refusal.error.retryAfter?.components.seconds ?? 1))
        }
    }
}

package import Foundation

/// A parsed request for a page of the console.
package struct ConsoleRequest: Sendable {
    /// Whether the method is POST, so that the request may change something.
    package var isPost: Bool
    /// The page: the part of the path after `/console/`; empty for the first page.
    package var page: String
    package var query: [String: String]
    /// The fields of a form that was posted.
    package var form: [String: String]
    /// The contents of a form's files, by the names of their fields. The names of the files are not needed.
    package var files: [String: Data]
    /// The header `Cookie`.
    package var cookies: String
    /// The headers `Origin`, `Sec-Fetch-Site` and `Sec-Fetch-Mode`.
    package var origin, fetchSite, fetchMode: String?
    /// Whether a page has made the request by itself (``LiveModule``), and not a person.
    package var isBackground: Bool
    /// The header `User-Agent`.
    package var userAgent: String
    /// The client's address, as limits count it.
    package var address: String
    /// The server's address as the browser has reached it: `https://host:port`.
    package var baseURL: String

    /// The most bytes of a form of the console. A record has at most a megabyte. A form has its earlier values, too, both
    /// encoded, and the files of assets.
    package static let formSize: Int64 = 16_000_000

    /// The header of requests that a page makes by itself.
    package static let backgroundHeader = LiveModule.header

    package init(
        isPost: Bool = false, page: String, query: [String: String] = [:], form: [String: String] = [:],
        files: [String: Data] = [:], cookies: String = "",
        origin: String? = nil, fetchSite: String? = nil, fetchMode: String? = nil, isBackground: Bool = false,
        userAgent: String = "", address: String = "",
        baseURL: String = "http://localhost"
    ) {
        (self.isPost, self.page, self.query, self.form, self.cookies) = (isPost, page, query, form, cookies)
        (self.files, self.isBackground) = (files, isBackground)
        (self.origin, self.fetchSite, self.fetchMode) = (origin, fetchSite, fetchMode)
        (self.userAgent, self.address, self.baseURL) = (userAgent, address, baseURL)
    }

    /// The header `User-Agent` as one line, for the audit log.
    var userAgentLine: String {
        String(userAgent.unicodeScalars.prefix(200).map { $0.properties.generalCategory == .control ? " " : Character($0) })
    }

    /// Whether the browser has reached the server over TLS.
    var isSecure: Bool { baseURL.lowercased().hasPrefix("https:") }

    /// Whether a page of this server has made the request, or a person by an address. Browsers tell by `Origin` and
    /// `Sec-Fetch-Site`. A client that sends neither is no browser, and so no page of another site can use it.
    var isOwn: Bool {
        if let origin, origin.lowercased() != Self.origin(of: baseURL) { return false }
        switch fetchSite {
        case nil, "same-origin": return true
        case "none": return !isPost
        // A person may follow a link from another site to a page here, which that site can't read.
        default: return !isPost && fetchMode == "navigate"
        }
    }

    /// Whether the browser says that a page of this server has made the request. ``isOwn`` is also true for a client that says
    /// nothing.
    var isOfOwnPage: Bool { isOwn && (origin != nil || fetchSite == "same-origin") }

    /// Scheme, host and port of an address, as browsers write an origin.
    private static func origin(of address: String) -> String {
        guard let parts = URLComponents(string: address.lowercased()), let scheme = parts.scheme, let host = parts.host else {
            return address
        }
        let isUsual = parts.port == nil || parts.port == (scheme == "https" ? 443 : 80)
        return "\(scheme)://\(host)\(isUsual ? "" : ":\(parts.port ?? 0)")"
    }

    /// The value of a cookie.
    func cookie(_ name: String) -> String? {
        for cookie in cookies.split(separator: ";", maxSplits: 100) {
            let cookie = cookie.trimmingPrefix { $0 == " " }
            if cookie.hasPrefix(name + "=") { return String(cookie.dropFirst(name.utf8.count + 1)) }
        }
        return nil
    }
}

/// The answer to a request for a page.
package struct ConsoleReply: Sendable {
    package enum Body: Sendable {
        case text(String)
        /// A number of bytes, which are read in pieces by an offset and a most number of bytes.
        case pieces(Int64, @Sendable (Int64, Int) async throws -> Data)
    }

    package var status: Int
    /// The headers, in the order in which they are sent. Only the name `Set-Cookie` may come twice.
    package var headers: [(name: String, value: String)] = []
    /// The header `Content-Type`.
    package var type = "text/html; charset=utf-8"
    package var body: Body

    init(_ status: Int = 200, _ page: HTML) { (self.status, body) = (status, .text(page.text)) }

    init(_ status: Int, type: String, _ body: Body) { (self.status, self.type, self.body) = (status, type, body) }

    /// Sends the browser to another page, by a GET.
    package static func redirect(to address: Address) -> ConsoleReply {
        var reply = ConsoleReply(303, type: "text/plain; charset=utf-8", .text(""))
        reply.headers.append(("Location", address.text))
        return reply
    }

    /// Sends the browser to an address of another server, or to one of this server outside the pages, by a GET.
    ///
    /// - Parameter address: An address in ASCII, without characters that end a header.
    static func redirect(toOther address: String) -> ConsoleReply {
        var reply = ConsoleReply(303, type: "text/plain; charset=utf-8", .text(""))
        reply.headers.append(("Location", address))
        return reply
    }

    /// The text of a page, for tests.
    package var text: String { if case .text(let text) = body { text } else { "" } }

    /// The value of a header.
    package func header(_ name: String) -> String? { headers.first { $0.name.lowercased() == name.lowercased() }?.value }
}

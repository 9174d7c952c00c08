package import Foundation

/// A request for a page of the console, taken apart.
package struct ConsoleRequest: Sendable {
    /// Whether it may change something.
    package var isPost: Bool
    /// The page: what follows `/console/` in the path; empty for the first page.
    package var page: String
    package var query: [String: String]
    /// The fields of a form that was posted.
    package var form: [String: String]
    /// The contents of files of a form, by the names of their fields. What they are called where they come from is of no use here.
    package var files: [String: Data]
    /// The header `Cookie`.
    package var cookies: String
    /// The headers `Origin`, `Sec-Fetch-Site` and `Sec-Fetch-Mode`.
    package var origin, fetchSite, fetchMode: String?
    /// Whether a page has made it by itself, and nobody: see ``LiveModule``.
    package var isBackground: Bool
    /// The browser, as it says itself.
    package var userAgent: String
    /// Where it comes from, as limits know it.
    package var address: String
    /// `https://host:port`, as the browser has reached the server.
    package var baseURL: String

    /// The most bytes of a form of the console: a record has at most a megabyte, and a form what it had before as well, both encoded; and files
    /// of assets.
    package static let formSize: Int64 = 16_000_000

    /// The header by which requests say that a page has made them by itself.
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

    /// The browser as a line, for the audit log.
    var userAgentLine: String {
        String(userAgent.unicodeScalars.prefix(200).map { $0.properties.generalCategory == .control ? " " : Character($0) })
    }

    /// Whether the browser reached the server by TLS.
    var isSecure: Bool { baseURL.lowercased().hasPrefix("https:") }

    /// Whether a page of this server has made it, or a person by an address, as browsers tell: by `Origin` and by `Sec-Fetch-Site`. A client
    /// that sends neither is no browser, and no page of others can use it.
    var isOwn: Bool {
        if let origin, origin.lowercased() != Self.origin(of: baseURL) { return false }
        switch fetchSite {
        case nil, "same-origin": return true
        case "none": return !isPost
        // A link of another page may lead here, and shows its reader a page: others may not read it.
        default: return !isPost && fetchMode == "navigate"
        }
    }

    /// Whether the browser says that a page of this server has made it. ``isOwn`` is true as well for a client that says nothing.
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
        /// So many bytes, which are read in pieces, by their offset and the most that are wanted.
        case pieces(Int64, @Sendable (Int64, Int) async throws -> Data)
    }

    package var status: Int
    /// In the order in which they are sent; no name but `Set-Cookie` comes twice.
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

    /// Sends the browser to an address of another server, or of this one outside of the pages, by a GET.
    ///
    /// - Parameter address: Of ASCII, with nothing in it that ends a header.
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

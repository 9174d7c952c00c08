/// What every answer of the console says to browsers.
enum ConsoleHeaders {
    /// Adds what keeps others from a page, and a page from others.
    ///
    /// - Parameter isKept: Whether a browser may keep the answer for some minutes.
    static func add(to reply: inout ConsoleReply, isKept: Bool = false) {
        let known = Set(reply.headers.map { $0.name.lowercased() })
        let all = [
            ("Content-Security-Policy", policy), ("X-Frame-Options", "DENY"), ("X-Content-Type-Options", "nosniff"),
            // With no-referrer, browsers send the form itself with the origin null.
            ("Referrer-Policy", "same-origin"), ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
            ("Cache-Control", isKept ? "max-age=300" : "no-store"),
            // It also has the server not allow other origins to read the answer.
            ("Vary", "Cookie, Accept-Encoding"),
        ]
        for (name, value) in all where !known.contains(name.lowercased()) { reply.headers.append((name, value)) }
    }

    private static let policy =
        "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
        + "frame-ancestors 'none'; base-uri 'none'"

    /// For contents that others have uploaded.
    static let sandbox = "default-src 'none'; sandbox"

    // The session's cookie

    static func cookieName(_ request: ConsoleRequest) -> String {
        request.isSecure ? "__Secure-tidemark-console" : "tidemark-console"
    }

    // The cookie of people's own pages

    static func personCookieName(_ request: ConsoleRequest) -> String {
        request.isSecure ? "__Host-tidemark-account" : "tidemark-account"
    }

    /// The header that gives a browser the cookie of people's own pages. A link in a letter that is read in the browser has to bring it along,
    /// so it is Lax: it comes with links that are followed, and with no form of another site.
    ///
    /// - Parameter value: `nil` takes it away.
    static func personCookie(_ value: String?, _ request: ConsoleRequest) -> String {
        let secure = request.isSecure ? "; Secure" : ""
        let age = value == nil ? "; Max-Age=0" : ""
        return "\(personCookieName(request))=\(value ?? ""); Path=/; HttpOnly; SameSite=Lax\(secure)\(age)"
    }

    /// The header that gives a browser the cookie.
    ///
    /// - Parameter value: `nil` takes it away.
    static func cookie(_ value: String?, _ request: ConsoleRequest) -> String {
        let secure = request.isSecure ? "; Secure" : ""
        let age = value == nil ? "; Max-Age=0" : ""
        return "\(cookieName(request))=\(value ?? ""); Path=\(Address.root); HttpOnly; SameSite=Strict\(secure)\(age)"
    }
}

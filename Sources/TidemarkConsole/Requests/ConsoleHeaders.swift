/// The headers that every answer of the console has.
enum ConsoleHeaders {
    /// Adds the headers that isolate a page from other sites.
    ///
    /// - Parameter isKept: Whether a browser may cache the answer for some minutes.
    static func add(to reply: inout ConsoleReply, isKept: Bool = false) {
        let known = Set(reply.headers.map { $0.name.lowercased() })
        let all = [
            ("Content-Security-Policy", policy), ("X-Frame-Options", "DENY"), ("X-Content-Type-Options", "nosniff"),
            // With `no-referrer`, browsers send a form with the origin `null`.
            ("Referrer-Policy", "same-origin"), ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
            ("Cache-Control", isKept ? "max-age=300" : "no-store"),
            // This header also keeps the server from letting other origins read the answer.
            ("Vary", "Cookie, Accept-Encoding"),
        ]
        for (name, value) in all where !known.contains(name.lowercased()) { reply.headers.append((name, value)) }
    }

    private static let policy =
        "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
        + "frame-ancestors 'none'; base-uri 'none'"

    /// The policy for contents that others have uploaded.
    static let sandbox = "default-src 'none'; sandbox"

    // The session's cookie

    static func cookieName(_ request: ConsoleRequest) -> String {
        request.isSecure ? "__Secure-tidemark-console" : "tidemark-console"
    }

    // The cookie of people's own pages

    static func personCookieName(_ request: ConsoleRequest) -> String {
        request.isSecure ? "__Host-tidemark-account" : "tidemark-account"
    }

    /// The header that sets the cookie of people's own pages. The cookie is Lax: browsers send it with a link that is followed
    /// from another site, such as a link in a letter, but with no form of another site.
    ///
    /// - Parameter value: The cookie's value; `nil` removes the cookie.
    static func personCookie(_ value: String?, _ request: ConsoleRequest) -> String {
        let secure = request.isSecure ? "; Secure" : ""
        let age = value == nil ? "; Max-Age=0" : ""
        return "\(personCookieName(request))=\(value ?? ""); Path=/; HttpOnly; SameSite=Lax\(secure)\(age)"
    }

    /// The header that sets the cookie of the session.
    ///
    /// - Parameter value: The cookie's value; `nil` removes the cookie.
    static func cookie(_ value: String?, _ request: ConsoleRequest) -> String {
        let secure = request.isSecure ? "; Secure" : ""
        let age = value == nil ? "; Max-Age=0" : ""
        return "\(cookieName(request))=\(value ?? ""); Path=\(Address.root); HttpOnly; SameSite=Strict\(secure)\(age)"
    }
}

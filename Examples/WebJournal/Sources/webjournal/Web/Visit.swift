import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// A request of a browser, and who is signed in there.
struct VisitContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// Where the connection comes from.
    let peer: String
    var session: Session?

    init(source: Source) {
        coreContext = CoreRequestContextStorage(source: source)
        peer = source.channel.remoteAddress?.ipAddress ?? ""
    }

    /// The session.
    ///
    /// - Throws: `SignInNeeded`.
    var signedIn: Session {
        get throws {
            guard let session else { throw SignInNeeded() }
            return session
        }
    }
}

/// The page is for those who are signed in.
struct SignInNeeded: Error {}

/// How the site is reached from browsers.
struct SiteAddress: Sendable {
    /// The scheme, the host and the port: `https://journal.example.org`.
    let origin: String
    /// Whether browsers are on this machine, with no proxy between, and may use its other names.
    let isLoopback: Bool

    /// - Parameters:
    ///   - url: The address of the proxy that browsers know; `nil` where they are on this machine.
    ///   - port: Of this program.
    init(url: String?, port: Int) {
        origin = url ?? "http://127.0.0.1:\(port)"
        isLoopback = url == nil
    }

    /// The address of a browser: behind a proxy the last one of `X-Forwarded-For`, which the proxy has seen itself.
    func browser(of request: Request, _ context: VisitContext) -> String {
        guard !isLoopback, let last = request.headers[values: .forwardedFor].last?.split(separator: ",").last else {
            return context.peer
        }
        return last.trimmingCharacters(in: .whitespaces)
    }

    var isSecure: Bool { origin.hasPrefix("https://") }
    private var host: String { origin.split(separator: "/").last.map(String.init) ?? "" }

    /// Whether requests for a host are for this site. Otherwise a page of another name that resolves to this address could use it.
    func isHost(_ authority: String) -> Bool {
        if authority == host { return true }
        let name =
            authority.hasPrefix("[") ? String(authority.prefix { $0 != "]" }) + "]" : String(authority.prefix { $0 != ":" })
        return isLoopback && ["localhost", "127.0.0.1", "[::1]"].contains(name)
    }

    /// The address of a page, for whoever follows it from elsewhere.
    func link(to path: String, _ request: Request) -> String {
        isLoopback ? "http://\(request.head.authority ?? "127.0.0.1")\(path)" : origin + path
    }

    func isOrigin(_ origin: String, of authority: String) -> Bool {
        origin == self.origin || isLoopback && origin == "http://\(authority)"
    }

    // Cookies. No script reads them, and no form of another site brings them along. Links do: an invitation comes in a letter.

    var sessionCookie: String { isSecure ? "__Host-webjournal" : "webjournal" }
    /// What the form to sign in proves with that it is from a page of ours.
    var formCookie: String { isSecure ? "__Host-webjournal-form" : "webjournal-form" }

    func cookie(_ name: String, _ value: String?, sameSite: Cookie.SameSite = .lax) -> Cookie {
        Cookie(
            name: name, value: value ?? "", maxAge: value == nil ? 0 : nil, path: "/", secure: isSecure, httpOnly: true,
            sameSite: sameSite)
    }
}

/// Looks who asks, and refuses what no page of ours has asked for.
struct Visits: RouterMiddleware {
    let sessions: Sessions
    let address: SiteAddress

    func handle(
        _ request: Request, context: VisitContext, next: (Request, VisitContext) async throws -> Response
    ) async throws -> Response {
        var context = context
        let authority = request.head.authority ?? ""
        guard address.isHost(authority) else {
            throw PageError(421, "Another address", "This journal is at \(address.origin).")
        }
        if request.method == .post {
            let site = request.headers[.fetchSite]
            let origin = request.headers[.origin]
            guard site == nil || site == "same-origin", origin == nil || address.isOrigin(origin ?? "", of: authority) else {
                throw PageError.foreignForm
            }
        }
        if let id = request.cookies[address.sessionCookie]?.value { context.session = await sessions.find(id) }
        do {
            return try await next(request, context)
        } catch let error where PageError.isOfSignIn(error) {
            if let session = context.session { await sessions.check(session.journal.person.id) }
            throw error
        }
    }
}

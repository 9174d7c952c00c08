import HTTPTypes
import Hummingbird

/// What each answer says to browsers: what keeps others from a page, and a page from others.
struct SafetyHeaders: RouterMiddleware {
    static var policy: String {
        "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
            + "frame-ancestors 'none'; base-uri 'none'"
    }

    func handle(
        _ request: Request, context: VisitContext, next: (Request, VisitContext) async throws -> Response
    ) async throws -> Response {
        var response = try await next(request, context)
        let headers: [(HTTPField.Name, String)] = [
            (.contentSecurityPolicy, Self.policy), (.xContentTypeOptions, "nosniff"), (.xFrameOptions, "DENY"),
            // With no-referrer, browsers send the form itself with the origin null.
            (.referrerPolicy, "same-origin"), (.crossOriginOpenerPolicy, "same-origin"),
            (.crossOriginResourcePolicy, "same-origin"), (.permissionsPolicy, "camera=(), geolocation=(), microphone=()"),
            (.cacheControl, "no-store"),
        ]
        for (name, value) in headers where response.headers[name] == nil { response.headers[name] = value }
        return response
    }
}

extension HTTPField.Name {
    static let xFrameOptions = Self("X-Frame-Options")!
    static let referrerPolicy = Self("Referrer-Policy")!
    static let crossOriginOpenerPolicy = Self("Cross-Origin-Opener-Policy")!
    static let permissionsPolicy = Self("Permissions-Policy")!
    static let forwardedFor = Self("X-Forwarded-For")!
    static let fetchSite = Self("Sec-Fetch-Site")!
}

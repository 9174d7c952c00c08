import HTTPTypes
import TidemarkIdentity

/// Tells browsers what pages of other origins may do (CORS).
enum Origins {
    private static let exposed = [
        "X-Apple-Request-UUID", "X-Apple-CloudKit-Web-Auth-Token", "X-Responding-Instance", "Via", "ETag", "Content-Range",
        "Accept-Ranges",
    ].joined(separator: ", ")
    private static let allowed = [
        "X-Apple-CloudKit-Request-KeyID", "X-Apple-CloudKit-Request-ISO8601Date", "X-Apple-CloudKit-Request-SignatureV1",
        "X-Tidemark-Extensions", "Content-Type", "Content-Encoding", "Authorization", "Range", "If-None-Match", "If-Range",
    ].joined(separator: ", ")

    private static let allowOrigin = HTTPField.Name("Access-Control-Allow-Origin")!
    private static let allowCredentials = HTTPField.Name("Access-Control-Allow-Credentials")!
    private static let allowMethods = HTTPField.Name("Access-Control-Allow-Methods")!
    private static let allowHeaders = HTTPField.Name("Access-Control-Allow-Headers")!
    private static let exposeHeaders = HTTPField.Name("Access-Control-Expose-Headers")!
    private static let maxAge = HTTPField.Name("Access-Control-Max-Age")!

    /// Lets the page read the answer, unless the API token belongs to other pages.
    static func add(to headers: inout HTTPFields, origin: String?, apiToken: APIToken?) {
        guard let origin else { return }
        headers[.vary] = "Origin, Accept-Encoding"
        guard apiToken?.allows(origin: origin) ?? true else { return }
        headers[allowOrigin] = origin
        headers[allowCredentials] = "true"
        headers[exposeHeaders] = exposed
    }

    /// Answers a preflight request: whether a page may send its request.
    static func preflight(origin: String?, apiToken: APIToken?) -> Reply {
        var reply = Reply(status: .noContent, body: .none)
        add(to: &reply.headers, origin: origin, apiToken: apiToken)
        reply.headers[exposeHeaders] = nil
        guard reply.headers[allowOrigin] != nil else { return reply }
        reply.headers[allowMethods] = "GET, HEAD, POST, PUT, OPTIONS"
        reply.headers[allowHeaders] = allowed
        reply.headers[maxAge] = "86400"
        return reply
    }
}

import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

/// The state of a request while it is answered.
struct Exchange {
    /// How far the body of a request was read.
    enum Reading {
        /// There is no body, or all of it was read.
        case done
        /// The client waits to be told that its body is wanted.
        case awaited
        case unread
        case begun(RequestBody.AsyncIterator)
    }

    let began = ServerTime.seconds()
    let uuid = Self.newID()
    let address: String
    /// The name by which limits know the address.
    let network: String
    let isHead: Bool
    let isExtended: Bool
    let acceptsGzip: Bool
    let origin: String?
    var baseURL = ""
    /// Whether the request has come by TLS, to this server or to a proxy in front of it.
    var isSecure = false
    /// The place of the operation among all.
    var operation: Int?
    var caller = Caller()
    /// The container and the environment of the address; empty where it names none.
    var (container, environment) = ("", "")
    /// The database of the address; `nil` where it names none.
    var scope: DatabaseScope?
    var apiToken: APIToken?
    /// The caller's name in the log.
    var name: String?
    /// A new token of the caller's session.
    var newToken: String?
    var reading: Reading
    var bodySize = 0
    /// The bytes taken from the budget for all bodies.
    var held = 0

    private static let extensions = HTTPField.Name("X-Tidemark-Extensions")!

    init(_ head: HTTPRequest, address: String) {
        self.address = address
        network = CloudResponder.network(address)
        isHead = head.method == .head
        let headers = head.headerFields
        isExtended = headers[Self.extensions] == "1"
        acceptsGzip = headers[.acceptEncoding].map(Self.acceptsGzip) ?? false
        origin = headers[.origin]
        let hasBody = headers[.transferEncoding] != nil || headers[.contentLength].map { $0 != "0" } ?? false
        if !hasBody {
            reading = .done
        } else {
            reading = headers[.expect]?.lowercased() == "100-continue" ? .awaited : .unread
        }
    }

    /// Returns a random UUID. Foundation's own function opens a file for each.
    private static func newID() -> String {
        var generator = SystemRandomNumberGenerator()
        var bytes: [UInt8] = []
        for _ in 0..<2 { withUnsafeBytes(of: generator.next()) { bytes += $0 } }
        bytes[6] = bytes[6] & 0x0f | 0x40
        bytes[8] = bytes[8] & 0x3f | 0x80
        let digits = Hexadecimal.text(bytes)
        var text = ""
        for (place, digit) in digits.utf8.enumerated() {
            if place == 8 || place == 12 || place == 16 || place == 20 { text.append("-") }
            text.unicodeScalars.append(Unicode.Scalar(digit))
        }
        return text
    }

    private static func acceptsGzip(_ value: String) -> Bool {
        value.split(separator: ",").contains { part in
            let words = part.split(separator: ";").map { $0.trimmingPrefix(while: \.isWhitespace) }
            guard let coding = words.first, coding.lowercased().hasPrefix("gzip") else { return false }
            return !words.dropFirst().contains { $0.hasPrefix("q=0") && !$0.contains(where: { ("1"..."9").contains($0) }) }
        }
    }
}

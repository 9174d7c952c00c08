import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

/// What is known of a request while it is answered.
struct Exchange {
    /// What has been read of a request's body.
    enum Reading {
        /// There is none, or all of it was read.
        case done
        /// The client waits for a sign that it is wanted.
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
    /// Whether it has come by TLS, to this server or to a proxy before it.
    var isSecure = false
    /// The place of the operation among all.
    var operation: Int?
    var caller = Caller()
    /// The container of the address, and its environment; empty where it names none.
    var (container, environment) = ("", "")
    /// The database of the address; `nil` where it names none.
    var scope: DatabaseScope?
    var apiToken: APIToken?
    /// Who asks, for the log.
    var name: String?
    /// A new token of the caller's session.
    var newToken: String?
    var reading: Reading
    var bodySize = 0
    /// Of the budget for all bodies.
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

    /// A random UUID. Foundation's own opens a file for each.
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

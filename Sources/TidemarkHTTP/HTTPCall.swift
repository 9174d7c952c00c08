import NIOCore
import NIOHTTP1
import TidemarkModel

/// A request before it is sent.
struct HTTPCall: Sendable {
    /// What it does, and so how long it may take and whether it may be sent again.
    enum Kind: Sendable {
        /// Reads, or finds out: it can be sent any number of times.
        case look
        /// Changes something: what became of one that broke off, only the caller can find out.
        case change
        case upload
        /// A piece of so many bytes.
        case download(count: Int)
        /// Waits for news.
        case poll
    }

    let kind: Kind
    var method = HTTPMethod.POST
    /// From the server's own path on, percent-encoded, with its query.
    let target: String
    var headers: [(String, String)] = []
    var body: ByteBuffer?
    /// Whether it is sent as whoever is signed in.
    var isSigned = true
    /// Whether less can be asked for where the answer is more than is read.
    var canAskForLess = false

    /// Whether it can be sent again when nobody knows what became of it.
    var isRepeatable: Bool {
        switch kind {
        case .look, .download: true
        case .change, .upload, .poll: false
        }
    }

    /// What it is called in errors: its path alone.
    var name: String { String(target.prefix { $0 != "?" }) }
}

/// An answer that has come whole.
struct HTTPAnswer: Sendable {
    let status: HTTPResponseStatus
    let headers: HTTPHeaders
    let body: ByteBuffer
}

/// How long things may take.
package struct HTTPPatience: Sendable {
    package var connecting = Duration.seconds(10)
    /// Without a byte.
    package var silence = Duration.seconds(75)
    package var looking = Duration.seconds(60)
    package var changing = Duration.seconds(120)
    package var transferring = Duration.seconds(300)
    package var polling = Duration.seconds(75)
    /// Before the second try; longer before the third. A listener begins with it, too.
    package var pause = Duration.milliseconds(200)
    /// Between the tries of who listens for news.
    package var pauseMax = Duration.seconds(60)
    /// Bytes of an answer that is no piece of an asset.
    package var bytesPerAnswer = 64 << 20

    package init() {}

    func time(for kind: HTTPCall.Kind) -> Duration {
        switch kind {
        case .look: looking
        case .change: changing
        case .upload, .download: transferring
        case .poll: polling
        }
    }
}

extension String {
    /// As it can stand in a path, or in a query's value.
    var percentEncoded: String {
        var text = ""
        for byte in utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                text += byte < 16 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return text
    }
}

extension Duration {
    /// For NIO, which counts nanoseconds.
    var amount: TimeAmount {
        let (seconds, attoseconds) = components
        return .nanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }
}

import Foundation
import TidemarkCloud
import TidemarkModel

/// The failure of a request that has no answer, or no readable one.
struct HTTPFault: Error {
    let error: CloudError
    /// Whether another try may succeed at once.
    var isPassing = false

    private init(_ code: CloudError.Code, _ reason: String, isPassing: Bool = false, remedy: ErrorRemedy? = nil) {
        error = CloudError(code, reason, remedy: remedy)
        self.isPassing = isPassing
    }

    static func isTooLarge(_ most: Int, _ call: HTTPCall, from server: ServerAddress) -> HTTPFault {
        HTTPFault(
            call.canAskForLess ? .limitExceeded : .internalError,
            "\(server) has answered with more than the \(most) bytes that are read")
    }

    static func isLate(_ time: Duration, from server: ServerAddress) -> HTTPFault {
        HTTPFault(.networkFailure, "\(server) has not answered within \(time.components.seconds) s")
    }

    static let cancelled = HTTPFault(.networkFailure, "the request was cancelled")

    init(_ failure: TransportFailure, to call: HTTPCall, from server: ServerAddress, _ timeouts: HTTPTimeouts) {
        self =
            switch failure {
            case .cancelled: .cancelled
            case .closed: HTTPFault(.networkUnavailable, "the connection to \(server) was closed by this program")
            case .unknownHost: .unreachable(server, Self.asked("there is no host of that name"))
            case .refused(let number):
                .unreachable(server, Self.asked(number > 0 ? String(cString: strerror(number)) : "it does not take connections"))
            case .connectTimeout: .unreachable(server, Self.asked("it does not answer"))
            case .handshakeTimeout:
                .unreachable(server, "it does not come to a secure connection; does it speak https at this port?")
            case .untrusted(let distrust): .unreachable(server, Self.reason(distrust), distrust.remedy)
            case .noTLS: .unreachable(server, "it does not speak https at this port; http, perhaps, or at another one")
            case .oldTLS: .unreachable(server, "it speaks no TLS of version 1.2 or newer; have its operator switch that on")
            case .handshakeFailed:
                .unreachable(server, "there is no secure connection to it; does it speak https at this port, and not http?")
            case .noConnection: .unreachable(server, "no connection has come free")
            case .late: .isLate(timeouts.time(for: call), from: server)
            case .silent(let time): .isLate(time, from: server)
            case .broken: .broken(server)
            case .malformed: .isNoHTTP(server)
            case .notUnpackable: HTTPFault(.internalError, "\(server) has answered with what can't be unpacked")
            case .tooLarge: .isTooLarge(timeouts.answerSizeMax(call), call, from: server)
            case .outOfMemory: HTTPFault(.internalError, "there is no memory for the request to \(server)")
            case .other(let text): HTTPFault(.networkFailure, "the request to \(server) has failed: \(text)")
            }
    }

    private static func reason(_ distrust: TransportFailure.Distrust) -> String {
        switch distrust {
        case .authority:
            "its certificate is not trusted. Have one from an authority that this machine trusts, or name the server's own authority"
        case .expired: "its certificate has expired; have its operator renew it, and look at this machine's clock"
        case .notYetValid: "its certificate is not valid yet; look at this machine's clock"
        case .otherHost: "its certificate is for another host"
        case .noAuthorities:
            "this machine has no list of authorities. Install it (the package ca-certificates), or name the server's own authority"
        }
    }

    private static func unreachable(_ server: ServerAddress, _ reason: String, _ remedy: ErrorRemedy? = nil) -> HTTPFault {
        HTTPFault(.networkUnavailable, "\(server) can't be reached: \(reason)", remedy: remedy)
    }

    private static func broken(_ server: ServerAddress) -> HTTPFault {
        HTTPFault(
            .networkFailure, "the connection to \(server) broke before the answer was there\(perhapsSecure(server))",
            isPassing: true)
    }

    private static func isNoHTTP(_ server: ServerAddress) -> HTTPFault {
        HTTPFault(.internalError, "\(server) answers with what is no HTTP\(perhapsSecure(server))")
    }

    /// A further possible cause, for a connection without TLS.
    private static func perhapsSecure(_ server: ServerAddress) -> String {
        server.isSecure ? "" : ". So it is, too, where a server expects https"
    }

    /// A reason, followed by what the user can check.
    private static func asked(_ reason: String) -> String { "\(reason). Does the server run, and is the address right?" }
}

extension TransportFailure.Distrust {
    /// The remedy on this machine; `nil` if there is none.
    var remedy: ErrorRemedy? {
        switch self {
        case .authority, .noAuthorities: .trustAuthority
        case .expired, .notYetValid, .otherHost: nil
        }
    }
}

extension HTTPFields {
    /// The wait that a server asks for; at most a day.
    var retryAfter: Duration? {
        first(name: "Retry-After").flatMap { Int64($0) }.map { Duration.seconds(Swift.min(Swift.max(0, $0), 86_400)) }
    }
}

extension CloudError {
    /// The error of a reply that breaks the protocol, by its status: it may come from a proxy before the server.
    init(status: HTTPStatus, headers: HTTPFields, from server: ServerAddress) {
        let told = "\(server) has answered with the status \(status.code)"
        let wait = headers.retryAfter
        switch status.code {
        case 300..<400:
            self.init(.internalError, "\(told): it sends elsewhere, which is not followed; give the address that it sends to")
        case 401, 403, 407, 421:
            // A cloud would answer in the form of the protocol, so this is not its decision.
            self.init(
                .serviceUnavailable,
                "\(told), and not as a cloud does: something before it, such as a proxy, lets nobody through",
                retryAfter: wait)
        case 400 where !server.isSecure:
            self.init(.internalError, "\(told), and not as a cloud does; does it expect https?")
        case 404, 405:
            let asked =
                server.path.isEmpty
                ? "is the address right?" : "is the cloud really below \(server.path)? Mostly the address has no path"
            self.init(.internalError, "\(told): there is no cloud that speaks with this version; \(asked)")
        case 413: self.init(.limitExceeded, "\(told): the request is larger than it takes")
        case 429: self.init(.requestRateLimited, "\(told): there were too many requests", retryAfter: wait)
        case 408, 425, 502, 503, 504:
            self.init(.serviceUnavailable, "\(told): it is not available for the moment", retryAfter: wait)
        default: self.init(.internalError, told)
        }
    }

    /// The error with a reason that can be shown: without control characters, and at most 2,000 characters long.
    var shown: CloudError { shown(2000) }

    /// The error of one item of many, with a shorter reason that can be shown.
    var shownOfItem: CloudError { shown(1000) }

    /// Returns the error with a reason of at most `most` characters, without control characters.
    private func shown(_ most: Int) -> CloudError {
        guard reason.utf8.count > most || reason.unicodeScalars.contains(where: Self.isUnfit) else { return self }
        let scalars = reason.unicodeScalars.prefix(most).map { Self.isUnfit($0) ? " " : $0 }
        var text = String.UnicodeScalarView()
        text.append(contentsOf: scalars)
        var error = CloudError(code, String(text), retryAfter: retryAfter, serverRecord: serverRecord, remedy: remedy)
        error.denial = denial
        error.containerIsServed = containerIsServed
        return error
    }

    /// Whether a character controls a terminal, or changes the direction of text.
    private static func isUnfit(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x202a...0x202e, 0x2066...0x2069: true
        default:
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: true
            default: false
            }
        }
    }
}

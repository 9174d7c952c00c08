import Foundation
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel

/// Sends requests to a bucket, signs them, and sends them again where that may help.
///
/// Every request may be sent any number of times, since contents are named by their digests.
final class S3Client: Sendable {
    /// A request to the bucket.
    struct Request: Sendable {
        var method: HTTPMethod
        /// The object's key; empty for the bucket itself.
        var key: String
        var query: [(String, String)] = []
        var headers: [(String, String)] = []
        var body: [UInt8]?
        /// The most bytes of an answer.
        var limit = 8 << 20
        /// Statuses that are an answer, beside those of success.
        var expected: Set<Int> = []
    }

    let configuration: S3Configuration
    /// Short requests have a transport of their own, so that they don't wait for long ones.
    private let short, long: CurlTransport

    init(_ configuration: S3Configuration) {
        self.configuration = configuration
        short = CurlTransport(trustRoots: configuration.trustRoots, isSecure: configuration.isSecure)
        long = CurlTransport(trustRoots: configuration.trustRoots, isSecure: configuration.isSecure)
    }

    func shutdown() async {
        await short.shutdown()
        await long.shutdown()
    }

    /// Sends a request until it has an answer.
    ///
    /// - Parameter isAnswer: Whether an answer is right. After a wrong answer the request is sent again.
    /// - Throws: `CloudError` `serviceUnavailable`, with `retryAfter`, where the bucket can't be reached or refuses it, or there
    ///   are no keys; `quotaExceeded` where it is full.
    func send(
        _ request: Request, isLong: Bool = false, isAnswer: @Sendable (HTTPAnswer) -> Bool = { _ in true }
    ) async throws(CloudError) -> HTTPAnswer {
        var tries = Tries(configuration, configuration.patience)
        while true {
            let signed = try sign(request)
            let began = ContinuousClock.now
            let outcome: Outcome
            do throws(TransportFailure) {
                outcome = self.outcome(of: try await (isLong ? long : short).send(signed), request, isAnswer)
            } catch {
                outcome = self.outcome(of: error, request)
            }
            guard let pause = try retryPause(after: outcome, since: began, &tries) else { return try outcome.answer() }
            do {
                try await Task.sleep(for: pause)
            } catch {
                throw CloudError(
                    .serviceUnavailable, "the request to the \(configuration.name) was cancelled", retryAfter: .seconds(1))
            }
        }
    }

    /// As ``send(_:isLong:isAnswer:)``, and blocks the thread.
    func sendBlocking(_ request: Request) throws(CloudError) -> HTTPAnswer {
        var tries = Tries(configuration, configuration.blockingPatience)
        while true {
            let signed = try sign(request)
            let began = ContinuousClock.now
            let outcome: Outcome
            do throws(TransportFailure) {
                outcome = self.outcome(of: try short.sendBlocking(signed), request) { _ in true }
            } catch {
                outcome = self.outcome(of: error, request)
            }
            guard let pause = try retryPause(after: outcome, since: began, &tries) else { return try outcome.answer() }
            Thread.sleep(forTimeInterval: pause / .seconds(1))
        }
    }

    /// Returns the pause before the next try, as ``Tries/pause(_:)``, and counts the outcome.
    private func retryPause(
        after outcome: Outcome, since began: ContinuousClock.Instant, _ tries: inout Tries
    ) throws(CloudError) -> Duration? {
        let metrics = configuration.metrics
        // Such a request was ended on this side, and says nothing of the bucket.
        if case .ended = outcome { return nil }
        metrics.tried(for: began.duration(to: ContinuousClock.now))
        if case .failed = outcome { metrics.failed() }
        do throws(CloudError) {
            let pause = try tries.pause(outcome)
            if pause != nil { metrics.retried() }
            return pause
        } catch {
            metrics.failed()
            throw error
        }
    }

    /// Decides whether a request is sent again, and when.
    private struct Tries {
        private var backoff = Backoff(first: .milliseconds(100), longest: .seconds(5))
        private let end: ContinuousClock.Instant
        private let attempts: Int

        init(_ configuration: S3Configuration, _ patience: Duration) {
            (end, attempts) = (ContinuousClock.now + patience, configuration.attempts)
        }

        /// - Returns: The pause; `nil` if the request is not sent again.
        /// - Throws: The error of the outcome, if the tries are used up.
        mutating func pause(_ outcome: Outcome) throws(CloudError) -> Duration? {
            guard case .again(var error) = outcome else { return nil }
            error.isOutOfReach = true
            let pause = backoff.fail(asked: error.retryAfter.map { min($0, .seconds(10)) })
            guard backoff.failures < attempts, ContinuousClock.now + pause < end else { throw error }
            return pause
        }
    }

    private enum Outcome {
        case done(HTTPAnswer)
        case failed(CloudError)
        /// The caller was cancelled, or all requests are ended.
        case ended(CloudError)
        /// It may help to send it again.
        case again(CloudError)

        func answer() throws(CloudError) -> HTTPAnswer {
            switch self {
            case .done(let answer): return answer
            case .failed(let error), .ended(let error), .again(let error): throw error
            }
        }
    }

    /// Returns the keys. A missing file becomes `serviceUnavailable`: clients can't mend it, and have to come later.
    func keys() throws(CloudError) -> S3Credentials.Keys {
        do throws(CloudError) {
            return try configuration.credentials.keys()
        } catch {
            throw CloudError(.serviceUnavailable, error.reason, retryAfter: .seconds(60))
        }
    }

    private func sign(_ request: Request) throws(CloudError) -> HTTPRequest {
        let keys = try keys()
        var headers = request.headers
        headers.append(("x-amz-content-sha256", Self.digest(request.body ?? [])))
        if let token = keys.token { headers.append(("x-amz-security-token", token)) }
        return HTTPRequest(
            lane: request.method == .get ? .downloads : .calls, method: request.method,
            url: configuration.url(request.key, request.query), headers: headers, body: request.body,
            answerSizeMax: request.limit,
            times: HTTPTimes(
                connecting: .seconds(5), sendingSilence: configuration.silence, receivingSilence: configuration.silence,
                total: .seconds(300)),
            signature: AWSSignature(keyID: keys.id, secret: keys.secret, region: configuration.region, service: "s3"))
    }

    /// SHA-256 in hexadecimal digits.
    static func digest(_ bytes: [UInt8]) -> String { Hexadecimal.text(rawDigest(bytes)) }

    static func rawDigest(_ bytes: [UInt8]) -> [UInt8] {
        var hash = SHA256Context()
        bytes.withUnsafeBytes { hash.update($0) }
        return hash.finish()
    }

    // Outcomes

    private func outcome(of answer: HTTPAnswer, _ request: Request, _ isAnswer: (HTTPAnswer) -> Bool) -> Outcome {
        let code = answer.status.code
        // The content of an object may look like an error.
        let error = request.method != .get || code >= 300 ? S3Answer(answer.body)?.errorCode : nil
        if request.expected.contains(code) { return .done(answer) }
        if 200..<300 ~= code {
            // S3 may send a status of success before a request is done, and an error in the body.
            if let error { return .again(failure("has failed: \(error.prefix(60))", .serviceUnavailable)) }
            guard isAnswer(answer) else {
                var other = failure("has answered something else than was asked for", .serviceUnavailable)
                other.isOtherContent = true
                return .again(other)
            }
            return .done(answer)
        }
        let said = error.map { "\(code) \($0.prefix(60))" } ?? "\(code)"
        let asked = answer.headers.first(name: "Retry-After").flatMap { Int64($0) }.map { Duration.seconds(min(max(0, $0), 300)) }
        switch (code, error) {
        case (507, _), (_, "QuotaExceeded"), (_, "XMinioStorageFull"):
            var full = CloudError(.quotaExceeded, "the \(configuration.name) is full: \(said)")
            full.publicReason = "the server has no room for the content"
            return .failed(full)
        // An answer to HEAD has no body, which would say what is wrong.
        case (400, nil) where request.method == .head: return .again(failure("is busy or fails: \(said)", .serviceUnavailable))
        case (408, _), (429, _), (500, _), (502..<600, _), (_, "RequestTimeout"), (_, "SlowDown"), (_, "InternalError"):
            return .again(failure("is busy or fails: \(said)", .serviceUnavailable, asked ?? .zero))
        case (_, "RequestTimeTooSkewed"):
            return .failed(failure("refuses requests, since the clock of this machine is wrong: \(said)", .serviceUnavailable))
        case (401, _), (403, _):
            return .failed(
                failure("refuses the keys, or they lack a right: \(said). Check both", .serviceUnavailable))
        case (404, "NoSuchBucket"):
            return .failed(
                failure(
                    "is not there: \(said). Create it, as 'aws s3 mb s3://\(configuration.bucket)' does, or check its name",
                    .serviceUnavailable))
        case (404, _):
            return .failed(failure("is not there: \(said)", .serviceUnavailable))
        default: return .failed(failure("refuses a request: \(said)", .internalError))
        }
    }

    private func outcome(of error: TransportFailure, _ request: Request) -> Outcome {
        switch error {
        case .refused, .connectTimeout, .handshakeTimeout, .noConnection, .late, .silent, .broken, .unknownHost, .malformed:
            .again(failure("can't be reached: \(Self.sentence(error))", .serviceUnavailable, .zero))
        case .closed, .cancelled: .ended(failure("was not asked: the request was ended", .serviceUnavailable))
        default: .failed(failure("can't be reached: \(Self.sentence(error))", .serviceUnavailable))
        }
    }

    private static func sentence(_ error: TransportFailure) -> String {
        switch error {
        case .unknownHost: "the name of the host is unknown"
        case .refused(let number): number == 0 ? "no connection" : String(cString: strerror(number))
        case .connectTimeout, .handshakeTimeout: "it has not answered in time"
        case .late, .silent: "nothing has moved for too long"
        case .broken: "the connection has broken"
        case .malformed: "what it answers is no HTTP"
        case .untrusted: "its certificate is not trusted"
        case .noTLS, .oldTLS, .handshakeFailed: "it does not speak TLS 1.2 or newer"
        case .tooLarge: "its answer is too large"
        default: "\(error)"
        }
    }

    private func failure(_ what: String, _ code: CloudError.Code, _ asked: Duration = .zero) -> CloudError {
        CloudError(
            code, "the \(configuration.name) \(what)", retryAfter: code == .serviceUnavailable ? max(asked, .seconds(1)) : nil)
    }
}

import TidemarkCloud
import TidemarkModel

/// Downloads of contents. A server sends a content itself, or redirects to an address that is valid for a while.
extension HTTPCloud {
    /// The result of reading a content at the address of a redirection.
    private enum Outcome {
        case done(HTTPAnswer)
        /// The address has expired or is refused. Another address may work.
        case refused(CloudError)
        /// The failure may pass, so that another try may succeed.
        case passing(CloudError)
        case failed(CloudError)
    }

    /// Reads a piece of a content.
    ///
    /// One redirection is followed. The request to the new address has the range of the piece, but not the session's token.
    ///
    /// - Throws: The error of the server; `assetNotAvailable` if the content is missing; `serviceUnavailable` if the storage
    ///   refuses the request or fails; `permissionFailure` for an address that is not followed.
    func content(_ call: HTTPCall, of asset: CloudAsset) async throws(CloudError) -> HTTPAnswer {
        var backoff = Backoff(first: timeouts.pause * 2, longest: timeouts.pauseMax)
        var isAnew = false
        while true {
            let answer = try await answer(to: call, accepting: [.rangeNotSatisfiable, .temporaryRedirect])
            guard answer.status == .temporaryRedirect else { return answer }
            let target = try RedirectTarget(answer.headers.first(name: "Location"), from: server)
            switch await read(call, of: asset, at: target) {
            case .done(let content): return content
            case .failed(let error): throw error
            case .refused(let error):
                guard !isAnew else { throw error }
                isAnew = true
            case .passing(let error):
                guard error.retryAfter == nil, await pause(&backoff) else { throw error }
            }
        }
    }

    private func read(_ call: HTTPCall, of asset: CloudAsset, at target: RedirectTarget) async -> Outcome {
        guard !Task.isCancelled else { return .failed(HTTPFault.cancelled.error) }
        let headers = call.headers.filter { $0.0 == "Range" } + [("User-Agent", "tidemark")]
        let request = HTTPRequest(
            lane: call.lane, method: .get, url: target.url, headers: headers, answerSizeMax: timeouts.answerSizeMax(call),
            times: timeouts.times(for: call))
        do throws(TransportFailure) {
            let transport = target.host.isSecure ? contentTransports.secure : contentTransports.plain
            return outcome(of: try await transport.send(request), of: asset, at: target)
        } catch {
            let fault = HTTPFault(error, to: call, from: target.host, timeouts)
            return fault.isPassing ? .passing(fault.error) : .failed(fault.error)
        }
    }

    private func outcome(of answer: HTTPAnswer, of asset: CloudAsset, at target: RedirectTarget) -> Outcome {
        let told = "\(target.host), to which \(server) sends for contents, has answered with the status \(answer.status.code)"
        let wait = answer.headers.retryAfter
        switch answer.status.code {
        case 200, 206: return .done(answer)
        case 300..<400: return .failed(CloudError(.permissionFailure, "\(told): it sends elsewhere, which is not followed"))
        case 400, 401, 403:
            return .refused(
                CloudError(
                    .serviceUnavailable, "\(told): it refuses the address; perhaps the clocks of the two differ", retryAfter: wait
                ))
        case 404 where Self.isMissing(answer):
            return .failed(CloudError(.assetNotAvailable, "the asset \(asset.digest) is not there"))
        // The bucket is missing, or a part of the content.
        case 404, 416:
            return .failed(CloudError(.serviceUnavailable, "\(told): it does not have the content", retryAfter: .seconds(60)))
        case 408, 425, 429, 500..<600:
            return .passing(CloudError(.serviceUnavailable, "\(told): it is not available for the moment", retryAfter: wait))
        default: return .failed(CloudError(.internalError, told))
        }
    }

    /// Whether an answer has S3's error for a missing object.
    private static func isMissing(_ answer: HTTPAnswer) -> Bool {
        String(decoding: answer.body.prefix(4_096), as: UTF8.self).contains("<Code>NoSuchKey</Code>")
    }
}

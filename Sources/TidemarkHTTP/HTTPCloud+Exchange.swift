import TidemarkCloud
import TidemarkModel
import TidemarkWire

extension HTTPCloud {
    private static let renewal = "X-Apple-CloudKit-Web-Auth-Token"

    /// Sends a request and reads its answer.
    ///
    /// - Throws: The error of the server; `internalError` if the reply breaks the protocol.
    func value<Value>(
        _ call: HTTPCall, _ read: (JSONNode) throws(CloudError) -> Value
    ) async throws(CloudError) -> Value {
        try Self.value(of: try await answer(to: call), to: call, from: server, read)
    }

    static func value<Value>(
        of answer: HTTPAnswer, to call: HTTPCall, from server: ServerAddress, _ read: (JSONNode) throws(CloudError) -> Value
    ) throws(CloudError) -> Value {
        do throws(CloudError) {
            return try self.read(answer.body, read)
        } catch {
            // A large reply may have more values than are read.
            let isLarge = call.canAskForLess && answer.body.count > 1 << 20
            throw CloudError(
                isLarge ? .limitExceeded : .internalError,
                "the reply of \(server) to \(call.name) breaks the protocol: \(error.reason)"
            ).shown
        }
    }

    private static func read<Value>(
        _ body: [UInt8], _ read: (JSONNode) throws(CloudError) -> Value
    ) throws(CloudError) -> Value {
        try JSONText.read(body, values: max(JSONText.values, body.count), read)
    }

    /// Sends a request, and throws the error of the request as a whole.
    ///
    /// - Parameter statuses: The statuses that count as an answer, beside 200 to 299.
    func answer(to call: HTTPCall, accepting statuses: [HTTPStatus] = []) async throws(CloudError) -> HTTPAnswer {
        var session = call.isSigned ? try session() : nil
        var backoff = Backoff(first: timeouts.pause * 2, longest: timeouts.pauseMax)
        var isAnew = false
        while true {
            let answer: HTTPAnswer
            do throws(HTTPFault) {
                answer = try await send(call, as: session)
            } catch {
                guard error.isPassing, call.isRepeatable, await pause(&backoff) else { throw error.error }
                continue
            }
            if (200..<300).contains(answer.status.code) || statuses.contains(answer.status) { return answer }
            let told = refusal(answer)
            // A request that was refused for its session has had no effect, so any kind can be sent again with another session.
            if call.isSigned, !isAnew, told?.code == .notAuthenticated,
                answer.status.code == 401 || answer.status.code == 421, let other = self.session(after: session)
            {
                session = other
                isAnew = true
                continue
            }
            // The server has not read the body, so the request can be sent again without compression.
            if answer.status == .unsupportedMediaType, answer.wasPacked {
                packer.stop()
                continue
            }
            if let told { throw told }
            let error = CloudError(status: answer.status, headers: answer.headers, from: server)
            guard error.code == .serviceUnavailable, error.retryAfter == nil, call.isRepeatable, await pause(&backoff) else {
                throw error
            }
        }
    }

    /// Returns the server's error for a request as a whole; `nil` if the reply breaks the protocol.
    private func refusal(_ answer: HTTPAnswer) -> CloudError? {
        // A longer reply is the page of a proxy, and not JSON.
        guard answer.body.count <= 4 << 20 else { return nil }
        let read = try? Self.read(answer.body) { node throws(CloudError) -> CloudError? in
            guard let error = try CloudError(answered: node, in: .default) else { return nil }
            // The path is unknown, and not a record or zone: the address is wrong, or the server has another version.
            if answer.status == .notFound, error.code == .unknownItem, node["tidemark"] == nil || error.remedy == .checkAddress {
                return nil
            }
            // Other servers of the protocol have no closer code for a request that is too large.
            if answer.status.code == 413, node["tidemark"] == nil, error.code == .invalidArguments {
                return CloudError(.limitExceeded, error.reason)
            }
            return error
        }
        var error = (read ?? nil)?.shown
        if error?.retryAfter == nil { error?.retryAfter = answer.headers.retryAfter }
        return error
    }

    /// Waits before another try.
    ///
    /// - Returns: Whether there is another try; `false` after two, or when the task is cancelled.
    func pause(_ backoff: inout Backoff) async -> Bool {
        guard backoff.failures < 2 else { return false }
        return (try? await Task.sleep(for: backoff.fail())) != nil
    }

    private func send(_ call: HTTPCall, as session: CloudSession?) async throws(HTTPFault) -> HTTPAnswer {
        guard !Task.isCancelled else { throw .cancelled }
        let packed = packer.packed(call)
        let request = request(call, as: session, packed)
        do throws(TransportFailure) {
            var answer = try await transport.send(request)
            answer.wasPacked = packed != nil
            if call.isSigned, let session, let token = answer.headers.first(name: Self.renewal) { renew(session, token) }
            return answer
        } catch {
            throw HTTPFault(error, to: call, from: server, timeouts)
        }
    }

    private func request(_ call: HTTPCall, as session: CloudSession?, _ packed: [UInt8]?) -> HTTPRequest {
        var request = HTTPRequest(
            lane: call.lane, method: call.method, url: "\(server)\(signed(call.target, call.isSigned ? session : nil))",
            headers: call.headers, body: packed ?? call.body, answerSizeMax: timeouts.answerSizeMax(call),
            times: timeouts.times(for: call))
        request.headers.append(("User-Agent", "tidemark"))
        request.headers.append((WireDialect.header, "1"))
        if case .download = call.kind {} else { request.acceptsPacked = true }
        if call.body != nil, !call.headers.contains(where: { $0.0 == "Content-Type" }) {
            request.headers.append(("Content-Type", "application/json; charset=UTF-8"))
        }
        if call.isSigned, let authorization = authorization(session) { request.headers.append(authorization) }
        if packed != nil { request.headers.append(("Content-Encoding", "gzip")) }
        return request
    }
}

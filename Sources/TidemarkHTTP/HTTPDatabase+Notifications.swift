public import TidemarkCloud
import TidemarkModel
import TidemarkWire

extension HTTPDatabase {
    /// Returns a stream that signals changes of the database. `CloudDatabase` has the contract of `notifications()`.
    public func notifications() async throws(CloudError) -> AsyncStream<Void> {
        // The first answer has the position from which the polls continue, so no change from here on is missed.
        var news = try await news(since: nil)
        let database = self
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let listener = Task {
            let timeouts = database.cloud.timeouts
            var backoff = Backoff(first: timeouts.pause * 2, longest: timeouts.pauseMax)
            var atOnce = 0
            var (isRefused, isAway) = (false, false)
            while !Task.isCancelled {
                do throws(CloudError) {
                    let began = ContinuousClock.now
                    news = try await database.news(since: news.cursor)
                    atOnce = began.duration(to: .now) < timeouts.atOnce ? atOnce + 1 : 0
                    // After a failure, changes in the meantime may not be reported.
                    if news.isChanged || backoff.failures > 0 { continuation.yield() }
                    backoff.succeed()
                    (isRefused, isAway) = (false, false)
                    // Either there are many changes, or the server does not wait. A pause collects the changes into one element.
                    // If the pause is cancelled, the loop ends.
                    if atOnce >= 5 { try? await timeouts.wait(timeouts.pollPause) }
                } catch {
                    // An element is yielded when the session is refused and when the server becomes unreachable: the reader finds
                    // the error by its next request.
                    let wasRefused = isRefused
                    isRefused = error.code == .notAuthenticated
                    let isNewlyAway = !isAway && error.code == .networkUnavailable
                    if isNewlyAway { isAway = true }
                    if isNewlyAway || isRefused && !wasRefused { continuation.yield() }
                    // The server does not know the cursor any more, so the polls begin without one.
                    if error.code == .invalidArguments || error.code == .changeTokenExpired { news.cursor = nil }
                    try? await Task.sleep(for: max(backoff.fail(), error.retryAfter ?? .zero))
                }
            }
            continuation.finish()
        }
        continuation.onTermination = { _ in listener.cancel() }
        return stream
    }

    private struct ChangeReply {
        var cursor: String?
        var isChanged: Bool
    }

    private func news(since cursor: String?) async throws(CloudError) -> ChangeReply {
        let target = own("notifications") + (cursor.map { "?cursor=\(PercentCoding.encoded($0))" } ?? "")
        return try await cloud.value(HTTPCall(kind: cursor == nil ? .look : .poll, method: .get, target: target)) {
            node throws(CloudError) in
            ChangeReply(cursor: try node.required("cursor").asString(), isChanged: try node.bool("changed") ?? false)
        }
    }
}

public import TidemarkCloud
import TidemarkModel
import TidemarkWire

extension HTTPDatabase {
    /// Returns a stream that signals changes of the database. `CloudDatabase` has the contract of `notifications()`.
    public func notifications() async throws(CloudError) -> AsyncStream<Void> {
        // From here on nothing is missed: the first answer says where to go on.
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
                    // What has changed while nobody listened may not be told.
                    if news.isChanged || backoff.failures > 0 { continuation.yield() }
                    backoff.succeed()
                    (isRefused, isAway) = (false, false)
                    // A wait that is cancelled ends the loop.
                    // Much is written, or the server does not wait: either way what comes together is told together.
                    if atOnce >= 5 { try? await timeouts.wait(timeouts.pollPause) }
                } catch {
                    // Whoever may not listen any more finds out by looking; and so does who hears nothing because the server has gone.
                    let wasRefused = isRefused
                    isRefused = error.code == .notAuthenticated
                    let isNewlyAway = !isAway && error.code == .networkUnavailable
                    if isNewlyAway { isAway = true }
                    if isNewlyAway || isRefused && !wasRefused { continuation.yield() }
                    // A cursor that means nothing to the server any more: it begins anew.
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

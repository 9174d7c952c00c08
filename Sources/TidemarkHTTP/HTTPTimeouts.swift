/// The times that a client waits for a server, and the size of answers that it accepts.
package struct HTTPTimeouts: Sendable {
    package var connecting = Duration.seconds(10)
    /// The longest time without a byte of a body that is being sent or received.
    package var silence = Duration.seconds(75)
    /// The longest time without a byte of an answer that is not a piece of an asset; `nil` for the longest time of such a
    /// request.
    package var answerSilence: Duration?
    package var looking = Duration.seconds(60)
    package var changing = Duration.seconds(120)
    package var transferring = Duration.seconds(300)
    package var polling = Duration.seconds(75)
    /// The pause before the second try is up to twice this time, and the pause before the third try is longer. Listeners use it,
    /// too.
    package var pause = Duration.milliseconds(200)
    /// The longest pause between the tries of a listener.
    package var pauseMax = Duration.seconds(60)
    /// An answer to a poll within this time counts as immediate. After five such answers in a row, the next poll waits for
    /// `pollPause`.
    package var atOnce = Duration.milliseconds(100)
    package var pollPause = Duration.milliseconds(500)
    package var wait: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    /// The least speed in bytes per second that a request needs to end in time.
    package var slowest = 4096
    /// The least size of bodies that are compressed; bodies for this machine are not.
    package var leastPacked = 1024
    package var packsOnLoopback = false
    /// The most bytes of an answer that is not a piece of an asset.
    package var bytesPerAnswer = 64 << 20

    package init() {}

    /// Limits the time that a request waits without a byte being sent or received. Long polls are excepted.
    package mutating func limitSilence(to time: Duration) {
        connecting = min(connecting, time)
        silence = min(silence, time)
        answerSilence = time
    }

    /// The longest duration of a call. It grows with the number of bytes.
    func time(for call: HTTPCall) -> Duration {
        let time =
            switch call.kind {
            case .look: looking
            case .change: changing
            case .upload, .download: transferring
            case .poll: polling
            }
        return time + .seconds(call.byteCount / max(1, slowest))
    }

    /// The most bytes of a call's answer.
    func answerSizeMax(_ call: HTTPCall) -> Int {
        // The answer may be an error, which can be longer than a short piece.
        if case .download(let count) = call.kind { return max(count, 1 << 20) }
        return bytesPerAnswer
    }

    func times(for call: HTTPCall) -> HTTPTimes {
        let receiving =
            switch call.kind {
            case .look, .change, .upload: answerSilence ?? max(looking, changing)
            case .download: silence
            case .poll: polling
            }
        return HTTPTimes(connecting: connecting, sendingSilence: silence, receivingSilence: receiving, total: time(for: call))
    }
}

/// How long a client waits for a server, and how much it takes of an answer.
package struct HTTPTimeouts: Sendable {
    package var connecting = Duration.seconds(10)
    /// Without a byte of what is on its way, up or down.
    package var silence = Duration.seconds(75)
    /// Without a byte of the answer to what is no piece of an asset; `nil` for as long as it may take in all.
    package var answerSilence: Duration?
    package var looking = Duration.seconds(60)
    package var changing = Duration.seconds(120)
    package var transferring = Duration.seconds(300)
    package var polling = Duration.seconds(75)
    /// Before the second try, up to twice that; longer before the third. A listener begins with it, too.
    package var pause = Duration.milliseconds(200)
    /// The longest pause between the tries of a listener.
    package var pauseMax = Duration.seconds(60)
    /// An answer to a listener that comes within this time has not waited for news; from the fifth in a row on, the next question waits.
    package var atOnce = Duration.milliseconds(100)
    package var pollPause = Duration.milliseconds(500)
    package var wait: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    /// Bytes a second: less is as nothing.
    package var slowest = 4096
    /// Bodies of so many bytes are packed, unless they go to this machine.
    package var leastPacked = 1024
    package var packsOnLoopback = false
    /// Bytes of an answer that is no piece of an asset.
    package var bytesPerAnswer = 64 << 20

    package init() {}

    /// Gives up connections on which nothing moves after that time, whatever they wait for: news excepted, which may be long in coming.
    package mutating func limitSilence(to time: Duration) {
        connecting = min(connecting, time)
        silence = min(silence, time)
        answerSilence = time
    }

    /// How long a call may take in all: what is large, and moves, may take longer.
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

    /// Bytes that its answer may have.
    func answerSizeMax(_ call: HTTPCall) -> Int {
        // An error's text can be longer than a short piece.
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

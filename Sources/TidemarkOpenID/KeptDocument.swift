import TidemarkModel

/// A document of a provider, which is fetched when it is needed and kept for a while. A request during a fetch waits for that
/// fetch.
final class KeptDocument<Document: Sendable>: Sendable {
    private struct State {
        var kept: (document: Document, at: Int64)?
        /// The last failure, so that not every request asks a provider that can't be reached.
        var failure: (error: OpenIDError, at: Int64)?
        var running: Task<Result<Document, OpenIDError>, Never>?
    }

    /// How a request gets the document.
    private enum Way {
        case known(Result<Document, OpenIDError>)
        case fetching(Task<Result<Document, OpenIDError>, Never>, before: Document?)
    }

    private let state = LockedValue(State())
    private let fetch: @Sendable () async throws(OpenIDError) -> Document
    /// The clock: microseconds since 1970 UTC.
    private let now: @Sendable () -> Int64

    private static var second: Int64 { 1_000_000 }
    /// How long a document counts as new.
    private static var newFor: Int64 { 3_600 * second }
    /// How long a document is used that can't be fetched again.
    private static var goodFor: Int64 { 24 * 3_600 * second }
    /// The pause before a document is fetched again after a failure.
    private static var pause: Int64 { 5 * second }
    /// The pause before a document is fetched again because it lacks something.
    private static var demandPause: Int64 { 30 * second }

    init(now: @escaping @Sendable () -> Int64, _ fetch: @escaping @Sendable () async throws(OpenIDError) -> Document) {
        (self.now, self.fetch) = (now, fetch)
    }

    /// Returns the document.
    ///
    /// - Parameter isLacking: Whether the kept document lacks something. Then it is fetched again, unless it is too new for that.
    func document(isLacking: Bool = false) async throws(OpenIDError) -> Document {
        let time = now()
        let way: Way = state.withLock { state in
            if let kept = state.kept, time - kept.at < (isLacking ? Self.demandPause : Self.newFor) {
                return .known(.success(kept.document))
            }
            let before = state.kept.flatMap { time - $0.at < Self.goodFor ? $0.document : nil }
            if let running = state.running { return .fetching(running, before: before) }
            if let failure = state.failure, time - failure.at < Self.pause {
                return .known(before.map { Result.success($0) } ?? .failure(failure.error))
            }
            let task = Task { await self.run() }
            state.running = task
            return .fetching(task, before: before)
        }
        switch way {
        case .known(let result): return try result.get()
        case .fetching(let task, let before):
            switch await task.value {
            case .success(let document): return document
            case .failure(let error):
                guard let before else { throw error }
                return before
            }
        }
    }

    private func run() async -> Result<Document, OpenIDError> {
        let result: Result<Document, OpenIDError>
        do throws(OpenIDError) {
            result = .success(try await fetch())
        } catch {
            result = .failure(error)
        }
        let time = now()
        state.withLock { state in
            state.running = nil
            switch result {
            case .success(let document): (state.kept, state.failure) = ((document, time), nil)
            case .failure(let error): state.failure = (error, time)
            }
        }
        return result
    }
}

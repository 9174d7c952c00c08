import HummingbirdCore
import NIOCore

/// Answers each request in a task of its own.
///
/// A task keeps the memory of its deepest call until it ends. In a task that lasts as long as its connection, thousands of
/// resting connections would keep the memory of thousands of requests.
struct RequestTask: Sendable {
    let responder: CloudResponder

    func respond(to request: Request, _ writer: consuming ResponseWriter, _ channel: any Channel) async throws {
        let handover = ResponseWriterBox(writer)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [responder] in try await responder.respond(to: request, handover.take(), channel) }
            try await group.next()
        }
    }

    /// Passes the only writer from one task to the other.
    ///
    /// `@unchecked Sendable`: the writer is set before the other task begins, and taken once.
    private final class ResponseWriterBox: @unchecked Sendable {
        private var writer: ResponseWriter?

        init(_ writer: consuming ResponseWriter) { self.writer = consume writer }

        func take() -> ResponseWriter { writer.take()! }
    }
}

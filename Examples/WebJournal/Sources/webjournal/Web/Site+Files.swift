import HTTPTypes
import Hummingbird
import NIOCore
import ServiceLifecycle
import Tidemark

/// The files of the pages, and the stream of changes.
extension Site {
    func addFiles(_ router: Router<VisitContext>) {
        let files: [(RouterPath, String, [UInt8])] = [
            ("/style.css", "text/css; charset=utf-8", PackageResources.style_css),
            ("/live.js", "text/javascript; charset=utf-8", PackageResources.live_js),
            ("/icon.svg", "image/svg+xml", PackageResources.icon_svg),
        ]
        for (path, type, bytes) in files {
            let content = ByteBuffer(bytes: bytes)
            router.get(path) { _, _ in
                // Pages name them with a number of this start of the program.
                Response(
                    status: .ok, headers: [.contentType: type, .cacheControl: "public, max-age=86400"],
                    body: ResponseBody(byteBuffer: content))
            }
        }
    }

    /// Tells a page when its journal changes, as server-sent events. The first event comes at once: something may have changed since the page
    /// was made. What has changed the page asks for itself.
    func changes(_ context: VisitContext) async throws -> Response {
        let session = try context.signedIn
        let journal = session.journal
        try await streams.check(for: journal.person)
        let changed = await journal.changed()
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
            body: ResponseBody { [streams, sessions, pulse] writer in
                try await streams.begin(for: journal.person)
                do {
                    try await Self.write(changed, to: &writer, pulse: pulse) { await sessions.has(session.id) }
                } catch {
                    // The browser has gone away.
                    await streams.end(for: journal.person)
                    throw error
                }
                await streams.end(for: journal.person)
            })
    }

    /// Writes until the journal is closed, or the session has ended: then the page asks again, and is told to sign in.
    private static func write(
        _ changed: AsyncStream<Void>, to writer: inout any ResponseBodyWriter, pulse: Duration,
        while goesOn: @escaping @Sendable () async -> Bool
    ) async throws {
        let (events, continuation) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingNewest(2))
        let following = Task {
            for await _ in changed { continuation.yield("event: change\ndata:\n\n") }
            continuation.finish()
        }
        // A line that is no event finds out whether somebody is still there.
        let beating = Task {
            while await goesOn() {
                try await Task.sleep(for: pulse)
                continuation.yield(":\n\n")
            }
            continuation.finish()
        }
        defer {
            following.cancel()
            beating.cancel()
        }
        try await writer.write(ByteBuffer(string: "retry: 1000\nevent: change\ndata:\n\n"))
        for try await event in events.cancelOnGracefulShutdown() { try await writer.write(ByteBuffer(string: event)) }
        try await writer.finish(nil)
    }
}

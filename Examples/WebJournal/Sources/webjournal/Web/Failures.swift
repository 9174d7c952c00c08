import HTTPTypes
import Hummingbird
import NIOCore
import Tidemark

/// Makes pages of errors.
struct Failures: RouterMiddleware {
    func handle(
        _ request: Request, context: VisitContext, next: (Request, VisitContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch is SignInNeeded {
            return signIn(for: request)
        } catch let error as StoreError where error.code == .closed {
            // The session ended while its request was answered.
            return signIn(for: request)
        } catch let error as HTTPError where error.status == .notFound {
            return answer(PageError.missing)
        } catch let error as HTTPError {
            return answer(PageError(Int(error.status.code), "Not understood", error.body ?? error.status.reasonPhrase))
        } catch {
            return answer(PageError(telling: error))
        }
    }

    /// After signing in, the person is where they wanted to go.
    private func signIn(for request: Request) -> Response {
        let next = request.method == .get && request.uri.path != "/changes" ? request.uri.path : "/"
        let isPlain = next.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != 0x23 && $0 != 0x26 && $0 != 0x2b && $0 != 0x25 }
        return Site.redirect(to: next == "/" || !isPlain ? "/sign-in" : "/sign-in?next=\(next)")
    }

    private func answer(_ error: PageError) -> Response {
        var response = Response(status: error.status)
        let page = Layout(session: nil, notice: nil).failure(error)
        response.headers[.contentType] = "text/html; charset=utf-8"
        response.body = ResponseBody(byteBuffer: ByteBuffer(string: page.text))
        // What was not read of a request would be taken for the next one.
        if error.status == .contentTooLarge { response.headers[.connection] = "close" }
        return response
    }
}

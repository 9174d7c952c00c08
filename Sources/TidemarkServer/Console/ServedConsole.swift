import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import TidemarkAdministration
import TidemarkCloud
import TidemarkConsole
import TidemarkIdentity
import TidemarkModel

/// Hands requests under `/console` to the console.
struct ServedConsole: Sendable {
    private let console: Console

    /// The most bytes of a form: a record has at most a megabyte, and a form what it had before as well, both encoded.
    private static let formSize = 16 << 20
    /// Names and values of a form: two for each field of a record.
    private static let formValues = 5_000
    private static let pieceSize = 256 << 10

    /// What the names of its operations begin with.
    static let prefix = "console"

    /// - Parameter dispatcher: Notifies devices of what is changed.
    init(signIn: SignIn, history: RequestHistory, dispatcher: NotificationDispatcher?, logger: Logger) {
        var changed: (@Sendable (RecordChange) -> Void)?
        if let dispatcher { changed = { dispatcher.tell(.init($0)) } }
        console = Console(signIn.cloud, signIn.access, figures: history, changed: changed) { email, address in
            do {
                let (_, account, isKnown) = try await signIn.attempt(email: email, address: address, deviceToken: nil)
                return Console.Attempt(account: account, isKnown: isKnown)
            } catch let refusal as Refusal where refusal.status == .tooManyRequests {
                throw Console.Delay(seconds: Int(refusal.error.retryAfter?.components.seconds ?? 1))
            }
        } report: { reason in
            logger.error("the console has failed", metadata: ["error": "\(reason)"])
        }
    }

    var operations: [Operation] {
        Console.pages.flatMap { page in
            let (path, name) = (
                page.isEmpty ? Self.root : "\(Self.root)/\(page)", page.isEmpty ? Self.prefix : "\(Self.prefix).\(page)"
            )
            return [
                Operation(name, .get, path, body: .none) { await answer($0, page, isPost: false) },
                Operation("\(name).post", .post, path, body: .bytes(most: Self.formSize), isChanging: true) {
                    await answer($0, page, isPost: true)
                },
            ]
        }
    }

    private static let root = "/console"
    private static let fetchSite = HTTPField.Name("Sec-Fetch-Site")!
    private static let fetchMode = HTTPField.Name("Sec-Fetch-Mode")!

    private func answer(_ call: Call, _ page: String, isPost: Bool) async -> Reply {
        let form =
            isPost ? TextCoding.pairs(Substring(String(decoding: call.body, as: UTF8.self)), most: Self.formValues) : [:]
        let reply = await console.reply(
            to: ConsoleRequest(
                isPost: isPost, page: page, query: call.query, form: form, cookies: call.headers[.cookie] ?? "",
                origin: call.headers[.origin], fetchSite: call.headers[Self.fetchSite], fetchMode: call.headers[Self.fetchMode],
                userAgent: call.headers[.userAgent] ?? "", address: call.address, baseURL: call.baseURL))
        var headers = HTTPFields()
        for (name, value) in reply.headers { if let name = HTTPField.Name(name) { headers[name] = value } }
        let body: Reply.Body
        switch reply.body {
        case .text(let text): body = .text(text, type: reply.type)
        case .pieces(let count, let read):
            body = .stream(type: reply.type, count: count) { writer in
                var offset: Int64 = 0
                while offset < count {
                    let piece = try await read(offset, Int(min(Int64(Self.pieceSize), count - offset)))
                    // What is missing has the connection break off, so that nobody takes a part for all.
                    guard !piece.isEmpty else { return }
                    try await writer.write(ByteBuffer(bytes: piece))
                    offset += Int64(piece.count)
                }
            }
        }
        return Reply(status: HTTPResponse.Status(code: reply.status), headers: headers, body: body)
    }
}

extension NotificationDispatcher.ChangeSummary {
    /// What an operator has changed.
    init(_ change: RecordChange) {
        let event: Subscription.Event =
            switch change.event {
            case .created: .create
            case .updated: .update
            case .deleted: .delete
            }
        self.init(
            container: change.place.container, environment: change.place.environment, isPublic: change.place.scope == .public,
            zoneName: change.place.zone, zoneOwner: change.zoneOwner,
            changes: [.init(record: change.record, type: change.type, event: event)])
    }
}

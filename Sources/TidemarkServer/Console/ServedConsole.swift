import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import TidemarkAdministration
import TidemarkCloud
import TidemarkConsole
import TidemarkIdentity
import TidemarkModel

/// Passes requests under `/console` to the console.
struct ServedConsole: Sendable {
    private let console: Console

    /// Pages whose forms have records, files or schemas. Only signed-in users may send large bodies to them, since others could
    /// fill the server's memory for bodies.
    private static let large: Set = ["record", "schema"]
    /// The most bytes of other forms, and of all forms without a session.
    private static let formSize = 64 << 10
    /// The most names and values of a form: two for each field of a record.
    private static let formValues = 5_000

    /// The prefix of its operations' names.
    static let prefix = "console"

    /// - Parameter dispatcher: Notifies devices of changes.
    init(signIn: SignIn, history: RequestHistory, dispatcher: NotificationDispatcher?, logger: Logger) {
        var changed: (@Sendable (RecordChange) -> Void)?
        if let dispatcher { changed = { dispatcher.tell(.init($0)) } }
        let figures = ServedFigures(requestHistory: history, dispatcher: dispatcher)
        console = Console(signIn.cloud, signIn.access, figures: figures, changed: changed, attempt: signIn.countPageAttempt) {
            reason in
            logger.error("the console has failed", metadata: ["error": "\(reason)"])
        }
    }

    var operations: [Operation] {
        Console.pages.flatMap { page in
            let (path, name) = (
                page.isEmpty ? Self.root : "\(Self.root)/\(page)", page.isEmpty ? Self.prefix : "\(Self.prefix).\(page)"
            )
            var post = Operation("\(name).post", .post, path, body: .bytes(most: Self.formSize), isChanging: true) {
                await answer($0, page, isPost: true)
            }
            if Self.large.contains(page) {
                post.largerBody = Operation.LargerBody(most: Int(ConsoleRequest.formSize)) {
                    try await console.hasSession(cookies: $0[.cookie] ?? "")
                }
            }
            return [Operation(name, .get, path, body: .none) { await answer($0, page, isPost: false) }, post]
        }
    }

    private static let root = "/console"

    private func answer(_ call: Call, _ page: String, isPost: Bool) async -> Reply {
        Reply(await console.reply(to: ConsoleRequest(call, page, isPost: isPost, formValues: Self.formValues)))
    }
}

extension NotificationDispatcher.ChangeSummary {
    /// Makes the summary of an operator's change.
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

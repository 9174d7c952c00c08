import HTTPTypes
import Logging
import TidemarkAdministration
import TidemarkConsole
import TidemarkModel

/// Passes requests under `/account` and `/share` to the pages of people.
struct ServedPeople: Sendable {
    private let pages: PeoplePages

    /// The most bytes of a form.
    private static let formSize = 64 << 10
    /// The most names and values of a form.
    private static let formValues = 50

    init(signIn: SignIn, mail: PeopleMail?, provider: PeopleProvider?, logger: Logger) {
        pages = PeoplePages(
            signIn.cloud, signIn.access, mail: mail, provider: provider, attempt: signIn.countPageAttempt,
            report: { reason in logger.error("a page has failed", metadata: ["error": "\(reason)"]) },
            reportUnread: { unread in
                logger.error(
                    "a container can't be read for a person's page",
                    metadata: [
                        "container": "\(unread.container)", "environment": "\(unread.environment.rawValue)",
                        "part": "\(unread.part.rawValue)", "error": "\(unread.error)",
                    ])
            },
            countAttempt: signIn.countOnly)
    }

    /// The prefix of its operations' names.
    static let prefix = "people"

    var operations: [Operation] {
        let account = PeoplePages.pages.flatMap { page in
            let path = page.isEmpty ? Address.peopleRoot : "\(Address.peopleRoot)/\(page)"
            return two(page.isEmpty ? "\(Self.prefix).account" : "\(Self.prefix).account.\(page)", path) { call, isPost in
                await pages.reply(to: ConsoleRequest(call, page, isPost: isPost, formValues: Self.formValues))
            }
        }
        let share = two("\(Self.prefix).share", "\(Address.shareRoot)/{container}/{environment}/{link}") { call, isPost in
            await pages.reply(
                to: ConsoleRequest(call, "", isPost: isPost, formValues: Self.formValues),
                link: PeoplePages.Link(
                    container: call.container, environment: call.environment, token: call.parameters["link"] ?? ""))
        }
        // Programs that look for an endpoint there are told that there is none.
        let root = Operation("\(Self.prefix).root", .get, "/", body: .none, isOpen: true) { call in
            guard call.headers[.accept]?.lowercased().contains("text/html") == true else { throw Refusal.noHandler }
            return Reply(.redirect(to: Address(under: Address.peopleRoot)))
        }
        return account + share + [root]
    }

    private func two(
        _ id: String, _ path: String, _ answer: @escaping @Sendable (Call, Bool) async -> ConsoleReply
    ) -> [Operation] {
        [
            Operation(id, .get, path, body: .none, isOpen: true) { Reply(await answer($0, false)) },
            Operation("\(id).post", .post, path, body: .bytes(most: Self.formSize), isOpen: true, isChanging: true) {
                Reply(await answer($0, true))
            },
        ]
    }
}

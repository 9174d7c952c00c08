import ArgumentParser
import Tidemark
import TidemarkHTTP
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

struct ShareAccept: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept", abstract: "Accepts an invitation; the shared records go into the shared store.",
        usage: LinkArguments.usage(
            "accept",
            "[--email <address>] [--password-stdin] [--code-stdin] [--code-file <file>] [--device-name <name>] [--no-sync] [--json]"
        ),
        discussion: """
            \(LinkArguments.discussion)

            If no container is signed in there, the command asks for the address and the password of your account on that server, and \
            signs the container in; without a container on the command line it makes one. It asks on a terminal only; elsewhere name \
            --email and --password-stdin, and --code-stdin or --code-file if the account has a second factor.

            Exit code 66: the link is invalid, revoked, or belongs to another person; the cloud does not say which. Exit code 64: a \
            server's address was given instead of a link, or there is no terminal to ask on.

            Examples:
              tidemark share accept https://sync.example.org/share/journal/production/bPqv…
              tidemark share accept https://sync.example.org/share/journal/production/bPqv… \\
                  --email ben@example.org --password-stdin --device-name "Ben's laptop"
              tidemark share accept BensJournal.tidemark 'tidemark://share/bPqv…'
            """)

    @OptionGroup var arguments: LinkArguments

    @OptionGroup var first: SignInFirst

    @OptionGroup var afterwards: SyncAfterwards

    @Flag(help: "Prints one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let link = arguments.link
            let (container, sharing) = try await first.open(arguments)
            let share = try await sharing.container.acceptInvitation(link, in: sharing.databases)
            let permission = share.currentUser?.permission.title ?? ShareParticipant.Permission.unknown.title
            let owner = share.owner?.identity.title ?? "Unknown"
            try ShareOutcome.tell(
                "accepted \"\(share.caption)\" of \(owner)\(arguments.choice("into", container)): \(permission)", share: share,
                container: container,
                sync: try await afterwards.run(sharing), json: json)
        }
    }
}

struct ShareDecline: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decline", abstract: "Declines an invitation.", usage: LinkArguments.usage("decline", "[--json]"),
        discussion: """
            \(LinkArguments.discussion)

            After declining, joining needs a new invitation.

            Examples:
              tidemark share decline https://sync.example.org/share/journal/production/bPqv…
              tidemark share decline BensJournal.tidemark 'tidemark://share/bPqv…'
            """)

    @OptionGroup var arguments: LinkArguments

    @Flag(help: "Prints JSON.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let (container, link) = (try arguments.container(), arguments.link)
            let sharing = try await SharingAccess.open(container, for: link)
            try await sharing.container.declineInvitation(link, in: sharing.databases)
            try ShareOutcome.tell(
                "declined\(arguments.choice("with the account of", container))", container: container, json: json)
        }
    }
}

extension SharingAccess {
    /// Opens a container to follow a link.
    ///
    /// - Throws: The exit code if the container is not signed in to the link's cloud. The command that signs it in is printed
    ///   first.
    static func open(_ path: String, for link: String) async throws -> SharingAccess {
        let address = ShareAddress(link)
        let sharing: SharingAccess
        do {
            sharing = try await SharingAccess.open(path)
        } catch let failure as ContainerEvent.Failure where failure.code == SyncErrorCode.noAccount {
            guard let command = address.signIn(path) else { throw failure }
            throw ending(
                "\(failure.code): \(failure.reason). The link leads to \(address.server ?? ""): \(command)", .unavailable)
        } catch let error as StoreError where error.code == .notFound {
            guard let command = address.signIn(path) else { throw error }
            throw ending("\(error.message). To make it, sign in where the link leads: \(command)", .noInput)
        }
        try sharing.checkIsLink(link)
        let settings = sharing.access.settings
        let isElsewhere =
            address.server.map { $0 != settings.cloud } ?? false
            || address.container.map { $0 != settings.cloudContainer } ?? false
        let environment = sharing.access.directory.description.environment
        if !isElsewhere, let named = address.environment, address.server != nil, named != environment {
            throw ending(
                "the link leads to the \(named.rawValue) environment, and \(path) is a \(environment.rawValue) container; use another one",
                .usage)
        }
        guard isElsewhere, let command = address.signIn("ANOTHER.tidemark") else { return sharing }
        throw ending(
            """
            the link leads to the container '\(address.container ?? "default")' of \(address.server ?? ""), and \(path) is signed in to \
            '\(settings.cloudContainer)' of \(settings.cloud ?? ""). Use a container that is signed in there, or make one: \(command)
            """, .usage)
    }

    /// Checks that the text of a link is not the address of a server.
    fileprivate func checkIsLink(_ link: String) throws {
        guard let server = try? ServerAddress(link, allowsInsecure: true),
            server.path.isEmpty || server.description == access.settings.cloud
        else { return }
        throw ending(
            """
            \(server) is a server's address, and not a link to a share: that is as \(server)/share/…, and who shares makes one with \
            'tidemark share invite'. A server is named with 'tidemark account sign-in --server'
            """, .usage)
    }
}

import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

/// The page of a link into a share: the owner, the title, the recipient's role, and the ways to accept it.
struct SharePage {
    private let link: PeoplePages.Link
    private let request: ConsoleRequest
    /// The person who is signed in to their own pages in this browser.
    private let person: Person?
    private let pages: PeoplePages

    init(_ link: PeoplePages.Link, _ request: ConsoleRequest, _ person: Person?, _ pages: PeoplePages) {
        (self.link, self.request, self.person, self.pages) = (link, request, person, pages)
    }

    /// The number of bytes of a token's text.
    private static let tokenSize = 22...64

    /// - Parameter expired: The message for a form of an earlier session; `nil` for other requests.
    func reply(expired: String? = nil) async throws -> ConsoleReply {
        guard let preview = try await preview() else { return nowhere }
        if request.isPost {
            guard let person else {
                return PersonSignInPage.form(
                    request, pages, to: PersonSignInPage.destination(link),
                    error: "Your session has ended, and the share was not accepted. Sign in again.", status: 403)
            }
            if let expired { return try await show(preview, person, status: 403, error: expired) }
            do throws(AdministrationError) {
                try await person.own.acceptLink(link.token, in: link.container, link.environment)
            } catch {
                guard error.code == .notFound else { throw error }
                // The link is for somebody else, and the page says so.
                return try await show(preview, person, status: 403)
            }
            return .redirect(to: link.address.with("done", "1"))
        }
        return try await show(preview, person)
    }

    /// The preview of the share; `nil` if the link leads nowhere, whatever the reason.
    private func preview() async throws -> LinkPreview? {
        try await pages.credentials.refresh()
        guard Self.tokenSize.contains(link.token.utf8.count), try pages.credentials.hasContainer(link.container) else {
            return nil
        }
        try await pages.cloud.open(link.container, environment: link.environment)
        let database = try pages.cloud.database(
            .shared, of: link.container, environment: link.environment, account: person?.account.id)
        do {
            return try await database.linkPreview(link.token)
        } catch {
            guard error.code == .unknownItem else { throw error }
            return nil
        }
    }

    /// The page of a link that leads nowhere. It is the same for an unknown link, a revoked link and a link of a share that has
    /// ended.
    private var nowhere: ConsoleReply {
        PeopleLayout.page(
            person, title: "This link leads nowhere", status: 404,
            """
            <p>It was revoked, or what was shared is shared no longer, or a part of the address is missing. Ask who sent it for another one.</p>
            """)
    }

    private func show(
        _ preview: LinkPreview, _ person: Person?, status: Int = 200, error: String? = nil
    ) async throws -> ConsoleReply {
        let (shown, owner) = (Self.title(of: preview), Self.owner(of: preview))
        let url = request.baseURL + link.address.text
        return PeopleLayout.page(
            person, title: shown ?? "Something is shared with you", status: status,
            """
            \(SignInPage.alert(error))
            <p><strong>\(owner)</strong> \(Self.sharing(shown))</p>
            <div class="card"><dl class="facts">
            <dt>You may</dt><dd>\(Self.text(preview.permission))</dd>
            <dt>Your role</dt><dd>\(Self.text(preview.role))</dd>
            <dt>For</dt><dd>\(Self.text(whom: preview))</dd>
            </dl></div>
            \(try await acceptance(person))
            <h2>In the app</h2>
            <p><a class="button quiet" href="\(Self.appAddress(link, request.baseURL))">Open in the app</a></p>
            <h2>On the command line</h2>
            <pre class="link" tabindex="0">tidemark share accept \(url)</pre>
            """)
    }

    /// The part with the person's ways to accept the share, or with the note that they have.
    private func acceptance(_ person: Person?) async throws -> HTML {
        guard let person else {
            let address = Address(["sign-in"], under: Address.peopleRoot, query: [("to", PersonSignInPage.destination(link))])
            return """
                <div class="actions"><a class="button" href="\(address)">Sign in and accept here</a></div>
                """
        }
        let database = try pages.cloud.database(
            .shared, of: link.container, environment: link.environment, account: person.account.id)
        let metadata: ShareMetadata
        do {
            metadata = try await database.resolveLink(link.token)
        } catch {
            guard error.code == .unknownItem else { throw error }
            return Layout.notice(
                .warning,
                "The link is not for \(person.account.email): it is for another address, or you were removed. Sign out, and sign in with the one that was invited."
            )
        }
        if metadata.scope == .private { return Layout.notice(.info, "This is your own share.") }
        if metadata.participant?.acceptanceStatus == .accepted {
            return Layout.notice(
                .good, "You take part as \(person.account.email). The records come to your devices when they synchronise.")
        }
        return """
            <p>You are signed in as \(person.account.email).</p>
            <div class="actions">\(person.form(link.address, "accept", "<button>Accept</button>"))</div>
            """
    }

    // Words

    static func text(_ permission: ShareParticipant.Permission?) -> String {
        switch permission {
        case .readOnly: "read"
        case .readWrite: "read, add, change and delete"
        case .some(.none), .unknown: "nothing yet"
        case nil: "what your invitation says"
        }
    }

    /// The title of the share; `nil` if it has none.
    private static func title(of preview: LinkPreview) -> String? {
        preview.title.flatMap { $0.isEmpty ? nil : $0.count > 200 ? "\($0.prefix(200))…" : $0 }
    }

    private static func owner(of preview: LinkPreview) -> String { preview.owner ?? "Somebody" }

    private static func sharing(_ title: String?) -> String { "shares \(title.map { "“\($0)”" } ?? "records") with you." }

    /// The sentence that says who shares what; `nil` if the link leads nowhere.
    func sentence() async throws -> String? {
        try await preview().map { "\(Self.owner(of: $0)) \(Self.sharing(Self.title(of: $0)))" }
    }

    private static func text(_ role: ShareParticipant.Role?) -> String {
        switch role {
        case .administrator: "administrator: you can invite others"
        case .privateUser: "participant"
        case .publicUser: "participant, as everybody who has the link"
        case .owner: "owner"
        case .unknown, nil: "what your invitation says"
        }
    }

    private static func text(whom preview: LinkPreview) -> String {
        preview.isPersonal
            ? "one person, whose account was invited"
            : preview.role == .publicUser ? "everybody who has the link" : "everybody who was invited"
    }

    /// The address with which an app opens the link. Its scheme is the tool's own, and all other parts are encoded.
    private static func appAddress(_ link: PeoplePages.Link, _ baseURL: String) -> String {
        "tidemark://share/\(Address.encoded(link.token))?server=\(Address.encoded(baseURL))&container=\(Address.encoded(link.container))"
            + "&environment=\(link.environment.rawValue)"
    }
}

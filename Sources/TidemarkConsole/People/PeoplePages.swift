import Foundation
package import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
package import TidemarkEmbeddedCloud
package import TidemarkIdentity
package import TidemarkModel

/// The pages of people: of their own accounts, and of links into shares.
///
/// ```swift
/// let pages = PeoplePages(cloud, credentials, attempt: limits.attempt, report: logger.error)
/// let reply = await pages.reply(to: request)
/// ```
package final class PeoplePages: Sendable {
    /// A link into a share, by the parts of its address.
    package struct Link: Hashable, Sendable {
        package let container: String
        package let environment: StoreEnvironment
        package let token: String

        package init(container: String, environment: StoreEnvironment, token: String) {
            (self.container, self.environment, self.token) = (container, environment, token)
        }

        var address: Address { Address([container, environment.rawValue, token], under: Address.shareRoot) }
    }

    let cloud: EmbeddedCloud
    let credentials: CredentialStore
    /// Counts an attempt to sign in, or to enter the password again, like the console's.
    let attempt: @Sendable (_ email: String, _ address: String) async throws -> Console.Attempt
    /// Counts an attempt without looking up the account, so that it takes the same time for every address.
    let countAttempt: @Sendable (_ email: String, _ address: String) async throws -> Void
    /// Sends letters; `nil` if the server has no mail server.
    let mail: PeopleMail?
    /// The identity provider with which people sign in; `nil` for none.
    let provider: PeopleProvider?
    /// Writes a fault into the server's log.
    let report: @Sendable (String) -> Void
    /// Writes a container into the server's log that a page shows as unreadable.
    let reportUnread: @Sendable (UnreadContainer) -> Void
    private let archives = ArchiveTurns()

    package init(
        _ cloud: EmbeddedCloud, _ credentials: CredentialStore, mail: PeopleMail? = nil, provider: PeopleProvider? = nil,
        attempt: @escaping @Sendable (_ email: String, _ address: String) async throws -> Console.Attempt,
        report: @escaping @Sendable (String) -> Void,
        reportUnread: @escaping @Sendable (UnreadContainer) -> Void = { _ in },
        countAttempt: (@Sendable (_ email: String, _ address: String) async throws -> Void)? = nil
    ) {
        (self.cloud, self.credentials, self.mail, self.provider) = (cloud, credentials, mail, provider)
        (self.attempt, self.report, self.reportUnread) = (attempt, report, reportUnread)
        self.countAttempt = countAttempt ?? { _ = try await attempt($0, $1) }
    }

    /// The pages of accounts, by their names in the path.
    package static let pages = [
        "", "sign-in", "sign-out", "second-factor", "export", "delete", "password", "forgotten", "address", "provider",
        "callback", "style.css", "icon.svg",
    ]

    /// Answers a request. Nothing is thrown: an error is a page.
    ///
    /// - Parameter link: The link, if the request is for the page of a link.
    package func reply(to request: ConsoleRequest, link: Link? = nil) async -> ConsoleReply {
        var reply: ConsoleReply
        do {
            reply = try await answer(request, link)
        } catch let error as AdministrationError {
            reply = Self.failure(error, nil)
            if error.isForLog { report("\(error)") }
        } catch let delay as Console.Delay {
            reply = PersonSignInPage.form(request, self, error: Self.text(delay), status: 429)
            reply.headers.append(("Retry-After", String(delay.seconds)))
        } catch {
            report("\(error)")
            let known = AdministrationError(error)
            reply = Self.failure(known.code == .busy ? known : AdministrationError(.failed, "the server has failed"), nil)
        }
        ConsoleHeaders.add(to: &reply, isKept: link == nil && Console.open.contains(request.page) && reply.status == 200)
        return reply
    }

    static func text(_ delay: Console.Delay) -> String { delay.sentence }

    private func answer(_ request: ConsoleRequest, _ link: Link?) async throws -> ConsoleReply {
        guard request.isOwn else {
            throw AdministrationError(.forbidden, "this request was made by a page of another site; open the page itself")
        }
        let person = try await person(request)
        if let link {
            return try await SharePage(link, request, person, self).reply(expired: Self.expiry(of: person))
        }
        switch request.page {
        case "style.css": return ConsoleReply(200, type: "text/css; charset=utf-8", .text(Style.sheet))
        case "icon.svg": return ConsoleReply(200, type: "image/svg+xml", .text(Style.icon))
        case "password": return try await PasswordLinkPage(request, self).reply()
        case "address":
            return try await AddressLinkPage(request, person, self).reply(expired: Self.expiry(of: person))
        case "forgotten":
            guard let mail else {
                throw AdministrationError(.notFound, "this server sends no mail; who runs it makes you a link")
            }
            return try await ForgottenPasswordPage(request, self, mail).reply()
        case "sign-in":
            if request.isPost { return try await signIn(request) }
            guard person == nil else { return .redirect(to: PersonSignInPage.destination(request.query["to"] ?? "")) }
            return PersonSignInPage.form(request, self, share: await share(request.query["to"] ?? "", request))
        case "provider", "callback":
            if let provider { return try await ProviderPages(request, person, self, provider).reply() }
        default: break
        }
        let isSignOut = request.isPost && request.page == "sign-out" && request.isOfOwnPage
        guard let person else {
            // The session has ended already.
            guard !request.isPost || isSignOut else {
                return PersonSignInPage.form(after: request, self)
            }
            return .redirect(to: Address(["sign-in"], under: Address.peopleRoot))
        }
        // A form of an earlier session ends the session, too.
        if isSignOut { return try await signOut(person) }
        let expired = try Self.expiry(of: person)
        do {
            if let expired { return try await again(person, expired) }
            switch request.page {
            case "": return try await PersonPage(person, self).reply()
            case "sign-out" where request.isPost: return try await signOut(person)
            case "second-factor": return try await PersonFactorPage(person, self).reply()
            case "export" where request.isPost: return try await export(person)
            case "delete": return try await PersonDeletionPage(person, self).reply()
            default: throw AdministrationError(.notFound, "there is no such page")
            }
        } catch let error as AdministrationError {
            if error.isForLog { report("\(error)") }
            return Self.failure(error, person)
        }
    }

    /// The message for a form of an earlier session; `nil` for a form of this session, and without a form.
    ///
    /// - Throws: ``AdministrationError`` `forbidden` if the page of another site may have sent the form.
    private static func expiry(of person: Person?) throws(AdministrationError) -> String? {
        guard let person, person.request.isPost,
            !CredentialStore.isToken(person.request.form["token"] ?? "", of: person.session)
        else { return nil }
        guard person.request.isOfOwnPage else { throw UnsentForm.unknown }
        return Layout.message(of: UnsentForm.expired)
    }

    /// The page of a refused form, with the typed values.
    private func again(_ person: Person, _ reason: String) async throws -> ConsoleReply {
        var reply: ConsoleReply
        switch person.request.page {
        case "":
            let part = PersonPage.part(of: person.value("action"))
            reply = try await PersonPage(person, self).reply(error: (part, reason))
        case "export": reply = try await PersonPage(person, self).reply(error: (.export, reason))
        case "delete": reply = try await PersonDeletionPage(person, self).reply(error: reason)
        default: return Self.failure(UnsentForm.expired, person)
        }
        reply.status = 403
        return reply
    }

    static func failure(_ error: AdministrationError, _ person: Person?) -> ConsoleReply {
        let (status, title) = Layout.status(of: error)
        let (address, words) =
            person == nil
            ? (Address(["sign-in"], under: Address.peopleRoot), "To the page to sign in")
            : (Address(under: Address.peopleRoot), "Back to your account")
        let message = Layout.notice(.error, Layout.message(of: error))
        return PeopleLayout.page(
            person, title: title, status: status, message + "<p><a class=\"button quiet\" href=\"\(address)\">\(words)</a></p>")
    }

    // Sessions

    /// - Parameter cookie: The cookie of a session that the browser does not have yet; by default the request's cookie.
    private func person(_ request: ConsoleRequest, cookie: String? = nil) async throws -> Person? {
        guard let cookie = cookie ?? request.cookie(ConsoleHeaders.personCookieName(request)),
            let session = try await credentials.personSession(cookie),
            let account = try await cloud.account(id: session.account), account.status == .available
        else { return nil }
        var confirmation = Person.Confirmation.password
        if let provider, try await !credentials.hasPassword(account.id) {
            confirmation = .provider(provider.name, isDone: credentials.isConfirmed(session))
        }
        return Person(
            request: request, session: session,
            own: PersonalAccount(cloud, credentials, account, from: request.address, onUnread: reportUnread),
            confirmation: confirmation)
    }

    private func signIn(_ request: ConsoleRequest) async throws -> ConsoleReply {
        let email = (request.form["email"] ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
        let attempt = try await attempt(email, request.address)
        // For an account that can't be used, the answer is the same as for a wrong password.
        let account = attempt.account.flatMap { $0.status == .available ? $0.id : nil }
        let signedIn = try await credentials.signInToPages(
            request.form["password"] ?? "", account: account, code: request.form["code"] ?? "", device: request.userAgent,
            address: request.address, isKnown: attempt.isKnown, as: email)
        guard case .signedIn(let cookie) = signedIn else {
            let code = SignInPage.code(signedIn, isFirst: SignInPage.isWithoutCode(request))
            return PersonSignInPage.form(
                request, self, email: email, share: await share(request.form["to"] ?? "", request),
                error: code ?? "The e-mail address or the password is wrong.",
                needsCode: code != nil, status: 403)
        }
        let to = request.form["to"] ?? ""
        var reply = try await unsentPage(request, cookie) ?? .redirect(to: PersonSignInPage.destination(to))
        reply.headers.append(("Set-Cookie", ConsoleHeaders.personCookie(cookie, request)))
        return reply
    }

    /// The sentence on the share of the link to which a sign-in page leads; `nil` if it leads elsewhere, or the link leads
    /// nowhere.
    private func share(_ to: String, _ request: ConsoleRequest) async -> String? {
        guard let link = PersonSignInPage.link(to) else { return nil }
        // The sign-in page is shown without the sentence if the share can't be read.
        return try? await SharePage(link, request, nil, self).sentence()
    }

    /// The account's page with a form that was sent after the earlier session had ended.
    ///
    /// - Parameter cookie: The cookie of the new session.
    /// - Returns: `nil` if no form was carried, or the page can't be shown.
    private func unsentPage(_ request: ConsoleRequest, _ cookie: String) async throws -> ConsoleReply? {
        guard let unsent = UnsentForm(carriedBy: request) else { return nil }
        var asked = request
        (asked.page, asked.form, asked.query) = ("", unsent.fields, [:])
        do {
            guard let person = try await self.person(asked, cookie: cookie) else { return nil }
            let (part, reason) = (PersonPage.part(of: person.value("action")), Layout.message(of: UnsentForm.carried))
            var reply = try await PersonPage(person, self).reply(error: (part, reason))
            reply.status = 200
            return reply
        } catch is AdministrationError {
            return nil
        }
    }

    private func signOut(_ person: Person) async throws -> ConsoleReply {
        try await credentials.endPageSession(person.session.id)
        try await credentials.audit(
            AuditEvent(
                .accountSignOut, actor: person.account.id, account: person.account.id, address: person.request.address))
        return signedOut(person.request)
    }

    /// Sends the browser to the sign-in page, and removes its cookie.
    func signedOut(_ request: ConsoleRequest, _ note: String? = nil) -> ConsoleReply {
        var reply = ConsoleReply.redirect(to: Address(["sign-in"], under: Address.peopleRoot).with("note", note))
        reply.headers.append(("Set-Cookie", ConsoleHeaders.personCookie(nil, request)))
        return reply
    }

    /// Checks that a person has confirmed an action: by the password, in this form or recently, or recently at the identity
    /// provider if the account has no password. Each password that is entered counts as an attempt.
    ///
    /// - Returns: The message of the refusal; `nil` if the action is confirmed.
    func refusal(_ person: Person, isAlwaysAsked: Bool = true) async throws -> String? {
        if case .provider(let name, let isDone) = person.confirmation { return isDone ? nil : "Confirm with \(name) first." }
        if !isAlwaysAsked, credentials.isConfirmed(person.session) { return nil }
        do {
            _ = try await attempt(person.account.email, person.request.address)
        } catch let delay as Console.Delay {
            return Self.text(delay)
        }
        let isRight = try await credentials.confirm(
            person.session, password: person.request.form["password"] ?? "", device: person.request.userAgent,
            address: person.request.address)
        return isRight ? nil : "The password is wrong."
    }

    // Export

    private func export(_ person: Person) async throws -> ConsoleReply {
        if let refusal = try await refusal(person) {
            return try await PersonPage(person, self).reply(error: (.export, refusal))
        }
        return try await archives.reply(with: person.account.id) { () throws(AdministrationError) in
            try await person.own.export().file
        }
    }
}

/// A person who is signed in to their own pages, with their request.
struct Person: Sendable {
    let request: ConsoleRequest
    let session: PersonSession
    let own: PersonalAccount
    let confirmation: Confirmation
    var account: StoredAccount { own.account }

    /// The way in which the person confirms an important action.
    enum Confirmation: Hashable {
        case password
        /// A sign-in at the identity provider with this name, because the account has no password.
        case provider(String, isDone: Bool)
    }

    /// The part of a form with which the person confirms an action.
    var confirmationField: HTML {
        switch confirmation {
        case .password:
            return """
                <div class="field"><label>Your password now
                <input name="password" type="password" autocomplete="current-password" maxlength="1024" required></label></div>
                """
        case .provider(let name, isDone: true):
            return "<p class=\"hint\">You have shown at \(name) who you are. It counts for ten minutes.</p>"
        case .provider(let name, isDone: false):
            let address = Address(["provider"], under: Address.peopleRoot).with("confirm", request.page)
            return "<p><a class=\"button quiet\" href=\"\(address)\">Confirm with \(name) first</a></p>"
        }
    }

    /// A value of the form; `nil` if it is empty.
    func value(_ name: String) -> String? { request.form[name].flatMap { $0.isEmpty ? nil : $0 } }

    /// Whether the request is a form with this action. A form whose page is shown again was refused.
    func isRefused(_ action: String) -> Bool { request.isPost && value("action") == action }

    /// A form of a page, with the token that proves that the page has sent it.
    func form(_ address: Address, _ action: String, card: Bool = false, _ content: HTML) -> HTML {
        """
        <form\(HTML.when(card, " class=\"card\"")) method="post" action="\(address)"><input type="hidden" name="token" value="\(session.formToken)">
        <input type="hidden" name="action" value="\(action)">\(content)</form>
        """
    }
}

/// The frame of people's pages.
enum PeopleLayout {
    /// - Parameter refresh: An address to which the browser goes by itself.
    static func page(
        _ person: Person?, title: String, status: Int = 200, refresh: String? = nil, _ content: HTML
    ) -> ConsoleReply {
        let top: HTML =
            person.map { person in
                """
                <header class="top"><a class="brand" href="\(Address(under: Address.peopleRoot))">Tidemark</a>
                <div class="person"><a class="email" href="\(Address(under: Address.peopleRoot))">\(person.account.email)</a>
                \(person.form(Address(["sign-out"], under: Address.peopleRoot), "sign-out", "<button class=\"quiet\">Sign out</button>"))</div></header>
                """
            } ?? .none
        return ConsoleReply(
            status,
            Layout.document(
                title, of: .people, refresh: refresh,
                """
                \(top)
                <main id="content" class="\(person == nil ? "narrow" : "single")" tabindex="-1">
                <h1>\(title)</h1>
                \(content)
                </main>
                """))
    }
}

import Foundation
package import TidemarkAdministration
import TidemarkCloud
package import TidemarkEmbeddedCloud
package import TidemarkIdentity
import TidemarkModel

/// The console of a cloud: answers requests for its pages.
///
/// ```swift
/// let console = Console(cloud, credentials, attempt: limits.attempt, report: logger.error)
/// let reply = await console.reply(to: request)
/// ```
package struct Console: Sendable {
    /// A counted attempt to sign in.
    package struct Attempt: Sendable {
        package let account: StoredAccount?
        /// Whether there was a sign-in to the account from the same address before.
        package let isKnown: Bool

        package init(account: StoredAccount?, isKnown: Bool) { (self.account, self.isKnown) = (account, isKnown) }
    }

    /// The refusal of an attempt because there were too many.
    package struct Delay: Error {
        let seconds: Int

        package init(seconds: Int) { self.seconds = seconds }

        var sentence: String { "Too many attempts: wait \(seconds) seconds, then try again." }
    }

    let cloud: EmbeddedCloud
    let credentials: CredentialStore
    /// The figures of the server's requests; `nil` if there are none.
    let figures: (any ServerFigures)?
    /// Called after each change of a record.
    let changed: (@Sendable (RecordChange) -> Void)?
    /// Counts an attempt to sign in, by the typed e-mail address and the client's address. Throws ``Delay`` for too many
    /// attempts.
    let attempt: @Sendable (_ email: String, _ address: String) async throws -> Attempt
    let archives = ArchiveTurns()
    private let readings = ReadingMemory()
    /// Writes a fault into the server's log.
    let report: @Sendable (String) -> Void

    package init(
        _ cloud: EmbeddedCloud, _ credentials: CredentialStore, figures: (any ServerFigures)? = nil,
        changed: (@Sendable (RecordChange) -> Void)? = nil,
        attempt: @escaping @Sendable (_ email: String, _ address: String) async throws -> Attempt,
        report: @escaping @Sendable (String) -> Void
    ) {
        (self.cloud, self.credentials, self.figures, self.changed) = (cloud, credentials, figures, changed)
        (self.attempt, self.report) = (attempt, report)
    }

    /// The pages, by their names in the path.
    package static let pages: [String] =
        ["", "sign-in", "sign-out", "style.css", "icon.svg", LiveModule.name]
        + Section.allCases.map(\.rawValue).filter { !$0.isEmpty }
        + ["record", "account", "asset", "schema.json", "me"]

    /// The pages that everybody may read, because they have nothing of the cloud.
    static let open: Set = ["style.css", "icon.svg", LiveModule.name]

    /// Answers a request. Nothing is thrown: an error is a page.
    package func reply(to request: ConsoleRequest) async -> ConsoleReply {
        var reply: ConsoleReply
        do {
            reply = try await answer(request)
        } catch let error as AdministrationError {
            reply = Layout.failure(error, nil)
            report(internal: error)
        } catch let delay as Delay {
            reply = SignInPage.form(
                request, error: delay.sentence, status: 429)
            reply.headers.append(("Retry-After", String(delay.seconds)))
        } catch {
            report("\(error)")
            let known = AdministrationError(error)
            reply = Layout.failure(known.code == .busy ? known : AdministrationError(.failed, "the server has failed"), nil)
        }
        ConsoleHeaders.add(to: &reply, isKept: Self.open.contains(request.page) && reply.status == 200)
        return reply
    }

    /// Writes an error into the log of which pages show less.
    private func report(internal error: AdministrationError) {
        if error.isForLog { report("\(error)") }
    }

    private func answer(_ request: ConsoleRequest) async throws -> ConsoleReply {
        guard request.isOwn else {
            throw AdministrationError(.forbidden, "this request was made by a page of another site; open the console itself")
        }
        switch request.page {
        case "style.css": return ConsoleReply(200, type: "text/css; charset=utf-8", .text(Style.sheet))
        case LiveModule.name: return ConsoleReply(200, type: "text/javascript; charset=utf-8", .text(LiveModule.source))
        case "icon.svg": return ConsoleReply(200, type: "image/svg+xml", .text(Style.icon))
        case "sign-in":
            if request.isPost { return try await signIn(request) }
            if try await session(request) != nil { return .redirect(to: Address()) }
            return SignInPage.form(request)
        default: break
        }
        let isSignOut = request.isPost && request.page == "sign-out" && request.isOfOwnPage
        guard let (session, account) = try await session(request) else {
            // The session has ended already.
            if isSignOut { return .redirect(to: Address(["sign-in"])) }
            guard !request.isPost else {
                return SignInPage.form(after: request)
            }
            return .redirect(to: Address(["sign-in"]).with("to", request.page.isEmpty ? nil : SignInPage.destination(request)))
        }
        // A form of an earlier session ends the session, too.
        if isSignOut { return try await signOut(session, request) }
        if request.isPost {
            guard CredentialStore.isToken(request.form["token"] ?? "", of: session) else {
                guard request.isOfOwnPage else { throw UnsentForm.unknown }
                let context = try await Context(request, session, account, administration(session, request))
                return try await refusal(of: UnsentForm.expired, context) ?? Layout.failure(UnsentForm.expired, context)
            }
            if request.page == "sign-out" { return try await signOut(session, request) }
        }
        let context = try await Context(request, session, account, administration(session, request))
        do {
            return try await page(context)
        } catch let error as AdministrationError {
            report(internal: error)
            return try await refusal(of: error, context) ?? Layout.failure(error, context)
        }
    }

    private func administration(_ session: ConsoleSession, _ request: ConsoleRequest) -> Administration {
        Administration(cloud, credentials, by: .console(session.operator, address: request.address), changed: changed)
    }

    /// The page of a refused form, with the reason and the typed values.
    ///
    /// - Returns: `nil` if the request was no form, or its page can't be shown either.
    private func refusal(of error: AdministrationError, _ context: Context) async throws -> ConsoleReply? {
        guard context.request.isPost, error.code != .failed else { return nil }
        do {
            var reply = try await page(context.refused(error))
            guard reply.status == 200 else { return nil }
            reply.status = Layout.status(of: error).0
            return reply
        } catch is AdministrationError {
            return nil
        }
    }

    private func page(_ context: Context) async throws -> ConsoleReply {
        switch context.request.page {
        case Section.overview.rawValue: try await OverviewPage(context, figures).reply()
        case Section.records.rawValue: try await RecordsPage(context).reply()
        case "record": try await RecordPage(context, self).reply()
        case "asset": try await AssetPage(context, readings).reply()
        case Section.schema.rawValue: try await SchemaPage(context, self).reply()
        case "schema.json": try await SchemaPage(context, self).file()
        case Section.zones.rawValue: try await ZonesPage(context, self).reply()
        case Section.accounts.rawValue: try await AccountsPage(context, self).reply()
        case "account": try await AccountPage(context, self).reply()
        case Section.access.rawValue: try await AccessPage(context, self).reply()
        case "me": try await OwnPage(context, self).reply()
        case Section.activity.rawValue: try await ActivityPage(context, figures).reply()
        default: throw AdministrationError(.notFound, "there is no such page")
        }
    }

    // Sessions

    /// Whether a request's cookies include the cookie of a valid session.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`; `CloudError` if the accounts can't be read.
    package func hasSession(cookies: String) async throws -> Bool {
        // The cookie has another name over TLS, so both names are tried.
        for baseURL in ["https://localhost", "http://localhost"] {
            if try await session(ConsoleRequest(page: "", cookies: cookies, isBackground: true, baseURL: baseURL)) != nil {
                return true
            }
        }
        return false
    }

    /// The session of a request, with its account; `nil` if there is none, or its account can't be used.
    private func session(_ request: ConsoleRequest) async throws -> (ConsoleSession, StoredAccount)? {
        guard let cookie = request.cookie(ConsoleHeaders.cookieName(request)),
            let session = try await credentials.consoleSession(cookie, isUse: !request.isBackground),
            let account = try await cloud.account(id: session.operator.id), account.status == .available
        else { return nil }
        return (session, account)
    }

    private func signIn(_ request: ConsoleRequest) async throws -> ConsoleReply {
        let email = (request.form["email"] ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
        let attempt = try await attempt(email, request.address)
        // For an account that can't be used, the answer is the same as for a wrong password.
        let account = attempt.account.flatMap { $0.status == .available ? $0.id : nil }
        let signedIn = try await credentials.signInToConsole(
            request.form["password"] ?? "", account: account, code: request.form["code"] ?? "", device: request.userAgent,
            address: request.address,
            isKnown: attempt.isKnown, as: email)
        guard case .signedIn(let cookie) = signedIn else {
            let code = SignInPage.code(signedIn, isFirst: SignInPage.isWithoutCode(request))
            let error = code ?? "The e-mail address or the password is wrong, or the account is no operator."
            return SignInPage.form(request, email: email, error: error, needsCode: code != nil, status: 403)
        }
        let to = request.form["to"] ?? ""
        var reply = try await unsentPage(request, to, cookie) ?? .redirect(to: SignInPage.destination(to))
        reply.headers.append(("Set-Cookie", ConsoleHeaders.cookie(cookie, request)))
        return reply
    }

    /// The page of a form that was sent after the earlier session had ended, with the typed values.
    ///
    /// - Parameter cookie: The cookie of the new session.
    /// - Returns: `nil` if no form was carried, or its page can't be shown.
    private func unsentPage(_ request: ConsoleRequest, _ to: String, _ cookie: String) async throws -> ConsoleReply? {
        let page = String(to.prefix { $0 != "?" })
        guard let unsent = UnsentForm(carriedBy: request), Self.pages.contains(page), !Self.open.contains(page),
            let session = try await credentials.consoleSession(cookie),
            let account = try await cloud.account(id: session.operator.id), account.status == .available
        else { return nil }
        var asked = request
        (asked.page, asked.form, asked.query) = (page, unsent.fields, [:])
        do {
            let context = try await Context(asked, session, account, administration(session, asked))
            var reply = try await refusal(of: UnsentForm.carried, context)
            reply?.status = 200
            return reply
        } catch is AdministrationError {
            return nil
        }
    }

    private func signOut(_ session: ConsoleSession, _ request: ConsoleRequest) async throws -> ConsoleReply {
        try await credentials.endConsoleSession(session)
        try await credentials.audit(
            AuditEvent(.consoleSignOut, actor: session.operator.id, account: session.operator.id, address: request.address))
        var reply = ConsoleReply.redirect(to: Address(["sign-in"]))
        reply.headers.append(("Set-Cookie", ConsoleHeaders.cookie(nil, request)))
        return reply
    }

    // Confirmation

    /// Checks that an action that can't be undone is confirmed: the user has seen the question, and has entered the password
    /// recently.
    ///
    /// - Parameters:
    ///   - title: The page's heading, which names the action; by default the button's text as a question.
    ///   - details: More about the action, below the question.
    ///   - mark: The text of a box that has to be marked as well; `nil` for none.
    ///   - isHarmless: Whether the action removes nothing.
    ///   - isAlwaysAsked: Whether the password is asked for even if it was entered recently.
    /// - Returns: The page that asks; `nil` if the action is confirmed.
    func confirmation(
        _ context: Context, _ question: String, title: String? = nil, details: HTML = .none, mark: String? = nil,
        _ button: String, isHarmless: Bool = false, isAlwaysAsked: Bool = false
    ) async throws -> ConsoleReply? {
        let request = context.request
        let isEntered = !isAlwaysAsked && credentials.isConfirmed(context.session)
        var page = ConfirmationPage(
            context: context, title: title ?? "\(button)?", question: question, details: details, mark: mark, button: button,
            isHarmless: isHarmless, isEntered: isEntered, isAlwaysAsked: isAlwaysAsked)
        guard request.form["confirmed"] != nil else { return page.reply() }
        guard mark == nil || request.form["marked"] != nil else {
            return page.reply(error: "Nothing is done: mark the box if you are sure.", status: 400)
        }
        if isEntered { return nil }
        page.isEntered = false
        do {
            _ = try await attempt(context.account.email, request.address)
        } catch let delay as Delay {
            var reply = page.reply(error: delay.sentence, status: 429)
            reply.headers.append(("Retry-After", String(delay.seconds)))
            return reply
        }
        let isRight = try await credentials.confirm(
            context.session, password: request.form["password"] ?? "", device: request.userAgent, address: request.address)
        return isRight ? nil : page.reply(error: "The password is wrong.", status: 403)
    }
}

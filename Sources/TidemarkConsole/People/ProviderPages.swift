import Foundation
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkOpenID

/// The pages between this server and an identity provider: the page that sends the browser there, and the page to which it comes
/// back.
struct ProviderPages {
    private let request: ConsoleRequest
    /// The person who is signed in to their own pages in this browser.
    private let person: Person?
    private let pages: PeoplePages
    private let provider: PeopleProvider

    init(_ request: ConsoleRequest, _ person: Person?, _ pages: PeoplePages, _ provider: PeopleProvider) {
        (self.request, self.person, self.pages, self.provider) = (request, person, pages, provider)
    }

    private var name: String { provider.name }
    private var credentials: CredentialStore { pages.credentials }

    func reply() async throws -> ConsoleReply {
        switch (request.page, request.isPost) {
        case ("provider", false): return try await begin()
        case ("provider", true): return try await enterCode()
        case ("callback", false): return try await callback()
        default: throw AdministrationError(.notFound, "there is no such page")
        }
    }

    // To the provider

    private func begin() async throws -> ConsoleReply {
        if let form = request.query["app"] {
            return try await redirect(.app(form: form, staysSignedIn: request.query["stay"] == "1"))
        }
        if let page = request.query["confirm"] {
            guard let person else { return .redirect(to: Address(["sign-in"], under: Address.peopleRoot)) }
            return try await redirect(.confirm(session: person.session.id, to: page))
        }
        let to = request.query["to"] ?? ""
        guard person == nil else { return .redirect(to: PersonSignInPage.destination(to)) }
        return try await redirect(.pages(to: to))
    }

    private func redirect(_ purpose: ProviderSignIn.Purpose) async throws -> ConsoleReply {
        guard let signIn = ProviderSignIn(purpose, at: credentials.time) else {
            throw AdministrationError(.invalid, "the address is too long; go back, and begin again")
        }
        var reply: ConsoleReply
        do throws(OpenIDError) {
            reply = .redirect(toOther: try await address(signIn))
        } catch {
            return failure(error)
        }
        reply.headers.append(("Set-Cookie", signIn.cookie(request, credentials)))
        if case .app = purpose { Self.keepOpener(&reply) }
        return reply
    }

    private func address(_ signIn: ProviderSignIn) async throws(OpenIDError) -> String {
        var asksAgain = false
        if case .confirm = signIn.purpose { asksAgain = true }
        return try await provider.client.authorizationAddress(
            signIn.secret, redirectURI: provider.redirectURI, asksAgain: asksAgain)
    }

    /// The page that leads from a form to the provider. The form's answer can't redirect to the provider itself, because browsers
    /// apply the pages' policy to redirects of forms, too.
    static func bridge(_ person: Person, _ pages: PeoplePages, _ provider: PeopleProvider) async throws -> ConsoleReply {
        let here = ProviderPages(person.request, person, pages, provider)
        guard let signIn = ProviderSignIn(.connect(session: person.session.id), at: pages.credentials.time) else {
            throw AdministrationError(.invalid, "that took too long; begin again")
        }
        let address: String
        do throws(OpenIDError) {
            address = try await here.address(signIn)
        } catch {
            return here.failure(error)
        }
        var reply = PeopleLayout.page(
            person, title: "Go on to \(provider.name)", refresh: address,
            "<p><a class=\"button\" href=\"\(address)\">Go on to \(provider.name)</a></p>")
        reply.headers.append(("Set-Cookie", signIn.cookie(person.request, pages.credentials)))
        return reply
    }

    /// Keeps the connection to the window that has opened this one, which needs the session.
    private static func keepOpener(_ reply: inout ConsoleReply) {
        reply.headers.append(("Cross-Origin-Opener-Policy", "unsafe-none"))
    }

    // Back from the provider

    private func callback() async throws -> ConsoleReply {
        try await credentials.refresh()
        // Only the answer to a sign-in that began in this browser counts. Otherwise a link could sign a person in to another's
        // account.
        guard let signIn = try ProviderSignIn.ofBrowser(request, credentials),
            CredentialStore.areEqual(request.query["state"] ?? "", signIn.secret.state)
        else {
            return page(
                "This sign-in is over", status: 400,
                "It has taken more than ten minutes, was begun in another browser, or another one was begun meanwhile. Begin again."
            )
        }
        // The account is not known yet, so the attempt counts for the client's address.
        _ = try await pages.attempt("identity \(signIn.secret.state.prefix(16))", request.address)
        var reply: ConsoleReply
        do {
            reply = try await answer(signIn)
        } catch let error as OpenIDError {
            reply = failure(error)
        }
        reply.headers.append(("Set-Cookie", ProviderSignIn.noCookie(request)))
        return reply
    }

    private func answer(_ signIn: ProviderSignIn) async throws -> ConsoleReply {
        try await provider.client.check(answerOf: request.query["iss"])
        if let error = request.query["error"] { return refusal(error) }
        guard let code = request.query["code"], (1...4_096).contains(code.utf8.count) else {
            return page("\(name) has not signed you in", status: 400, "It has answered without a code. Begin again.")
        }
        var (since, asksForEmail): (Int64?, Bool) = (nil, false)
        switch signIn.purpose {
        case .confirm: since = signIn.began
        case .pages, .app: asksForEmail = provider.client.provider.signsUp
        case .connect: break
        }
        let identity = try await provider.client.identity(
            code: code, signIn.secret, redirectURI: provider.redirectURI, signedInSince: since, asksForEmail: asksForEmail)
        let key = IdentityKey(issuer: identity.issuer, subject: identity.subject)
        switch signIn.purpose {
        case .pages(let to):
            switch try await account(of: identity, key) {
            case .account(let account): return try await self.signIn(key, account, code: "", to: to)
            case .page(let page): return page
            }
        case .app(let form, let staysSignedIn):
            switch try await account(of: identity, key) {
            case .account(let account):
                let app = AppSignIn(form: form, staysSignedIn: staysSignedIn, key: key, account: account.id)
                var reply = ConsoleReply.redirect(toOther: AppSignIn.path)
                reply.headers.append(("Set-Cookie", AppSignIn.cookie(app.text(credentials), isSecure: request.isSecure)))
                Self.keepOpener(&reply)
                return reply
            case .page(let page): return page
            }
        case .connect(let session):
            guard let person = ofSession(session) else { return ended }
            switch try await person.own.connect(key, label: identity.label) {
            case .connected, .isConnected: return .redirect(to: Address(under: Address.peopleRoot).with("done", "identity"))
            case .isAnothers:
                return page(
                    "This identity has another account", status: 409,
                    "It signs in to another account here. Sign in with it, disconnect it there, and connect it with this account then."
                )
            case .tooMany:
                return page(
                    "Too many identities", status: 409,
                    "An account has \(CredentialStore.identitiesMost) at the most. Disconnect one first.")
            }
        case .confirm(let session, let to):
            guard let person = ofSession(session) else { return ended }
            guard try await credentials.confirm(person.session, with: key) else {
                return page(
                    "That was another identity", status: 403,
                    "It is not connected with your account. Confirm with the one that is.")
            }
            return .redirect(to: Address(to == "delete" ? ["delete"] : [], under: Address.peopleRoot).with("done", "confirmed"))
        }
    }

    /// The person of this browser, if their session is still the one in which the sign-in began.
    private func ofSession(_ session: String) -> Person? { person?.session.id == session ? person : nil }

    private var ended: ConsoleReply {
        page("Your session has ended", status: 403, "Sign in again, and begin again.")
    }

    // Accounts

    private enum Found {
        case account(StoredAccount)
        /// The page that says why there is no account.
        case page(ConsoleReply)
    }

    /// The account of an identity; a new account if the server makes accounts for new identities.
    private func account(of identity: OpenIDClient.Identity, _ key: IdentityKey) async throws -> Found {
        if let known = try await known(key) { return known }
        guard provider.client.provider.signsUp else {
            try await auditRefusal("the identity has no account")
            return .page(
                page(
                    "No account is connected with it", status: 403,
                    "\(name) has said who you are, and no account here is connected with that. Sign in with the address and the password of your account, and connect \(name) on its page. If you have no account, ask who runs this server."
                ))
        }
        guard let email = identity.verifiedEmail else {
            try await auditRefusal("the address is not verified")
            return .page(
                page(
                    "Your address is not known", status: 403,
                    "An account here needs an e-mail address, and \(name) does not say that one is yours. Confirm your address at \(name), then begin again."
                ))
        }
        let made = try await PersonalAccount.signUp(
            key, label: identity.label, email: email, name: identity.name, pages.cloud, credentials, from: request.address)
        if let made { return .account(made) }
        // The same person may have made the account just now, in another window.
        if let known = try await known(key) { return known }
        try await auditRefusal("the address has an account")
        return .page(
            page(
                "There is an account with your address", status: 409,
                "\(email) has an account here already, which is not connected with \(name). Sign in with its address and password, and connect \(name) on its page."
            ))
    }

    private func known(_ key: IdentityKey) async throws -> Found? {
        guard let id = try await credentials.account(of: key) else { return nil }
        guard let account = try await pages.cloud.account(id: id), account.status == .available else {
            return .page(page("Your account can't be used", status: 403, "Ask who runs this server."))
        }
        return .account(account)
    }

    private func auditRefusal(_ outcome: String) async throws {
        try await credentials.audit(
            AuditEvent(.accountSignIn, address: request.address, subject: request.userAgentLine, outcome: outcome))
    }

    private func signIn(_ key: IdentityKey, _ account: StoredAccount, code: String, to: String) async throws -> ConsoleReply {
        let result = try await credentials.signInToPages(
            with: key, account: account.id, code: code, device: request.userAgent, address: request.address)
        switch result {
        case .signedIn(let cookie):
            var reply = ConsoleReply.redirect(to: PersonSignInPage.destination(to))
            reply.headers.append(("Set-Cookie", ConsoleHeaders.personCookie(cookie, request)))
            return reply
        case .needsCode: return codeForm(proof(key, to), error: code.isEmpty ? nil : "The code is wrong.")
        case .tooManyCodes: return codeForm(proof(key, to), error: SignInPage.code(result))
        case .refused:
            return page("The identity was disconnected", status: 403, "It was disconnected from your account meanwhile.")
        }
    }

    // The second factor

    private static let codeUse = "provider-code"
    private static let codePatience: Int64 = 5 * 60_000_000

    /// A signed text that a provider has vouched for an identity, for the form that asks for the code of the second factor.
    private func proof(_ key: IdentityKey, _ to: String) -> String {
        credentials.signedText(
            Data([key.issuer, key.subject, to].joined(separator: "\0").utf8), for: Self.codeUse,
            until: credentials.time + Self.codePatience)
    }

    private func enterCode() async throws -> ConsoleReply {
        try await credentials.refresh()
        let text = request.form["proof"] ?? ""
        let parts = try credentials.open(text, for: Self.codeUse).flatMap { String(validating: $0, as: UTF8.self) }?
            .split(separator: "\0", omittingEmptySubsequences: false).map(String.init)
        guard let parts, parts.count == 3 else {
            return page("This sign-in is over", status: 400, "It has taken more than five minutes. Begin again.")
        }
        let key = IdentityKey(issuer: parts[0], subject: parts[1])
        guard case .account(let account) = try await known(key) else {
            return page("Your account can't be used", status: 403, "Ask who runs this server.")
        }
        let code = request.form["code"] ?? ""
        // Codes can be guessed like passwords, so each one counts as an attempt.
        _ = try await pages.attempt(account.email, request.address)
        return try await signIn(key, account, code: code.isEmpty ? " " : code, to: parts[2])
    }

    private func codeForm(_ proof: String, error: String?) -> ConsoleReply {
        PeopleLayout.page(
            nil, title: "Your code", status: error == nil ? 200 : 403,
            """
            \(SignInPage.alert(error))
            <form method="post" action="\(Address(["provider"], under: Address.peopleRoot))">
            <input type="hidden" name="proof" value="\(proof)">
            <div class="field"><label for="code">The code that your app shows, or a recovery code</label>
            <input id="code" name="code" autocomplete="one-time-code" inputmode="text" maxlength="40" required autofocus></div>
            <button>Sign in</button>
            </form>
            """)
    }

    // Errors

    /// The page of an error with which the provider has sent the browser back. The error's description is not shown, because
    /// anybody can write it into an address.
    private func refusal(_ error: String) -> ConsoleReply {
        switch error {
        case "access_denied", "consent_required", "interaction_required", "login_required", "account_selection_required":
            return page("\(name) has not signed you in", status: 403, "You have not signed in there, or not agreed to it.")
        case "temporarily_unavailable", "server_error":
            return page("\(name) has not signed you in", status: 503, "It can't at the moment. Try again later.")
        default:
            pages.report("the identity provider has answered to a sign-in with the error '\(Self.shown(error))'")
            return page(
                "\(name) has not signed you in", status: 502,
                "It does not take what this server asks of it; the server's log says why.")
        }
    }

    private static func shown(_ text: String) -> String {
        String(text.unicodeScalars.prefix(100).map { (0x20...0x7e).contains($0.value) ? Character($0) : "?" })
    }

    private func failure(_ error: OpenIDError) -> ConsoleReply {
        pages.report("\(error)")
        switch error.code {
        case .unreachable:
            return page("\(name) can't be reached", status: 503, "It does not answer at the moment. Try again later.")
        case .refused:
            return page("This sign-in is over", status: 403, "It was used already, or has taken too long. Begin again.")
        case .untrusted:
            return page(
                "\(name) has not signed you in", status: 403,
                "What it has said of you can't be trusted; the server's log says why. Begin again.")
        case .misconfigured, .invalid:
            return page(
                "\(name) can't be used", status: 502,
                "The server is not set up for it as it should be; the server's log says why.")
        }
    }

    private func page(_ title: String, status: Int, _ text: String) -> ConsoleReply {
        let (path, label) =
            person == nil
            ? (Address(["sign-in"], under: Address.peopleRoot), "Back to sign-in")
            : (Address(under: Address.peopleRoot), "Back to your account")
        return PeopleLayout.page(person, title: title, status: status, "<p>\(text)</p><p><a href=\"\(path)\">\(label)</a></p>")
    }
}

import Foundation
import HTTPTypes
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkConsole
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkWire

/// The page where people sign in for a program, in a browser.
struct SignInPage: Sendable {
    let signIn: SignIn
    /// The identity provider's name for people; `nil` without a provider.
    var providerName: String?

    var operations: [Operation] {
        [
            Operation("signin.page", .get, "/signin", body: .none) { call in
                guard let (purpose, token) = try await purpose(call.query["for"], "signin") else { return Self.gone }
                return form(purpose, token)
            },
            Operation("signin", .post, "/signin", body: .bytes(most: 64 << 10), isChanging: true) { try await send($0) },
            Operation("signin.provider", .get, AppSignIn.path, body: .none) { try await goOn($0) },
        ]
    }

    /// How long a form may stay open.
    private static let patience: Int64 = 15 * 60_000_000
    private static let fetchSite = HTTPField.Name("Sec-Fetch-Site")!

    /// Returns whether a page of this server has sent a form. Browsers tell that by `Origin`, or by `Sec-Fetch-Site` where they
    /// send no `Origin`. A client that sends neither is no browser, so no foreign page can make it send a form.
    private static func isOwn(_ call: Call) -> Bool {
        guard ["same-origin", nil].contains(call.headers[fetchSite]) else { return false }
        guard let origin = call.headers[.origin] else { return true }
        return origin.lowercased() == WebAddress.origin(of: call.baseURL)
    }

    private func purpose(_ sealed: String?, _ kind: String) async throws -> (SignIn.Purpose, APIToken)? {
        try await signIn.access.refresh()
        guard let sealed, let purpose = SignIn.Purpose(try signIn.access.open(sealed, for: kind)),
            try signIn.access.hasContainer(purpose.container),
            let token = try signIn.access.apiTokens().first(where: { $0.id == purpose.apiToken }),
            token.isOf(purpose.container, purpose.environment)
        else { return nil }
        return (purpose, token)
    }

    private func send(_ call: Call) async throws -> Reply {
        // A form of a foreign page can't sign a person in.
        guard Self.isOwn(call) else { return Self.foreign }
        let fields = TextCoding.pairs(Substring(String(decoding: call.body, as: UTF8.self)))
        guard let (purpose, apiToken) = try await purpose(fields["form"], "signin-form") else { return Self.gone }
        if fields["with"] == "provider", let providerName {
            return Self.bridge(to: providerName, form: fields["form"] ?? "", staysSignedIn: fields["stay"] == "1")
        }
        var typed = Typed(
            email: (fields["email"] ?? "").trimmingCharacters(in: .whitespacesAndNewlines), stays: fields["stay"] == "1",
            hasCode: fields["code"] != nil)
        let code = (fields["code"] ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
        do {
            let result = try await signIn.token(
                email: typed.email, password: fields["password"] ?? "", code: code, container: purpose.container,
                environment: purpose.environment, kind: .web(staysSignedIn: typed.stays),
                device: call.headers[.userAgent] ?? "", address: call.address, deviceToken: Self.deviceToken(call))
            switch result {
            case .signedIn(let token):
                return finish(apiToken, token, call)
            case .refused:
                return form(purpose, apiToken, typed, error: "The e-mail address or the password is wrong.", status: .forbidden)
            case .needsCode:
                typed.hasCode = true
                let error =
                    code.isEmpty
                    ? "Enter your password again, and the code that your app shows, or a recovery code."
                    : "The code is wrong, or was used already."
                return form(purpose, apiToken, typed, error: error, status: .forbidden)
            case .tooManyCodes(let wait):
                typed.hasCode = true
                throw Refusal.tooManyCodes(wait)
            }
        } catch let refusal as Refusal where refusal.status == .tooManyRequests {
            let seconds = refusal.error.retryAfter?.components.seconds ?? 1
            let wait = "wait \(seconds) second\(seconds == 1 ? "" : "s"), then try again"
            let reason = refusal.error.reasonForClients
            var reply = form(
                purpose, apiToken, typed, error: "\(reason.prefix(1).uppercased())\(reason.dropFirst()): \(wait).",
                status: refusal.status)
            reply.headers[.retryAfter] = String(seconds)
            return reply
        }
    }

    // The identity provider sends browsers back to the pages of people, and these pass them on to here.

    /// Returns the page that leads from the form to the provider. The form can't lead there itself, because browsers apply its
    /// policy to redirects, too.
    private static func bridge(to name: String, form: String, staysSignedIn: Bool) -> Reply {
        let address = Address(
            ["provider"], under: Address.peopleRoot, query: [("app", form), ("stay", staysSignedIn ? "1" : nil)])
        return page("Sign in", "<p><a href=\"\(address)\">Go on to \(name)</a></p>", refresh: address)
    }

    /// Signs in a person whose identity the provider has confirmed.
    private func goOn(_ call: Call) async throws -> Reply {
        let isSecure = call.baseURL.hasPrefix("https:")
        try await signIn.access.refresh()
        guard let text = Self.cookieValue(AppSignIn.cookieName(isSecure: isSecure), call),
            let app = try AppSignIn(text, signIn.access),
            let (purpose, apiToken) = try await purpose(app.form, "signin-form")
        else { return Self.gone }
        let token: SessionToken?
        if try await signIn.cloud.account(id: app.account)?.status == .available {
            token = try await signIn.access.signIn(
                with: app.key, account: app.account, container: purpose.container, environment: purpose.environment,
                kind: .web(staysSignedIn: app.staysSignedIn), device: call.headers[.userAgent] ?? "", address: call.address)
        } else {
            token = nil
        }
        token == nil ? signIn.metrics.signInRefused() : signIn.metrics.signedIn()
        var reply =
            if let token {
                finish(apiToken, token, call)
            } else {
                form(
                    purpose, apiToken, error: "Your account can't be used, or the identity was disconnected.", status: .forbidden)
            }
        reply.headers.append(HTTPField(name: .setCookie, value: AppSignIn.cookie(nil, isSecure: isSecure)))
        return reply
    }

    // The device's cookie shows at the next sign-in that a person has signed in on the browser before.

    private static func cookieName(_ call: Call) -> String {
        call.baseURL.hasPrefix("https:") ? "__Host-tidemark-device" : "tidemark-device"
    }

    private static func deviceToken(_ call: Call) -> String? { cookieValue(cookieName(call), call) }

    private static func cookieValue(_ name: String, _ call: Call) -> String? {
        let name = name + "="
        for cookie in (call.headers[.cookie] ?? "").split(separator: ";", maxSplits: 100) {
            let cookie = cookie.trimmingPrefix { $0 == " " }
            if cookie.hasPrefix(name) { return String(cookie.dropFirst(name.count)) }
        }
        return nil
    }

    private static func cookie(_ token: String, _ call: Call) -> String {
        let secure = call.baseURL.hasPrefix("https:") ? "; Secure" : ""
        return "\(cookieName(call))=\(token); Path=/; Max-Age=34560000; HttpOnly; SameSite=Strict\(secure)"
    }

    private func finish(_ apiToken: APIToken, _ token: SessionToken, _ call: Call) -> Reply {
        var reply = finish(apiToken, token)
        reply.headers[.setCookie] = Self.cookie(signIn.access.deviceToken(of: token.session.account), call)
        return reply
    }

    private func finish(_ apiToken: APIToken, _ token: SessionToken) -> Reply {
        switch apiToken.callback {
        case .redirect:
            var reply = Self.page("Signed in", "<p>You are signed in.</p>")
            reply.status = .seeOther
            reply.headers[.location] = apiToken.callback.address(with: token)
            return reply
        case .popup(let origin):
            let text = JSONWriter.quoted(token.text)
            return Self.page(
                "Signed in",
                """
                <p role="status">You are signed in. You can close this window.</p>
                """,
                script: """
                    if (window.opener) {
                      window.opener.postMessage({ckWebAuthToken: \(text), ckSession: \(text)}, \(JSONWriter.quoted(origin)));
                      window.close();
                    }
                    """)
        }
    }

    /// The typed values of a form, with which the next form begins.
    private struct Typed {
        var email = ""
        var stays = false
        /// Whether the form asks for a code.
        var hasCode = false
    }

    private func form(
        _ purpose: SignIn.Purpose, _ apiToken: APIToken, _ typed: Typed = Typed(), error: String? = nil,
        status: HTTPResponse.Status = .ok
    ) -> Reply {
        let sealed = signIn.access.signedText(purpose.payload, for: "signin-form", until: Timestamp.now() + Self.patience)
        let alert: HTML = error.map { "<p id=\"error\" class=\"error\" role=\"alert\">\($0)</p>" } ?? .none
        let described: HTML = error == nil ? .none : " aria-invalid=\"true\" aria-describedby=\"error\""
        let focus: HTML = " autofocus"
        let other: HTML =
            providerName.map { name in
                "<p><button type=\"submit\" name=\"with\" value=\"provider\" formnovalidate>Sign in with \(name)</button></p>"
            } ?? .none
        let code: HTML = """
            <label for="code">Code</label>
            <input id="code" name="code" autocomplete="one-time-code" maxlength="40" required\(described)>
            """
        var reply = Self.page(
            "Sign in",
            """
            <p>to go on in <strong>\(apiToken.name.isEmpty ? purpose.container : apiToken.name)</strong>, \
            which uses <code>\(purpose.container)</code>.</p>
            \(alert)
            <form method="post" action="/signin">
            <input type="hidden" name="form" value="\(sealed)">
            <label for="email">E-mail address</label>
            <input id="email" name="email" type="email" autocomplete="username" maxlength="255" required \
            value="\(typed.email)"\(HTML.when(typed.email.isEmpty, focus))\(described)>
            <label for="password">Password</label>
            <input id="password" name="password" type="password" autocomplete="current-password" maxlength="1024" required\
            \(HTML.when(!typed.email.isEmpty, focus))\(described)>
            \(HTML.when(typed.hasCode, code))
            <div class="choice"><input id="stay" name="stay" type="checkbox" value="1"\(HTML.when(typed.stays, " checked"))>
            <label for="stay">Stay signed in on this computer for two weeks</label></div>
            <button type="submit">Sign in</button>
            \(other)
            </form>
            """, goesTo: apiToken.callback)
        reply.status = status
        return reply
    }

    private static var gone: Reply {
        var reply = page(
            "Sign in", "<p role=\"alert\">This page has expired. Go back to the program, and sign in from there again.</p>")
        reply.status = .badRequest
        return reply
    }

    private static var foreign: Reply {
        var reply = page(
            "Sign in", "<p role=\"alert\">This form was sent by another page. Go back to the program, and sign in from there.</p>"
        )
        reply.status = .forbidden
        return reply
    }

    private static func page(
        _ title: String, _ content: HTML, script: String? = nil, refresh: Address? = nil,
        goesTo callback: SignInCallback? = nil
    ) -> Reply {
        var generator = SystemRandomNumberGenerator()
        let nonce = Hexadecimal.text((0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
        let html = """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            \(refresh.map { Self.refresh($0).text } ?? "")
            <title>\(title)</title>
            <style nonce="\(nonce)">
            body { font: 1rem/1.5 system-ui, sans-serif; max-width: 24rem; margin: 10vh auto; padding: 0 1rem; color: #222; background: #fff }
            label { display: block; margin-top: 1rem }
            .choice label { display: inline }
            .choice { margin: 1rem 0 }
            input:not([type=checkbox]) { font: inherit; width: 100%; box-sizing: border-box; padding: .5rem; border: 1px solid #666; border-radius: .25rem }
            button { font: inherit; padding: .5rem 1.5rem; border: 0; border-radius: .25rem; background: #0b57d0; color: #fff }
            :focus-visible { outline: 3px solid #0b57d0; outline-offset: 2px }
            .error { color: #a00000 }
            code { overflow-wrap: anywhere }
            </style>
            </head>
            <body>
            <main>
            <h1>\(title)</h1>
            \(content.text)
            </main>
            \(script.map { "<script nonce=\"\(nonce)\">\n\($0)\n</script>" } ?? "")
            </body>
            </html>

            """
        var reply = Reply(body: .text(html, type: "text/html; charset=UTF-8"))
        let scripts = script == nil ? "" : " script-src 'nonce-\(nonce)';"
        reply.headers[.contentSecurityPolicy] =
            "default-src 'none'; style-src 'nonce-\(nonce)';\(scripts) form-action 'self'\(source(callback)); "
            + "frame-ancestors 'none'; base-uri 'none'"
        reply.headers[HTTPField.Name("X-Frame-Options")!] = "DENY"
        // With no-referrer, browsers send the form itself with the origin null.
        reply.headers[HTTPField.Name("Referrer-Policy")!] = "same-origin"
        reply.headers[HTTPField.Name("X-Content-Type-Options")!] = "nosniff"
        reply.headers[.cacheControl] = "no-store"
        return reply
    }

    private static func refresh(_ address: Address) -> HTML { "<meta http-equiv=\"refresh\" content=\"0; url=\(address)\">" }

    /// Returns the other address to which a form may lead, for the browser's policy.
    private static func source(_ callback: SignInCallback?) -> String {
        guard case .redirect(let address) = callback, let parts = URLComponents(string: address), let scheme = parts.scheme else {
            return ""
        }
        guard let host = parts.host, !host.isEmpty, scheme == "http" || scheme == "https" else { return " \(scheme):" }
        return " \(scheme)://\(host)\(parts.port.map { ":\($0)" } ?? "")"
    }
}

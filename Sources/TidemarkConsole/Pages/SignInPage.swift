import Foundation
import TidemarkIdentity

/// The page where operators sign in.
enum SignInPage {
    /// - Parameters:
    ///   - email: The typed address.
    ///   - to: The page that follows; by default the request's.
    ///   - unsent: A form that is shown after the sign-in; by default the one that the request has carried.
    static func form(
        _ request: ConsoleRequest, email: String = "", to: String? = nil, unsent: UnsentForm? = nil, error: String? = nil,
        needsCode: Bool = false, status: Int = 200
    ) -> ConsoleReply {
        let to = to ?? (request.isPost ? request.form["to"] : request.query["to"]) ?? ""
        let unsent = unsent ?? UnsentForm(carriedBy: request)
        let isHint = needsCode && isWithoutCode(request)
        return ConsoleReply(
            status,
            Layout.document(
                "Sign in",
                """
                <main id="content" class="narrow" tabindex="-1">
                <h1>Tidemark console</h1>
                \(isHint ? Layout.notice(.info, error ?? "") : alert(error))
                <form method="post" action="\(Address(["sign-in"]))">
                <input type="hidden" name="to" value="\(to)">
                \(unsent?.hiddenFields ?? .none)
                \(fields(email, isWrong: error != nil && !isHint, needsCode: needsCode, isCodeShown: true))
                <button>Sign in</button>
                </form>
                <p class="hint">For those who run this cloud. ‘tidemark admin operator add’ lets an account in.</p>
                </main>
                """))
    }

    /// The answer to a form that was sent after the session had ended.
    static func form(after request: ConsoleRequest) -> ConsoleReply {
        let unsent = UnsentForm(postedBy: request)
        let to = request.isOfOwnPage ? destination(Context.formAddress(of: request)) : ""
        return form(request, to: to, unsent: unsent, error: UnsentForm.message(isKept: unsent != nil), status: 403)
    }

    /// Whether the form has no code yet. Then the question for a code is no failure.
    static func isWithoutCode(_ request: ConsoleRequest) -> Bool { (request.form["code"] ?? "").isEmpty }

    /// The sentence on the code of a second factor; `nil` if the sign-in has not failed by the code.
    ///
    /// - Parameter isFirst: Whether there was no code yet.
    static func code(_ result: PageSignIn, isFirst: Bool = false) -> String? {
        switch result {
        case .needsCode where isFirst:
            "The account has a second factor. Enter the code that your app shows, or a recovery code, and type the password again: "
                + "this page keeps no password. Next time, enter the code with the password at once."
        case .needsCode: "The code is wrong, or was used already. Enter the code that your app shows now, or a recovery code."
        case .tooManyCodes(let wait):
            "Too many codes were wrong: wait \((wait + 59) / 60) minutes, or enter a recovery code."
        case .signedIn, .refused: nil
        }
    }

    /// The message on a refused form.
    static func alert(_ error: String?) -> HTML {
        error.map { "<div class=\"notice error\" id=\"error\" role=\"alert\"><p>\($0)</p></div>" } ?? .none
    }

    /// The fields for the address, the password and a code. A person with a second factor may enter the code before it is asked
    /// for.
    ///
    /// - Parameter isCodeShown: Whether the field for the code is unfolded before it is asked for.
    static func fields(_ email: String, isWrong: Bool, needsCode: Bool, isCodeShown: Bool = false) -> HTML {
        let described: HTML = isWrong ? " aria-invalid=\"true\" aria-describedby=\"error\"" : .none
        let focus: HTML = " autofocus"
        return """
            <div class="field"><label for="email">E-mail address</label>
            <input id="email" name="email" type="email" autocomplete="username" maxlength="255" required value="\(email)"\(HTML.when(email.isEmpty, focus))\(described)></div>
            <div class="field"><label for="password">Password\(HTML.when(needsCode, " <span class=\"hint\">again</span>"))</label>
            <input id="password" name="password" type="password" autocomplete="current-password" maxlength="1024" required\(HTML.when(!email.isEmpty, focus))\(described)></div>
            \(codeField(isNeeded: needsCode, isShown: isCodeShown))
            """
    }

    private static func codeField(isNeeded: Bool, isShown: Bool) -> HTML {
        let hint: HTML = " <span class=\"hint\">only if the account has a second factor</span>"
        let field: HTML = """
            <div class="field"><label for="code">Code\(HTML.when(!isNeeded, hint))</label>
            <input id="code" name="code" autocomplete="one-time-code" inputmode="text" maxlength="40"\(HTML.when(isNeeded, " required"))></div>
            """
        guard !isNeeded, !isShown else { return field }
        return "<details><summary>With a second factor</summary>\(field)</details>"
    }

    /// The text that stands for a page's address during a sign-in.
    static func destination(_ request: ConsoleRequest) -> String {
        var address = Address([request.page])
        for (name, value) in request.query.sorted(by: { $0.key < $1.key }) { address.add(name, value) }
        return destination(address)
    }

    private static func destination(_ address: Address) -> String { String(address.text.dropFirst(Address.root.count + 1)) }

    /// The address that a text stands for. It is built anew from the text, so that it always leads to a page of the console.
    static func destination(_ text: String) -> Address {
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let page = String(parts.first ?? "")
        guard Console.pages.contains(page), page != "sign-out" else { return Address() }
        var address = Address(page.isEmpty ? [] : [page])
        for pair in parts.count == 2 ? parts[1].split(separator: "&") : [] {
            let pair = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, let name = String(pair[0]).removingPercentEncoding,
                let value = String(pair[1]).removingPercentEncoding
            else { continue }
            address.add(name, value)
        }
        return address
    }
}

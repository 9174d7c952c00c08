import TidemarkModel

/// The page where people sign in to their own pages.
enum PersonSignInPage {
    private static let notes = [
        "password": "Your password is changed. Sign in with the new one, here and on your devices.",
        "set": "Your password is set. Sign in with it, here and on your devices.", "everywhere": "All your sessions have ended.",
        "deleted": "Your account and its data are deleted.",
    ]

    /// - Parameters:
    ///   - email: The typed address.
    ///   - to: The page that follows; by default the request's.
    ///   - share: The sentence on the share of the link to which the page leads.
    ///   - unsent: A form that is shown after the sign-in; by default the one that the request has carried.
    static func form(
        _ request: ConsoleRequest, _ pages: PeoplePages, email: String = "", to: String? = nil, share: String? = nil,
        unsent: UnsentForm? = nil,
        error: String? = nil, needsCode: Bool = false, status: Int = 200
    ) -> ConsoleReply {
        let unsent = unsent ?? UnsentForm(carriedBy: request)
        let help: HTML =
            pages.mail != nil
            ? "<a href=\"\(ForgottenPasswordPage.address)\">Forgotten your password?</a>"
            : "Who runs this server helps if you have forgotten them."
        let to = to ?? (request.isPost ? request.form["to"] : request.query["to"]) ?? ""
        let provider: HTML =
            pages.provider.map { provider in
                """
                <p><a class="button quiet" href="\(PeopleProvider.address(to: to))">Sign in with \(provider.name)</a></p>
                \(HTML.when(unsent != nil, "<p class=\"hint\">What you have typed is kept if you sign in with the password.</p>"))
                """
            } ?? .none
        let note = request.query["note"].flatMap { notes[$0] }
        let isHint = needsCode && SignInPage.isWithoutCode(request)
        return PeopleLayout.page(
            nil, title: "Your account", status: status,
            """
            \(note.map { Layout.notice(.good, $0) } ?? .none)
            \(share.map { "<p>\($0) Sign in to accept it.</p>" } ?? .none)
            \(isHint ? Layout.notice(.info, error ?? "") : SignInPage.alert(error))
            <form method="post" action="\(Address(["sign-in"], under: Address.peopleRoot))">
            <input type="hidden" name="to" value="\(to)">
            \(unsent?.hiddenFields ?? .none)
            \(SignInPage.fields(email, isWrong: error != nil && !isHint, needsCode: needsCode))
            <button>Sign in</button>
            </form>
            \(provider)
            <p class="hint">With the address and the password of your devices. \(help)</p>
            """)
    }

    /// The answer to a form that was sent after the session had ended.
    static func form(after request: ConsoleRequest, _ pages: PeoplePages) -> ConsoleReply {
        // The forms of the other pages have no values that may be shown again.
        let unsent = request.page.isEmpty ? UnsentForm(postedBy: request) : nil
        return form(
            request, pages, to: request.page == "delete" ? "delete" : "", unsent: unsent,
            error: UnsentForm.message(isKept: unsent != nil), status: 403)
    }

    /// The address that a text stands for. It is built anew from the text, so that it always leads to people's own pages or to
    /// the page of a link.
    static func destination(_ text: String) -> Address {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        if parts == ["delete"] { return Address(["delete"], under: Address.peopleRoot) }
        if parts.count == 2, parts[0] == "address", (1...2_000).contains(parts[1].utf8.count) {
            return Address(["address"], under: Address.peopleRoot).with("key", parts[1])
        }
        return link(text)?.address ?? Address(under: Address.peopleRoot)
    }

    /// The link whose page a text stands for; `nil` if it stands for another page.
    static func link(_ text: String) -> PeoplePages.Link? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 4, parts[0] == "share", let environment = StoreEnvironment(rawValue: parts[2]),
            parts[1...].allSatisfy({ !$0.isEmpty && $0.utf8.count <= 255 })
        else { return nil }
        return PeoplePages.Link(container: parts[1], environment: environment, token: parts[3])
    }

    /// The text that stands for the page of a link during a sign-in.
    static func destination(_ link: PeoplePages.Link) -> String {
        "share/\(link.container)/\(link.environment.rawValue)/\(link.token)"
    }
}

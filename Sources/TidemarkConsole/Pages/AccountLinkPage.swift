import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity

/// The page on which an operator gets a link with which a person sets a password.
struct AccountLinkPage {
    private let context: Context
    /// The account: an address or an identifier.
    private let id: String
    /// Whether the account was added right before.
    private let isNew: Bool

    init(_ context: Context, of id: String, isNew: Bool = false) { (self.context, self.id, self.isNew) = (context, id, isNew) }

    /// Makes the link. It is shown on this page, and never again.
    func reply() async throws -> ConsoleReply {
        let administration = context.administration
        let (account, path) = try await administration.passwordLink(of: id)
        let hasFactor = try await administration.credentials.hasSecondFactor(account.id)
        let factor: HTML = """
            <p>The second factor stays: signing in then needs a code of the person's app, or a recovery code. If the device with the app is lost or stolen,
            take the second factor away once the password is set.</p>
            """
        let ends: HTML = "\nAll sessions of the account end when the person uses it, those of devices among them."
        return Layout.page(
            context, .accounts, title: "A link for \(account.email)",
            """
            \(HTML.when(isNew, Layout.notice(.good, "The account is added, without a password: send the person the link.")))
            <div class="card"><p>With this link the person sets a password. It is good once, and for a day. It is a secret, and is not shown again.\
            \(HTML.when(!isNew, ends))</p>
            <pre class="link" tabindex="0">\(context.request.baseURL + path)</pre>
            \(HTML.when(hasFactor, factor))
            <p><a href="\(context.address("account", query: [("id", id)]))">\(isNew ? "To the account" : "Back to the account")</a></p></div>
            """)
    }
}

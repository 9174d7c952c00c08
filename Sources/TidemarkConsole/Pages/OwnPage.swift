import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

/// The page of the operator's own second factor.
struct OwnPage {
    let context: Context
    private let console: Console

    init(_ context: Context, _ console: Console) { (self.context, self.console) = (context, console) }

    func reply() async throws -> ConsoleReply {
        if context.request.isPost { return try await change() }
        let factor = try await console.credentials.secondFactor(of: context.account.id)
        let role = context.session.operator
        let action: HTML =
            factor != nil
            ? form("codes", "<button class=\"quiet\">Make new recovery codes…</button>")
                + form("remove", "<button class=\"danger\">Remove the second factor…</button>")
            : form("begin", "<button>Set up a second factor…</button>")
        return page(
            """
            <div class="card"><dl class="facts"><dt>Account</dt><dd>\(context.account.email)</dd>
            <dt>Role</dt><dd>\(role.role == .operator ? "operator of the whole cloud" : "developer of \(role.containers.joined(separator: ", "))")</dd>
            <dt>Signed in</dt><dd>\(Layout.time(context.session.began)) UTC</dd>
            <dt>Second factor</dt><dd>\(factor?.text ?? "none: the password alone lets you in")</dd></dl></div>
            <div class="actions">\(action)</div>
            """)
    }

    private func page(_ content: HTML, status: Int = 200) -> ConsoleReply {
        Layout.page(context, nil, title: "Your sign-in", status: status, content)
    }

    private func form(_ action: String, _ content: HTML) -> HTML {
        """
        <form method="post" action="\(Address(["me"]))">\(context.hiddenFields)
        <input type="hidden" name="action" value="\(action)">\(content)</form>
        """
    }

    private func change() async throws -> ConsoleReply {
        let (credentials, account) = (console.credentials, context.account)
        switch context.value("action") {
        case "begin":
            // Replacing the second factor needs the same confirmation as removing it.
            let has = try await credentials.hasSecondFactor(account.id)
            if let page = try await console.confirmation(
                context,
                "Signing in to the console will need a code of your phone, and so will your devices at their next sign-in.",
                title: "Set up a second factor?", "Go on", isHarmless: true, isAlwaysAsked: has)
            {
                return page
            }
            let made = credentials.newSecondFactor(of: account.id)
            return enter(secret: made.secret, made.form)
        case "set":
            let pending = context.value("factor") ?? ""
            guard
                let codes = try await credentials.setSecondFactor(of: account.id, to: pending, code: context.value("code") ?? "")
            else {
                guard let secret = try credentials.secret(ofSecondFactor: pending, of: account.id) else {
                    return page(Layout.notice(.error, "That took too long. Begin again."), status: 400)
                }
                return enter(secret: secret, pending, error: "The code is wrong. Is the clock of your phone right?")
            }
            try await context.administration.auditOwn("second-factor.set")
            return page(
                """
                \(Layout.notice(.good, "The second factor is set up. From now on the console asks for its code, and so do your devices at their next sign-in. Those that are signed in stay so."))
                \(SecondFactorPieces.recoveryCodes(codes, next: context.address("me")))
                """)
        case "codes":
            if let page = try await console.confirmation(
                context, SecondFactorPieces.questionOfCodes, "Make new recovery codes", isHarmless: true, isAlwaysAsked: true)
            {
                return page
            }
            guard let codes = try await credentials.replaceRecoveryCodes(of: account.id) else {
                throw SecondFactorPieces.changedMeanwhile
            }
            try await context.administration.auditOwn("second-factor.codes")
            return page(
                SecondFactorPieces.madeCodes + SecondFactorPieces.recoveryCodes(codes, next: context.address("me")))
        case "remove":
            let question = "The console, and your devices, will let you in with the password alone."
            if let page = try await console.confirmation(context, question, "Remove the second factor") { return page }
            try await credentials.removeSecondFactor(of: account.id)
            try await context.administration.auditOwn("second-factor.remove")
            return .redirect(to: context.address("me"))
        default: throw AdministrationError(.invalid, "say what is to be changed")
        }
    }

    private func enter(secret: String, _ pending: String, error: String? = nil) -> ConsoleReply {
        page(
            """
            \(error.map { Layout.notice(.error, $0) } ?? .none)
            \(SecondFactorPieces.secret(secret, of: context.account.email))
            \(form("set", SecondFactorPieces.codeFields(pending)))
            """, status: error == nil ? 200 : 400)
    }
}

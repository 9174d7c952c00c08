import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

/// The page of API tokens, keys of servers, and operators.
struct AccessPage {
    let context: Context
    private let console: Console

    init(_ context: Context, _ console: Console) { (self.context, self.console) = (context, console) }

    func reply() async throws -> ConsoleReply {
        if context.request.isPost { return try await change() }
        let (tokens, keys) = (try await context.administration.apiTokens(), try await context.administration.keys())
        let operators: HTML = context.administration.isOperator ? try await self.operators() : .none
        let done = context.value("done").flatMap { Self.notes[$0] }.map { Layout.notice(.good, $0) } ?? .none
        return Layout.page(
            context, .access, title: "Access",
            """
            \(done)
            <h2>API tokens</h2>
            \(tokens.isEmpty ? "<div class=\"card empty\">There is no token yet. The form below makes one, and so does ‘tidemark admin token add’.</div>" : table(tokens))
            \(HTML.when(context.container != nil, tokenForm))
            <h2>Keys of servers</h2>
            \(keys.isEmpty ? "<div class=\"card empty\">There is no key yet. The form below adds one, and so does ‘tidemark admin key add’.</div>" : table(keys))
            \(HTML.when(context.container != nil, keyForm))
            \(operators)
            """)
    }

    /// The messages after an action, by the form's action.
    private static let notes = [
        "add-key": "The key is added: the server that has it is served from now on.",
        "revoke-token": "The token is revoked: programs that use it are refused from now on.",
        "revoke-key": "The key is revoked: the server that has it is refused from now on.",
        "add-operator": "The role is given: the account signs in here from now on.",
        "remove-operator": "The role is taken: the account is signed out of the console.",
    ]

    private var tokenForm: HTML {
        let form = context.form("add-token")
        return """
            <details\(form.open)><summary>Make a token for \(context.container ?? "") (\(context.environment.rawValue))</summary>
            <form class="card" method="post" action="\(Address(["access"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="add-token">\(form.alert)
            <div class="row"><div class="field"><label for="name">Name <span class="hint">of the program</span></label>
            <input id="name" name="name" autocomplete="off" maxlength="255" value="\(form.value("name"))"></div>
            <div class="field"><label for="callback">Where people come back to <span class="hint">a URL</span></label>
            <input id="callback" name="callback" autocomplete="off" required placeholder="https://journal.example.org/signed-in" value="\(form.value("callback"))"\(form.wrong("callback"))></div>
            <div class="field"><label for="origins">Origins <span class="hint">with spaces between; empty for any</span></label>
            <input id="origins" name="origins" autocomplete="off" value="\(form.value("origins"))"\(form.wrong("origins"))></div></div>
            <button>Make the token</button></form></details>
            """
    }

    private var keyForm: HTML {
        let form = context.form("add-key")
        return """
            <details\(form.open)><summary>Add a key for \(context.container ?? "") (\(context.environment.rawValue))</summary>
            <form class="card" method="post" action="\(Address(["access"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="add-key">\(form.alert)
            <div class="field"><label for="server">Name <span class="hint">of the server</span></label>
            <input id="server" name="name" autocomplete="off" maxlength="255" value="\(form.value("name"))"></div>
            <div class="field"><label for="pem">Public key <span class="hint">ECDSA on P-256, as PEM</span></label>
            <textarea id="pem" name="pem" rows="5" class="mono" required\(form.wrong("pem"))>\n\(form.value("pem"))</textarea></div>
            <button>Add the key</button></form></details>
            """
    }

    /// Makes a token. Its text is shown on this page, and never again.
    private func addToken() async throws -> ConsoleReply {
        let made = try await context.administration.addAPIToken(
            of: context.demandContainer(), environment: context.environment, name: context.value("name") ?? "",
            callback: .redirect(context.value("callback") ?? ""),
            origins: (context.value("origins") ?? "").split(separator: " ").map(String.init))
        return Layout.page(
            context, .access, title: "A new token",
            """
            \(Layout.notice(.good, "This is the token. It is not shown again: put it where the program reads it."))
            <pre class="link" tabindex="0">\(made.text)</pre>
            <p><a class="button quiet" href="\(context.address("access"))">Back to Access</a></p>
            """)
    }

    private func table(_ tokens: [APIToken]) -> HTML {
        Layout.table(
            "API tokens", ["Name", "Container", "Made", "Comes back to", "Origins", ""],
            tokens.map { token in
                let place =
                    switch token.callback {
                    case .redirect(let address): address
                    case .popup(let origin): origin
                    }
                return Layout.row([
                    HTML(token.name.isEmpty ? token.id : token.name), HTML("\(token.container) (\(token.environment.rawValue))"),
                    Layout.time(token.made), HTML(place),
                    HTML(token.origins.isEmpty ? "any" : token.origins.joined(separator: " ")),
                    revocation("token", token.id),
                ])
            })
    }

    private func table(_ keys: [ServerKey]) -> HTML {
        Layout.table(
            "Keys of servers", ["Name", "Container", "Made", "Key ID", ""],
            keys.map { key in
                Layout.row([
                    HTML(key.name), HTML("\(key.container) (\(key.environment.rawValue))"), Layout.time(key.made),
                    "<code>\(key.id)</code>", revocation("key", key.id),
                ])
            })
    }

    private func revocation(_ what: String, _ id: String) -> HTML {
        """
        <form method="post" action="\(Address(["access"]))">\(context.hiddenFields)\
        <input type="hidden" name="action" value="revoke-\(what)"><input type="hidden" name="id" value="\(id)">\
        <button class="danger">Revoke…</button></form>
        """
    }

    // Operators

    private func operators() async throws -> HTML {
        let rows = try await context.administration.operators().map { person in
            let name = person.account?.email ?? person.role.id
            let remove: HTML = """
                <form method="post" action="\(Address(["access"]))">\(context.hiddenFields)\
                <input type="hidden" name="action" value="remove-operator"><input type="hidden" name="id" value="\(person.role.id)">\
                <button class="danger">Remove<span class="hidden"> \(name)</span>…</button></form>
                """
            return Layout.row([
                HTML(name), HTML(person.role.role.rawValue),
                HTML(person.role.containers.isEmpty ? "all" : person.role.containers.joined(separator: ", ")),
                Layout.time(person.role.added),
                person.role.id == context.account.id ? "<span class=\"quiet-text\">you</span>" : remove,
            ])
        }
        let form = context.form("add-operator")
        let role = form.value("role", "developer")
        return """
            <h2>Operators</h2>
            \(Layout.table("Operators", ["Account", "Role", "Containers", "Since", ""], rows))
            <form class="card" method="post" action="\(Address(["access"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="add-operator">\(form.alert)
            <div class="row"><div class="field"><label for="account">Account <span class="hint">its address</span></label>
            <input id="account" name="account" type="email" autocomplete="off" required value="\(form.value("account"))"\(form.wrong("account"))></div>
            <div class="field"><label for="role">Role</label><select id="role" name="role">
            \(Layout.option("developer", "Developer of some containers", isChosen: role == "developer"))\(Layout.option("operator", "Operator of everything", isChosen: role == "operator"))</select></div>
            </div>
            <fieldset><legend>Containers of a developer</legend>
            \(context.containers.enumerated().html { number, name in
                "<label class=\"choice\"><input type=\"checkbox\" name=\"container\(number)\" value=\"\(name)\"\(HTML.when(form.isMarked("container\(number)"), " checked"))>\(name)</label>"
            })</fieldset>
            <button class="quiet">Give the role…</button>
            </form>
            """
    }

    private func change() async throws -> ConsoleReply {
        let administration = context.administration
        let id = context.value("id") ?? ""
        switch context.value("action") {
        case "add-token": return try await addToken()
        case "add-key":
            _ = try await blaming("pem") { () throws(AdministrationError) in
                try await administration.addKey(
                    of: context.demandContainer(), environment: context.environment, name: context.value("name") ?? "",
                    publicKeyPEM: context.value("pem") ?? "")
            }
        case "revoke-token":
            let question = "The API token \(id) is revoked: programs that use it are refused at once."
            if let page = try await console.confirmation(context, question, "Revoke the token") { return page }
            try await administration.revokeAPIToken(id)
        case "revoke-key":
            let question = "The key \(id) is revoked: the server that has it is refused at once."
            if let page = try await console.confirmation(context, question, "Revoke the key") { return page }
            try await administration.revokeKey(id)
        case "add-operator":
            guard let role = context.value("role").flatMap(Operator.Role.init(rawValue:)), let name = context.value("account")
            else {
                throw AdministrationError(.invalid, "say which account gets which role")
            }
            let containers = context.request.form.filter { $0.key.hasPrefix("container") }.map(\.value)
            // A role that can't be given is refused before the question. A developer gets no answer that tells whether an account
            // exists.
            if administration.isOperator {
                guard role == .operator || !containers.isEmpty else {
                    throw AdministrationError(.invalid, "mark the containers of the developer")
                }
                _ = try await blaming("account") { () throws(AdministrationError) in try await administration.account(name) }
            }
            let what = role == .operator ? "of the whole cloud" : "of \(containers.sorted().joined(separator: ", "))"
            if let page = try await console.confirmation(
                context, "\(name) becomes \(role.rawValue) \(what).", "Give the role", isHarmless: true)
            {
                return page
            }
            _ = try await administration.setOperator(name, role: role, containers: containers)
        case "remove-operator":
            guard id != context.account.id else {
                throw AdministrationError(
                    .invalid, "nobody takes their own role; another operator does, or 'tidemark admin operator remove'")
            }
            guard let person = try await administration.operators().first(where: { $0.role.id == id }) else {
                throw AdministrationError(.notFound, "there is no such operator; the role may be taken already")
            }
            let name = person.account?.email ?? id
            if let page = try await console.confirmation(
                context, "\(name) is no operator any more, and is signed out of the console.", "Remove the operator")
            {
                return page
            }
            _ = try await administration.removeOperator(id)
        default: throw AdministrationError(.invalid, "say what is to be changed")
        }
        return .redirect(to: context.address("access", query: [("done", context.value("action"))]))
    }
}

import Foundation
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkModel

/// Adds an account without a password, and makes the link with which the person sets one. For operators.
struct AccountInvitation {
    private let context: Context
    private let console: Console

    init(_ context: Context, _ console: Console) { (self.context, self.console) = (context, console) }

    private static let action = "add"

    /// The form. After a refusal it has the typed values.
    var form: HTML {
        let form = context.form(Self.action)
        return """
            <details\(form.open)><summary>Add an account</summary>
            <form class="card" method="post" action="\(Address(["accounts"]))">\(context.hiddenFields)
            <input type="hidden" name="action" value="\(Self.action)">\(form.alert)
            <div class="row"><div class="field"><label for="email">E-mail address</label>
            <input id="email" name="email" inputmode="email" autocomplete="off" required maxlength="255" value="\(form.value("email"))"\(form.wrong("email"))></div>
            <div class="field"><label for="name">Name <span class="hint">as participants of shares see it; may be empty</span></label>
            <input id="name" name="name" autocomplete="off" maxlength="255" value="\(form.value("name"))"\(form.wrong("name"))></div></div>
            <p class="hint">The next pages ask for your password, and show a link with which the person sets one.</p>
            <button>Add the account…</button></form></details>
            """
    }

    /// Asks, and then adds the account of the form.
    func reply() async throws -> ConsoleReply {
        guard context.value("action") == Self.action else {
            throw AdministrationError(.invalid, "say what is to be changed")
        }
        let administration = context.administration
        let email = (context.value("email") ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
        let name = (context.value("name") ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
        // An invalid address is refused before the operator is asked for a password.
        try await blaming("email") { () throws(AdministrationError) in try await administration.checkNewAccount(email) }
        guard name.utf8.count <= 255, name.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
            throw AdministrationError(.invalid, "a name has 255 bytes at the most, in one line", field: "name")
        }
        let question =
            "The account \(email) is added, without a password. Whoever has the link of the next page sets its password: it is for the person, and for nobody else."
        if let page = try await console.confirmation(
            context, question, "Add the account", isHarmless: true, isAlwaysAsked: true)
        {
            return page
        }
        let account = try await administration.addAccount(
            email, name: name.isEmpty ? nil : PersonName(text: name), password: nil)
        return try await AccountLinkPage(context, of: account.email, isNew: true).reply()
    }
}

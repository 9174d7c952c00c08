import TidemarkIdentity

/// The page that asks before an action that can't be undone.
struct ConfirmationPage {
    let context: Context
    /// The action, as a question.
    let title: String
    let question: String
    /// More about the action, below the question.
    let details: HTML
    /// The text of the box that has to be marked; `nil` for no box.
    let mark: String?
    let button: String
    /// Whether the action removes nothing.
    let isHarmless: Bool
    /// Whether the password was entered recently.
    var isEntered: Bool
    /// Whether the password is asked for even if it was entered recently.
    let isAlwaysAsked: Bool

    func reply(error: String? = nil, status: Int = 200) -> ConsoleReply {
        let left = ["token", "c", "e", "password", "confirmed", "marked"]
        let kept = context.request.form.filter { !left.contains($0.key) }.sorted { $0.key < $1.key }
        let described: HTML = HTML.when(error != nil, " aria-invalid=\"true\" aria-describedby=\"error\"")
        let minutes = CredentialStore.confirmationAge / 60_000_000
        let why =
            isAlwaysAsked
            ? "asked for each time before this, also right after you have signed in"
            : "you entered it more than \(minutes) minutes ago"
        let password: HTML = """
            <div class="field"><label for="password">Your password <span class="hint">\(why)</span></label>
            <input id="password" name="password" type="password" autocomplete="current-password" maxlength="1024" required autofocus\(described)></div>
            """
        let isMarked = context.request.form["marked"] != nil
        let box: HTML = """
            <div class="field"><label class="choice"><input type="checkbox" name="marked" value="1" required\(HTML.when(isMarked, " checked"))>\(mark ?? "")</label></div>
            """
        return Layout.page(
            context, nil, title: title, status: status,
            """
            \(SignInPage.alert(error))
            <div class="card">
            <p>\(question)</p>\(details)
            <form method="post" action="\(Address([context.request.page]))">
            \(context.hiddenFields)
            \(kept.html { name, value in "<input type=\"hidden\" name=\"\(name)\" value=\"\(value)\">" })
            <input type="hidden" name="confirmed" value="1">
            \(HTML.when(mark != nil, box))
            \(HTML.when(!isEntered, password))
            <div class="actions"><button\(HTML.when(!isHarmless, " class=\"danger\""))>\(button)</button>
            <a class="button quiet" href="\(context.formAddress)">Cancel</a></div>
            </form>
            </div>
            """)
    }
}

import TidemarkAdministration

/// A form that was refused: why, and what was typed.
struct RefusedForm: Sendable {
    let error: AdministrationError
    let form: [String: String]

    init(_ error: AdministrationError, _ form: [String: String]) {
        self.error = error
        self.form = Self.shown(form)
    }

    /// What of a form may be shown again: not what proves who somebody is. Ends of lines are as pages have them.
    static func shown(_ form: [String: String]) -> [String: String] {
        form.filter { !secrets.contains($0.key) }.mapValues(FieldView.normalized)
    }

    private static let secrets: Set = ["token", "password", "new", "again", "code", "factor", "confirmed", "marked"]

    /// What marks the message.
    static let mark = " id=\"refused\""

    /// The message, for who can't see where it stands as well.
    var alert: HTML {
        """
        <div class="notice error"\(HTML(stringLiteral: Self.mark)) role="alert"><p>\(Layout.message(of: error))</p></div>
        """
    }
}

/// A form of a page: with what was typed and what was wrong, where it was refused.
struct PageForm: Sendable {
    let refusal: RefusedForm?

    /// What was wrong; it stands before the fields.
    var alert: HTML { refusal?.alert ?? .none }

    /// Attributes of a part that is folded, which is open for what was typed in it.
    var open: HTML { HTML.when(refusal != nil, " open") }

    /// What was typed; otherwise what the page has.
    func value(_ name: String, _ value: String = "") -> String { refusal == nil ? value : refusal?.form[name] ?? "" }

    /// Whether a box was marked; otherwise as the page has it.
    func isMarked(_ name: String, _ isMarked: Bool = false) -> Bool {
        refusal == nil ? isMarked : refusal?.form[name] != nil
    }

    /// Attributes of a field, which say whether it is the one that was wrong.
    func wrong(_ name: String) -> HTML {
        HTML.when(refusal?.error.field == name, " aria-invalid=\"true\" aria-describedby=\"refused\" autofocus")
    }
}

/// Says of an error in a body which field of the form it is about.
func blaming<Result>(
    _ field: String, _ body: () async throws(AdministrationError) -> Result
) async throws(AdministrationError) -> Result {
    do throws(AdministrationError) {
        return try await body()
    } catch {
        var error = error
        if error.code == .invalid || error.code == .notFound { error.field = field }
        throw error
    }
}

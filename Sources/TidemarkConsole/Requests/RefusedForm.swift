import TidemarkAdministration

/// A refused form: the reason, and the typed values.
struct RefusedForm: Sendable {
    let error: AdministrationError
    let form: [String: String]

    init(_ error: AdministrationError, _ form: [String: String]) {
        self.error = error
        self.form = Self.shown(form)
    }

    /// The values of a form that may be shown again: all but passwords and codes. Ends of lines are line feeds.
    static func shown(_ form: [String: String]) -> [String: String] {
        form.filter { !secrets.contains($0.key) }.mapValues(FieldView.normalized)
    }

    private static let secrets: Set = ["token", "password", "new", "again", "code", "factor", "confirmed", "marked"]

    /// The attribute that marks the message.
    static let mark = " id=\"refused\""

    /// The message. Screen readers announce it, wherever it stands.
    var alert: HTML {
        """
        <div class="notice error"\(HTML(stringLiteral: Self.mark)) role="alert"><p>\(Layout.message(of: error))</p></div>
        """
    }
}

/// A form of a page. If it was refused, it has the typed values and the reason.
struct PageForm: Sendable {
    let refusal: RefusedForm?

    /// The message of the refusal, which stands before the fields.
    var alert: HTML { refusal?.alert ?? .none }

    /// The attribute of a folded part, which opens it if the form was refused.
    var open: HTML { HTML.when(refusal != nil, " open") }

    /// The typed value of a refused form; otherwise the page's value.
    func value(_ name: String, _ value: String = "") -> String { refusal == nil ? value : refusal?.form[name] ?? "" }

    /// Whether a box was marked in a refused form; otherwise whether the page marks it.
    func isMarked(_ name: String, _ isMarked: Bool = false) -> Bool {
        refusal == nil ? isMarked : refusal?.form[name] != nil
    }

    /// The attributes of a field, which tell whether it is the refused one.
    func wrong(_ name: String) -> HTML {
        HTML.when(refusal?.error.field == name, " aria-invalid=\"true\" aria-describedby=\"refused\" autofocus")
    }
}

/// Adds the name of the form's field to an error of a body.
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

import TidemarkAdministration

/// A form that was sent after its session had ended, while somebody signs in: the page to sign in carries it, and the server stores nothing.
///
/// After the sign-in it is shown again, and the person sends it. Only a form is carried that a page of this server has sent, as the browser
/// says: no other site can fill a form that a person sends then.
struct UnsentForm: Sendable {
    /// What the names of its fields begin with in the page to sign in.
    private static let prefix = "kept."
    /// The most bytes of names and values as browsers send them. The server takes 64 KB without a session, with the fields to sign in.
    private static let bytesMost = 48_000

    /// The fields, without passwords and codes.
    let fields: [String: String]

    /// The form of a request; `nil` where it can't be carried: another page may have sent it, it is too large, or there is nothing in it.
    init?(postedBy request: ConsoleRequest) {
        self.init(request.form, of: request)
    }

    /// The form that a page to sign in has carried; `nil` where it has carried none.
    init?(carriedBy request: ConsoleRequest) {
        var fields: [String: String] = [:]
        for (name, value) in request.form where name.hasPrefix(Self.prefix) {
            fields[String(name.dropFirst(Self.prefix.count))] = value
        }
        self.init(fields, of: request)
    }

    private init?(_ form: [String: String], of request: ConsoleRequest) {
        guard request.isPost, request.isOfOwnPage else { return nil }
        fields = RefusedForm.shown(form)
        let bytes = fields.reduce(0) { sum, field in
            sum + Self.prefix.utf8.count + Address.encoded(field.key).utf8.count + Address.encoded(field.value).utf8.count + 2
        }
        guard !fields.isEmpty, bytes <= Self.bytesMost else { return nil }
    }

    /// The fields as the page to sign in has them.
    var hiddenFields: HTML {
        fields.sorted { $0.key < $1.key }.html { name, value in
            "<input type=\"hidden\" name=\"\(Self.prefix + name)\" value=\"\(value)\">"
        }
    }

    /// What the page to sign in says of a form that was sent after the session had ended.
    ///
    /// - Parameter isKept: Whether the page carries the form.
    static func message(isKept: Bool) -> String {
        let ended = "Your session has ended, and the form was not sent. "
        guard isKept else {
            return ended
                + "What you have typed can't be kept here; the browser may have it on the page before. Sign in again, to come back to "
                + "the page of the form."
        }
        return ended + "Sign in again: then it is shown with what you have typed, but for files and passwords."
    }

    /// What is wrong with a form of which nothing says that a page of this server has sent it.
    static let unknown = AdministrationError(
        .forbidden, "this form has expired, or is not of this session; go back, reload the page, and send it again")

    /// What is wrong with a form that is of an earlier session.
    static let expired = AdministrationError(
        .forbidden,
        "this form was of an earlier session, and was not sent. Look at it, add files and passwords, and send it again")

    /// What is wrong with a form that was carried through a sign-in.
    static let carried = AdministrationError(
        .forbidden, "you are signed in again, and the form was not sent yet. Look at it, add files and passwords, and send it")
}

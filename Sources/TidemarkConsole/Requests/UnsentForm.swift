import TidemarkAdministration

/// A form that was sent after its session had ended. The sign-in page carries it during the sign-in, and the server stores
/// nothing.
///
/// After the sign-in the form is shown again, and the person sends it. A form is carried only if the browser says that a page of
/// this server has sent it. So no other site can fill in a form that a person then sends.
struct UnsentForm: Sendable {
    /// The prefix of the names of its fields in the sign-in page.
    private static let prefix = "kept."
    /// The most bytes of names and values as browsers send them. Without a session, the server accepts 64 KB with the fields of
    /// the sign-in.
    private static let bytesMost = 48_000

    /// The fields, without passwords and codes.
    let fields: [String: String]

    /// The form of a request; `nil` if it can't be carried: the page of another site may have sent it, it is too large, or it is
    /// empty.
    init?(postedBy request: ConsoleRequest) {
        self.init(request.form, of: request)
    }

    /// The form that a sign-in page has carried; `nil` if it has carried none.
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

    /// The fields for the sign-in page.
    var hiddenFields: HTML {
        fields.sorted { $0.key < $1.key }.html { name, value in
            "<input type=\"hidden\" name=\"\(Self.prefix + name)\" value=\"\(value)\">"
        }
    }

    /// The message of the sign-in page on a form that was sent after the session had ended.
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

    /// The error for a form of which the browser does not say that a page of this server has sent it.
    static let unknown = AdministrationError(
        .forbidden, "this form has expired, or is not of this session; go back, reload the page, and send it again")

    /// The error for a form of an earlier session.
    static let expired = AdministrationError(
        .forbidden,
        "this form was of an earlier session, and was not sent. Look at it, add files and passwords, and send it again")

    /// The error for a form that was carried through a sign-in.
    static let carried = AdministrationError(
        .forbidden, "you are signed in again, and the form was not sent yet. Look at it, add files and passwords, and send it")
}

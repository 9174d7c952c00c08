import TidemarkAdministration
import TidemarkModel

/// The part of a person's page that shows and changes their consent for developers to see their records.
struct PersonConsent {
    private let person: Person

    init(_ person: Person) { self.person = person }

    private static let here = Address(under: Address.peopleRoot)

    /// - Parameter alert: The message on a refused form.
    func section(_ alert: HTML) async throws(AdministrationError) -> HTML {
        let (given, used) = (try await person.own.consents(), try await person.own.containers())
        let (containers, tried) = (used.production, used.development)
        let rows = given.map { consent in
            Layout.row([
                HTML(consent.container), "\(Layout.time(consent.until)) UTC",
                person.form(
                    Self.here, "end-consent",
                    """
                    <input type="hidden" name="container" value="\(consent.container)">
                    <button class="quiet" aria-label="Take back the consent for \(consent.container)">Take back</button>
                    """),
            ])
        }
        let isRefused = person.isRefused("consent")
        let (app, days): (String?, String?) = isRefused ? (person.value("container"), person.value("days")) : (nil, "1")
        let form = person.form(
            Self.here, "consent", card: true,
            """
            <p>Developers of an app can't see your private records in production. If one is to find out what is wrong with them, allow it here: the
            developers of that app then see and change them until the day that you choose. The server writes down what they do.</p>
            <div class="field"><label for="container">App</label><select id="container" name="container">
            \(containers.html { Layout.option($0, isChosen: $0 == app) })</select></div>
            <div class="field"><label for="days">For</label><select id="days" name="days">
            \(Consent.days.html { Layout.option(String($0), $0 == 1 ? "a day" : "\($0) days", isChosen: String($0) == days) })</select></div>
            \(person.confirmationField)<button class="quiet">Allow it</button>
            """)
        let open: HTML = """
            <p>What you store in <em>development</em>, to try an app out, its developers see and change without asking: in \(tried.joined(separator: ", ")).</p>
            """
        let names = Set(used.unread.map(\.container)).sorted().joined(separator: ", ")
        let unread = Layout.notice(.warning, "What you have in \(names) can't be read now; other apps are listed.")
        return """
            <h2>Help from developers</h2>
            \(alert)
            \(rows.isEmpty ? "<p class=\"quiet-text\">Without your consent, developers see none of your private records in production.</p>" : Layout.table("Consents", ["App", "Until", "End"], rows))
            \(HTML.when(!used.unread.isEmpty, unread))
            \(HTML.when(!tried.isEmpty, open))
            \(HTML.when(!containers.isEmpty, form))
            """
    }
}

import TidemarkAdministration
import TidemarkModel

/// The part of a person's page that says which developers may see their records, and lets the person say so.
struct PersonConsent {
    private let person: Person

    init(_ person: Person) { self.person = person }

    private static let here = Address(under: Address.peopleRoot)

    /// - Parameter alert: What was wrong.
    func section(_ alert: HTML) async throws(AdministrationError) -> HTML {
        let (given, containers) = (try await person.own.consents(), try await person.own.containers())
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
        let form = person.form(
            Self.here, "consent", card: true,
            """
            <p>Developers of an app can't see your records. If one is to find out what is wrong with them, allow it here: the developers of that
            app then see and change them until the day that you choose. The server writes down what they do.</p>
            <div class="field"><label for="container">App</label><select id="container" name="container">
            \(containers.html { Layout.option($0, isChosen: false) })</select></div>
            <div class="field"><label for="days">For</label><select id="days" name="days">
            \(Consent.days.html { Layout.option(String($0), $0 == 1 ? "a day" : "\($0) days", isChosen: $0 == 1) })</select></div>
            \(person.confirmationField)<button class="quiet">Allow it</button>
            """)
        return """
            <h2>Help from developers</h2>
            \(alert)
            \(rows.isEmpty ? "<p class=\"quiet-text\">No developer may see your records.</p>" : Layout.table("Consents", ["App", "Until", "End"], rows))
            \(HTML.when(!containers.isEmpty, form))
            """
    }
}

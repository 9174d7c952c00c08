import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkOpenID

/// The part of a person's page with the identities of an identity provider that sign in to the account.
struct PersonIdentities {
    private let person: Person
    private let provider: PeopleProvider

    init(_ person: Person, _ provider: PeopleProvider) { (self.person, self.provider) = (person, provider) }

    private static let here = Address(under: Address.peopleRoot)

    /// - Parameter alert: The message on a refused form.
    func section(_ alert: HTML) async throws(AdministrationError) -> HTML {
        let rows = try await person.own.identities().map { identity in
            let name = identity.key.issuer == provider.client.provider.issuer ? provider.name : identity.key.issuer
            return Layout.row([
                HTML(name), HTML(identity.label), Layout.time(identity.added),
                person.form(
                    Self.here, "disconnect",
                    """
                    <input type="hidden" name="id" value="\(identity.id)">
                    <button class="quiet" aria-label="Disconnect \(identity.label)">Disconnect</button>
                    """),
            ])
        }
        let list =
            rows.isEmpty
            ? "<p class=\"quiet-text\">Nobody at \(provider.name) signs in to this account.</p>"
            : Layout.table("Identities", ["Provider", "Identity", "Since (UTC)", "Disconnect"], rows)
        return """
            <h2>Sign in with \(provider.name)</h2>
            \(alert)
            \(list)
            \(person.form(
                Self.here, "connect", card: true,
                """
                <p>Connect your account with who you are at \(provider.name): then that signs you in to these pages, and to apps in a browser.</p>
                \(person.confirmationField)<button class="quiet">Connect \(provider.name)</button>
                """))
            """
    }
}

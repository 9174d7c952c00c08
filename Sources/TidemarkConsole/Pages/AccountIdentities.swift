import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity

/// The identities of identity providers that sign in to an account, for operators.
struct AccountIdentities {
    private let context: Context

    init(_ context: Context) { self.context = context }

    /// The section; empty if the account has no identities.
    func section(_ details: Administration.AccountDetails, _ id: String) -> HTML {
        guard !details.identities.isEmpty else { return .none }
        let ways = details.waysIn
        let rows = details.identities.map { identity in
            // The form carries what the question says, to compare it with the state when the answer comes.
            let last: HTML = HTML.when(ways.isLast(identity.id), "<input type=\"hidden\" name=\"last\" value=\"1\">")
            return Layout.row([
                HTML(identity.label), HTML(identity.key.issuer), Layout.time(identity.added),
                """
                <form method="post" action="\(Address(["account"]))">\(context.hiddenFields)<input type="hidden" name="id" value="\(id)">\
                <input type="hidden" name="action" value="disconnect"><input type="hidden" name="identity" value="\(identity.id)">\(last)\
                <button class="danger" aria-label="Disconnect \(identity.label)">Disconnect…</button></form>
                """,
            ])
        }
        return """
            <h2>Identity providers</h2>
            \(Layout.table("Identities", ["Identity", "Provider", "Since (UTC)", ""], rows))
            """
    }

    /// Asks, and then disconnects an identity.
    ///
    /// - Returns: The page that asks; `nil` once the identity is disconnected.
    func disconnect(of id: String, _ console: Console) async throws -> ConsoleReply? {
        let administration = context.administration
        let ways = try await administration.waysIn(to: id)
        let wanted = context.value("identity") ?? ""
        guard let identity = ways.identities.first(where: { $0.id == wanted }) else {
            throw AdministrationError(.notFound, "there is no such identity; it may be disconnected already")
        }
        let question =
            "\(identity.label) at \(identity.key.issuer) signs in to \(ways.account.email) no longer. "
            + "\(ways.whatIsLeft(without: wanted)) Sessions that have begun go on until they are ended."
        // The answer counts only if the question was about the present state: another way to sign in may have been removed since.
        let isTold = context.value("last") != nil
        guard isTold == ways.isLast(wanted) else {
            throw AdministrationError(
                .invalid,
                "the ways to sign in to the account have changed meanwhile: look at it again, then disconnect the identity")
        }
        if let page = try await console.confirmation(context, question, "Disconnect the identity") { return page }
        _ = try await administration.disconnectIdentity(wanted, of: id, evenIfLast: isTold)
        return nil
    }
}

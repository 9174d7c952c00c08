import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity

/// The identities of identity providers that sign in to an account, for operators.
struct AccountIdentities {
    private let context: Context

    init(_ context: Context) { self.context = context }

    /// Nothing where there are none.
    func section(_ details: Administration.AccountDetails, _ id: String) -> HTML {
        guard !details.identities.isEmpty else { return .none }
        let ways = details.waysIn
        let rows = details.identities.map { identity in
            // What the question says is compared with what is so when it is answered.
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

    /// Disconnects an identity, once that was asked.
    ///
    /// - Returns: The page that asks; `nil` where it is done.
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
        // A question that was asked before something else was taken away is not the answer to this one.
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

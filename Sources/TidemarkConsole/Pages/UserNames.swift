import TidemarkAdministration

/// The user record names on a page. For operators, each is a link to the page of its account. Developers may not see accounts.
struct UserNames {
    private let context: Context
    /// The addresses of the accounts, by their names.
    private let addresses: [String: String]

    /// - Parameter names: The user record names on the page, in the context's container.
    init(_ names: [String], _ context: Context) async throws(AdministrationError) {
        self.context = context
        guard context.administration.isOperator, let container = context.container else {
            addresses = [:]
            return
        }
        addresses = try await context.administration.addresses(ofUserRecordNames: Set(names), in: container)
    }

    /// A name, with a link if it has an account that the reader may see.
    func link(_ name: String) -> HTML {
        guard let address = addresses[name] else { return "<code>\(name)</code>" }
        return "<a href=\"\(context.address("account", query: [("id", address)]))\"><code>\(name)</code></a>"
    }
}

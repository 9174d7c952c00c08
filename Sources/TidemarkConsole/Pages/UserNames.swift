import TidemarkAdministration

/// The user record names on a page. Each leads to the page of its account where the reader may see that: accounts are for operators.
struct UserNames {
    private let context: Context
    /// The addresses of the accounts, by their names.
    private let addresses: [String: String]

    /// - Parameter names: Those of the page, as the container that is looked at knows them.
    init(_ names: [String], _ context: Context) async throws(AdministrationError) {
        self.context = context
        guard context.administration.isOperator, let container = context.container else {
            addresses = [:]
            return
        }
        addresses = try await context.administration.addresses(ofUserRecordNames: Set(names), in: container)
    }

    /// A name, with a link where it has an account that the reader may see.
    func link(_ name: String) -> HTML {
        guard let address = addresses[name] else { return "<code>\(name)</code>" }
        return "<a href=\"\(context.address("account", query: [("id", address)]))\"><code>\(name)</code></a>"
    }
}

import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

/// A request of a signed-in user of the console, an operator or a developer, with its container and environment.
struct Context: Sendable {
    private(set) var request: ConsoleRequest
    /// The refused form of the page, if the page is shown again because of it.
    private(set) var refusal: RefusedForm?
    let session: ConsoleSession
    /// The user's own account.
    let account: StoredAccount
    let administration: Administration
    /// The containers that the user may see.
    let containers: [String]
    /// The chosen container; `nil` if there is none.
    let container: String?
    let environment: StoreEnvironment

    init(
        _ request: ConsoleRequest, _ session: ConsoleSession, _ account: StoredAccount, _ administration: Administration
    ) async throws(AdministrationError) {
        (self.request, self.session, self.account, self.administration) = (request, session, account, administration)
        containers = try await administration.containers()
        let values = request.isPost ? request.form : request.query
        if let named = values["c"], !named.isEmpty {
            // A container that the user may not see gets the same answer as one that does not exist.
            guard containers.contains(named) else {
                throw AdministrationError(.notFound, "no container '\(named.prefix(100))' is served, or it is not yours")
            }
            container = named
        } else {
            container = containers.first
        }
        environment = values["e"].flatMap(StoreEnvironment.init(rawValue:)) ?? .development
    }

    /// A value of the form or of the query; `nil` if it is empty.
    func value(_ name: String) -> String? {
        let value = (request.isPost ? request.form : request.query)[name]
        return value?.isEmpty == false ? value : nil
    }

    /// The chosen container, for a page that needs one.
    func demandContainer() throws(AdministrationError) -> String {
        guard let container else {
            throw AdministrationError(
                .notFound, "no container is served, or none is yours; 'tidemark admin container add' adds one")
        }
        return container
    }

    /// The address of a page for the same container and environment.
    func address(_ page: String, query: [(name: String, value: String?)] = []) -> Address {
        Address(page.isEmpty ? [] : [page], query: [("c", container), ("e", environment.rawValue)] + query)
    }

    // Forms

    /// The fields of forms that name the object of the page.
    private static let naming = [
        "account": ["id"], "record": ["db", "account", "zone", "owner", "name"], "zones": ["db", "account", "zone", "owner"],
    ]
    /// The fields of forms that name the action.
    private static let doing: Set = ["token", "c", "e", "action", "field", "index", "password", "confirmed", "marked"]

    /// The query of the posted form's page. Whatever the form has, it names pages of the console only.
    private var formPage: [(name: String, value: String?)] { Self.formPage(of: request) }

    private static func formPage(of request: ConsoleRequest) -> [(name: String, value: String?)] {
        func value(_ name: String) -> String? { request.form[name].flatMap { $0.isEmpty ? nil : $0 } }
        switch request.page {
        case "records":
            return request.form.filter { !doing.contains($0.key) }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        case "zones": return (naming["zones"] ?? []).map { ($0, value($0)) } + [("shares", "1")]
        default: return (naming[request.page] ?? []).map { ($0, value($0)) }
        }
    }

    /// The address of a form's page, for a person who has to sign in first. It has none of the typed values.
    static func formAddress(of request: ConsoleRequest) -> Address {
        var query: [(name: String, value: String?)] = [("c", request.form["c"]), ("e", request.form["e"])]
        query += formPage(of: request)
        if request.page == "record", request.form["action"] == nil {
            // The form of an existing record has a tag. In the form of a new record, the name was typed.
            if request.form["tag"]?.isEmpty ?? true {
                query.removeAll { $0.name == "name" }
                query.append((name: "new", value: "1"))
                query.append((name: "type", value: request.form["type"]))
            } else {
                query.append((name: "edit", value: "1"))
            }
        }
        var address = Address(request.page.isEmpty ? [] : [request.page])
        for (name, value) in query { if let value, !value.isEmpty { address.add(name, value) } }
        return address
    }

    /// The address of the posted form's page.
    var formAddress: Address { address(request.page, query: formPage) }

    /// The context for the page of a refused form, which shows the reason and the typed values.
    func refused(_ error: AdministrationError) -> Context {
        var context = self
        context.refusal = RefusedForm(error, request.form)
        context.request.isPost = false
        context.request.query = Dictionary(
            ([("c", container), ("e", environment.rawValue)] + formPage).compactMap { name, value in value.map { (name, $0) } },
            uniquingKeysWith: { first, _ in first })
        return context
    }

    /// A form of the page, with the typed values if it was refused.
    ///
    /// - Parameters:
    ///   - action: The value of its field `action`.
    ///   - values: The values of other fields that identify the form, if the page has several forms with that action.
    func form(_ action: String, _ values: [String: String] = [:]) -> PageForm {
        let isRefused = refusal?.form["action"] == action && values.allSatisfy { refusal?.form[$0.key] == $0.value }
        return PageForm(refusal: isRefused ? refusal : nil)
    }

    /// The hidden fields of every form of a page.
    var hiddenFields: HTML {
        """
        <input type="hidden" name="token" value="\(session.formToken)">
        <input type="hidden" name="c" value="\(container ?? "")">
        <input type="hidden" name="e" value="\(environment.rawValue)">
        """
    }
}

/// The sections of the console, in the order of the menu. The raw values are parts of addresses.
enum Section: String, CaseIterable, Sendable {
    case overview = ""
    case records, schema, zones, accounts, access, activity

    var title: String {
        switch self {
        case .overview: "Overview"
        case .records: "Records"
        case .schema: "Schema"
        case .zones: "Zones and shares"
        case .accounts: "Accounts"
        case .access: "Access"
        case .activity: "Activity"
        }
    }

    /// Whether the section is for operators only.
    var needsOperator: Bool { self == .accounts }
}

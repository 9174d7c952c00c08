import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

/// A request of somebody who is signed in, and what of the cloud it is about.
struct Context: Sendable {
    let request: ConsoleRequest
    let session: ConsoleSession
    /// The operator's own account.
    let account: StoredAccount
    let administration: Administration
    /// Those that the operator may use.
    let containers: [String]
    /// The one that is looked at; `nil` where there is none.
    let container: String?
    let environment: StoreEnvironment

    init(
        _ request: ConsoleRequest, _ session: ConsoleSession, _ account: StoredAccount, _ administration: Administration
    ) async throws(AdministrationError) {
        (self.request, self.session, self.account, self.administration) = (request, session, account, administration)
        containers = try await administration.containers()
        let values = request.isPost ? request.form : request.query
        if let named = values["c"], !named.isEmpty {
            // As one that is not there, where it is not the operator's.
            guard containers.contains(named) else {
                throw AdministrationError(.notFound, "no container '\(named.prefix(100))' is served, or it is not yours")
            }
            container = named
        } else {
            container = containers.first
        }
        environment = values["e"].flatMap(StoreEnvironment.init(rawValue:)) ?? .development
    }

    /// A value of the form or of the address; `nil` where it is empty.
    func value(_ name: String) -> String? {
        let value = (request.isPost ? request.form : request.query)[name]
        return value?.isEmpty == false ? value : nil
    }

    /// The container, for a page that is of one.
    func demandContainer() throws(AdministrationError) -> String {
        guard let container else {
            throw AdministrationError(
                .notFound, "no container is served, or none is yours; 'tidemark admin container add' adds one")
        }
        return container
    }

    /// The address of a page about the same container and environment.
    func address(_ page: String, query: [(name: String, value: String?)] = []) -> Address {
        Address(page.isEmpty ? [] : [page], query: [("c", container), ("e", environment.rawValue)] + query)
    }

    /// What every form of a page carries.
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

    /// Whether it is for operators alone.
    var needsOperator: Bool { self == .accounts }
}

import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity

/// The page of an operator's link, on which a person sets a password that they have forgotten, or never had.
struct PasswordLinkPage {
    private let request: ConsoleRequest
    private let pages: PeoplePages

    init(_ request: ConsoleRequest, _ pages: PeoplePages) { (self.request, self.pages) = (request, pages) }

    func reply() async throws -> ConsoleReply {
        let key = (request.isPost ? request.form["key"] : request.query["key"]) ?? ""
        guard let id = try await pages.credentials.account(ofPasswordLink: key),
            let account = try await pages.cloud.account(id: id),
            account.status == .available
        else { return over }
        guard request.isPost else { return form(account, key) }
        let new = request.form["new"] ?? ""
        guard new == request.form["again"] else { return form(account, key, error: "The passwords are not the same.") }
        do throws(AdministrationError) {
            let own = PersonalAccount(pages.cloud, pages.credentials, account, from: request.address)
            guard try await own.setPassword(new, byLink: key) else { return over }
        } catch {
            guard error.code == .invalid else { throw error }
            return form(account, key, error: Layout.message(of: error))
        }
        return pages.signedOut(request, "set")
    }

    private var over: ConsoleReply {
        PeopleLayout.page(
            nil, title: "This link is over", status: 404,
            "<p>It was used, or is older than a day, or a part of the address is missing. Ask who runs this server for another one.</p>"
        )
    }

    private func form(_ account: StoredAccount, _ key: String, error: String? = nil) -> ConsoleReply {
        PeopleLayout.page(
            nil, title: "Choose a password", status: error == nil ? 200 : 400,
            """
            \(SignInPage.alert(error))
            <p>For \(account.email). If you had another password, it is good no longer, and all sessions end.</p>
            <form method="post" action="\(Address(["password"], under: Address.peopleRoot))">
            <input type="hidden" name="key" value="\(key)">
            <input type="hidden" name="email" autocomplete="username" value="\(account.email)">
            <div class="field"><label for="new">New password <span class="hint">at least 8 characters</span></label>
            <input id="new" name="new" type="password" autocomplete="new-password" minlength="8" maxlength="1024" required autofocus></div>
            <div class="field"><label for="again">New password again</label>
            <input id="again" name="again" type="password" autocomplete="new-password" minlength="8" maxlength="1024" required></div>
            <button>Set the password</button>
            </form>
            """)
    }
}

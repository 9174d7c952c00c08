import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity

/// The page of a link in a letter by which people show that an address is theirs. Nothing happens before they say so: programs that read mail
/// open links, too.
struct AddressLinkPage {
    private let request: ConsoleRequest
    private let pages: PeoplePages

    init(_ request: ConsoleRequest, _ pages: PeoplePages) { (self.request, self.pages) = (request, pages) }

    static func path(_ key: String) -> String { Address(["address"], under: Address.peopleRoot).with("key", key).text }

    func reply() async throws -> ConsoleReply {
        let key = (request.isPost ? request.form["key"] : request.query["key"]) ?? ""
        guard let link = try await pages.credentials.address(ofLink: key),
            let account = try await pages.cloud.account(id: link.account), account.status == .available,
            account.email == link.before
        else {
            return PeopleLayout.page(
                nil, title: "This link is over", status: 404,
                "<p>It was used, or is older than a day, or a part of the address is missing. Change the address on your account's page again.</p>"
            )
        }
        guard request.isPost else { return form(link, key) }
        do throws(AdministrationError) {
            try await PersonalAccount(pages.cloud, pages.credentials, account, from: request.address).set(address: link.after)
        } catch {
            guard error.code == .invalid else { throw error }
            return form(link, key, error: Layout.message(of: error))
        }
        return .redirect(to: Address(["sign-in"], under: Address.peopleRoot).with("note", "address"))
    }

    private func form(_ link: CredentialStore.AddressLink, _ key: String, error: String? = nil) -> ConsoleReply {
        PeopleLayout.page(
            nil, title: "Is this your address?", status: error == nil ? 200 : 400,
            """
            \(SignInPage.alert(error))
            <p>The account of \(link.before) is to have the address <strong>\(link.after)</strong>: to sign in with, and for invitations.</p>
            <form method="post" action="\(Address(["address"], under: Address.peopleRoot))">
            <input type="hidden" name="key" value="\(key)">
            <div class="actions"><button>Yes, take this address</button></div>
            </form>
            <p class="hint">If it is not yours, close this page.</p>
            """)
    }
}

import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity

/// The page of a link in a letter, with which people prove that an address is theirs.
///
/// The page needs the link and a session of the account. The link alone may be in the hands of another person, whose address was
/// typed by mistake. Nothing happens before the person presses the button, because programs that read mail open links, too.
struct AddressLinkPage {
    private let request: ConsoleRequest
    private let person: Person?
    private let pages: PeoplePages

    init(_ request: ConsoleRequest, _ person: Person?, _ pages: PeoplePages) {
        (self.request, self.person, self.pages) = (request, person, pages)
    }

    static func path(_ key: String) -> String { Address(["address"], under: Address.peopleRoot).with("key", key).text }

    /// - Parameter expired: The message for a form of an earlier session; `nil` for other requests.
    func reply(expired: String? = nil) async throws -> ConsoleReply {
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
        guard let person, person.account.id == link.account else { return signInFirst(key) }
        guard request.isPost else { return form(link, key, person) }
        if let expired {
            var reply = form(link, key, person, error: expired)
            reply.status = 403
            return reply
        }
        do throws(AdministrationError) {
            try await person.own.set(address: link.after)
        } catch {
            guard error.code == .invalid else { throw error }
            return form(link, key, person, error: Layout.message(of: error))
        }
        if let mail = pages.mail {
            let (pages, after) = (pages, link.after)
            // The page does not wait for the letter.
            Task {
                do {
                    try await mail.sendPatiently { try await mail.sendAddressNote(after, to: link.before) }
                } catch {
                    pages.report("a letter about an address was not sent: \(error)")
                }
            }
        }
        return .redirect(to: Address(under: Address.peopleRoot).with("done", "new-address"))
    }

    /// The page for a client that is not signed in to the link's account. It does not name the account.
    private func signInFirst(_ key: String) -> ConsoleReply {
        let to = Address(["sign-in"], under: Address.peopleRoot).with("to", "address/\(key)")
        return PeopleLayout.page(
            person, title: "Sign in first", status: 403,
            """
            <p>This link gives an account another address. Sign in to that account, with the address that it has now: then you are asked.</p>
            \(person == nil
                ? "<p><a class=\"button\" href=\"\(to)\">Sign in</a></p>"
                : "<p>You are signed in to another account. Sign out, and open the link again.</p>")
            <p class="hint">If you have not asked for another address, close this page: nothing is changed.</p>
            """)
    }

    private func form(_ link: CredentialStore.AddressLink, _ key: String, _ person: Person, error: String? = nil) -> ConsoleReply
    {
        PeopleLayout.page(
            person, title: "Is this your address?", status: error == nil ? 200 : 400,
            """
            \(SignInPage.alert(error))
            <p>Your account, now \(link.before), is to have the address <strong>\(link.after)</strong>: to sign in with, and for invitations.</p>
            \(person.form(
                Address(["address"], under: Address.peopleRoot), "address",
                """
                <input type="hidden" name="key" value="\(key)">
                <div class="actions"><button>Yes, take this address</button>
                <a class="button quiet" href="\(Address(under: Address.peopleRoot))">No</a></div>
                """))
            """)
    }
}

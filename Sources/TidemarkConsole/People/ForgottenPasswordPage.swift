import Foundation
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity

/// The page that sends people a link with which they choose another password.
///
/// The answer is the same for every address, and is sent before a letter goes out. So nobody learns from it who has an account.
struct ForgottenPasswordPage {
    private let request: ConsoleRequest
    private let pages: PeoplePages
    private let mail: PeopleMail

    init(_ request: ConsoleRequest, _ pages: PeoplePages, _ mail: PeopleMail) {
        (self.request, self.pages, self.mail) = (request, pages, mail)
    }

    static let address = Address(["forgotten"], under: Address.peopleRoot)

    func reply() async throws -> ConsoleReply {
        guard request.isPost else { return form() }
        let email = (request.form["email"] ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
        guard !email.isEmpty else { return form(error: "Enter the address with which you sign in.") }
        do {
            try await pages.countAttempt(email, request.address)
        } catch let delay as Console.Delay {
            var reply = form(error: PeoplePages.text(delay), status: 429)
            reply.headers.append(("Retry-After", String(delay.seconds)))
            return reply
        }
        // The answer waits neither for the account nor for the letter, because its time would tell whether there is an account.
        Task { await send(to: email) }
        return PeopleLayout.page(
            nil, title: "Look into your mail",
            """
            <p>If \(email) is the address of an account here, a letter with a link is on its way to it. The link is good for a day, and once.</p>
            <p class="hint">No letter after some minutes? Look among unwanted mail, and whether the address is right. Another letter is sent after five
            minutes at the earliest.</p>
            <p><a href="\(Address(["sign-in"], under: Address.peopleRoot))">Back to sign-in</a></p>
            """)
    }

    private func send(to email: String) async {
        do {
            guard let account = try await pages.cloud.account(email), account.status == .available,
                mail.mayBeSent("password", to: account.id)
            else { return }
            await send(to: account)
        } catch {
            pages.report("a letter with a link for a password was not sent: \(error)")
        }
    }

    private func send(to account: StoredAccount) async {
        do {
            let own = PersonalAccount(pages.cloud, pages.credentials, account, from: request.address)
            let path = try await own.passwordLink()
            try await mail.sendPatiently { try await mail.sendPasswordLink(path, to: account) }
        } catch {
            mail.forget("password", to: account.id)
            pages.report("a letter with a link for a password was not sent: \(error)")
        }
    }

    private func form(error: String? = nil, status: Int? = nil) -> ConsoleReply {
        PeopleLayout.page(
            nil, title: "Forgotten your password?", status: status ?? (error == nil ? 200 : 400),
            """
            \(SignInPage.alert(error))
            <form method="post" action="\(Self.address)">
            <div class="field"><label for="email">E-mail address</label>
            <input id="email" name="email" type="email" autocomplete="username" maxlength="255" required autofocus value="\(request.form["email"] ?? "")"></div>
            <button>Send me a link</button>
            </form>
            <p class="hint">With the link you choose another password. Your second factor stays.</p>
            """)
    }
}

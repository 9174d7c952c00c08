import Foundation
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

/// The page of a person's own account: name, address, ways to sign in, and sessions, with the actions on them.
struct PersonPage {
    /// A part of the page that may show a message.
    enum Part { case profile, password, identity, sessions, shares, export, consent }

    /// The part that has the form of an action.
    static func part(of action: String?) -> Part {
        switch action {
        case "password": .password
        case "connect", "disconnect": .identity
        case "consent", "end-consent": .consent
        case "end", "rename", "everywhere": .sessions
        case "leave": .shares
        case "export": .export
        default: .profile
        }
    }

    private let person: Person
    private let pages: PeoplePages

    init(_ person: Person, _ pages: PeoplePages) { (self.person, self.pages) = (person, pages) }

    private static let here = Address(under: Address.peopleRoot)

    private static let notes = [
        "profile": "Your name and address are as you wrote them.", "session": "The session has ended.",
        "renamed": "The device has the name that you have given it.",
        "second-factor": "The second factor is removed. The password alone lets you in, here and on devices.",
        "address":
            "A letter is on its way to the new address. Open the link in it: until then you sign in with the one that you have.",
        "new-address":
            "Your account has the address that you have confirmed. Sign in with it from now on, here and on your devices.",
        "consent": "Developers may see and change your private records in production until then.",
        "no-consent": "Developers see none of your private records in production any more.",
        "identity": "The identity signs in to your account from now on.",
        "no-identity": "The identity signs in to your account no longer. Sessions go on until they are ended.",
        "left": "You have left the share. Its records go from your devices when these synchronise.",
        "confirmed": "You have shown who you are. It counts for ten minutes.",
    ]

    func reply(error: (part: Part, text: String)? = nil) async throws -> ConsoleReply {
        if person.request.isPost, error == nil { return try await change() }
        let account = person.account
        let secondFactor = try await secondFactor()
        let note = person.request.query["done"].flatMap { Self.notes[$0] }
        func alert(_ part: Part) -> HTML { error?.part == part ? Layout.notice(.error, error?.text ?? "") : .none }
        // Other refused forms have no name and no address.
        let isTyped = error != nil && person.isRefused("profile")
        let email = isTyped ? person.request.form["email"] ?? "" : account.email
        let name = isTyped ? person.request.form["name"] ?? "" : account.name?.title ?? ""
        return PeopleLayout.page(
            person, title: "Your account", status: error == nil ? 200 : 400,
            """
            \(note.map { Layout.notice(.good, $0) } ?? .none)
            <h2>Name and address</h2>
            \(alert(.profile))
            \(person.form(
                Self.here, "profile", card: true,
                """
                <div class="field"><label for="name">Name <span class="hint">as people see it who share with you</span></label>
                <input id="name" name="name" autocomplete="name" maxlength="255" value="\(name)"></div>
                <div class="field"><label for="email">E-mail address <span class="hint">to sign in with, and for invitations</span></label>
                <input id="email" name="email" type="email" autocomplete="email" maxlength="255" required value="\(email)"></div>
                \(person.confirmationField)<button>Save</button>
                """))
            <h2>Password</h2>
            \(alert(.password))
            \(person.form(
                Self.here, "password", card: true,
                """
                <p class="hint">Another password ends all sessions: you sign in again, here and on your devices.</p>
                \(person.confirmationField)
                <div class="field"><label for="new">New password <span class="hint">at least 8 characters</span></label>
                <input id="new" name="new" type="password" autocomplete="new-password" minlength="8" maxlength="1024" required></div>
                <div class="field"><label for="again">New password again</label>
                <input id="again" name="again" type="password" autocomplete="new-password" minlength="8" maxlength="1024" required></div>
                <button>Change the password</button>
                """))
            \(try await identities(alert(.identity)))
            \(secondFactor)
            <h2>Devices and sessions</h2>
            \(alert(.sessions))
            \(try await sessions())
            <div class="actions">\(person.form(Self.here, "everywhere", "<button class=\"danger\">Sign out everywhere…</button>"))</div>
            \(try await PersonShares(person).section(alert(.shares)))
            \(try await PersonConsent(person).section(alert(.consent)))
            <h2>Your data</h2>
            \(alert(.export))
            \(person.form(
                Address(["export"], under: Address.peopleRoot), "export", card: true,
                """
                <p>All that is yours as one file: account, records, shares, pictures and other contents, sessions, and what happened.</p>
                \(person.confirmationField)<button class="quiet">Download the archive</button>
                """))
            <div class="actions"><a class="button danger" href="\(Address(["delete"], under: Address.peopleRoot))">Delete the account…</a></div>
            """)
    }

    private func identities(_ alert: HTML) async throws -> HTML {
        guard let provider = pages.provider else { return .none }
        return try await PersonIdentities(person, provider).section(alert)
    }

    private func secondFactor() async throws -> HTML {
        let address = Address(["second-factor"], under: Address.peopleRoot)
        guard let factor = try await pages.credentials.secondFactor(of: person.account.id) else {
            return """
                <h2>Second factor</h2>
                <div class="card"><p>None: the password alone lets you in, here and on devices.</p>
                \(person.form(address, "begin", "<button class=\"quiet\">Set up a second factor…</button>"))</div>
                """
        }
        return """
            <h2>Second factor</h2>
            <div class="card"><p>These pages, and devices and apps that sign in, ask for a code of your phone as well. It is \(factor.text).</p>
            <div class="actions">
            \(person.form(address, "codes", "<button class=\"quiet\">Make new recovery codes…</button>"))
            \(person.form(address, "remove", "<button class=\"quiet\">Remove the second factor…</button>"))
            </div></div>
            """
    }

    private func sessions() async throws -> HTML {
        let (devices, browsers) = try await person.own.sessions()
        func end(_ id: String, _ device: String) -> HTML {
            person.form(
                Self.here, "end",
                """
                <input type="hidden" name="id" value="\(id)"><button class="quiet" aria-label="End the session of \(device)">End</button>
                """)
        }
        let rows =
            devices.map { session in
                Layout.row([
                    SessionCells.device(session) + rename(session), SessionCells.place(session), HTML(session.address),
                    Layout.time(session.began), HTML(person.own.text(of: session.lastUse)), end(session.id, session.device),
                ])
            }
            + browsers.map { session in
                let isOwn = session.id == person.session.id
                return Layout.row([
                    SessionCells.device(session, isOwn: isOwn), session.isOfConsole ? "the console" : "these pages",
                    HTML(session.address), Layout.time(session.began), HTML(person.own.text(of: session.lastUse)),
                    isOwn ? .none : end(session.id, session.device),
                ])
            }
        return Layout.table("Devices and sessions", ["Device", "For", "From", "Since (UTC)", "Last used", "End"], rows)
    }

    private func rename(_ session: Session) -> HTML {
        // A refused name is shown again.
        let isRefused = person.isRefused("rename") && person.value("id") == session.id
        return """
            <details\(HTML.when(isRefused, " open"))><summary>Rename</summary>\(person.form(
            Self.here, "rename",
            """
            <input type="hidden" name="id" value="\(session.id)">
            <input name="device" aria-label="Name of the device" maxlength="200" required value="\(isRefused ? person.value("device") ?? "" : session.device)">
            <button class="quiet">Save the name</button>
            """))</details>
            """
    }

    private func change() async throws -> ConsoleReply {
        switch person.value("action") {
        case "profile":
            if let refusal = try await pages.refusal(person) { return try await reply(error: (.profile, refusal)) }
            let email = (person.request.form["email"] ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
            let isProved = pages.mail != nil && UserLookUp.spelled(email) != person.account.email
            do throws(AdministrationError) {
                let name = person.request.form["name"] ?? ""
                try await person.own.set(name: name, address: isProved ? person.account.email : email)
            } catch {
                guard error.code == .invalid else { throw error }
                return try await reply(error: (.profile, Layout.message(of: error)))
            }
            if isProved, let mail = pages.mail {
                if let refusal = try await askForProof(of: email, mail) { return try await reply(error: (.profile, refusal)) }
                return .redirect(to: Self.here.with("done", "address"))
            }
            return .redirect(to: Self.here.with("done", "profile"))
        case "password":
            if let refusal = try await pages.refusal(person) { return try await reply(error: (.password, refusal)) }
            let new = person.request.form["new"] ?? ""
            guard new == person.request.form["again"] else {
                return try await reply(error: (.password, "The new passwords are not the same."))
            }
            do throws(AdministrationError) {
                try await person.own.setPassword(new)
            } catch {
                guard error.code == .invalid else { throw error }
                return try await reply(error: (.password, Layout.message(of: error)))
            }
            return pages.signedOut(person.request, "password")
        case "connect":
            guard let provider = pages.provider else { throw AdministrationError(.notFound, "there is no identity provider") }
            if let refusal = try await pages.refusal(person) { return try await reply(error: (.identity, refusal)) }
            return try await ProviderPages.bridge(person, pages, provider)
        case "disconnect":
            do throws(AdministrationError) {
                try await person.own.disconnect(person.value("id") ?? "")
            } catch {
                guard error.code == .invalid else { throw error }
                return try await reply(error: (.identity, Layout.message(of: error)))
            }
            return .redirect(to: Self.here.with("done", "no-identity"))
        case "consent":
            if let refusal = try await pages.refusal(person) { return try await reply(error: (.consent, refusal)) }
            try await person.own.consent(to: person.value("container") ?? "", days: person.value("days").flatMap { Int($0) } ?? 0)
            return .redirect(to: Self.here.with("done", "consent"))
        case "end-consent":
            // The end of a consent asks for no password, because it only takes access away from others.
            try await person.own.endConsent(to: person.value("container") ?? "")
            return .redirect(to: Self.here.with("done", "no-consent"))
        case "end":
            try await person.own.endSession(person.value("id") ?? "")
            return .redirect(to: Self.here.with("done", "session"))
        case "rename":
            do throws(AdministrationError) {
                try await person.own.renameSession(person.value("id") ?? "", to: person.value("device") ?? "")
            } catch {
                guard error.code == .invalid else { throw error }
                return try await reply(error: (.sessions, Layout.message(of: error)))
            }
            return .redirect(to: Self.here.with("done", "renamed"))
        case "leave": return try await PersonShares(person).leave()
        case "everywhere":
            guard person.value("confirmed") != nil else { return everywhereQuestion }
            try await person.own.signOutEverywhere()
            return pages.signedOut(person.request, "everywhere")
        default: throw AdministrationError(.invalid, "say what is to be changed")
        }
    }
}

extension PersonPage {
    /// The page that asks before all sessions end.
    private var everywhereQuestion: ConsoleReply {
        PeopleLayout.page(
            person, title: "Sign out everywhere?",
            """
            <div class="card"><p>All your sessions end: those of your devices and apps, and of browsers, this one as well. What devices have not sent
            yet stays on them until you sign in there again.</p>
            \(person.form(
                Self.here, "everywhere",
                """
                <input type="hidden" name="confirmed" value="1">
                <div class="actions"><button class="danger">Sign out everywhere</button>
                <a class="button quiet" href="\(Self.here)">Cancel</a></div>
                """))</div>
            """)
    }

    /// Sends the letter that proves a new address of the account.
    ///
    /// - Returns: The reason why it was not sent; `nil` if it was.
    private func askForProof(of email: String, _ mail: PeopleMail) async throws -> String? {
        do {
            try EmbeddedCloud.check(email: email, container: "default")
        } catch {
            return "This is no address that letters can be sent to."
        }
        guard mail.mayBeSent("address", to: person.account.id) else {
            return "A letter was sent not long ago. Open the link in it, or try again in five minutes."
        }
        let key = try await person.own.addressLink(to: email)
        do {
            try await mail.sendAddressLink(AddressLinkPage.path(key), to: email)
        } catch {
            mail.forget("address", to: person.account.id)
            pages.report("a letter about an address was not sent: \(error)")
            return "The letter to the new address could not be sent; your address is as it was."
        }
        return nil
    }
}

/// The page that asks before an account is deleted.
struct PersonDeletionPage {
    private let person: Person
    private let pages: PeoplePages

    init(_ person: Person, _ pages: PeoplePages) { (self.person, self.pages) = (person, pages) }

    /// - Parameter refusal: The reason why nothing was deleted, if it is known before the password is checked.
    func reply(error refusal: String? = nil) async throws -> ConsoleReply {
        var error = refusal
        if person.request.isPost, error == nil {
            error = try await pages.refusal(person)
            if error == nil {
                try await person.own.remove()
                return pages.signedOut(person.request, "deleted")
            }
        }
        let here = Address(["delete"], under: Address.peopleRoot)
        let holdings = try await person.own.holdings()
        return PeopleLayout.page(
            person, title: "Delete your account?", status: error == nil ? 200 : 403,
            """
            \(error.map { Layout.notice(.error, $0) } ?? .none)
            <div class="card"><p>Everything of \(person.account.email) on this server goes, and can't be brought back: records, pictures, what you
            share with others, and your part in what they share. \(holdings.sentence("Your", "you share")) What your devices have stays there. Download the archive first if you want to keep it.</p>
            \(person.form(
                here, "delete",
                """
                \(person.confirmationField)<div class="actions"><button class="danger">Delete the account and its data</button>
                <a class="button quiet" href="\(Address(under: Address.peopleRoot))">Cancel</a></div>
                """))</div>
            """)
    }
}

/// Sets up or removes a person's second factor.
struct PersonFactorPage {
    private let person: Person
    private let pages: PeoplePages

    init(_ person: Person, _ pages: PeoplePages) { (self.person, self.pages) = (person, pages) }

    private static let here = Address(["second-factor"], under: Address.peopleRoot)

    func reply() async throws -> ConsoleReply {
        guard person.request.isPost else { return .redirect(to: Address(under: Address.peopleRoot)) }
        let (credentials, account) = (pages.credentials, person.account)
        switch person.value("action") {
        case "begin":
            let question =
                "These pages will need a code of your phone besides the password, and so will each device at its next sign-in."
            // Replacing the second factor needs the same confirmation as removing it.
            let has = try await credentials.hasSecondFactor(account.id)
            if let page = try await confirmation("begin", question, "Go on", isAlwaysAsked: has) { return page }
            let made = credentials.newSecondFactor(of: account.id)
            return enter(made.secret, made.form)
        case "set":
            let pending = person.value("factor") ?? ""
            guard
                let codes = try await credentials.setSecondFactor(
                    of: account.id, to: pending, code: person.value("code") ?? "")
            else {
                guard let secret = try credentials.secret(ofSecondFactor: pending, of: account.id) else {
                    throw AdministrationError(.invalid, "that took too long; begin again")
                }
                return enter(secret, pending, error: "The code is wrong. Is the clock of your phone right?")
            }
            try await person.own.auditSecondFactor(isSet: true)
            return page(
                """
                \(Layout.notice(.good, "The second factor is set up. From now on these pages ask for its code, and so do devices and apps at their next sign-in. Those that are signed in stay so; 'Sign out everywhere' ends that."))
                \(SecondFactorPieces.recoveryCodes(codes, next: Address(under: Address.peopleRoot)))
                """)
        case "codes":
            if let page = try await confirmation("codes", SecondFactorPieces.questionOfCodes, "Make new recovery codes") {
                return page
            }
            guard let codes = try await credentials.replaceRecoveryCodes(of: account.id) else {
                throw SecondFactorPieces.changedMeanwhile
            }
            try await person.own.auditRecoveryCodes()
            return page(
                SecondFactorPieces.madeCodes
                    + SecondFactorPieces.recoveryCodes(codes, next: Address(under: Address.peopleRoot)))
        case "remove":
            let question = "These pages, devices, and the console if you use it, will let you in with the password alone."
            if let page = try await confirmation("remove", question, "Remove the second factor") { return page }
            try await credentials.removeSecondFactor(of: account.id)
            try await person.own.auditSecondFactor(isSet: false)
            return .redirect(to: Address(under: Address.peopleRoot).with("done", "second-factor"))
        default: throw AdministrationError(.invalid, "say what is to be changed")
        }
    }

    private func confirmation(
        _ action: String, _ question: String, _ button: String, isAlwaysAsked: Bool = true
    ) async throws -> ConsoleReply? {
        var error: String?
        if person.value("confirmed") != nil || !isAlwaysAsked && pages.credentials.isConfirmed(person.session) {
            error = try await pages.refusal(person, isAlwaysAsked: isAlwaysAsked)
            if error == nil { return nil }
        }
        return page(
            """
            \(error.map { Layout.notice(.error, $0) } ?? .none)
            <div class="card"><p>\(question)</p>
            \(person.form(
                Self.here, action,
                """
                <input type="hidden" name="confirmed" value="1">\(person.confirmationField)
                <div class="actions"><button>\(button)</button><a class="button quiet" href="\(Address(under: Address.peopleRoot))">Cancel</a></div>
                """))</div>
            """, status: error == nil ? 200 : 403)
    }

    private func enter(_ secret: String, _ pending: String, error: String? = nil) -> ConsoleReply {
        page(
            """
            \(error.map { Layout.notice(.error, $0) } ?? .none)
            \(SecondFactorPieces.secret(secret, of: person.account.email))
            \(person.form(Self.here, "set", SecondFactorPieces.codeFields(pending)))
            """, status: error == nil ? 200 : 400)
    }

    private func page(_ content: HTML, status: Int = 200) -> ConsoleReply {
        PeopleLayout.page(person, title: "Second factor", status: status, content)
    }
}

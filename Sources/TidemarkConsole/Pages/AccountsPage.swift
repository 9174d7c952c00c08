import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

/// The page of the cloud's accounts.
struct AccountsPage {
    let context: Context
    private let console: Console

    init(_ context: Context, _ console: Console) { (self.context, self.console) = (context, console) }

    private static let most = 100

    func reply() async throws -> ConsoleReply {
        let invitation = AccountInvitation(context, console)
        if context.request.isPost { return try await invitation.reply() }
        let text = context.value("q") ?? ""
        let accounts = try await context.administration.accounts(matching: text, limit: Self.most + 1)
        let rows = accounts.prefix(Self.most).map { account in
            Layout.row([
                "<a href=\"\(context.address("account", query: [("id", account.email)]))\">\(account.email)</a>",
                HTML(account.name?.title ?? ""), HTML(account.phone ?? ""), HTML(Self.quota(account.quota)),
                Self.status(account.status),
            ])
        }
        let done: HTML =
            context.value("done") == nil ? .none : Layout.notice(.good, "The account is deleted with its data.")
        return Layout.page(
            context, .accounts, title: "Accounts",
            """
            \(done)
            <form class="card" method="get" action="\(Address(["accounts"]))" role="search">
            <input type="hidden" name="c" value="\(context.container ?? "")"><input type="hidden" name="e" value="\(context.environment.rawValue)">
            <div class="row"><div class="field"><label for="q">Address, name, phone number or identifier</label>
            <input id="q" name="q" type="search" autocomplete="off" value="\(text)"></div><div class="field"><button>Search</button></div></div>
            </form>
            \(rows.isEmpty ? "<div class=\"card empty\">No account matches.</div>" : Layout.table("Accounts", ["Address", "Name", "Phone", "Quota", "Status"], rows))
            \(HTML.when(accounts.count > Self.most, "<p class=\"quiet-text\">The first \(Self.most) are shown. Search for others.</p>"))
            \(invitation.form)
            """)
    }

    static func quota(_ bytes: Int64) -> String { bytes == .max ? "no limit" : Layout.bytes(bytes) }

    static func status(_ status: CloudAccount.Status) -> HTML {
        status == .available ? "available" : "<span class=\"tag\">\(status.rawValue)</span>"
    }
}

/// The page of an account: its use of the cloud, its sessions, and the actions on them.
struct AccountPage {
    let context: Context
    private let console: Console

    init(_ context: Context, _ console: Console) { (self.context, self.console) = (context, console) }

    func reply() async throws -> ConsoleReply {
        guard let id = context.value("id") else { throw AdministrationError(.invalid, "say which account") }
        if context.request.isPost { return try await change(id) }
        let details = try await context.administration.details(of: id)
        let account = details.account
        let names = try await context.administration.addresses(in: details.entries)
        let quota = context.form("quota")
        return Layout.page(
            context, .accounts, title: account.email,
            """
            \(notice(details))
            \(HTML.when(account.status != .available, Layout.notice(.warning, "The account can't be used: \(account.status.rawValue).")))
            <div class="card"><dl class="facts">
            <dt>Name</dt><dd>\(account.name?.title ?? "–")</dd>
            <dt>Phone</dt><dd>\(account.phone ?? "–")</dd>
            <dt>Password</dt><dd>\(details.hasPassword ? "set" : details.identities.isEmpty ? "none: nobody can sign in" : "none")</dd>
            <dt>Second factor</dt><dd>\(details.secondFactor?.text ?? "none")</dd>
            <dt>Console</dt><dd>\(details.role.map { $0.role.rawValue } ?? "no role")</dd>
            <dt>Identifier</dt><dd><code>\(account.id)</code></dd>
            </dl></div>
            \(AccountIdentities(context).section(details, id))
            <h2>Use and quota</h2>
            \(usage(details))
            <form class="card" method="post" action="\(Address(["account"]))">\(fields("quota", id))
            \(quota.alert)
            <div class="row"><div class="field"><label for="quota">Quota in each container <span class="hint">such as 5GB; empty or none for no limit</span></label>
            <input id="quota" name="quota" autocomplete="off" value="\(quota.value("quota", account.quota == .max ? "" : Self.short(account.quota)))"\(quota.wrong("quota"))></div>
            <div class="field"><button class="quiet">Set the quota</button></div></div></form>
            <h2>Devices and sessions</h2>
            \(sessions(details, id))
            <p><a href="\(failures(of: account))">Sync errors of this account</a></p>
            <div class="actions">
            <form id="password" method="post" action="\(Address(["account"]))">\(fields("link", id))<button class="quiet">Link for a password…</button></form>
            \(HTML.when(
                details.secondFactor != nil,
                "<form method=\"post\" action=\"\(Address(["account"]))\">\(fields("second-factor", id))<button class=\"danger\">Take away the second factor…</button></form>"
            ))
            <form method="post" action="\(Address(["account"]))">\(fields("export", id))<button class="quiet">Export all data…</button></form>
            <form method="post" action="\(Address(["account"]))">\(fields("sign-out", id))<button class="danger">Sign out everywhere…</button></form>
            <form method="post" action="\(Address(["account"]))">\(fields(account.status == .available ? "disable" : "enable", id))\
            <button class="\(account.status == .available ? "danger" : "quiet")">\(account.status == .available ? "Disable the account…" : "Enable the account")</button></form>
            <form method="post" action="\(Address(["account"]))">\(fields("remove", id))<button class="danger">Delete it with its data…</button></form>
            </div>
            <h2>What happened</h2>
            \(ActivityPage.table(details.entries, names))
            """)
    }

    private func fields(_ action: String, _ id: String) -> HTML {
        """
        \(context.hiddenFields)<input type="hidden" name="id" value="\(id)"><input type="hidden" name="action" value="\(action)">
        """
    }

    /// The address of the page with the refused requests of all devices of the account.
    private func failures(of account: StoredAccount) -> Address {
        context.address("activity", query: [("show", "failures"), ("account", account.email), ("all", "1")])
    }

    private func usage(_ details: Administration.AccountDetails) -> HTML {
        guard !details.usage.isEmpty else { return "<div class=\"card empty\">Nothing is stored.</div>" }
        let quota = details.account.quota
        return Layout.table(
            "Use", ["Container", "Environment", "Stored", "Of the quota"],
            details.usage.map { line in
                let share = quota == .max || quota <= 0 ? 0 : min(100, Int(Double(line.bytes) / Double(quota) * 100))
                let bar: HTML =
                    quota == .max
                    ? "no limit"
                    : """
                    <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label="\(share) percent of the quota"><rect width="\(share)" height="4"></rect></svg>\(share) %
                    """
                return Layout.row([HTML(line.container), HTML(line.environment.rawValue), HTML(Layout.bytes(line.bytes)), bar])
            })
    }

    private func sessions(_ details: Administration.AccountDetails, _ id: String) -> HTML {
        guard !details.sessions.isEmpty || !details.pages.isEmpty else {
            return "<div class=\"card empty\">The account is signed in nowhere.</div>"
        }
        let now = context.administration.credentials.time
        func end(_ session: String) -> HTML {
            """
            <form method="post" action="\(Address(["account"]))">\(fields("end", id))<input type="hidden" name="session" value="\(session)">\
            <button class="danger">End<span class="hidden"> the session</span></button></form>
            """
        }
        let rows: [HTML] =
            details.sessions.map { session in
                Layout.row([
                    SessionCells.device(session), SessionCells.place(session), Layout.time(session.began),
                    HTML(session.lastUse.text(at: now)), HTML(session.address), end(session.id),
                ])
            }
            + details.pages.map { session in
                let isOwn = session.id == context.session.id
                return Layout.row([
                    SessionCells.device(session, isOwn: isOwn), session.isOfConsole ? "the console" : "the person's own pages",
                    Layout.time(session.began), HTML(session.lastUse.text(at: now)), HTML(session.address),
                    isOwn ? .none : end(session.id),
                ])
            }
        return Layout.table("Sessions", ["Device", "For", "Since (UTC)", "Last used", "From", ""], rows)
    }

    private func change(_ id: String) async throws -> ConsoleReply {
        let administration = context.administration
        switch context.value("action") {
        case "quota":
            guard let quota = ByteCountText.limit(context.value("quota") ?? "none") else {
                throw AdministrationError(
                    .invalid, "a quota is a whole number, such as 5GB, 2700kB or 2700000; empty or none for no limit",
                    field: "quota")
            }
            _ = try await administration.update(id) { $0.quota = quota }
        case "link":
            let email = try await administration.details(of: id).account.email
            let question =
                "Whoever has the link sets the password of \(email), and all sessions of the account end then. It is for the person, and for nobody else."
            if let page = try await console.confirmation(
                context, question, title: "Make a link for a password?", "Make the link", isHarmless: true, isAlwaysAsked: true)
            {
                return page
            }
            return try await AccountLinkPage(context, of: id).reply()
        case "export":
            let details = try await administration.details(of: id)
            let question =
                "The archive has all that the cloud has of \(details.account.email): account, records, shares, pictures and other contents, sessions, "
                + "and what happened. It is for the person, and for nobody else. The audit log says that you have it."
            let title = "Export all data of \(details.account.email)?"
            if let page = try await console.confirmation(
                context, question, title: title, "Download the archive", isHarmless: true)
            {
                return page
            }
            return try await console.archives.reply(with: details.account.id) { () throws(AdministrationError) in
                try await administration.archive(of: id)
            }
        case "end":
            let session = context.value("session") ?? ""
            let question = try await question(toEnd: session, of: id)
            if let page = try await console.confirmation(context, question, "End the session") { return page }
            try await administration.endSession(session, of: id)
            return .redirect(to: context.address("account", query: [("id", id), ("done", "end"), ("session", session)]))
        case "disconnect": if let page = try await AccountIdentities(context).disconnect(of: id, console) { return page }
        case "sign-out":
            let question =
                "All devices and browsers of \(id) are signed out. What they have not sent yet stays on them until somebody signs in again."
            if let page = try await console.confirmation(context, question, "Sign out everywhere") { return page }
            _ = try await administration.signOutEverywhere(id)
        case "second-factor":
            let question =
                "\(id) signs in with the password alone, in the console, on the account's pages and on devices, until the person sets up another second factor. "
                + "All sessions of the account end. If a device was stolen, have the password replaced first: whoever knows it needs no code any more."
            if let page = try await console.confirmation(
                context, question, "Take away the second factor", isAlwaysAsked: true)
            {
                return page
            }
            guard try await administration.removeSecondFactor(of: id).hadOne else {
                throw AdministrationError(.notFound, "the account has no second factor; it may have been taken away already")
            }
        case "disable":
            guard try await administration.details(of: id).account.id != context.account.id else {
                throw AdministrationError(.invalid, "nobody disables their own account; another operator does")
            }
            let question =
                "The account \(id) can't be used until it is enabled again: its devices are refused. What it has stored stays."
            if let page = try await console.confirmation(context, question, "Disable the account") { return page }
            _ = try await administration.update(id) { $0.status = .restricted }
        case "remove":
            guard try await administration.details(of: id).account.id != context.account.id else {
                throw AdministrationError(.invalid, "nobody deletes their own account here; another operator does")
            }
            let holdings = try await administration.holdings(of: id)
            let question =
                "The account \(id) is deleted with all that it has stored: its records, shares and assets, its public records, and its part in "
                + "the shares of others. \(holdings.sentence("Its", "it shares")) What its devices have stays there. "
                + "It can't be undone; Export all data first if the person wants it."
            if let page = try await console.confirmation(context, question, "Delete the account with its data") { return page }
            _ = try await administration.removeWithData(id)
            return .redirect(to: context.address("accounts", query: [("done", "1")]))
        case "enable": _ = try await administration.update(id) { $0.status = .available }
        default: throw AdministrationError(.invalid, "say what is to be changed")
        }
        return .redirect(to: context.address("account", query: [("id", id), ("done", context.value("action"))]))
    }

    /// The message after an action.
    private func notice(_ details: Administration.AccountDetails) -> HTML {
        switch context.value("done") {
        case "quota": quotaNotice(details)
        case "end":
            Layout.notice(
                .good, ended(details.entries),
                """
                <p>If the device was stolen, change the password too: whoever has the device may know it. \
                <a href="#password">To the link for a password</a></p>
                """)
        case let action?: Self.done(action).map { Layout.notice(.good, $0) } ?? .none
        case nil: .none
        }
    }

    /// The message with the account's quota, and a warning if the account uses more.
    private func quotaNotice(_ details: Administration.AccountDetails) -> HTML {
        let quota = details.account.quota
        guard quota < .max else { return Layout.notice(.good, "The account has no quota any more.") }
        let text = "The quota is \(Layout.bytes(quota)) in each container"
        let full = details.usage.filter { $0.bytes > quota }
        guard !full.isEmpty else { return Layout.notice(.good, "\(text).") }
        let places = full.map { "\(Layout.bytes($0.bytes)) in \($0.container) (\($0.environment.rawValue))" }
        return Layout.notice(
            .warning,
            "\(text), and more is in use: \(places.joined(separator: ", ")). "
                + "Devices that add something there are refused from now on.")
    }

    /// The sentence that the session in the query has ended. The audit log has the name of its device.
    private func ended(_ entries: [AuditEntry]) -> String {
        let session = context.value("session")
        let entry = entries.first { $0.event.action == .administration("session.end") && $0.event.subject == session }
        let name = entry.map { " \($0.event.subject.prefix(4)) of \(Self.name(of: $0.event.before))" } ?? ""
        return "The session\(name) has ended, and is refused from now on."
    }

    /// The name of a device or a browser in a sentence.
    private static func name(of device: String) -> String {
        device.isEmpty ? "an unknown device" : BrowserName.short(device)
    }

    /// An action that was done, in words.
    private static func done(_ action: String) -> String? {
        switch action {
        case "sign-out": "All sessions of the account have ended: its devices and browsers are refused from now on."
        case "second-factor": "The second factor is taken away, and all sessions of the account have ended."
        case "disable": "The account is disabled: its devices are refused from now on."
        case "enable": "The account is enabled: its devices go on."
        default: nil
        }
    }

    /// The question before a session of an account is ended.
    private func question(toEnd session: String, of id: String) async throws(AdministrationError) -> String {
        let details = try await context.administration.details(of: id)
        let now = context.administration.credentials.time
        func text(_ device: String, _ system: String, _ began: Int64, _ use: LastUse, _ address: String) -> String {
            let name = Self.name(of: device)
            let runs = system.isEmpty ? "" : " (\(system))"
            let since = Layout.moment(began)
            var last = use.text(at: now)
            if !last.isEmpty { last = ", and was last used \(last)\(address.isEmpty ? "" : " from \(address)")" }
            return "The session \(session.prefix(4)) of \(name)\(runs) ends. It began on \(since) UTC\(last). "
        }
        if let known = details.sessions.first(where: { $0.id == session }) {
            return text(known.device, known.system, known.began, known.lastUse, known.address)
                + "The device is refused until \(id) signs in on it again. What it has not sent yet stays on it."
        }
        guard let known = details.pages.first(where: { $0.id == session }) else {
            throw AdministrationError(.notFound, "there is no such session; it may have ended")
        }
        return text(known.device, "", known.began, known.lastUse, known.address)
            + (known.isOfConsole ? "It opens the console." : "It opens the person's own pages.")
    }

    private static let units: [(String, Int64)] = [
        ("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("", 1),
    ]

    private static func short(_ bytes: Int64) -> String {
        guard bytes > 0, let unit = units.first(where: { bytes % $0.1 == 0 }) else { return "0" }
        return "\(bytes / unit.1)\(unit.0)"
    }
}

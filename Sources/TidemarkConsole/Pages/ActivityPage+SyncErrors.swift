import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkModel

/// The part of the page on refused requests of devices, with remedies.
extension ActivityPage {
    /// The last errors: of one container and its environment, and for operators of the whole cloud.
    func failures() async throws(AdministrationError) -> ConsoleReply {
        let administration = context.administration
        let isWhole = administration.isOperator && context.value("all") != nil
        let hasBoth = isWhole || context.value("both") != nil
        let (code, account) = (context.value("code"), context.value("account"))
        let container = isWhole ? nil : try context.demandContainer()
        let environment = hasBoth ? nil : context.environment
        // The cloud keeps no more failures than that.
        let skipped = min(max(context.value("skip").flatMap { Int($0) } ?? 0, 0), SyncFailureLimits.inAll)
        let (found, hasOlder) = try await administration.syncFailurePage(
            in: container, environment, account: account, code: code, skipping: skipped, limit: Self.most)
        let codes = try await administration.syncFailureCodes(in: container, environment).union([code].compactMap(\.self))
        let schemas = try await schemas(of: found)
        let table: HTML =
            found.isEmpty
            ? "<div class=\"card empty\">\(skipped > 0 ? "No older error." : "No such error in the last 7 days.")</div>"
            : """
            <div class="scroll"><table class="stacked"><caption class="hidden">Sync errors</caption>
            <thead><tr><th scope="col" class="wide">Why</th><th scope="col">Record</th><th scope="col">Account</th>\
            <th scope="col">Device</th><th scope="col">When</th></tr></thead>
            <tbody>\(found.html { row($0, hasBoth, schemas) })</tbody></table></div>
            """
        let kept: [(name: String, value: String?)] = [
            ("show", "failures"), ("code", code), ("account", account), ("both", context.value("both")),
            ("all", isWhole ? "1" : nil),
        ]
        // A developer's reading by a person's consent is in the audit log, once for each page view. A page that refreshes would
        // fill the log.
        let isLive = skipped == 0 && (administration.isOperator || environment == .development)
        let older = context.address("activity", query: kept + [("skip", String(skipped + Self.most))])
        return Layout.page(
            context, .activity, title: "Sync errors", isLive: isLive, kept: kept,
            """
            \(tabs("failures"))
            <form class="card" method="get" action="\(Address(["activity"]))"><input type="hidden" name="show" value="failures">
            \(place)
            <div class="row">
            <div class="field"><label for="code">Error</label><select id="code" name="code"><option value="">All</option>
            \(codes.sorted().html { Layout.option($0, isChosen: $0 == code) })</select></div>
            <div class="field"><label for="account">Account <span class="hint">\(administration.isOperator ? "its address" : "as the container names it")</span></label>
            <input id="account" name="account" autocomplete="off" maxlength="255" value="\(account ?? "")"></div></div>
            <div class="row"><div class="field"><label class="choice"><input type="checkbox" name="both" value="1"\(HTML.when(hasBoth, " checked"))>Both environments</label></div>
            \(HTML.when(
                administration.isOperator,
                "<div class=\"field\"><label class=\"choice\"><input type=\"checkbox\" name=\"all\" value=\"1\"\(HTML.when(isWhole, " checked"))>The whole cloud</label></div>"
            ))
            <div class="field"><button>Filter</button></div></div></form>
            \(isLive ? live(table) : table)
            \(HTML.when(hasOlder, "<div class=\"actions\"><a class=\"button quiet\" href=\"\(older)\">Older errors</a></div>"))
            <p class="quiet-text">What all servers have answered devices and browsers in the last 7 days: the last 500 errors of a container’s accounts
            in an environment, 50 of each, 25 of refused sign-ins, and 100 of other requests without an account. Equal ones of a device are one line. CONFLICT is no fault: the device merges and sends again. Times in UTC.</p>
            """)
    }

    /// The schemas of a container.
    private struct Schemas {
        let development, production: CloudSchema
    }

    /// The schemas of the containers in which a record does not fit one.
    private func schemas(
        of found: [Administration.KnownSyncFailure]
    ) async throws(AdministrationError) -> [String: Schemas] {
        var schemas: [String: Schemas] = [:]
        for known in found where !known.failure.field.isEmpty {
            let container = known.failure.container
            guard schemas[container] == nil, context.containers.contains(container) else { continue }
            schemas[container] = Schemas(
                development: try await context.administration.schema(of: container, environment: .development),
                production: try await context.administration.schema(of: container, environment: .production))
        }
        return schemas
    }

    private func row(
        _ known: Administration.KnownSyncFailure, _ hasPlaces: Bool, _ schemas: [String: Schemas]
    ) -> HTML {
        let failure = known.failure
        let hidden = Self.readers(ofReasonOf: known)
        let reason: HTML = known.isHidden ? "<span class=\"quiet-text\">\(hidden)</span>" : self.reason(of: failure)
        let remedies = remedies(of: known, schemas[failure.container])
        let times = failure.count == 1 ? HTML.none : "<br><span class=\"hint\">\(self.times(of: failure))</span>"
        return """
            <tr><td><p>\(reason)</p><p class="hint"><code>\(failure.code)</code> \(failure.operation)</p>
            \(saved(known))
            \(HTML.when(!remedies.isEmpty, "<p>\(remedies.html { text, address in "<a href=\"\(address)\">\(text)</a> " })</p>"))</td>
            <td data-column="Record">\(record(of: known))</td>
            <td data-column="Account">\(account(of: known))</td>
            <td data-column="Device">\(device(of: known))</td>
            <td data-column="When">\(Layout.time(failure.at))\(times)\
            \(HTML.when(hasPlaces, "<br><span class=\"hint\">\(Layout.parts(failure.container)) (\(failure.environment))</span>"))</td></tr>
            """
    }

    /// The number of the failure's answers, and the time of the first, if it is not the shown time of the last.
    private func times(of failure: SyncFailure) -> HTML {
        let times = "\(Layout.count(failure.count)) times"
        guard Layout.moment(failure.firstAt) != Layout.moment(failure.at) else { return HTML(times) }
        return "\(times) since \(Layout.time(failure.firstAt))"
    }

    /// A reason, with its commands marked up, and the container's name in them.
    private func reason(of failure: SyncFailure) -> HTML {
        let text = failure.reason(isOfServedContainer: context.containers.contains(failure.container))
        let parts = text.split(separator: "`", omittingEmptySubsequences: false)
        guard parts.count % 2 == 1 else { return Self.words(text[...]) }
        return parts.enumerated().html { number, part in
            number % 2 == 0 ? Self.words(part) : "<code>\(Self.words(part))</code>"
        }
    }

    /// A text whose options are not broken.
    private static func words(_ text: Substring) -> HTML {
        text.split(separator: " ", omittingEmptySubsequences: false).enumerated().html { number, word in
            let isOption = word.hasPrefix("--") && word.utf8.count <= 30
            let shown: HTML = isOption ? "<span class=\"option\">\(String(word))</span>" : HTML(String(word))
            return number == 0 ? shown : " \(shown)"
        }
    }

    /// The text that says who sees the reason for a refusal of private records in production.
    static let hiddenReason =
        "for operators, and for developers with the person’s consent, which people give on the page of their account"

    /// The text that says who sees the reason of an error. A person can't give consent for records that others share with them,
    /// and a deleted account can't give consent at all.
    private static func readers(ofReasonOf known: Administration.KnownSyncFailure) -> String {
        if known.failure.scope == .shared { return "for operators: what is shared is its owner’s" }
        return known.failure.account.isEmpty || known.isOfDeletedAccount ? "for operators" : hiddenReason
    }

    /// The tag that the record was saved since, or that the account has access or room again.
    private func saved(_ known: Administration.KnownSyncFailure) -> HTML {
        if known.hasAccessAgain {
            return "<p><span class=\"tag\">\(known.failure.isOfOwnQuota ? "has room again" : "access restored since")</span></p>"
        }
        guard case .savedSince(let time) = known.record else { return .none }
        return "<p><span class=\"tag\">saved at \(Layout.time(time))</span></p>"
    }

    /// The account, with a link unless the account is deleted.
    private func account(of known: Administration.KnownSyncFailure) -> HTML {
        if let tried = known.triedAccount {
            let link = context.address("account", query: [("id", tried)])
            return "<a href=\"\(link)\">\(Layout.parts(tried))</a><br><span class=\"hint\">sign-in refused</span>"
        }
        if !known.isOfDeletedAccount {
            guard context.administration.isOperator, !known.account.isEmpty else { return HTML(known.account) }
            return "<a href=\"\(context.address("account", query: [("id", known.account)]))\">\(Layout.parts(known.account))</a>"
        }
        return "deleted account<br><span class=\"hint\">\(known.account)</span>"
    }

    /// The device that was refused.
    private func device(of known: Administration.KnownSyncFailure) -> HTML {
        guard let device = known.device else { return .none }
        guard !device.session.isEmpty else {
            return "\(BrowserName.short(device.name))<br><span class=\"hint\">as it named itself</span>"
        }
        let ended: HTML = HTML.when(device.hasEnded, "<br><span class=\"hint\">the session has ended</span>")
        guard !device.hasEnded || !device.name.isEmpty else {
            return "<code>\(String(device.session.prefix(4)))</code>\(ended)"
        }
        return "\(SessionCells.device(name: device.name, system: device.system, session: device.session))\(ended)"
    }

    /// The record, with a link where the console can show it.
    private func record(of known: Administration.KnownSyncFailure) -> HTML {
        let failure = known.failure
        let database: HTML = failure.scope.map { "<span class=\"hint\">\($0.name) database</span>" } ?? .none
        guard !failure.record.isEmpty else {
            return failure.recordType.isEmpty ? database : "\(failure.recordType)<br>\(database)"
        }
        // Names of records that devices make begin with the type.
        let type = failure.recordType.isEmpty ? "" : "\(failure.recordType):"
        let name = (failure.record.hasPrefix(type) ? "" : type) + failure.record
        let isAbsent = known.record == .absent
        var place: HTML = "<br>\(database)"
        if !failure.zone.isEmpty { place += "<br><span class=\"hint\">\(failure.zone)</span>" }
        if isAbsent { place += "<br><span class=\"hint\">not in the cloud</span>" }
        // The address of a shared zone needs its owner, whom the error does not name. A refused new record does not exist.
        guard let scope = failure.scope, scope != .shared, !isAbsent, known.record != .unknown,
            context.containers.contains(failure.container)
        else { return "\(name)\(place)" }
        let query: [(name: String, value: String?)] = [
            ("db", scope.name), ("account", scope == .public ? nil : known.account), ("zone", failure.zone),
            ("name", failure.record),
        ]
        return "<a href=\"\(address("record", of: failure, query))\">\(name)</a>\(place)"
    }

    /// The links to the remedies of an error, each with its text.
    private func remedies(of known: Administration.KnownSyncFailure, _ schemas: Schemas?) -> [(String, Address)] {
        let failure = known.failure
        guard context.containers.contains(failure.container) else { return [] }
        let isOfAccount = context.administration.isOperator && !failure.account.isEmpty && !known.isOfDeletedAccount
        let account = address("account", of: failure, [("id", known.account)])
        switch failure.code {
        case SyncFailure.quotaExceeded where isOfAccount: return [("The account’s quota", account.at("quota"))]
        case "AUTHENTICATION_FAILED" where isOfAccount, "AUTHENTICATION_REQUIRED" where isOfAccount:
            return [("The account and its sessions", account)]
        default: break
        }
        guard !failure.field.isEmpty, let schemas else { return [] }
        return [remedy(failure, schemas)]
    }

    /// The link for a record that does not fit the schema.
    private func remedy(_ failure: SyncFailure, _ schemas: Schemas) -> (String, Address) {
        let type = failure.recordType
        let isOfType = failure.field == "recordName"
        func has(_ schema: CloudSchema) -> Bool {
            isOfType ? schema.types[type] != nil : schema.types[type]?.fields[failure.field] != nil
        }
        // If production has the field, or in development, the field has another type.
        guard failure.environment == StoreEnvironment.production.rawValue, !has(schemas.production) else {
            let page = address("schema", of: failure, [])
            let isProduction = failure.environment == StoreEnvironment.production.rawValue
            let isThere = has(isProduction ? schemas.production : schemas.development)
            return ("The schema", isThere ? page.at(SchemaPage.place(of: failure.field, in: type)) : page)
        }
        let place: [(name: String, value: String?)] = [
            ("c", failure.container), ("e", StoreEnvironment.development.rawValue),
        ]
        guard !has(schemas.development) else { return ("Deploy the schema…", Address(["schema"], query: place)) }
        let what: [(name: String, value: String?)] = [
            ("type", type), ("field", isOfType ? nil : failure.field), ("kind", isOfType ? nil : failure.fieldType),
        ]
        let name = isOfType ? "\(type) with a field" : "\(failure.field) (\(failure.fieldType))"
        return ("Add \(name) in development…", Address(["schema"], query: place + what).at("add"))
    }

    /// The address of a page for the container and the environment of an error.
    private func address(_ page: String, of failure: SyncFailure, _ query: [(name: String, value: String?)]) -> Address {
        Address([page], query: [("c", failure.container), ("e", failure.environment)] + query)
    }
}

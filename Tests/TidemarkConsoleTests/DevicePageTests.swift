import Foundation
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: the pages show the errors of devices to those who may see them, and refresh without keeping a session open. Method:
/// figures that the test makes, the text of pages, and a clock that the test moves.
@Suite(.timeLimit(.minutes(30))) struct DevicePageTests {
    /// What a server would tell.
    private struct Figures: ServerFigures {
        var samples: [FigureSample] = []
        var delivered: [Delivery] = []
        var served: [ServedRequest] = []
        var account = NotifiedAccount(subscriptions: [], devices: 0)

        func history(_ span: FigureSpan) -> [FigureSample] { samples }
        func requests(of container: String?) -> [ServedRequest] { served }
        func deliveries(of container: String?) -> [Delivery] {
            delivered.filter { container == nil || $0.container == container }
        }
        func notifications(
            of account: String, in container: String, _ environment: StoreEnvironment
        ) async throws -> NotifiedAccount {
            self.account
        }
    }

    private func failure(
        _ reason: String, environment: String, isPublic: Bool = false, container: String = ConsoleFixture.journal,
        of account: String = "x", code: String = "BAD_REQUEST", record: String = "<u>senja", count: Int = 2
    ) -> SyncFailure {
        SyncFailure(
            at: 1_800_000_000_000_000, operation: "records.modify", container: container, environment: environment,
            account: account, scope: isPublic ? .public : .private, record: record, recordType: record.isEmpty ? "" : "Trip",
            zone: "TidemarkZone", code: code, reason: reason, count: count)
    }

    @Test func `operators see why devices were refused, and developers nothing of private records in production`() async throws {
        let fixture = try await ConsoleFixture(figures: Figures())
        try await fixture.credentials.record([
            failure("<b>in development</b>", environment: "development"),
            failure("private in production", environment: "production", of: fixture.cleo.id),
            failure("public in production", environment: "production", isPublic: true),
            failure("of another", environment: "development", container: ConsoleFixture.other),
        ])
        let query = ["show": "failures", "c": ConsoleFixture.journal]
        let ben = try await fixture.browser(fixture.ben)
        let mine = await ben.get("activity", query)
        #expect(mine.status == 200)
        #expect(mine.text.contains("&lt;b&gt;in development") && !mine.text.contains("in production"))
        let both = await ben.get("activity", query.merging(["both": "1"]) { $1 }).text
        #expect(both.contains("public in production"))
        #expect(!both.contains("private in production") && both.contains("for operators") && !both.contains("of another"))
        // A developer sees the account's name in the container, and no address.
        let name = StoredAccount.userRecordName(of: fixture.cleo.id, in: ConsoleFixture.journal)
        let named = await ben.get("activity", query.merging(["e": "production", "account": name]) { $1 }).text
        #expect(named.contains("for operators") && !named.contains("public in production"))
        #expect(!named.contains("cleo@example.org"))
        let anna = try await fixture.browser(fixture.anna)
        let all = await anna.get("activity", query.merging(["all": "1"]) { $1 }).text
        for text in ["private in production", "of another", "Trip:&lt;u&gt;senja", "<span class=\"hint\">2 times</span>"] {
            #expect(all.contains(text))
        }
        let one = await anna.get("activity", query.merging(["code": "CONFLICT"]) { $1 })
        #expect(one.text.contains("No such error"))
    }

    @Test func `errors are those of the chosen environment, and another choice keeps the page and its filters`() async throws {
        let fixture = try await ConsoleFixture(figures: Figures())
        try await fixture.credentials.record([
            failure("in development", environment: "development", of: fixture.cleo.id),
            failure("in production", environment: "production", of: fixture.cleo.id),
        ])
        let anna = try await fixture.browser(fixture.anna)
        let query = [
            "show": "failures", "c": ConsoleFixture.journal, "e": "production", "account": "cleo@example.org", "both": "",
        ]
        let page = await anna.get("activity", query).text
        #expect(page.contains("<p>in production</p>") && !page.contains("<p>in development</p>"))
        let chooser = try #require(page.firstMatch(of: /(?s)<form class="chooser".*?<\/form>/)).output
        #expect(
            chooser.contains("name=\"show\" value=\"failures\"")
                && chooser.contains("name=\"account\" value=\"cleo@example.org\""))
        // One button of the page is named Show.
        #expect(page.components(separatedBy: ">Show</button>").count == 2)
        let requests = await anna.get("activity", ["show": "requests", "result": "failed"]).text
        #expect(requests.contains("<input type=\"hidden\" name=\"result\" value=\"failed\">"))
    }

    @Test func `a page has 100 errors, and links to older ones until each was shown once`() async throws {
        let fixture = try await ConsoleFixture(figures: Figures())
        try await fixture.credentials.record(
            (0..<230).map { failure("r", environment: "development", of: "x\($0 % 5)", record: "n\(1_000 + $0)") })
        for account in [fixture.anna, fixture.ben] {
            let browser = try await fixture.browser(account)
            var (query, records, pages) = (["show": "failures", "c": ConsoleFixture.journal], [String](), [Int]())
            while pages.count < 9 {
                let page = await browser.get("activity", query).text
                let found = page.matches(of: /Trip:(n\d{4})/).map { String($0.1) }
                pages.append(found.count)
                records += found
                // Only the first page refreshes by itself.
                #expect(page.contains("data-live>") == (pages.count == 1))
                guard let older = page.firstMatch(of: /show=failures&amp;skip=(\d+)">Older errors</) else { break }
                query["skip"] = String(older.1)
            }
            #expect(pages == [100, 100, 30] && Set(records).count == 230)
            for skip in ["-1", "9223372036854775807", "x"] {
                #expect(await browser.get("activity", query.merging(["skip": skip]) { $1 }).status == 200)
            }
        }
    }

    @Test func `each error links to the page that can solve it`() async throws {
        let fixture = try await ConsoleFixture(figures: Figures())
        let cleo = fixture.cleo.id
        try await fixture.cloud.addToSchema(
            ["Trip": ["title": FieldType(.string), "there": FieldType(.string)]], of: ConsoleFixture.journal)
        func unfit(_ field: String, _ type: String, _ record: String, _ environment: String = "production") -> SyncFailure {
            var unfit = failure("does not fit", environment: environment, of: cleo, record: record)
            (unfit.field, unfit.fieldType) = (field, type)
            return unfit
        }
        var untyped = unfit("recordName", "", "u5")
        untyped.recordType = "Lake"
        try await fixture.credentials.record([
            unfit("stars", "int64", "u1"), unfit("there", "string", "u2"), unfit("recordName", "", "u3"), untyped,
            unfit("title", "int64", "u4", "development"),
            failure("full", environment: "development", of: cleo, code: "QUOTA_EXCEEDED", record: ""),
            failure("disabled", environment: "development", of: cleo, code: "AUTHENTICATION_REQUIRED", record: ""),
            failure("no field", environment: "production", of: cleo, record: "p1"),
            failure("another type", environment: "development", of: cleo, record: "p1"),
        ])
        try await save("p1", of: fixture.cleo, fixture.cloud)
        let anna = try await fixture.browser(fixture.anna)
        let page = await anna.get("activity", ["show": "failures", "c": ConsoleFixture.journal, "both": "1"]).text
        let place = "c=\(ConsoleFixture.journal)&amp;e="
        #expect(page.contains("/console/account?\(place)development&amp;id=cleo%40example.org#quota\">The account’s quota</a>"))
        #expect(
            page.contains("/console/account?\(place)development&amp;id=cleo%40example.org\">The account and its sessions</a>"))
        // If development lacks the field, the link leads to the form that adds it; if only production does, to the deployment.
        let schema = "/console/schema?\(place)development"
        let add = "\(schema)&amp;type=Trip&amp;field=stars&amp;kind=int64#add\">Add stars (int64) in development…</a>"
        #expect(page.contains(add))
        // A type comes with a field, which the form takes.
        #expect(page.contains("\(schema)&amp;type=Lake#add\">Add Lake with a field in development…</a>"))
        #expect(page.components(separatedBy: "\(schema)\">Deploy the schema…</a>").count == 3)
        #expect(page.contains("\(schema)#field.Trip.title\">The schema</a>"))
        let whole = await anna.get("schema", ["c": ConsoleFixture.journal]).text
        #expect(whole.contains("data-column=\"Field\"><span id=\"field.Trip.title\">title</span>"))
        // The other errors have nothing to do with the schema.
        #expect(page.components(separatedBy: "/console/schema?").count == 7)
        let prefilled = await anna.get(
            "schema", ["c": ConsoleFixture.journal, "type": "Trip", "field": "stars", "kind": "int64"]
        ).text
        #expect(prefilled.contains("name=\"field\" autocomplete=\"off\" required maxlength=\"255\" value=\"stars\""))
        #expect(prefilled.contains("<option value=\"int64\" selected>"))
        #expect(
            page.contains(
                "/console/record?\(place)development&amp;db=private&amp;account=cleo%40example.org&amp;zone=TidemarkZone&amp;name=p1\">Trip:p1</a>"
            ))
        #expect(!page.contains("/console/record?\(place)production"))
        // Only operators see accounts.
        let ben = try await fixture.browser(fixture.ben)
        #expect(await !ben.get("activity", ["show": "failures", "both": "1"]).text.contains("The account"))
    }

    @Test func `the commands in a reason name the container if it is known, and their options do not wrap`() async throws {
        let fixture = try await ConsoleFixture(figures: Figures())
        let reason = "Free it: `tidemark admin schema remove --container <id> --type A`. Or deploy: tidemark --container <id>"
        try await fixture.credentials.record([
            failure(reason, environment: "development", of: fixture.cleo.id, record: "a"),
            failure("A ` alone, <b>", environment: "development", of: fixture.cleo.id, record: "b"),
            failure("Of nobody --container <id>", environment: "development", container: "x; ls", of: "", record: "c"),
        ])
        let page = try await fixture.browser(fixture.anna).get("activity", ["show": "failures", "all": "1"]).text
        let option = "<span class=\"option\">--container</span>"
        #expect(
            page.contains(
                "Free it: <code>tidemark admin schema remove \(option) \(ConsoleFixture.journal) <span class=\"option\">--type</span> A</code>. Or"
            ))
        #expect(page.contains("tidemark \(option) \(ConsoleFixture.journal)</p>"))
        #expect(page.contains("<p>A ` alone, &lt;b&gt;</p>") && page.contains("Of nobody \(option) &lt;id&gt;</p>"))
    }

    @Test func `an error names the refused device, even if its session has ended`() async throws {
        let fixture = try await ConsoleFixture(figures: Figures())
        let cleo = fixture.cleo.id
        _ = try await fixture.credentials.makeSession(
            account: cleo, container: ConsoleFixture.journal, environment: .development, kind: .device,
            device: "Cleo's <laptop>", system: "Linux")
        let id = try #require(try await fixture.credentials.sessions(of: cleo).first).id
        func refused(_ record: String, by sender: String, _ environment: String = "development") -> SyncFailure {
            var failure = failure("why", environment: environment, of: cleo, record: record)
            failure.sender = sender
            return failure
        }
        let other = String(repeating: "0f", count: 16)
        try await fixture.credentials.record([
            refused("a", by: id), refused("b", by: other), refused("c", by: id, "production"),
        ])
        let query = ["show": "failures", "c": ConsoleFixture.journal]
        let anna = try await fixture.browser(fixture.anna)
        let page = await anna.get("activity", query).text
        #expect(page.contains("data-column=\"Device\">Cleo&#39;s &lt;laptop&gt; <code>\(id.prefix(4))</code>"))
        #expect(page.contains("<code>0f0f</code><br><span class=\"hint\">the session has ended</span>"))
        // A developer learns nothing of devices in production, nor of fields that records may have there.
        var open = failure("why of the public", environment: "production", isPublic: true, of: cleo, record: "d")
        open.sender = id
        var unfit = refused("e", by: id, "production")
        (unfit.field, unfit.fieldType) = ("diagnosis", "string")
        try await fixture.credentials.record([open, unfit])
        let ben = try await fixture.browser(fixture.ben)
        let production = query.merging(["e": "production"]) { $1 }
        let hidden = await ben.get("activity", production).text
        #expect(hidden.contains("for operators") && hidden.contains("why of the public"))
        #expect(!hidden.contains("laptop") && !hidden.contains("diagnosis"))
        let whole = await anna.get("activity", production).text
        #expect(whole.contains("laptop") && whole.contains("Add diagnosis (string) in development…"))
        try await fixture.credentials.endSession(id: id)
        let later = await anna.get("activity", query).text
        // The name is the one at the time of the refusal.
        #expect(
            later.contains(
                "Cleo&#39;s &lt;laptop&gt; <code>\(id.prefix(4))</code><br><span class=\"hint\">the session has ended</span>"))
    }

    private static let zone = CloudZoneID("TidemarkZone")

    /// Saves a record as a device does.
    private func save(_ name: String, of account: StoredAccount, _ cloud: EmbeddedCloud) async throws {
        let database = try cloud.database(.private, of: ConsoleFixture.journal, account: account.id)
        if try await !database.zones().contains(where: { $0.zoneName == Self.zone.zoneName }) {
            try await database.modifyZones(saving: [Self.zone], deleting: [])
        }
        let record = CloudRecord(CloudRecordID(name, in: Self.zone), type: "Trip", fields: ["title": .string(UUID().uuidString)])
        let operation = RecordOperation(.forceUpdate, record)
        for case .failed(let error) in try await database.modify(
            ModifyRecordsRequest(zone: Self.zone, operations: [operation]))
        { throw error }
    }

    @Test
    func `a refused record that was saved since no longer counts, and one not in the cloud has no link`() async throws {
        let fixture = try await ConsoleFixture(figures: Figures())
        let gone = try await fixture.cloud.addAccount("gone@example.org")
        let earlier = try EmbeddedCloud(at: fixture.scratch["cloud"], now: { 1_799_999_940_000_000 })
        try await save("before", of: fixture.cleo, earlier)
        try await fixture.credentials.record([
            failure("why", environment: "development", of: fixture.cleo.id, record: "before"),
            failure("why", environment: "development", of: fixture.cleo.id, record: "Trip:new"),
            failure("why", environment: "development", of: gone.id, record: "other"),
            failure("ended", environment: "development", of: gone.id, code: "AUTHENTICATION_FAILED", record: ""),
        ])
        try await fixture.cloud.removeIfUnused(gone)
        let anna = try await fixture.browser(fixture.anna)
        let query = ["show": "failures", "c": ConsoleFixture.journal]
        let page = await anna.get("activity", query).text
        #expect(!page.contains("<span class=\"tag\">saved at ") && page.contains("name=before\">Trip:before</a>"))
        // The type is not repeated, and a record that is not in the cloud has no link.
        #expect(page.contains("<td data-column=\"Record\">Trip:new<br>") && page.contains("not in the cloud"))
        #expect(page.contains("deleted account<br><span class=\"hint\">\(gone.id)") && !page.contains("The account and its"))
        let overview = await anna.get("", ["c": ConsoleFixture.journal]).text
        #expect(overview.contains("2 records of 1 account were refused") && !overview.contains("Requests of"))

        let later = try EmbeddedCloud(at: fixture.scratch["cloud"], now: { 1_800_000_060_000_000 })
        for name in ["before", "Trip:new"] { try await save(name, of: fixture.cleo, later) }
        let solved = await anna.get("activity", query).text
        #expect(solved.components(separatedBy: "<span class=\"tag\">saved at <time").count == 3)
        #expect(solved.contains("name=Trip%3Anew\">Trip:new</a>"))
        #expect(await !anna.get("", ["c": ConsoleFixture.journal]).text.contains("were refused"))
        // The record is refused again after it was saved, so it counts again.
        var again = failure("why", environment: "development", of: fixture.cleo.id, record: "before")
        (again.firstAt, again.at) = (1_800_000_120_000_000, 1_800_000_120_000_000)
        try await fixture.credentials.record([again])
        #expect(await anna.get("", ["c": ConsoleFixture.journal]).text.contains("1 record of 1 account was refused"))
    }

    @Test func `the overview counts refused records and their accounts, and counts failures by request`() async throws {
        let sample = FigureSample(began: 0, requests: 239, refused: 9, errors: 1, median: 1, slow: 2)
        let fixture = try await ConsoleFixture(figures: Figures(samples: [sample]))
        let anna = try await fixture.browser(fixture.anna)
        let quiet = await anna.get("", ["c": ConsoleFixture.journal]).text
        #expect(!quiet.contains("See why"))
        #expect(quiet.contains("239 requests in the last hour, 10 of them failed: 9 refused (4xx), 1 in the server (5xx)"))
        try await fixture.credentials.record(
            (0..<5).map { failure("why", environment: "development", of: fixture.cleo.id, record: "r\($0)") } + [
                // The same record again for another reason; and a conflict, which is no error.
                failure("another", environment: "development", of: fixture.cleo.id, record: "r1"),
                failure("", environment: "development", of: fixture.cleo.id, code: "CONFLICT", record: ""),
                failure("in production", environment: "production", of: fixture.cleo.id, record: "r9"),
                failure("ended", environment: "development", of: fixture.cleo.id, code: "AUTHENTICATION_FAILED", record: ""),
                failure("full", environment: "development", of: fixture.ben.id, code: "QUOTA_EXCEEDED", record: ""),
                failure("no zone", environment: "development", of: fixture.anna.id, code: "ZONE_NOT_FOUND", record: ""),
            ])
        let page = await anna.get("", ["c": ConsoleFixture.journal]).text
        #expect(page.contains("Development: 5 records of 1 account were refused in the last hour."))
        #expect(
            page.contains(
                "Requests of 2 accounts were refused in the last hour: the session of 1 device has ended; 1 account sent something too large, "
                    + "or the server or the owner of a zone has no room."))
        let place = "/console/activity?c=\(ConsoleFixture.journal)&amp;e="
        #expect(page.contains("\(place)development&amp;show=failures\">See why<"))
        // The page after the sign-in is about development, and still shows refusals in production.
        #expect(page.contains("Production: 1 record of 1 account was refused in the last hour."))
        #expect(page.contains("\(place)production&amp;show=failures\">See why<"))
        let production = await anna.get("", ["c": ConsoleFixture.journal, "e": "production"]).text
        let (first, second) = (production.range(of: "Production: 1 record"), production.range(of: "Development: 5 records"))
        #expect(try #require(first).lowerBound < #require(second).lowerBound)
        fixture.advance(minutes: 75)
        let later = try await fixture.browser(fixture.anna)
        #expect(await later.get("", ["c": ConsoleFixture.journal]).text.contains("refused in the last day."))
    }

    @Test func `the overview says that there may be more if an account has as many errors as are kept`() async throws {
        let fixture = try await ConsoleFixture(figures: Figures())
        let refused = (1..<SyncFailureLimits.ofAccount).map { number in
            failure("why", environment: "development", of: fixture.cleo.id, record: "r\(number)")
        }
        let anna = try await fixture.browser(fixture.anna)
        try await fixture.credentials.record(refused)
        #expect(await !anna.get("", ["c": ConsoleFixture.journal]).text.contains("At least"))
        let conflict = failure("", environment: "development", of: fixture.cleo.id, code: "CONFLICT", record: "")
        try await fixture.credentials.record([conflict])
        let page = await anna.get("", ["c": ConsoleFixture.journal]).text
        #expect(page.contains("At least \(SyncFailureLimits.ofAccount - 1) records of 1 account were refused in the last hour."))
    }

    @Test func `subscriptions are shown to those who may see the account's records, and the look is in the log`() async throws {
        var figures = Figures()
        figures.account = NotifiedAccount(
            subscriptions: [
                KnownSubscription(
                    id: "<i>sub</i>", scope: .private, isOfZone: false, recordType: "Day", zone: "Trips", events: ["create"],
                    hasFilters: true, firesOnce: false)
            ], devices: 0)
        figures.delivered = [
            Delivery(
                at: 1_800_000_000_000_000, container: ConsoleFixture.journal, environment: "development", account: "x",
                subscription: "days", event: "update", delivered: 1, devices: 2)
        ]
        let fixture = try await ConsoleFixture(figures: figures)
        let query = ["show": "notifications", "c": ConsoleFixture.journal]
        let anna = try await fixture.browser(fixture.anna)
        let plain = await anna.get("activity", query).text
        #expect(plain.contains("1 of 2") && plain.contains("<code>days</code>"))
        let named = query.merging(["account": "cleo@example.org"]) { $1 }
        let shown = await anna.get("activity", named).text
        #expect(shown.contains("&lt;i&gt;sub&lt;/i&gt;") && shown.contains("Without one, nothing is delivered."))
        let entry = try #require(
            try await fixture.credentials.auditLog().first { $0.event.action.rawValue == "admin.subscriptions.read" })
        #expect(entry.event.account == fixture.cleo.id && entry.event.actor == fixture.anna.id)
        let ben = try await fixture.browser(fixture.ben)
        // A developer can't learn of an account that has nothing in the container.
        #expect(await ben.get("activity", named).status == 404)
        try await fixture.save("own", type: "Note", ["text": .string("mine")], by: fixture.cleo, scope: .private)
        let seen = await ben.get("activity", named)
        #expect(seen.status == 200 && !seen.text.contains("Subscriptions of cleo@example.org"))
        // The account's name in the container, which sync errors have, finds it, too.
        let name = StoredAccount.userRecordName(of: fixture.cleo.id, in: ConsoleFixture.journal)
        #expect(await ben.get("activity", query.merging(["account": name]) { $1 }).status == 200)
        #expect(await ben.get("activity", query.merging(["account": "_nobody"]) { $1 }).status == 404)
        #expect(await ben.get("activity", named.merging(["e": "production"]) { $1 }).status == 403)
    }

    @Test func `requests come in pages, the newest first`() async throws {
        var figures = Figures()
        figures.served = (1...30).reversed().map { number in
            ServedRequest(
                at: 1_800_000_000_000_000 + Int64(number), operation: "operation.\(number)", status: 200, milliseconds: 1,
                container: ConsoleFixture.journal, environment: "development", account: "", address: "192.0.2.1")
        }
        let fixture = try await ConsoleFixture(figures: figures)
        let anna = try await fixture.browser(fixture.anna)
        let query = ["show": "requests", "c": ConsoleFixture.journal]
        func shown(_ text: String) -> [String] {
            text.matches(of: /data-column="Operation">([^<]+)</).map { String($0.1) }
        }
        let first = await anna.get("activity", query).text
        #expect(shown(first).count == 25 && shown(first).first == "operation.30" && first.contains("data-live>"))
        let before = String(try #require(first.firstMatch(of: /before=([0-9]+)">Older requests/)).1)
        let second = await anna.get("activity", query.merging(["before": before]) { $1 }).text
        #expect(shown(second) == (1...5).reversed().map { "operation.\($0)" })
        #expect(!second.contains("Older requests") && !second.contains("data-live>"))
    }

    @Test func `a page that refreshes by itself has one module, and doesn't keep its session open`() async throws {
        let fixture = try await ConsoleFixture(figures: Figures())
        let browser = try await fixture.browser(fixture.anna)
        let page = await browser.get("activity", ["show": "requests"])
        #expect(page.text.components(separatedBy: "<script").count == 2)
        #expect(page.text.contains("<script type=\"module\" src=\"/console/live.js\"></script>"))
        #expect(page.text.contains("data-live>") && page.text.contains("data-live-choice"))
        #expect(await !browser.get("records").text.contains("<script"))
        let module = await browser.get("live.js")
        #expect(module.type == "text/javascript; charset=utf-8" && module.text.contains("data-live"))
        #expect(page.header("Content-Security-Policy")?.contains("script-src 'self'") == true)
        // For half an hour only the page's own refreshes come.
        for _ in 0..<2 {
            fixture.advance(minutes: 14)
            #expect(await browser.get("activity", ["show": "requests"], isBackground: true).status == 200)
        }
        fixture.advance(minutes: 3)
        #expect(await browser.get("activity", ["show": "requests"], isBackground: true).status == 303)
    }
}

import Foundation
import Testing
import TidemarkCloudEngine
import TidemarkModel

@testable import TidemarkConsole

/// Goal: the pages say what devices have met, to whom it may be said, and refresh by themselves without keeping a session open. Method: figures that the
/// test makes, the text of pages, and a clock that it moves.
@Suite(.timeLimit(.minutes(5))) struct DevicePageTests {
    /// What a server would tell.
    private struct Figures: ServerFigures {
        var samples: [FigureSample] = []
        var delivered: [Delivery] = []
        var account = NotifiedAccount(subscriptions: [], devices: 0)

        func history(_ span: FigureSpan) -> [FigureSample] { samples }
        func requests(of container: String?) -> [ServedRequest] { [] }
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

    @Test func `why a device was refused is shown, and to developers nothing of private records in production`() async throws {
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
        // A developer names an account as the container does, and sees no address.
        let name = StoredAccount.userRecordName(of: fixture.cleo.id, in: ConsoleFixture.journal)
        let named = await ben.get("activity", query.merging(["e": "production", "account": name]) { $1 }).text
        #expect(named.contains("for operators") && !named.contains("public in production"))
        #expect(!named.contains("cleo@example.org"))
        let anna = try await fixture.browser(fixture.anna)
        let all = await anna.get("activity", query.merging(["all": "1"]) { $1 }).text
        for text in ["private in production", "of another", "Trip:&lt;u&gt;senja", "2 times since"] {
            #expect(all.contains(text))
        }
        let one = await anna.get("activity", query.merging(["code": "CONFLICT"]) { $1 })
        #expect(one.text.contains("No such error"))
    }

    @Test func `errors are of the environment above, and the choice of another keeps the page and its filters`() async throws {
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

    @Test func `each error links to what mends it`() async throws {
        let fixture = try await ConsoleFixture(figures: Figures())
        let cleo = fixture.cleo.id
        try await fixture.credentials.record([
            failure("full", environment: "development", of: cleo, code: "QUOTA_EXCEEDED", record: ""),
            failure("disabled", environment: "development", of: cleo, code: "AUTHENTICATION_REQUIRED", record: ""),
            failure("no field", environment: "production", of: cleo, record: "p1"),
        ])
        let anna = try await fixture.browser(fixture.anna)
        let page = await anna.get("activity", ["show": "failures", "c": ConsoleFixture.journal, "both": "1"]).text
        let place = "c=\(ConsoleFixture.journal)&amp;e="
        #expect(page.contains("/console/account?\(place)development&amp;id=cleo%40example.org#quota\">The account’s quota</a>"))
        #expect(
            page.contains("/console/account?\(place)development&amp;id=cleo%40example.org\">The account and its sessions</a>"))
        #expect(page.contains("/console/schema?\(place)production\">The schema</a>"))
        #expect(
            page.contains(
                "/console/record?\(place)production&amp;db=private&amp;account=cleo%40example.org&amp;zone=TidemarkZone&amp;name=p1\">Trip:p1</a>"
            ))
        // Accounts are for operators.
        let ben = try await fixture.browser(fixture.ben)
        #expect(await !ben.get("activity", ["show": "failures", "both": "1"]).text.contains("The account"))
    }

    @Test func `the overview says how many records of how many accounts were refused, and counts failures as requests do`()
        async throws
    {
        let sample = FigureSample(began: 0, requests: 239, refused: 9, errors: 1, median: 1, slow: 2)
        let fixture = try await ConsoleFixture(figures: Figures(samples: [sample]))
        let anna = try await fixture.browser(fixture.anna)
        let quiet = await anna.get("", ["c": ConsoleFixture.journal]).text
        #expect(!quiet.contains("See why"))
        #expect(quiet.contains("239 requests in the last hour, 10 of them failed: 9 refused (4xx), 1 in the server (5xx)"))
        try await fixture.credentials.record(
            (0..<5).map { failure("why", environment: "development", of: fixture.cleo.id, record: "r\($0)") } + [
                // The same record again, for another reason; and what is no fault.
                failure("another", environment: "development", of: fixture.cleo.id, record: "r1"),
                failure("", environment: "development", of: fixture.cleo.id, code: "CONFLICT", record: ""),
                failure("in production", environment: "production", of: fixture.cleo.id, record: "r9"),
                failure("ended", environment: "development", of: fixture.cleo.id, code: "AUTHENTICATION_FAILED", record: ""),
                failure("full", environment: "development", of: fixture.ben.id, code: "QUOTA_EXCEEDED", record: ""),
                failure("no zone", environment: "development", of: fixture.anna.id, code: "ZONE_NOT_FOUND", record: ""),
            ])
        let page = await anna.get("", ["c": ConsoleFixture.journal]).text
        #expect(page.contains("5 records of 1 account were refused in the last hour."))
        #expect(page.contains("Requests of 2 accounts were refused in the last hour: "))
        #expect(page.contains("/console/activity?c=\(ConsoleFixture.journal)&amp;e=development&amp;show=failures\">See why</a>"))
        fixture.advance(minutes: 75)
        let later = try await fixture.browser(fixture.anna)
        #expect(await later.get("", ["c": ConsoleFixture.journal]).text.contains("refused in the last day."))
    }

    @Test func `the overview says that there may be more where an account has as many errors as are kept`() async throws {
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

    @Test func `subscriptions of an account are for who may see its records, and the look is in the log`() async throws {
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
        // A developer learns of no account that has nothing there.
        #expect(await ben.get("activity", named).status == 404)
        try await fixture.save("own", type: "Note", ["text": .string("mine")], by: fixture.cleo, scope: .private)
        let seen = await ben.get("activity", named)
        #expect(seen.status == 200 && !seen.text.contains("Subscriptions of cleo@example.org"))
        // The name by which the container knows the account leads to it, too: sync errors have that.
        let name = StoredAccount.userRecordName(of: fixture.cleo.id, in: ConsoleFixture.journal)
        #expect(await ben.get("activity", query.merging(["account": name]) { $1 }).status == 200)
        #expect(await ben.get("activity", query.merging(["account": "_nobody"]) { $1 }).status == 404)
        #expect(await ben.get("activity", named.merging(["e": "production"]) { $1 }).status == 403)
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
        // For half an hour only the page itself asks.
        for _ in 0..<2 {
            fixture.advance(minutes: 14)
            #expect(await browser.get("activity", ["show": "requests"], isBackground: true).status == 200)
        }
        fixture.advance(minutes: 3)
        #expect(await browser.get("activity", ["show": "requests"], isBackground: true).status == 303)
    }
}

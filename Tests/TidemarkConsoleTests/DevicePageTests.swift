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
        var failed: [SyncFailure] = []
        var delivered: [Delivery] = []
        var account = NotifiedAccount(subscriptions: [], devices: 0)

        func history(_ span: FigureSpan) -> [FigureSample] { [] }
        func requests(of container: String?) -> [ServedRequest] { [] }
        func failures(of container: String?) -> [SyncFailure] { failed.filter { container == nil || $0.container == container } }
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
        _ reason: String, environment: String, isPublic: Bool = false, container: String = ConsoleFixture.journal
    ) -> SyncFailure {
        SyncFailure(
            at: 1_800_000_000_000_000, operation: "records.modify", container: container, environment: environment, account: "x",
            isPublic: isPublic, code: "BAD_REQUEST", reason: reason, record: "<u>senja", count: 2)
    }

    @Test func `why a device was refused is shown, and to developers nothing of private records in production`() async throws {
        let figures = Figures(failed: [
            failure("<b>in development</b>", environment: "development"),
            failure("private in production", environment: "production"),
            failure("public in production", environment: "production", isPublic: true),
            failure("of another", environment: "development", container: ConsoleFixture.other),
        ])
        let fixture = try await ConsoleFixture(figures: figures)
        let query = ["show": "failures", "c": ConsoleFixture.journal]
        let mine = try await fixture.browser(fixture.ben).get("activity", query)
        #expect(mine.status == 200)
        #expect(mine.text.contains("&lt;b&gt;in development") && mine.text.contains("public in production"))
        #expect(
            !mine.text.contains("private in production") && mine.text.contains("for operators")
                && !mine.text.contains("of another"))
        let all = try await fixture.browser(fixture.anna).get("activity", query.merging(["all": "1"]) { $1 })
        for text in ["private in production", "of another", "&lt;u&gt;senja (2 records)"] { #expect(all.text.contains(text)) }
        let one = try await fixture.browser(fixture.anna).get("activity", query.merging(["code": "CONFLICT"]) { $1 })
        #expect(one.text.contains("No such error"))
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

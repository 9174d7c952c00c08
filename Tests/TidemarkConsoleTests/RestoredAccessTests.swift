import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: the overview warns of accounts only while they are refused, and says when it saw that last; refused sign-ins are listed
/// by account, without the text that was typed. Method: failures that the test adds, sessions and accounts that it changes, and a
/// clock that it moves.
@Suite(.timeLimit(.minutes(30))) struct RestoredAccessTests {
    private static let start: Int64 = 1_800_000_000_000_000

    private func refusal(
        of account: String, by sender: String, code: String = "AUTHENTICATION_FAILED", at time: Int64 = start,
        operation: String = "changes.database", reason: String = "why"
    ) -> SyncFailure {
        var failure = SyncFailure(
            at: time, operation: operation, container: ConsoleFixture.journal, environment: "development", account: account,
            scope: nil, code: code, reason: reason)
        failure.sender = sender
        return failure
    }

    /// Signs a device in.
    private func signIn(
        _ account: StoredAccount, on device: String, _ fixture: ConsoleFixture, _ environment: StoreEnvironment = .development
    ) async throws -> Session {
        let known = Set(try await fixture.credentials.sessions(of: account.id).map(\.id))
        _ = try await fixture.credentials.makeSession(
            account: account.id, container: ConsoleFixture.journal, environment: environment, kind: .device, device: device,
            system: "Linux")
        return try #require(try await fixture.credentials.sessions(of: account.id).first { !known.contains($0.id) })
    }

    private func warning(_ browser: Browser) async -> String? {
        let page = await browser.get("", ["c": ConsoleFixture.journal]).text
        return page.firstMatch(of: /Development: Requests of [^<]*/).map { String($0.0) }
    }

    private func errors(_ browser: Browser) async -> String {
        await browser.get("activity", ["show": "failures", "c": ConsoleFixture.journal]).text
    }

    @Test func `the overview warns of a disabled account until it is enabled, with the time of the last refusal`() async throws {
        let fixture = try await ConsoleFixture()
        let phone = try await signIn(fixture.cleo, on: "phone", fixture)
        var cleo = fixture.cleo
        cleo.status = .restricted
        try await fixture.cloud.update(cleo)
        try await fixture.credentials.record([refusal(of: cleo.id, by: phone.id, code: "AUTHENTICATION_REQUIRED")])
        let anna = try await fixture.browser(fixture.anna)
        let first = try #require(await warning(anna))
        #expect(first.hasSuffix("in the last hour: 1 account is disabled. Last seen less than a minute ago."))
        fixture.advance(minutes: 12)
        let later = try #require(await warning(anna))
        #expect(later.hasSuffix("Last seen 12 minutes ago."))
        #expect(await !errors(anna).contains("access restored since"))
        try await fixture.cloud.update(fixture.cleo)
        #expect(await warning(anna) == nil)
        #expect(await errors(anna).contains("<span class=\"tag\">access restored since</span>"))
    }

    @Test func `the overview warns of an ended session until its device has signed in again, in the same place`() async throws {
        let fixture = try await ConsoleFixture()
        let cleo = fixture.cleo
        let phone = try await signIn(cleo, on: "phone", fixture)
        // While the session exists, the failure gets the device's name.
        try await fixture.credentials.record([refusal(of: cleo.id, by: phone.id)])
        let anna = try await fixture.browser(fixture.anna)
        #expect(await warning(anna) == nil)
        try await fixture.credentials.endSession(id: phone.id)
        #expect(await warning(anna)?.contains(": the session of 1 device has ended. Last") == true)
        fixture.advance(minutes: 1)
        _ = try await signIn(cleo, on: "laptop", fixture)
        _ = try await signIn(cleo, on: "phone", fixture, .production)
        #expect(await warning(anna) != nil)
        _ = try await signIn(cleo, on: "phone", fixture)
        #expect(await warning(anna) == nil)
        // A later refusal counts again.
        fixture.advance(minutes: 1)
        try await fixture.credentials.record([refusal(of: cleo.id, by: phone.id, at: fixture.credentials.time)])
        #expect(await warning(anna) != nil)
    }

    @Test func `a session that ended before its refusal has its device's name, and another device's sign-in does not count`()
        async throws
    {
        let fixture = try await ConsoleFixture()
        let cleo = fixture.cleo
        func signIn(_ device: String) async throws -> String {
            guard
                case .signedIn(let token) = try await fixture.credentials.signIn(
                    ConsoleFixture.password, account: cleo.id, container: ConsoleFixture.journal, kind: .device, device: device)
            else { throw SignInRefused() }
            return token.session.id
        }
        let phone = try await signIn("phone of Cleo")
        try await fixture.credentials.endSession(id: phone)
        fixture.advance(minutes: 1)
        var refused = refusal(of: "", by: phone, at: fixture.credentials.time)
        refused.session = phone
        try await fixture.credentials.record([refused])
        let anna = try await fixture.browser(fixture.anna)
        #expect(await errors(anna).contains("phone of Cleo <code>\(phone.prefix(4))</code>"))
        #expect(await warning(anna) != nil)
        fixture.advance(minutes: 1)
        _ = try await signIn("tablet")
        #expect(await warning(anna) != nil)
        #expect(await !errors(anna).contains("access restored since"))
        let again = try await signIn("phone of Cleo")
        #expect(await warning(anna) == nil)
        #expect(await errors(anna).contains("access restored since"))
        // The name at the sign-in counts even if the device was renamed since.
        _ = try await fixture.credentials.renameSession(id: again, of: cleo.id, to: "old phone")
        #expect(try await fixture.credentials.sessions(of: cleo.id).contains { $0.device == "old phone" })
        #expect(await warning(anna) == nil)
    }

    @Test func `a failure with a session does not show its account and device in another container`() async throws {
        let fixture = try await ConsoleFixture()
        let phone = try await signIn(fixture.cleo, on: "phone of Cleo", fixture)
        var elsewhere = refusal(of: "", by: phone.id)
        (elsewhere.container, elsewhere.session) = (ConsoleFixture.other, phone.id)
        try await fixture.credentials.record([elsewhere])
        let anna = try await fixture.browser(fixture.anna)
        let page = await anna.get("activity", ["show": "failures", "c": ConsoleFixture.other]).text
        #expect(page.contains("AUTHENTICATION_FAILED") && !page.contains("phone of Cleo") && !page.contains("cleo@example.org"))
    }

    @Test func `a developer sees refused sign-ins as one, whichever addresses were tried`() async throws {
        let fixture = try await ConsoleFixture()
        for (number, account) in [fixture.cleo.id, fixture.anna.id, nil, nil].enumerated() {
            let sender = account.map(SyncFailure.sender(ofSignInTo:)) ?? ""
            try await fixture.credentials.record([
                refusal(of: "", by: sender, at: Self.start + Int64(number), operation: SyncFailure.signInOperation)
            ])
        }
        let ben = try await fixture.browser(fixture.ben)
        func page(_ skipped: Int) async -> String {
            await ben.get("activity", ["show": "failures", "c": ConsoleFixture.journal, "skip": String(skipped)]).text
        }
        #expect(await page(0).contains("4 times"))
        for skipped in 1...4 {
            let page = await page(skipped)
            #expect(page.contains("No older error.") && !page.contains("times"))
        }
    }

    private struct SignInRefused: Error {}

    @Test(
        arguments: [
            (1_000, "an asset needs 1000 bytes, and does not fit into \(SyncFailure.ownStorage): 0 of 900 bytes are used"),
            (1_000, "the content has at least 1000 bytes, and does not fit into what is left of \(SyncFailure.ownStorage)"),
            // A title may contain a text like this.
            (20_000, "\(SyncFailure.ownStorage) is full, and the title 'Trip 12 bytes, and d' needs room"),
        ] as [(Int64, String)])
    func `the overview warns of an account without room until the refused content fits, or the quota is removed`(
        needed: Int64, reason: String
    ) async throws {
        let fixture = try await ConsoleFixture()
        var cleo = fixture.cleo
        try await fixture.save("own", type: "Note", ["text": .string("mine")], by: cleo, scope: .private)
        let name = StoredAccount.userRecordName(of: cleo.id, in: ConsoleFixture.journal)
        let stored = try await fixture.cloud.storedBytes(of: ConsoleFixture.journal, environment: .development)
        let used = try #require(stored[name])
        #expect(used > 0)
        cleo.quota = used
        try await fixture.cloud.update(cleo)
        try await fixture.credentials.record([refusal(of: cleo.id, by: "", code: "QUOTA_EXCEEDED", reason: reason)])
        let anna = try await fixture.browser(fixture.anna)
        #expect(
            await warning(anna)?.contains("Requests of 1 account were refused in the last hour: 1 account has no room.") == true)
        // The quota is larger, but not large enough.
        cleo.quota = used + needed - 1
        try await fixture.cloud.update(cleo)
        #expect(await warning(anna) != nil)
        #expect(await !errors(anna).contains("has room again"))
        for quota in [used + needed, .max] {
            cleo.quota = quota
            try await fixture.cloud.update(cleo)
            #expect(await warning(anna) == nil)
            #expect(await errors(anna).contains("<span class=\"tag\">has room again</span>"))
        }
        // The account is full again.
        cleo.quota = used
        try await fixture.cloud.update(cleo)
        #expect(await warning(anna) != nil)
    }

    @Test func `an unused environment has the whole quota as room, and asking does not make it`() async throws {
        let fixture = try await ConsoleFixture()
        var cleo = fixture.cleo
        cleo.quota = 1_000
        try await fixture.cloud.update(cleo)
        var failure = refusal(
            of: cleo.id, by: "", code: "QUOTA_EXCEEDED",
            reason: "what is saved needs 1000 bytes, and does not fit into \(SyncFailure.ownStorage): 1 of 1000 bytes are used")
        failure.environment = "production"
        try await fixture.credentials.record([failure])
        let anna = try await fixture.browser(fixture.anna)
        let page = await anna.get("activity", ["show": "failures", "c": ConsoleFixture.journal, "e": "production"]).text
        #expect(page.contains("has room again"))
        #expect(try await !fixture.cloud.hasContainer(ConsoleFixture.journal, .production))
    }

    @Test func `the overview lists each cause with its number, and says what a full account means`() async throws {
        let fixture = try await ConsoleFixture()
        var (ben, cleo) = (fixture.ben, fixture.cleo)
        let anna = try await fixture.browser(fixture.anna)
        try await fixture.credentials.record([
            refusal(of: ben.id, by: "a1"), refusal(of: ben.id, by: "a2"),
            refusal(of: cleo.id, by: "", code: "QUOTA_EXCEEDED", reason: "the server has no room for the content"),
            refusal(of: cleo.id, by: "c1", code: "AUTHENTICATION_REQUIRED"),
        ])
        let text = try #require(await warning(anna))
        let other = "1 account sent something too large, or the server or the owner of a zone has no room."
        #expect(
            text.contains(
                "Requests of 2 accounts were refused in the last hour: the sessions of 3 devices have ended; \(other) Last"))
        cleo.status = .restricted
        try await fixture.cloud.update(cleo)
        #expect(
            await warning(anna)?.contains(": the sessions of 2 devices have ended; 1 account is disabled; \(other) Last") == true)

        for account in [ben, fixture.anna] {
            try await fixture.save("own", type: "Note", ["text": .string("mine")], by: account, scope: .private)
        }
        let stored = try await fixture.cloud.storedBytes(of: ConsoleFixture.journal, environment: .development)
        let used = try #require(stored[StoredAccount.userRecordName(of: ben.id, in: ConsoleFixture.journal)])
        func overview() async -> String { await anna.get("", ["c": ConsoleFixture.journal]).text.withoutBreaks }
        ben.quota = used + 1
        try await fixture.cloud.update(ben)
        #expect(await overview().contains("ben@example.org has used nine tenths of its quota: its devices will soon be refused."))
        ben.quota = used
        try await fixture.cloud.update(ben)
        #expect(await overview().contains("ben@example.org has used its whole quota: its devices cannot save what needs room."))
        var owner = fixture.anna
        owner.quota = stored[StoredAccount.userRecordName(of: owner.id, in: ConsoleFixture.journal), default: 0] + 1
        try await fixture.cloud.update(owner)
        let both = await overview()
        #expect(both.contains("2 accounts have used nine tenths of their quota, "))
        #expect(both.contains(" the most. 1 has used the whole of it: its devices cannot save what needs room."))
    }

    @Test func `the time of the first error is shown if it differs from that of the last`() async throws {
        let fixture = try await ConsoleFixture()
        let anna = try await fixture.browser(fixture.anna)
        let first = refusal(of: fixture.cleo.id, by: "c1")
        try await fixture.credentials.record([first, refusal(of: fixture.cleo.id, by: "c1", at: Self.start + 900_000)])
        #expect(await errors(anna).contains("<span class=\"hint\">2 times</span>"))
        try await fixture.credentials.record([refusal(of: fixture.cleo.id, by: "c1", at: Self.start + 1_000_000)])
        #expect(await errors(anna).contains("<span class=\"hint\">3 times since <time"))
    }

    @Test(
        arguments: [
            (nil, "the server has no room for the content"), (nil, "an asset has 50000000 bytes at the most"),
            (.shared, "an asset needs 1000 bytes, and does not fit into the storage of the zone's owner"),
            (.shared, "the content has 1000 bytes, and does not fit into what is left of \(SyncFailure.ownStorage)"),
        ] as [(DatabaseScope?, String)])
    func `the overview warns of an account without a quota while it is refused for another reason`(
        scope: DatabaseScope?, reason: String
    ) async throws {
        let fixture = try await ConsoleFixture()
        var cleo = fixture.cleo
        cleo.quota = .max
        try await fixture.cloud.update(cleo)
        var failure = refusal(of: cleo.id, by: "", code: "QUOTA_EXCEEDED", reason: reason)
        failure.scope = scope
        try await fixture.credentials.record([failure])
        let anna = try await fixture.browser(fixture.anna)
        #expect(await warning(anna) != nil)
        #expect(await !errors(anna).contains("access restored since"))
    }

    @Test func `refused sign-ins have one line for each account, and one for all unknown addresses`() async throws {
        let fixture = try await ConsoleFixture()
        func signIn(_ account: String?) -> SyncFailure {
            var failure = refusal(
                of: "", by: account.map(SyncFailure.sender(ofSignInTo:)) ?? "", operation: SyncFailure.signInOperation,
                reason: account == nil ? "no such account" : "the e-mail address or the password is wrong")
            failure.device = account == nil ? "" : "<b>tablet"
            return failure
        }
        try await fixture.credentials.record([
            signIn(fixture.cleo.id), signIn(fixture.ben.id), signIn(nil), signIn(nil),
        ])
        // Another device does not make another line.
        var again = signIn(fixture.cleo.id)
        (again.device, again.at) = ("pocket", again.at + 1)
        try await fixture.credentials.record([again])
        let anna = try await fixture.browser(fixture.anna)
        let page = await errors(anna)
        #expect(page.components(separatedBy: "<code>AUTHENTICATION_FAILED</code> session.begin").count == 4)
        for account in [fixture.cleo, fixture.ben] {
            #expect(page.contains(">\(Layout.parts(account.email).text)</a><br><span class=\"hint\">sign-in refused</span>"))
        }
        #expect(page.contains("<p>no such account</p>") && page.contains("<span class=\"hint\">2 times</span>"))
        // The page shows the last name that a device gave, which nobody has verified.
        for device in ["pocket", "&lt;b&gt;tablet"] {
            #expect(page.contains("<td data-column=\"Device\">\(device)<br><span class=\"hint\">as it named itself</span></td>"))
        }
        // The refusal is not about a session.
        #expect(!page.contains("the session has ended"))
        #expect(await warning(anna) == nil)
        // A developer learns nothing of accounts: trying an address does not show in the list whether it has one.
        let ben = try await fixture.browser(fixture.ben)
        let seen = await errors(ben)
        #expect(seen.components(separatedBy: "<code>AUTHENTICATION_FAILED</code> session.begin").count == 2)
        #expect(!seen.contains("pocket") && !seen.contains("tablet") && !seen.contains("as it named itself"))
        #expect(
            seen.contains("<span class=\"hint\">5 times</span>") && !seen.contains("no such account")
                && !seen.contains(fixture.cleo.email))
        #expect(!seen.contains("the password is wrong") && seen.contains("<span class=\"quiet-text\">for operators</span>"))
    }
}

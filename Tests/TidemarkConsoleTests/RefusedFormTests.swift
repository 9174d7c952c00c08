import Foundation
import Testing
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: a refused form comes back with what was typed and what is wrong; every page has a link onwards; a page says what was
/// done. Method: invalid forms of all pages, and the text of the pages that answer.
@Suite(.timeLimit(.minutes(30))) struct RefusedFormTests {
    private static let c = ["c": ConsoleFixture.journal]
    private static let typed = "<b>\"typed\" & kept</b>"
    private static let shown = "&lt;b&gt;&quot;typed&quot; &amp; kept&lt;/b&gt;"

    @Test func `an invalid quota comes back in its field, which says why`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        let form = Self.c.merging(["id": fixture.cleo.email, "action": "quota", "quota": Self.typed]) { $1 }
        let reply = try await browser.post("account", form)
        #expect(reply.status == 400)
        #expect(reply.text.contains("<h1>cleo@example.org</h1>") && reply.text.contains("Devices and sessions"))
        #expect(
            reply.text.contains(
                "name=\"quota\" autocomplete=\"off\" value=\"\(Self.shown)\" aria-invalid=\"true\" aria-describedby=\"refused\" autofocus>"
            ))
        let alerts = reply.text.matches(of: /<div class="notice error" id="refused" role="alert"><p>([^<]+)<\/p>/)
        #expect(alerts.map(\.1) == ["A quota is a whole number, such as 5GB, 2700kB or 2700000; empty or none for no limit."])
        // The account keeps its quota, and its page shows it.
        #expect(try await fixture.cloud.account(id: fixture.cleo.id)?.quota == .max)
        #expect(
            await browser.get("account", ["id": fixture.cleo.email]).text.contains(
                "name=\"quota\" autocomplete=\"off\" value=\"\">"))
    }

    @Test func `the word 'none' removes a quota, and the page says if a quota is below the current use`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        try await fixture.save("note", type: "Note", ["text": .string("mine")], scope: .private)
        let id = ["id": fixture.cleo.email]
        func set(_ quota: String) async throws -> String {
            let form = Self.c.merging(id) { $1 }.merging(["action": "quota", "quota": quota]) { $1 }
            let reply = try await browser.post("account", form)
            guard reply.status == 303 else { return reply.text }
            return await browser.get("account", id.merging(["done": "quota"]) { $1 }).text
        }
        let low = try await set("1")
        let said = try #require(low.firstMatch(of: /notice warning" role="status"><p>(The quota is [^<]+)</)).1
        #expect(said.contains(" in each container, and more is in use: "))
        #expect(
            said.hasSuffix(
                " in \(ConsoleFixture.journal) (development). Devices that add something there are refused from now on."))
        #expect(low.contains("empty or none for no limit"))
        #expect(try await fixture.cloud.account(id: fixture.cleo.id)?.quota == 1)
        #expect(try await set("1 MB").contains("notice good\" role=\"status\"><p>The quota is 1.0 MB in each container.<"))
        #expect(try await set("2.7MB").contains("A quota is a whole number, such as 5GB, 2700kB or 2700000"))
        #expect(try await fixture.cloud.account(id: fixture.cleo.id)?.quota == 1_000_000)
        #expect(try await set("None").contains("The account has no quota any more."))
        #expect(try await fixture.cloud.account(id: fixture.cleo.id)?.quota == .max)
    }

    @Test func `each form of the schema and of access comes back with what was typed`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo"), "stars": .int64(5)])
        let browser = try await fixture.browser(fixture.anna)
        // A form, and the parts of the page that show what was typed.
        let forms: [(String, [String: String], [String])] = [
            (
                "schema", ["action": "add", "type": "City", "field": "1 \(Self.typed)", "kind": "list<double>"],
                ["value=\"City\"", "value=\"1 \(Self.shown)\"", "<option value=\"list&lt;double&gt;\" selected>"]
            ),
            ("schema", ["action": "import", "file": "{\(Self.typed)"], ["<details open>", "\n{\(Self.shown)</textarea>"]),
            (
                "access",
                ["action": "add-token", "name": Self.typed, "callback": "javascript:x", "origins": "https://a.example.org"],
                ["<details open>", "value=\"\(Self.shown)\"", "value=\"javascript:x\"", "value=\"https://a.example.org\""]
            ),
            (
                "access", ["action": "add-key", "name": Self.typed, "pem": "no key"],
                ["<details open>", "value=\"\(Self.shown)\"", "aria-invalid=\"true\"", "\nno key</textarea>"]
            ),
            (
                "access",
                [
                    "action": "add-operator", "account": "nobody@example.org", "role": "operator",
                    "container1": ConsoleFixture.other,
                ],
                [
                    "value=\"nobody@example.org\" aria-invalid=\"true\"", "<option value=\"operator\" selected>",
                    "value=\"\(ConsoleFixture.other)\" checked>",
                ]
            ),
        ]
        for (page, form, parts) in forms {
            let reply = try await browser.post(page, Self.c.merging(form) { $1 })
            #expect((400...499).contains(reply.status), "\(form)")
            for part in parts { #expect(reply.text.contains(part), "\(form): no \(part)") }
            #expect(reply.text.matches(of: /id="refused"/).count == 1, "\(form)")
        }
        try await fixture.cloud.addToSchema(["City": ["photo": FieldType(.asset)]], of: ConsoleFixture.journal)
        let unfit = ["action": "indexes", "type": "City", "was.photo": "", "queryable.photo": "1"]
        let refused = try await browser.post("schema", Self.c.merging(unfit) { $1 })
        #expect(refused.text.contains("A field of the type asset can&#39;t be queryable."))
        // Boxes stay as the person left them.
        let boxes = ["action": "indexes", "type": "Absent", "was.title": "", "queryable.title": "1"]
        let reply = try await browser.post("schema", Self.c.merging(boxes) { $1 })
        #expect((400...499).contains(reply.status) && reply.text.contains("id=\"refused\""), "\(reply.status)")
    }

    @Test func `a refused record form keeps its version, and a device's change is shown before the form is saved`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo"), "stars": .int64(4), "note": .string("old")])
        let browser = try await fixture.browser(fixture.anna)
        let begun = try #require(try await fixture.record("oslo").changeTag)
        let opened = Self.c.merging([
            "db": "public", "zone": "_defaultZone", "type": "City", "tag": begun, "name": "oslo", "is.title": Self.typed,
            "was.title": "Oslo", "is.stars": "five", "was.stars": "4", "is.note": "old", "was.note": "old", "parent": "",
            "wasParent": "",
        ]) { $1 }
        // A device saves another version in the meantime.
        try await fixture.change("oslo", ["stars": .int64(9), "note": .string("of the device")])
        let current = try #require(try await fixture.record("oslo").changeTag)
        let refused = try await browser.post("record", opened)
        #expect(refused.status == 400 && refused.text.contains("takes a whole number"))
        #expect(refused.text.contains("\n\(Self.shown)</textarea>") && refused.text.contains("value=\"five\""))
        #expect(refused.text.contains("name=\"tag\" value=\"\(begun)\"") && !refused.text.contains("value=\"\(current)\""))
        #expect(refused.text.contains("name=\"was.stars\" value=\"4\""))
        #expect(refused.text.contains("name=\"was.note\" value=\"old\"") && !refused.text.contains("of the device"))
        // With a valid value the form asks first.
        let right = opened.merging(["is.stars": "5"]) { $1 }
        let asked = try await browser.post("record", right)
        #expect(asked.status == 409)
        #expect(asked.text.contains("The record was changed while you edited it. Nothing is saved yet."))
        #expect(asked.text.contains("<strong>of the device</strong>") && asked.text.contains("<strong>9</strong>"))
        #expect(asked.text.contains("name=\"tag\" value=\"\(current)\"") && asked.text.contains("name=\"was.stars\" value=\"9\""))
        #expect(try await fixture.record("oslo").fields["stars"] == .int64(9))
        // Sent again, it changes the typed fields only.
        let again = right.merging([
            "tag": current, "was.stars": "9", "is.note": "of the device", "was.note": "of the device",
        ]) { $1 }
        #expect(try await browser.post("record", again).status == 303)
        let fields = try await fixture.record("oslo").fields
        #expect(fields["stars"] == .int64(5) && fields["note"] == .string("of the device"))
    }

    @Test func `a refused form shows the record's old values as text, and an invalid tag saves nothing`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo"), "stars": .int64(4)])
        let browser = try await fixture.browser(fixture.anna)
        let form = Self.c.merging([
            "db": "public", "zone": "_defaultZone", "type": "City", "tag": Self.typed, "name": "oslo", "is.stars": "five",
            "was.stars": "4", "is.title": "x", "was.title": Self.typed, "parent": "", "wasParent": Self.typed,
        ]) { $1 }
        let refused = try await browser.post("record", form)
        #expect(refused.status == 400 && !refused.text.contains("<b>"))
        for name in ["tag", "was.title", "wasParent"] {
            #expect(refused.text.contains("name=\"\(name)\" value=\"\(Self.shown)\""), "\(name)")
        }
        #expect(try await browser.post("record", form.merging(["is.stars": "5"]) { $1 }).status == 409)
        #expect(try await fixture.record("oslo").fields["stars"] == .int64(4))
    }

    @Test func `a refused form of a new record does not overwrite a record of its name that a device makes meanwhile`()
        async throws
    {
        let fixture = try await ConsoleFixture()
        try await fixture.save("bergen", ["title": .string("Bergen"), "stars": .int64(4)])
        let browser = try await fixture.browser(fixture.anna)
        let form = Self.c.merging([
            "db": "public", "zone": "_defaultZone", "type": "City", "tag": "", "name": "oslo", "is.title": "Mine",
            "was.title": "", "is.stars": "five", "was.stars": "",
        ]) { $1 }
        let refused = try await browser.post("record", form)
        #expect(refused.status == 400 && refused.text.contains("name=\"tag\" value=\"\""))
        try await fixture.save("oslo", ["title": .string("Of the device")])
        let asked = try await browser.post("record", form.merging(["is.stars": "5"]) { $1 })
        #expect(asked.status == 409 && asked.text.contains("There is a record of this name already."))
        #expect(try await fixture.record("oslo").fields["title"] == .string("Of the device"))
        // The form is for that record now, and stays so if it is refused.
        let tag = try #require(try await fixture.record("oslo").changeTag)
        let wrong = form.merging(["tag": tag, "was.title": "Of the device", "is.stars": "six"]) { $1 }
        let kept = try await browser.post("record", wrong)
        #expect(kept.status == 400 && kept.text.contains("name=\"tag\" value=\"\(tag)\""))
        try await fixture.change("oslo", ["title": .string("Of the device again")])
        #expect(try await browser.post("record", wrong.merging(["is.stars": "6"]) { $1 }).status == 409)
    }

    @Test func `a password is never shown again after a refusal`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        for (page, form) in [
            ("account", ["id": fixture.cleo.email, "action": "quota", "quota": "much"]),
            ("account", ["id": fixture.anna.email, "action": "remove"]),
            ("schema", ["action": "import", "file": "{"]), ("access", ["action": "remove-operator", "id": fixture.anna.id]),
        ] {
            let more = ["password": "a secret of mine", "confirmed": "1"]
            let reply = try await browser.post(page, Self.c.merging(form) { $1 }.merging(more) { $1 })
            #expect(reply.status == 400 && !reply.text.contains("a secret of mine"), "\(form)")
            #expect(reply.text.contains("id=\"refused\""), "\(form)")
        }
    }

    @Test func `a page says what it can't do, and each error page has a link`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        let ended = try await browser.post("account", ["id": fixture.cleo.email, "action": "end", "session": "none"])
        #expect(ended.status == 404 && ended.text.contains("There is no such session"))
        #expect(ended.text.contains("<h1>cleo@example.org</h1>"))
        for (page, query) in [
            ("account", ["id": "nobody@example.org"]), ("record", ["name": "absent"]), ("asset", [:]),
            ("records", ["c": "nothing"]),
            ("zones", ["c": "nothing"]), ("activity", ["account": "nobody@example.org"]), ("nothing", [:]),
        ] {
            let text = await browser.get(page, query).text
            let main = try #require(text.range(of: "<main")).upperBound
            #expect(text[main...].contains("<a "), "\(page)")
        }
        #expect(try await browser.post("nothing", [:]).text.contains("To the overview"))
    }

    @Test func `a page that can't be shown links to one that can`() async throws {
        let fixture = try await ConsoleFixture()
        func leads(_ browser: Browser, _ page: String, _ query: [String: String] = [:]) async throws -> String {
            let text = await browser.get(page, query).text
            let main = try #require(text.range(of: "<main")).upperBound
            return String(try #require(text[main...].firstMatch(of: /href="\/console\/?([a-z]*)[?"]/)).1)
        }
        let (anna, developer) = (try await fixture.browser(fixture.anna), try await fixture.browser(fixture.ben))
        for page in ["accounts", "account"] {
            #expect(try await leads(developer, page, ["id": "cleo@example.org"]) == "", "\(page)")
        }
        #expect(try await leads(anna, "account", ["id": "nobody@example.org"]) == "accounts")
        #expect(try await leads(developer, "record", ["name": "absent"]) == "records")
        // A person without a container can't open pages of one.
        try await fixture.credentials.setOperator(fixture.cleo.id, role: .developer, containers: [ConsoleFixture.other])
        let without = try await fixture.browser(fixture.cleo)
        try await fixture.credentials.removeContainer(ConsoleFixture.other)
        for page in ["records", "schema", "zones", "activity"] { #expect(try await leads(without, page) == "", "\(page)") }
    }

    @Test func `the Cancel link of a question leads to the page before it, and to no other place`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo")])
        let browser = try await fixture.browser(fixture.anna)
        let place = "c=iCloud%2Eorg%2Eexample%2Ejournal&amp;e=development".replacing("%2E", with: ".")
        let evil = ["to": "https://evil.example.org", "back": "//evil.example.org", "page": "//evil.example.org"]
        for (page, form, address) in [
            ("schema", ["action": "deploy", "expected": try await browser.listedDifferences()], "/console/schema?\(place)"),
            ("account", ["action": "export", "id": "cleo@example.org"], "/console/account?\(place)&amp;id=cleo%40example.org"),
            (
                "account", ["action": "sign-out", "id": "//evil.example.org"],
                "/console/account?\(place)&amp;id=%2F%2Fevil.example.org"
            ),
            ("access", ["action": "revoke-key", "id": "//evil.example.org"], "/console/access?\(place)"),
            (
                "record", ["action": "delete", "name": "oslo", "db": "public", "zone": "_defaultZone"],
                "/console/record?\(place)&amp;db=public&amp;zone=_defaultZone&amp;name=oslo"
            ),
        ] as [(String, [String: String], String)] {
            let reply = try await browser.post(page, Self.c.merging(form) { $1 }.merging(evil) { $1 })
            #expect(reply.status == 200, "\(form)")
            #expect(
                reply.text.contains("<a class=\"button quiet\" href=\"\(address)\">Cancel</a>"),
                "\(form): \(reply.text.suffix(700))")
        }
    }

    @Test func `the boxes of a type are saved together, and untouched boxes keep the current value`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo"), "stars": .int64(5), "note": .string("x")])
        let browser = try await fixture.browser(fixture.anna)
        let page = await browser.get("schema", Self.c).text
        #expect(
            page.contains("form=\"indexes0\" name=\"queryable.title\"")
                && page.contains("form=\"indexes0\" name=\"was.stars\" value=\"\""))
        // Another person marks another field in the meantime.
        try await fixture.cloud.setIndexes([.sortable], of: "note", in: "City", container: ConsoleFixture.journal)
        let form = [
            "action": "indexes", "type": "City", "was.title": "", "was.stars": "", "was.note": "", "queryable.title": "1",
            "sortable.title": "1", "queryable.stars": "1",
        ]
        let reply = try await browser.post("schema", Self.c.merging(form) { $1 })
        #expect(reply.header("Location")?.hasSuffix("done=indexes") == true, "\(reply.text)")
        let type = try #require(try await fixture.cloud.schema(of: ConsoleFixture.journal).types["City"])
        #expect(type.indexes(of: "title") == [.queryable, .sortable] && type.indexes(of: "stars") == [.queryable])
        #expect(type.indexes(of: "note") == [.sortable])
        let log = try await fixture.credentials.auditLog().map(\.event).filter { $0.action.rawValue == "admin.schema.index" }
        #expect(log.map(\.subject) == ["City.title", "City.stars"])
    }

    @Test func `a page says what was done, and names people by their addresses`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo")])
        let browser = try await fixture.browser(fixture.anna)
        func note(_ page: String, _ form: [String: String]) async throws -> String {
            let reply = try await browser.postConfirmed(page, Self.c.merging(form) { $1 })
            let place = try #require(reply.header("Location"), "\(reply.text)")
            let query = try #require(URLComponents(string: place)?.queryItems)
            let name = String(place.dropFirst("/console/".count).prefix { $0 != "?" })
            let text = await browser.get(name, Dictionary(query.map { ($0.name, $0.value ?? "") }) { $1 }).text
            return String(try #require(text.firstMatch(of: /notice good" role="status"><p>([^<]*)</), "\(text)").1)
        }
        let id = ["id": fixture.cleo.email]
        #expect(
            try await note("account", id.merging(["action": "quota", "quota": "5GB"]) { $1 })
                == "The quota is 5.0 GB in each container.")
        #expect(
            try await note("account", id.merging(["action": "quota", "quota": ""]) { $1 }) == "The account has no quota any more."
        )
        #expect(
            try await note("account", id.merging(["action": "sign-out"]) { $1 }).hasPrefix(
                "All sessions of the account have ended"))
        #expect(try await note("account", id.merging(["action": "disable"]) { $1 }).hasPrefix("The account is disabled"))
        #expect(try await note("account", id.merging(["action": "enable"]) { $1 }).hasPrefix("The account is enabled"))
        let known = #"{"types": [{"name": "City", "fields": [{"name": "title", "type": "string"}]}]}"#
        #expect(
            try await note("schema", ["action": "import", "file": known])
                == "The development schema has all of it: nothing is added.")
        #expect(
            try await note("schema", ["action": "add", "type": "City", "field": "stars", "kind": "int64"])
                == "The field stars (int64) is added to City in the development schema.")
        let deployment = ["action": "deploy", "expected": try await browser.listedDifferences()]
        #expect(try await note("schema", deployment).hasPrefix("The schema is deployed"))
        let removal = ["action": "remove", "type": "City", "field": "title", "marked": "1"]
        #expect(try await note("schema", removal).hasPrefix("It is removed"))
        let page = await browser.get("account", id).text
        let log = String(page[try #require(page.range(of: "What happened")).upperBound...]).withoutBreaks
        #expect(
            log.contains("data-column=\"By\"><span class=\"parts\">anna@example.org</span></td>")
                && !log.contains(fixture.anna.id))
    }

    @Test func `a cell has the name of its column, and a column of numbers is aligned to the right`() {
        let rows: [HTML] = [
            "<tr><td>a &lt;td&gt;</td><td class=\"number\">1</td><td><button>Go</button></td></tr>", Layout.row(["b"]),
        ]
        let text = Layout.table("Things", ["Name", "How \"many\"", ""], rows).text
        #expect(
            text.contains(
                "<td data-column=\"Name\">a &lt;td&gt;</td><td data-column=\"How &quot;many&quot;\" class=\"number\">1</td><td><button>"
            ))
        #expect(text.contains("<th scope=\"col\">Name</th><th scope=\"col\" class=\"number\">How &quot;many&quot;</th>"))
        #expect(text.contains("<tr><td data-column=\"Name\">b</td></tr>"))
    }

    @Test func `a long word wraps between its parts, and is shown as text`() {
        #expect(Layout.parts("a@b.c/<d>").text == "<span class=\"parts\">a@<wbr>b.<wbr>c/<wbr>&lt;d&gt;</span>")
        let long = String(repeating: "x", count: 32)
        #expect(Layout.parts(long).text == long && Layout.parts("").text.isEmpty)
    }

    @Test func `too many attempts are reported on the page that asks`() async throws {
        let fixture = try await ConsoleFixture()
        let crowded = try await fixture.cloud.addAccount("busy@example.org")
        try await fixture.credentials.setPassword(ConsoleFixture.password, of: crowded.id)
        try await fixture.credentials.setOperator(crowded.id, role: .operator)
        let browser = try await fixture.browser(crowded)
        _ = try await fixture.cloud.setAddress("crowded@example.org", of: crowded)
        let reply = try await browser.post(
            "schema", Self.c.merging(["action": "reset", "confirmed": "1", "password": "x"]) { $1 })
        #expect(reply.status == 429 && reply.header("Retry-After") == "7")
        #expect(reply.text.contains("<h1>Reset development?</h1>") && reply.text.contains("Too many attempts: wait 7 seconds"))
    }
}

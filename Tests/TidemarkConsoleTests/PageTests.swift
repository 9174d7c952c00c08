import Foundation
import Testing
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: pages show the records of the cloud, change them as they say, and hide what a person may not see. Method: a cloud in a
/// directory, and the text of the pages.
@Suite(.timeLimit(.minutes(30))) struct PageTests {
    private static let hostile = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'&"

    @Test func `all pages open, for an operator and for a developer, also in an empty cloud`() async throws {
        let fixture = try await ConsoleFixture()
        for account in [fixture.anna, fixture.ben] {
            let browser = try await fixture.browser(account)
            for section in Section.allCases {
                let reply = await browser.get(section.rawValue)
                let mayUse = account == fixture.anna || !section.needsOperator
                #expect(reply.status == (mayUse ? 200 : 403), "\(section)")
                #expect(reply.text.contains("<h1>"), "\(section)")
                // HTML that was escaped by mistake.
                #expect(reply.text.firstMatch(of: /&lt;\/?(div|p|a|dl|form|span|td|button|ul)\b/) == nil, "\(section)")
            }
        }
        #expect(fixture.reports.withLock { $0 } == [])
        try await fixture.credentials.removeContainer(ConsoleFixture.journal)
        try await fixture.credentials.removeContainer(ConsoleFixture.other)
        let browser = try await fixture.browser(fixture.anna)
        #expect(await browser.get("").text.contains("No container is served"))
        #expect(await browser.get("records").status == 404)
    }

    @Test func `a query shows the records that it finds, and its request`() async throws {
        let fixture = try await ConsoleFixture()
        for (name, title, stars) in [("oslo", "Oslo", 5), ("bergen", "Bergen", 3), ("odda", "Odda", 1)]
            as [(String, String, Int64)]
        {
            try await fixture.save(name, ["title": .string(title), "stars": .int64(stars)])
        }
        for (field, indexes) in [("recordName", [.queryable]), ("title", [.queryable]), ("stars", [.queryable, .sortable])]
            as [(String, Set<CloudSchema.Index>)]
        {
            try await fixture.cloud.setIndexes(indexes, of: field, in: "City", container: ConsoleFixture.journal)
        }
        let browser = try await fixture.browser(fixture.anna)
        let all = await browser.get("records", ["c": ConsoleFixture.journal, "type": "City"])
        #expect(all.status == 200)
        for title in ["Oslo", "Bergen", "Odda"] { #expect(all.text.contains(title)) }
        let query = [
            "c": ConsoleFixture.journal, "type": "City", "f0": "title", "o0": "BEGINS_WITH", "v0": "O", "s0": "stars",
            "d0": "descending",
        ]
        let found = await browser.get("records", query).text
        #expect(!found.contains("Bergen"))
        let (oslo, odda) = (try #require(found.range(of: "Oslo")), try #require(found.range(of: "Odda")))
        #expect(oslo.lowerBound < odda.lowerBound)
        #expect(found.contains("&quot;comparator&quot;: &quot;BEGINS_WITH&quot;"))
        #expect(
            found.contains(
                "curl &#39;http://localhost:8080/database/1/\(ConsoleFixture.journal)/development/public/records/query"))
        let wrong = await browser.get("records", query.merging(["f0": "stars", "o0": "EQUALS", "v0": "many"]) { $1 })
        #expect(wrong.status == 400 && wrong.text.contains("&#39;stars&#39; takes a whole number."))
    }

    @Test func `a private database opens at the zone with records, and long texts have room`() async throws {
        let fixture = try await ConsoleFixture()
        let database = try fixture.cloud.database(.private, of: ConsoleFixture.journal, account: fixture.cleo.id)
        let zone = CloudZoneID("TidemarkZone")
        try await database.modifyZones(saving: [CloudZoneID("Empty"), zone], deleting: [])
        let text = String(repeating: "far ", count: 100)
        let record = CloudRecord(CloudRecordID("senja", in: zone), type: "Trip", fields: ["text": .string(text)])
        _ = try await database.modify(ModifyRecordsRequest(zone: zone, operations: [.save(record)]))
        try await fixture.cloud.setIndexes([.queryable], of: "recordName", in: "Trip", container: ConsoleFixture.journal)
        let browser = try await fixture.browser(fixture.anna)
        let query = ["c": ConsoleFixture.journal, "db": "private", "account": fixture.cleo.email, "type": "Trip"]
        // The form of the page has an empty field.
        for unnamed in [query, query.merging(["zone": ""]) { $1 }] {
            let place = try #require(await browser.get("records", unnamed).header("Location"))
            #expect(place.contains("zone=TidemarkZone") && place.contains("type=Trip"))
        }
        let page = await browser.get("records", query.merging(["zone": "TidemarkZone"]) { $1 }).text
        #expect(page.contains(">senja</a>") && page.contains("<div class=\"long\">far far"))
        #expect(page.contains("name=\"zone\" autocomplete=\"off\" value=\"TidemarkZone\""))
        // A request that names the default zone shows it.
        let named = await browser.get("records", query.merging(["zone": CloudZoneID.default.zoneName]) { $1 })
        #expect(named.status == 200 && named.text.contains("The database has other zones"))
        #expect(named.text.contains("name=\"zone\" autocomplete=\"off\" value=\"_defaultZone\""))
        #expect(named.text.contains("empty: the one with records"))
        for scope in ["public", "shared"] {
            let other = query.merging(["db": scope, "zone": CloudZoneID.default.zoneName]) { $1 }
            let text = await browser.get("records", other).text
            #expect(text.contains("name=\"zone\" autocomplete=\"off\" value=\"\""), "\(scope)")
            #expect(!text.contains("the one with records"), "\(scope)")
        }
        try await fixture.save("diary", type: "Trip", ["text": .string("x")], scope: .private)
        #expect(await browser.get("records", query).text.contains(">diary</a>"))
    }

    @Test func `each page of a query links to the next`() async throws {
        let fixture = try await ConsoleFixture()
        for number in 0..<7 { try await fixture.save("city-\(number)", ["n": .int64(Int64(number))]) }
        try await fixture.cloud.setIndexes([.queryable], of: "recordName", in: "City", container: ConsoleFixture.journal)
        let browser = try await fixture.browser(fixture.anna)
        var query = ["c": ConsoleFixture.journal, "type": "City", "limit": "3"]
        var (found, pages): ([String], Int) = ([], 0)
        while true {
            let text = await browser.get("records", query).text
            found += text.matches(of: /">(city-\d)<\/a>/).map { String($0.1) }
            pages += 1
            guard let next = text.firstMatch(of: /cont=([^"&]+)">Next 3/) else { break }
            query["cont"] = String(next.1).removingPercentEncoding
        }
        #expect(pages == 3)
        #expect(found == (0..<7).map { "city-\($0)" })
    }

    @Test func `a query of a field without an index names it, and the page can add the index`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo")])
        let browser = try await fixture.browser(fixture.ben)
        var query = ["c": ConsoleFixture.journal, "type": "City"]
        for (field, index, more) in [
            ("recordName", "queryable", [:]), ("title", "queryable", ["f0": "title", "o0": "EQUALS", "v0": "Oslo"]),
            ("title", "sortable", ["s0": "title"]),
            ("title", "searchable", ["f1": "title", "o1": "CONTAINS_ALL_TOKENS", "v1": "oslo"]),
        ] as [(String, String, [String: String])] {
            query.merge(more) { $1 }
            let refused = await browser.get("records", query)
            #expect(refused.status == 400)
            #expect(refused.text.contains("Field &#39;\(field)&#39; is not marked \(index)"))
            let added = try await browser.post(
                "records", query.merging(["field": field, "index": index, "db": "public", "zone": "_defaultZone"]) { $1 })
            #expect(added.status == 303)
            let answer = await browser.get("records", query)
            #expect(answer.status == 200 && answer.text.contains(">oslo</a>"), "\(field) \(index)")
            #expect(added.header("Location")?.hasSuffix("&added=\(field)&index=\(index)") == true)
            let note = "The index \(index) is added to \(field) of City."
            #expect(await browser.get("records", query.merging(["added": field, "index": index]) { $1 }).text.contains(note))
            #expect(
                await !browser.get("records", query.merging(["added": "other", "index": index]) { $1 }).text.contains("is added"))
        }
        let schema = try await fixture.cloud.schema(of: ConsoleFixture.journal)
        #expect(schema.types["City"]?.indexes(of: "title") == [.queryable, .sortable, .searchable])
        let entry = try #require(try await fixture.credentials.auditLog().first)
        #expect(entry.event.action.rawValue == "admin.schema.index")
        #expect(entry.event.actor == fixture.ben.id && entry.event.address == "192.0.2.1")
        #expect(entry.event.before == "queryable, sortable" && entry.event.after == "queryable, sortable, searchable")
    }

    @Test func `an unknown type or field is reported with a similar name`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo")])
        let browser = try await fixture.browser(fixture.ben)
        let type = await browser.get("records", ["c": ConsoleFixture.journal, "type": "Citi"])
        #expect(type.status == 404)
        #expect(
            type.text.contains(
                "There is no record type &#39;Citi&#39; in the development schema; did you mean &#39;City&#39;?</p>"))
        let query = ["c": ConsoleFixture.journal, "type": "City", "f0": "titel", "o0": "EQUALS", "v0": "Oslo"]
        let field = await browser.get("records", query)
        #expect(field.status == 400)
        #expect(field.text.contains("City has no field &#39;titel&#39; in the development schema; did you mean &#39;title&#39;?"))
        #expect(!field.text.contains("is not marked"))
    }

    @Test func `a record is made, changed and deleted, and the log has its values before and after`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        let place = ["c": ConsoleFixture.journal, "type": "City"]
        let made = try await browser.post(
            "record", place.merging(["name": "oslo", "newName": "title", "newType": "string", "newValue": "Oslo"]) { $1 })
        #expect(made.status == 303, "\(made.text)")
        #expect(try await fixture.record("oslo").fields == ["title": .string("Oslo")])
        let form = await browser.get("record", ["c": ConsoleFixture.journal, "name": "oslo", "edit": "1"]).text
        let tag = try #require(form.firstMatch(of: /name="tag" value="([^"]+)"/)).1
        let changed = try await browser.post(
            "record",
            place.merging([
                "name": "oslo", "tag": String(tag), "is.title": "Oslo,\r\nby the fjord", "was.title": "Oslo", "newName": "stars",
                "newType": "int64",
                "newValue": "5",
            ]) { $1 })
        #expect(changed.status == 303, "\(changed.text)")
        #expect(try await fixture.record("oslo").fields == ["title": .string("Oslo,\nby the fjord"), "stars": .int64(5)])
        let page = await browser.get("record", ["c": ConsoleFixture.journal, "name": "oslo"]).text
        #expect(page.contains("by the fjord") && page.contains("int64"))
        #expect(
            try await browser.postConfirmed("record", place.merging(["name": "oslo", "action": "delete"]) { $1 }).status == 303)
        let log = try await fixture.credentials.auditLog().filter { $0.event.action.rawValue.hasPrefix("admin.records") }
        #expect(log.map(\.event.action.rawValue) == ["admin.records.delete", "admin.records.save", "admin.records.save"])
        #expect(
            log.allSatisfy { $0.event.actor == fixture.anna.id && $0.event.container == "\(ConsoleFixture.journal)/development" })
        #expect(log[2].event.before.isEmpty && log[2].event.after.contains("\"Oslo\""))
        #expect(log[1].event.before.contains("\"Oslo\"") && log[1].event.after.contains("by the fjord"))
        #expect(log[0].event.before.contains("by the fjord") && log[0].event.after.isEmpty)
        #expect(fixture.changes.withLock { $0.map(\.event) } == [.created, .updated, .deleted])
        #expect(fixture.changes.withLock { $0 }.allSatisfy { $0.record == "oslo" && $0.type == "City" && $0.zoneOwner.isEmpty })
    }

    @Test func `fields that devices write are shown beside the form, and no form changes them`() async throws {
        let fixture = try await ConsoleFixture()
        let edited = "{\"title\":1}"
        try await fixture.save("oslo", ["title": .string("Oslo"), CloudRecord.editedField: .string(edited)])
        let browser = try await fixture.browser(fixture.anna)
        let query = ["c": ConsoleFixture.journal, "name": "oslo", "edit": "1"]
        let form = await browser.get("record", query).text
        #expect(form.contains("name=\"is.title\"") && !form.contains("is.tide_edited") && !form.contains("was.tide_edited"))
        #expect(form.contains("Devices write these fields") && form.contains("<dt>tide_edited<br>"))
        let tag = String(try #require(form.firstMatch(of: /name="tag" value="([^"]+)"/)).1)
        let place = ["c": ConsoleFixture.journal, "type": "City", "name": "oslo", "tag": tag]
        for change in [
            ["is.tide_edited": "x", "was.tide_edited": edited], ["clear.tide_edited": "1"],
            ["newName": "tide_other", "newType": "string", "newValue": "x"],
        ] {
            let refused = try await browser.post("record", place.merging(change) { $1 })
            #expect(refused.status == 400 && refused.text.contains("a field that devices write"), "\(change)")
        }
        let saved = try await browser.post("record", place.merging(["is.title": "Oslo S", "was.title": "Oslo"]) { $1 })
        #expect(saved.status == 303, "\(saved.text)")
        #expect(try await fixture.record("oslo").fields == ["title": .string("Oslo S"), "tide_edited": .string(edited)])
        // A new record has none.
        let blank = await browser.get("record", ["c": ConsoleFixture.journal, "new": "1", "type": "City"]).text
        #expect(!blank.contains("tide_edited"))
    }

    @Test func `an edit of a record that another person has changed shows both versions, and loses neither`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo"), "stars": .int64(1)])
        let tag = try #require(try await fixture.record("oslo").changeTag)
        let database = try fixture.cloud.database(.public, of: ConsoleFixture.journal, account: fixture.cleo.id)
        var later = try await fixture.record("oslo")
        later.fields = ["stars": .int64(4)]
        _ = try await database.modify(ModifyRecordsRequest(zone: .default, operations: [.save(later)]))
        let browser = try await fixture.browser(fixture.anna)
        let form = [
            "c": ConsoleFixture.journal, "type": "City", "name": "oslo", "is.title": "Christiania", "was.title": "Oslo",
            "is.stars": "1",
            "was.stars": "1",
        ]
        let refused = try await browser.post("record", form.merging(["tag": tag]) { $1 })
        #expect(refused.status == 409)
        #expect(refused.text.contains("The record was changed while you edited it"))
        #expect(refused.text.contains("<strong>4</strong>") && refused.text.contains("<strong>Christiania</strong>"))
        #expect(try await fixture.record("oslo").fields["title"] == .string("Oslo"))
        let newTag = try #require(refused.text.firstMatch(of: /name="tag" value="([^"]+)"/)).1
        #expect(try await browser.post("record", form.merging(["tag": String(newTag)]) { $1 }).status == 303)
        #expect(try await fixture.record("oslo").fields == ["title": .string("Christiania"), "stars": .int64(4)])
    }

    @Test func `an operator changes public records of others, and the record says who did`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo")], by: fixture.cleo)
        let browser = try await fixture.browser(fixture.anna)
        let tag = try #require(try await fixture.record("oslo").changeTag)
        let reply = try await browser.post(
            "record",
            [
                "c": ConsoleFixture.journal, "type": "City", "name": "oslo", "tag": tag, "is.title": "Christiania",
                "was.title": "Oslo",
            ])
        #expect(reply.status == 303)
        let record = try await fixture.record("oslo")
        #expect(record.created?.userRecordName == fixture.cloud.userRecordName(of: fixture.cleo, in: ConsoleFixture.journal))
        #expect(record.modified?.userRecordName == fixture.cloud.userRecordName(of: fixture.anna, in: ConsoleFixture.journal))
    }

    @Test func `text of other people is shown as text on every page`() async throws {
        let fixture = try await ConsoleFixture()
        let hostile = Self.hostile
        try await fixture.save(
            hostile,
            [
                "title": .string(hostile), "tags": .list([.string(hostile)], of: .string),
                "next": .reference(CloudReference(hostile)),
            ],
            by: fixture.cleo)
        try await fixture.save("private", ["title": .string(hostile)], by: fixture.cleo, scope: .private)
        var cleo = fixture.cleo
        cleo.name = PersonName(givenName: hostile)
        try await fixture.cloud.update(cleo)
        _ = try await fixture.credentials.makeSession(
            account: cleo.id, container: ConsoleFixture.journal, environment: .development, kind: .device, device: hostile)
        _ = try await fixture.credentials.addAPIToken(
            container: ConsoleFixture.journal, environment: .development, name: hostile,
            callback: .redirect("https://example.org/"), origins: [])
        try await fixture.credentials.audit(
            AuditEvent(.shareCreate, container: ConsoleFixture.journal, subject: hostile, before: hostile, after: hostile))
        try await fixture.cloud.setIndexes([.queryable], of: "recordName", in: "City", container: ConsoleFixture.journal)
        let browser = try await fixture.browser(fixture.anna)
        let c = ConsoleFixture.journal
        let pages: [(String, [String: String])] = [
            ("", [:]), ("records", ["c": c, "type": "City"]),
            ("records", ["c": c, "type": hostile, "f0": hostile, "o0": "EQUALS", "v0": hostile]),
            ("records", ["c": c, "type": "City", "db": "private", "account": hostile, "zone": hostile]),
            ("record", ["c": c, "name": hostile]), ("record", ["c": c, "name": hostile, "edit": "1"]),
            ("record", ["c": c, "new": "1", "type": hostile]), ("schema", ["c": c]),
            ("zones", ["c": c, "db": "private", "account": cleo.email]),
            ("zones", ["c": c, "db": "shared", "account": hostile, "zone": hostile]), ("accounts", ["q": hostile]),
            ("accounts", [:]),
            ("account", ["id": cleo.email]), ("account", ["id": hostile]), ("access", [:]), ("activity", ["all": "1"]),
            ("activity", ["account": hostile]), (hostile, [:]), ("records", ["c": hostile]),
        ]
        for (page, query) in pages {
            let module = "<script type=\"module\" src=\"/console/live.js\"></script>"
            let text = await browser.get(page, query).text.replacing(module, with: "")
            #expect(!text.contains("<script") && !text.contains("<img src=x"), "\(page) \(query)")
        }
        let record = await browser.get("record", ["c": c, "name": hostile]).text
        #expect(record.contains("&lt;script&gt;alert(1)&lt;/script&gt;"))
        let signIn = await fixture.console.reply(
            to: ConsoleRequest(isPost: true, page: "sign-in", form: ["email": hostile, "password": "x", "to": hostile]))
        #expect(!signIn.text.contains("<script"))
    }

    @Test func `a developer of one container can't see or change another`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("secret", type: "Hidden", ["title": .string("Hush")], in: ConsoleFixture.other)
        try await fixture.cloud.setIndexes([.queryable], of: "recordName", in: "Hidden", container: ConsoleFixture.other)
        let (token, _) = try await fixture.credentials.addAPIToken(
            container: ConsoleFixture.other, environment: .development, name: "Hidden token",
            callback: .redirect("https://example.org/"), origins: [])
        try await fixture.credentials.audit(AuditEvent(.shareCreate, container: ConsoleFixture.other, subject: "Hidden subject"))
        let ben = try await fixture.browser(fixture.ben)
        let queries = [
            [:], ["c": ConsoleFixture.other], ["c": ConsoleFixture.other, "type": "Hidden", "name": "secret"], ["all": "1"],
        ]
        for page in Console.pages where page != "sign-in" && page != "sign-out" {
            for query in queries {
                let reply = await ben.get(page, query)
                for word in ["Hidden", "Hush", token.id] { #expect(!reply.text.contains(word), "\(page) \(query)") }
                if query["c"] == nil { #expect(!reply.text.contains("example.other"), "\(page) \(query)") }
            }
        }
        let c = ConsoleFixture.other
        for (page, form) in [
            ("record", ["c": c, "action": "delete", "name": "secret", "type": "Hidden"]),
            ("record", ["c": c, "name": "new", "type": "Hidden", "newName": "a", "newType": "string", "newValue": "b"]),
            ("schema", ["c": c, "action": "indexes", "type": "Hidden", "was.title": "", "queryable.title": "1"]),
            ("schema", ["c": c, "action": "deploy"]), ("access", ["action": "revoke-token", "id": token.id]),
            ("access", ["action": "add-operator", "account": "ben@example.org", "role": "operator"]),
            ("account", ["id": fixture.anna.email, "action": "sign-out"]),
            ("account", ["id": fixture.anna.email, "action": "disable"]),
        ] as [(String, [String: String])] {
            let reply = try await ben.postConfirmed(page, form)
            #expect(reply.status == 404 || reply.status == 403, "\(page) \(form)")
        }
        #expect(try await fixture.record("secret", in: c).fields["title"] == .string("Hush"))
        #expect(try fixture.credentials.apiTokens().map(\.id) == [token.id])
        #expect(try await fixture.credentials.operatorRole(of: fixture.ben.id)?.role == .developer)
    }

    @Test func `private records in production are for operators, and each look is in the log`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("diary", type: "Note", ["text": .string("Dear diary")], by: fixture.cleo, scope: .private)
        try await fixture.cloud.setIndexes([.queryable], of: "recordName", in: "Note", container: ConsoleFixture.journal)
        try await fixture.cloud.deploySchema(of: ConsoleFixture.journal)
        let query = ["c": ConsoleFixture.journal, "db": "private", "account": fixture.cleo.email, "type": "Note"]
        let production = query.merging(["e": "production"]) { $1 }
        let (anna, ben) = (try await fixture.browser(fixture.anna), try await fixture.browser(fixture.ben))
        #expect(await ben.get("records", query).text.contains("Dear diary"))
        #expect(await ben.get("records", production).status == 403)
        #expect(await ben.get("zones", production).status == 403)
        #expect(await ben.get("record", production.merging(["name": "diary"]) { $1 }).status == 403)
        #expect(await anna.get("records", production).status == 200)
        let looks = try await fixture.credentials.auditLog().filter { $0.event.action.rawValue == "admin.records.read" }
        #expect(looks.map(\.event.actor) == [fixture.anna.id, fixture.ben.id])
        #expect(looks.allSatisfy { $0.event.account == fixture.cleo.id && $0.event.subject == "private/_defaultZone/Note" })
    }

    @Test func `the schema is compared with production, and deployed after a second confirmation`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["title": .string("Oslo")])
        let browser = try await fixture.browser(fixture.anna)
        let c = ["c": ConsoleFixture.journal]
        let page = await browser.get("schema", c).text
        #expect(page.contains("City is new") && page.contains("City.title is new: string"))
        func form(_ page: String) throws -> [String: String] {
            let expected = try #require(page.firstMatch(of: /name="expected" value="([0-9a-f]+)"/)).1
            return c.merging(["action": "deploy", "expected": String(expected)]) { $1 }
        }
        let asked = try await browser.post("schema", try form(page))
        #expect(asked.status == 200 && asked.text.contains("City.title is new: string"))
        #expect(asked.text.contains("<h1>Deploy the schema to production?</h1>") && asked.text.contains("will be deployed"))
        // A change that comes in between is shown first.
        try await fixture.save("odda", ["stars": .int64(2)])
        for reply in [
            try await browser.post("schema", try form(page)), try await browser.postConfirmed("schema", try form(asked.text)),
        ] {
            #expect(reply.status == 409 && reply.text.contains("the development schema has changed since"))
            #expect(reply.text.contains("City.stars is new: int64"))
        }
        #expect(try await browser.postConfirmed("schema", c.merging(["action": "deploy"]) { $1 }).status == 409)
        #expect(try await fixture.cloud.schema(of: ConsoleFixture.journal, environment: .production).types.isEmpty)
        let administration = Administration(fixture.cloud, fixture.credentials, by: .system(name: "test"))
        let stale = try #require(try form(page)["expected"])
        let error = await #expect(throws: AdministrationError.self) {
            try await administration.deploySchema(of: ConsoleFixture.journal, expecting: stale)
        }
        #expect(error?.code == .conflict)
        let renewed = try form(await browser.get("schema", c).text)
        #expect(try await browser.postConfirmed("schema", renewed).status == 303)
        let logged = try await fixture.credentials.auditLog().first { $0.event.action.rawValue == "admin.schema.deploy" }
        #expect(logged?.event.after == "City is new; City.stars is new: int64; City.title is new: string")
        #expect(await browser.get("schema", c).text.contains("Production has the same schema."))
        #expect(
            try await fixture.cloud.schema(of: ConsoleFixture.journal, environment: .production).types["City"]?.fields["title"]?
                .type == "string")
        let file = await browser.get("schema.json", c)
        #expect(file.header("Content-Disposition")?.hasPrefix("attachment") == true)
        let schema = try #require(JSONSerialization.jsonObject(with: Data(file.text.utf8)) as? [String: [[String: Any]]])
        #expect(schema["types"]?.first?["name"] as? String == "City")
    }

    @Test func `a token is made, shown once, and revoked; invalid tokens and keys are refused`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.ben)
        let c = ["c": ConsoleFixture.journal]
        let form = c.merging([
            "action": "add-token", "name": "Web", "callback": "https://example.org/in",
            "origins": "https://a.example.org https://b.example.org",
        ]) { $1 }
        let made = try await browser.post("access", form)
        let text = try #require(made.text.firstMatch(of: /<pre class="link" tabindex="0">([0-9a-f]{64})<\/pre>/)).1
        let token = try #require(try fixture.credentials.apiToken(String(text)))
        #expect(token.container == ConsoleFixture.journal && token.origins.count == 2)
        let page = await browser.get("access", c).text
        #expect(page.contains(">Web<") && !page.contains(text))
        #expect(
            try await browser.post("access", c.merging(["action": "add-token", "callback": "javascript:x"]) { $1 }).status == 400)
        #expect(try await browser.post("access", c.merging(["action": "add-key", "pem": "x"]) { $1 }).status == 400)
        #expect(
            try await browser.postConfirmed("access", c.merging(["action": "revoke-token", "id": token.id]) { $1 }).status == 303)
        #expect(try fixture.credentials.apiToken(String(text)) == nil)
        let log = try await fixture.credentials.auditLog().map(\.event).filter { $0.action.rawValue.hasPrefix("admin.token") }
        #expect(log.map(\.action.rawValue) == ["admin.token.revoke", "admin.token.add"])
        #expect(log.allSatisfy { $0.actor == fixture.ben.id && !$0.after.contains(text) })
    }

    @Test func `a form and a file add to the schema, in development only`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.ben)
        let c = ["c": ConsoleFixture.journal]
        let add = c.merging(["action": "add", "type": "City", "field": "stars", "kind": "int64"]) { $1 }
        #expect(try await browser.post("schema", add).status == 303)
        let file =
            #"{"types": [{"name": "City", "fields": [{"name": "tags", "type": "list<string>"}]}, {"name": "Day", "fields": []}]}"#
        #expect(try await browser.post("schema", c.merging(["action": "import", "file": file]) { $1 }).status == 303)
        let types = try await fixture.cloud.schema(of: ConsoleFixture.journal).types
        #expect(types["City"]?.fields.mapValues(\.type) == ["stars": "int64", "tags": "list<string>"])
        #expect(types["Day"]?.fields.isEmpty == true)
        for wrong in [
            ["action": "add", "type": "City", "field": "stars", "kind": "string"],
            ["action": "add", "type": "1", "field": "a", "kind": "string"],
            ["action": "import", "file": "{"],
            ["action": "import", "file": #"{"types": [{"name": "A", "fields": [{"name": "b", "type": "c"}]}]}"#],
        ] {
            #expect(try await browser.post("schema", c.merging(wrong) { $1 }).status == 400, "\(wrong)")
        }
        #expect(try await browser.post("schema", add.merging(["e": "production", "field": "more"]) { $1 }).status == 403)
        #expect(try await fixture.cloud.schema(of: ConsoleFixture.journal).types == types)
        #expect(
            try await fixture.credentials.auditLog().map(\.event.action.rawValue).filter { $0 == "admin.schema.add" }.count == 2)
    }

    @Test func `an account is found, limited, signed out and disabled`() async throws {
        let fixture = try await ConsoleFixture()
        let token = try await fixture.credentials.makeSession(
            account: fixture.cleo.id, container: ConsoleFixture.journal, environment: .development, kind: .device,
            device: "Laptop of Cleo")
        let browser = try await fixture.browser(fixture.anna)
        #expect(await browser.get("accounts", ["q": "cleo"]).text.contains("cleo@example.org"))
        #expect(await !browser.get("accounts", ["q": "cleo"]).text.contains("ben@example.org"))
        let id = ["id": fixture.cleo.email]
        #expect(await browser.get("account", id).text.contains("Laptop of Cleo"))
        #expect(try await browser.post("account", id.merging(["action": "quota", "quota": "20 MB"]) { $1 }).status == 303)
        #expect(try await fixture.cloud.account("cleo@example.org")?.quota == 20_000_000)
        #expect(try await browser.post("account", id.merging(["action": "quota", "quota": "much"]) { $1 }).status == 400)
        #expect(try await browser.postConfirmed("account", id.merging(["action": "sign-out"]) { $1 }).status == 303)
        await #expect(throws: SessionFailure.revoked) { try await fixture.credentials.session(token.text).get() }
        #expect(try await browser.postConfirmed("account", id.merging(["action": "disable"]) { $1 }).status == 303)
        #expect(try await fixture.cloud.account("cleo@example.org")?.status == .restricted)
        #expect(try await browser.post("account", id.merging(["action": "enable"]) { $1 }).status == 303)
        #expect(try await fixture.cloud.account("cleo@example.org")?.status == .available)
        try await fixture.save("note", type: "Note", ["text": .string("x")], by: fixture.cleo, scope: .private)
        #expect(try await browser.postConfirmed("account", id.merging(["action": "remove"]) { $1 }).status == 303)
        #expect(try await fixture.cloud.account("cleo@example.org") == nil)
        #expect(try await browser.postConfirmed("account", ["id": fixture.anna.email, "action": "remove"]).status == 400)
        let log = try await fixture.credentials.auditLog(account: fixture.cleo.id).map(\.event.action.rawValue)
        #expect(
            log == ["admin.account.remove", "admin.account.set", "admin.account.set", "admin.session.end", "admin.account.set"])
    }
}

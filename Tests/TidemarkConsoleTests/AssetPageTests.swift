import Foundation
import TestSupport
import Testing
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

@testable import TidemarkConsole

/// Goal: a form uploads assets, and pages show them by their type; a content that people upload is shown as a picture or as text,
/// and never runs. Method: forms with files, the text of pages, and the headers of downloads.
@Suite(.timeLimit(.minutes(30))) struct AssetPageTests {
    private static let place = ["c": ConsoleFixture.journal, "type": "City", "name": "oslo"]
    private static let page = Data("<html><script>alert(1)</script></html>".utf8)
    private static let drawing = Data("<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(2)</script></svg>".utf8)

    private func made(_ fixture: ConsoleFixture, _ browser: Browser, _ contents: Data, type: String = "asset") async throws {
        let reply = try await browser.post(
            "record", Self.place.merging(["newName": "photo", "newType": type]) { $1 }, files: ["file": contents])
        #expect(reply.status == 303, "\(reply.text)")
    }

    private func edit(
        _ fixture: ConsoleFixture, _ browser: Browser, _ form: [String: String] = [:], files: [String: Data] = [:]
    ) async throws -> ConsoleReply {
        let tag = try #require(try await fixture.record("oslo").changeTag)
        return try await browser.post("record", Self.place.merging(["tag": tag]) { $1 }.merging(form) { $1 }, files: files)
    }

    private func shown(_ browser: Browser) async -> String {
        await browser.get("record", ["c": ConsoleFixture.journal, "name": "oslo"]).text
    }

    @Test func `a file of the form becomes a field's asset, replaces it, and is removed`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        let (first, second) = (Picture.png(1), Picture.png(2))
        try await made(fixture, browser, first)
        #expect(try await fixture.record("oslo").fields["photo"]?.type == FieldType(.asset))
        let query = ["c": ConsoleFixture.journal, "name": "oslo", "field": "photo"]
        func content(_ more: [String: String] = [:]) async throws -> (ConsoleReply, Data) {
            let reply = await browser.get("asset", query.merging(more) { $1 })
            guard case .pieces(let count, let read) = reply.body else { return (reply, Data()) }
            return (reply, try await read(0, Int(count)))
        }
        let (preview, bytes) = try await content(["preview": "1"])
        #expect(preview.type == "image/png" && bytes == first)
        #expect(preview.header("Content-Security-Policy") == "default-src 'none'; sandbox")
        #expect(await shown(browser).contains("<img class=\"preview\""))
        #expect(
            await browser.get("record", query.merging(["edit": "1"]) { $1 }).text.contains("name=\"file.photo\" type=\"file\""))

        #expect(try await edit(fixture, browser, files: ["file.photo": second]).status == 303)
        #expect(try await content().1 == second)
        // A browser sends an empty file for an input without a file.
        #expect(try await edit(fixture, browser, files: ["file.photo": Data()]).status == 303)
        #expect(try await content().1 == second)
        #expect(try await edit(fixture, browser, ["clear.photo": "1"]).status == 303)
        #expect(try await fixture.record("oslo").fields["photo"] == nil)
        let wrong = try await edit(fixture, browser, files: ["file.title": first])
        #expect(wrong.status == 400 && wrong.text.contains("A file is for a field of the type asset"))
    }

    @Test func `a record with a long name has its history, and its thumbnails make one entry in the log`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        let name = String(repeating: "å", count: 120) + " "
        let place = ["c": ConsoleFixture.journal, "type": "City", "name": name]
        let made = try await browser.post(
            "record", place.merging(["newName": "photo", "newType": "asset"]) { $1 }, files: ["file": Picture.png(1)])
        #expect(made.status == 303, "\(made.text)")
        #expect(await browser.get("record", place).text.withoutBreaks.contains("admin.records.save"))
        try await fixture.save("own", type: "Note", ["text": .string("mine")], scope: .private)
        let mine = ["c": ConsoleFixture.journal, "db": "private", "account": "cleo@example.org", "type": "Note"]
        let photo = try await browser.post(
            "record", mine.merging(["name": "photo", "newName": "photo", "newType": "asset"]) { $1 },
            files: ["file": Picture.png(2)])
        #expect(photo.status == 303, "\(photo.text)")
        func looks() async throws -> Int {
            try await fixture.credentials.auditLog(account: fixture.cleo.id).count {
                $0.event.action.rawValue == "admin.records.read"
            }
        }
        let before = try await looks()
        for _ in 0..<5 {
            let query = mine.merging(["name": "photo", "field": "photo", "preview": "1"]) { $1 }
            #expect(await browser.get("asset", query).status == 200)
        }
        #expect(try await looks() == before + 1)
        // Each download makes an entry of its own.
        #expect(await browser.get("asset", mine.merging(["name": "photo", "field": "photo"]) { $1 }).status == 200)
        #expect(try await looks() == before + 2)
    }

    @Test func `a form appends a file to a list of assets`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        try await made(fixture, browser, Picture.png(1), type: "list<asset>")
        #expect(try await edit(fixture, browser, files: ["file.photo": Picture.png(2)]).status == 303)
        guard case .list(let files, of: .asset)? = try await fixture.record("oslo").fields["photo"] else {
            Issue.record("no list")
            return
        }
        #expect(files.count == 2)
        #expect(await shown(browser).components(separatedBy: "<img class=\"preview\"").count == 3)
    }

    @Test(arguments: [AssetPageTests.page, AssetPageTests.drawing])
    func `a page or a drawing is shown as its text, and downloaded as a file`(_ contents: Data) async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        try await made(fixture, browser, contents)
        let text = await shown(browser)
        #expect(
            text.contains("&lt;script&gt;alert") && !text.contains("<script>alert") && !text.contains("<img class=\"preview\""))
        let query = ["c": ConsoleFixture.journal, "name": "oslo", "field": "photo"]
        #expect(await browser.get("asset", query.merging(["preview": "1"]) { $1 }).status == 400)
        let file = await browser.get("asset", query)
        #expect(file.type == "application/octet-stream")
        #expect(file.header("Content-Disposition")?.hasPrefix("attachment; filename=\"") == true)
        #expect(file.header("Content-Security-Policy") == "default-src 'none'; sandbox")
        #expect(file.header("X-Content-Type-Options") == "nosniff")
    }

    @Test func `the size of a picture is read from its header, and a truncated header gives none`() async throws {
        func header(_ bytes: [UInt8]) async throws -> PictureHeader? {
            try await PictureHeader(size: Int64(bytes.count)) { offset, count in
                Data(bytes[min(Int(offset), bytes.count)..<min(Int(offset) + count, bytes.count)])
            }
        }
        let png = try await header([UInt8](Picture.png(1)))
        #expect(png?.type == "image/png" && (png?.pixels ?? 0) > 0)
        #expect(try await header([UInt8](Picture.png(1).prefix(20))) == nil)
        let rest = [UInt8](repeating: 0, count: 40)
        // A segment before the one with the size is skipped, even if it exceeds what was read at first.
        for length in [16, 65_000] {
            var bytes: [UInt8] = [0xff, 0xd8]
            for _ in 0..<2 {
                bytes += [0xff, 0xe1, UInt8(length >> 8), UInt8(length & 0xff)]
                bytes += [UInt8](repeating: 7, count: length - 2)
            }
            bytes += [0xff, 0xc0, 0x00, 0x11, 0x08, 0x01, 0x02, 0x03, 0x04, 0x03]
            let jpeg = try await header(bytes + rest)
            #expect(jpeg?.type == "image/jpeg" && jpeg?.height == 0x0102 && jpeg?.width == 0x0304, "\(length)")
        }
        // If there are many segments, reading stops.
        var many: [UInt8] = [0xff, 0xd8]
        for _ in 0..<30 {
            many += [0xff, 0xe1, 0xff, 0xff]
            many += [UInt8](repeating: 7, count: 0xffff - 2)
        }
        let reads = Shared(0)
        let hostile = try await PictureHeader(size: Int64(many.count)) { offset, count in
            reads.change { $0 += 1 }
            return Data(many[min(Int(offset), many.count)..<min(Int(offset) + count, many.count)])
        }
        #expect(hostile == nil && reads.value == 9)
        var filled: [UInt8] = [0xff, 0xd8]
        filled += [UInt8](repeating: 0xff, count: 400)
        #expect(try await header(filled) == nil)
        var drawn = Array("GIF89a".utf8)
        drawn += [0x10, 0x00, 0x20, 0x00]
        let gif = try await header(drawn + rest)
        #expect(gif?.width == 16 && gif?.height == 32)
        var packed = Array("RIFF....WEBPVP8X".utf8)
        packed += [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0x7f, 0, 0]
        let webP = try await header(packed + rest)
        #expect(webP?.width == 256 && webP?.height == 128)
    }

    @Test func `a picture with too many pixels is not shown`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        var bytes = [UInt8](Picture.png(1))
        bytes.replaceSubrange(16..<24, with: [0, 0, 0x7f, 0xff, 0, 0, 0x7f, 0xff])
        try await made(fixture, browser, Data(bytes))
        #expect(await shown(browser).contains("A picture of 32767 × 32767, too large to be shown here."))
        let query = ["c": ConsoleFixture.journal, "name": "oslo", "field": "photo", "preview": "1"]
        #expect(await browser.get("asset", query).status == 400)
    }

    @Test func `a record's page says what is known of its past, and what is unknown`() async throws {
        let fixture = try await ConsoleFixture()
        let browser = try await fixture.browser(fixture.anna)
        try await fixture.save("oslo", ["title": .string("Oslo")])
        try await fixture.save("odda", ["title": .string("Odda")])
        let before = await shown(browser)
        #expect(before.contains("no earlier versions") && before.contains("Nobody has changed it by the console or a command."))
        #expect(try await edit(fixture, browser, ["is.title": "Christiania", "was.title": "Oslo"]).status == 303)
        let after = await shown(browser)
        #expect(after.withoutBreaks.contains("admin.records.save") && after.contains("Before and after"))
        let other = await browser.get("record", ["c": ConsoleFixture.journal, "name": "odda"]).text
        #expect(other.contains("Nobody has changed it"))
        // The same name in another environment is another record.
        let production = await browser.get("record", ["c": ConsoleFixture.journal, "name": "oslo", "e": "production"])
        #expect(production.status == 404)
    }
}

import Foundation
import NIOHTTP1
import Testing

@testable import webjournal

/// Goal: what a person does with their own journal works over connections, without scripts. Method: a served site, and a client that sends
/// what browsers send.
@Suite(.timeLimit(.minutes(30))) struct JournalTests {
    @Test func `an empty journal says what to do`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            let page = try await ada.get("/")
            #expect(page.status == .ok)
            #expect(page.text.contains("Nothing here yet") && page.text.contains("href=\"/destinations/new\""))
        }
    }

    @Test func `a photo is added with its time, a size for screens and a thumbnail`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            let path = try await ada.add("Reine", details: "The sun stays up.\nAll night.", keepsPosition: true)
            let page = try await ada.get(path)
            #expect(page.text.contains("“Reine” is saved."))
            #expect(page.text.contains("<p>The sun stays up.</p><p>All night.</p>"))
            // What the photo's EXIF says.
            #expect(page.text.contains("30 June 2022") || page.text.contains("1 July 2022"))
            #expect(page.text.contains("67.93° N, 13.09° E"))
            let grid = try await ada.get("/")
            let thumbnail = "/destinations" + (try #require(grid.between("<img src=\"/destinations", "\"")))
            #expect(thumbnail.contains("/thumbnail?"))
            let picture = try await ada.get(thumbnail)
            #expect(picture.headers.first(name: "Content-Type") == "image/jpeg")
            #expect(picture.body.count > 1_000 && picture.body.count < 60_000)
            // A second look tells nothing.
            #expect(try await !ada.get(path).text.contains("is saved"))
        }
    }

    @Test func `the place of a photo is left out unless it is to be kept`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            let page = try await ada.get(ada.add("Reine"))
            #expect(page.text.contains("2022") && !page.text.contains("° N"))
            let picture = try await ada.get(#require(page.between("data-live><img src=\"", "\"")))
            #expect(picture.body.range(of: Data("GPS".utf8)) == nil)
        }
    }

    @Test func `the newest are first`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            for (caption, photo) in [("Baikal", "shaman-rock.jpg"), ("Reine", "reine.jpg"), ("Kyōto", "fushimi-inari.jpg")] {
                _ = try await ada.add(caption, photo: photo)
            }
            let text = try await ada.get("/").text
            let captions = text.components(separatedBy: "<span class=\"caption\">").dropFirst().map { $0.prefix { $0 != "<" } }
            #expect(captions == ["Reine", "Kyōto", "Baikal"])
        }
    }

    @Test func `a place is edited, and deleted after a question`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            let path = try await ada.add("Reine", details: "Light.")
            let form = try await ada.get("\(path)/edit")
            #expect(form.text.contains("value=\"Reine\"") && form.text.contains("Light.</textarea>"))
            let edit = try #require(form.between("name=\"edit\" value=\"", "\""))
            let saved = try await ada.post(
                "\(path)/edit", ["edit": edit, "caption": "Reine in June", "details": "Light."], photo: nil)
            #expect(saved.status == .seeOther)
            #expect(try await ada.get(path).text.contains("<h1>Reine in June</h1>"))
            #expect(try await ada.get("\(path)/delete").text.contains("Delete “Reine in June”?"))
            #expect(try await ada.post("\(path)/delete", [:]).status == .seeOther)
            #expect(try await ada.get(path).status == .notFound)
            #expect(try await ada.get("/").text.contains("Nothing here yet"))
        }
    }

    @Test func `of two edits of one field the second is asked, and of two fields both stay`() async throws {
        try await TestSite.run { site in
            let (laptop, phone) = (try await site.browser(of: "ada@example.org"), try await site.browser(of: "ada@example.org"))
            let path = try await laptop.add("Reine", details: "Light.")
            let first = try #require(await laptop.get("\(path)/edit").between("name=\"edit\" value=\"", "\""))
            let second = try #require(await phone.get("\(path)/edit").between("name=\"edit\" value=\"", "\""))
            let third = try #require(await phone.get("\(path)/edit").between("name=\"edit\" value=\"", "\""))
            _ = try await laptop.post(
                "\(path)/edit", ["edit": first, "caption": "Reine, Norway", "details": "Light."], photo: nil)
            let merged = try await phone.post(
                "\(path)/edit", ["edit": second, "caption": "Reine", "details": "Light until midnight."], photo: nil)
            #expect(merged.status == .seeOther)
            let both = try await phone.get(path).text
            #expect(both.contains("<h1>Reine, Norway</h1>") && both.contains("<p>Light until midnight.</p>"))
            let asked = try await phone.post(
                "\(path)/edit", ["edit": third, "caption": "Reine, Lofoten", "details": "Light."], photo: nil)
            #expect(asked.status == .conflict)
            #expect(asked.text.contains("<dd>Reine, Norway</dd>") && asked.text.contains("value=\"Reine, Lofoten\""))
            let mine = try await phone.post(
                "\(path)/edit", ["edit": third, "caption": "Reine, Lofoten", "details": "Light.", "overwrite": "1"], photo: nil)
            #expect(mine.status == .seeOther)
            let text = try await phone.get(path).text
            #expect(text.contains("<h1>Reine, Lofoten</h1>") && text.contains("<p>Light until midnight.</p>"))
        }
    }

    @Test func `what does not fit is refused in words, and what was typed stays`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            _ = try await ada.get("/destinations/new")
            let blank = try await ada.post(
                "/destinations", ["caption": " ", "details": "Light <3"], photo: TestSite.picture("reine.jpg"))
            #expect(blank.status == .badRequest)
            #expect(blank.text.contains("Say which place it is.") && blank.text.contains("Light &lt;3</textarea>"))
            let bare = try await ada.post("/destinations", ["caption": "Reine"], photo: nil)
            #expect(bare.text.contains("Choose a photo.") && bare.text.contains("value=\"Reine\""))
            let text = try await ada.post("/destinations", ["caption": "Reine"], photo: Data("<svg onload=alert(1)>".utf8))
            #expect(text.status == .badRequest && text.text.contains("neither a JPEG nor a PNG"))
            let cut = try await ada.post(
                "/destinations", ["caption": "Reine"], photo: TestSite.picture("reine.jpg").prefix(20_000))
            #expect(cut.status == .badRequest && cut.text.contains("The photo is damaged."))
            #expect(try await ada.get("/").text.contains("Nothing here yet"))
        }
    }
}

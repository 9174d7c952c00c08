import Foundation
import NIOHTTP1
import Testing

@testable import webjournal

/// Goal: two people share a place, see each other's changes as they happen, and each may do what the cloud permits. Method: two clients of a
/// served site, which follow its events.
@Suite(.timeLimit(.minutes(30))) struct SharingTests {
    /// Ada shares a place with Ben, who accepts.
    private func share(
        _ site: TestSite, mayEdit: Bool = false
    ) async throws -> (ada: TestBrowser, ben: TestBrowser, path: String) {
        let (ada, ben) = (try await site.browser(of: "ada@example.org"), try await site.browser(of: "ben@example.org"))
        let path = try await ada.add("Reine")
        let page = try await ada.get(path)
        #expect(page.text.contains("Nobody else sees this place."))
        var fields = ["email": "ben@example.org"]
        if mayEdit { fields["edits"] = "on" }
        #expect(try await ada.post("\(path)/invitations", fields).status == .seeOther)
        let invited = try await ada.get(path)
        let link = try #require(invited.between("readonly value=\"", "\""))
        let address = "http://127.0.0.1:\(site.port)"
        #expect(link.hasPrefix("\(address)/invitations/") && invited.text.contains("invited"))
        let invitation = String(link.dropFirst(address.count))
        let question = try await ben.get(invitation)
        #expect(
            question.text.contains(
                "<b>Ada Berg</b> shares this place with you. You may \(mayEdit ? "look at it and edit it" : "look at it")."))
        #expect(try await ben.post(invitation, ["answer": "accept"]).status == .seeOther)
        let grid = try await ben.follow("/") { $0.text.contains("<span class=\"caption\">Reine</span>") }
        #expect(grid.text.contains("from Ada Berg"))
        return (ada, ben, path)
    }

    @Test func `a reader sees changes as they happen, and may not change anything, with the reason`() async throws {
        try await TestSite.run { site in
            let (ada, ben, path) = try await share(site)
            let page = try await ben.get(path).text
            #expect(page.contains("<button disabled aria-describedby=\"why-delete\">Delete</button>"))
            #expect(page.contains("<button disabled aria-describedby=\"why-edit\">Edit</button>"))
            #expect(page.contains("Read-Only") && page.contains("Read-Write"))
            #expect(!page.contains("Make a link"))
            #expect(try await ben.get("\(path)/delete").status == .forbidden)
            #expect(try await ben.post("\(path)/delete", [:]).status == .forbidden)

            // Ada's page learns that Ben has accepted, and Ben's of what Ada writes.
            _ = try await ada.follow(path) { $0.between("Ben Holm</b><span class=\"quiet-text\">", "<") == "may look" }
            async let seen = ben.follow(path) { $0.text.contains("<h1>Reine at midnight</h1>") }
            let edit = try #require(await ada.get("\(path)/edit").between("name=\"edit\" value=\"", "\""))
            _ = try await ada.post("\(path)/edit", ["edit": edit, "caption": "Reine at midnight"], photo: nil)
            #expect(try await seen.status == .ok)
        }
    }

    @Test func `a writer edits, and the owner sees it`() async throws {
        try await TestSite.run { site in
            let (ada, ben, path) = try await share(site, mayEdit: true)
            let form = try await ben.get("\(path)/edit")
            let edit = try #require(form.between("name=\"edit\" value=\"", "\""))
            #expect(
                try await ben.post(
                    "\(path)/edit", ["edit": edit, "caption": "Reine", "details": "I was there, too."], photo: nil
                ).status
                    == .seeOther)
            let seen = try await ada.follow(path) { $0.text.contains("<p>I was there, too.</p>") }
            #expect(seen.text.contains("Ben Holm"))
        }
    }

    @Test func `a permission that is taken away is noticed without a reload`() async throws {
        try await TestSite.run { site in
            let (ada, ben, path) = try await share(site, mayEdit: true)
            #expect(try await ben.get(path).text.contains("\(path)/edit"))
            let people = try await ada.follow(path) { $0.text.contains("Let Ben Holm only look") }
            let participant = try #require(people.between("name=\"participant\" value=\"", "\""))
            #expect(try await ada.post("\(path)/permission", ["participant": participant, "may": "look"]).status == .seeOther)
            let now = try await ben.follow(path) { $0.text.contains("why-edit") }
            #expect(now.text.contains("<button disabled aria-describedby=\"why-edit\">Edit</button>"))
        }
    }

    @Test func `who is removed loses the place, and who leaves does, too`() async throws {
        try await TestSite.run { site in
            let (ada, ben, path) = try await share(site)
            let people = try await ada.follow(path) { $0.text.contains("Remove Ben Holm") }
            let participant = try #require(people.between("name=\"participant\" value=\"", "\""))
            #expect(try await ada.post("\(path)/removal", ["participant": participant]).status == .seeOther)
            _ = try await ben.follow(path) { $0.status == .notFound }
            #expect(try await ada.get(path).status == .ok)
        }
        try await TestSite.run { site in
            let (ada, ben, path) = try await share(site)
            #expect(try await ben.get(path).text.contains(">Leave</button>"))
            #expect(try await ben.post("\(path)/end", [:]).status == .seeOther)
            #expect(try await ben.get(path).status == .notFound)
            #expect(try await ada.get(path).status == .ok)
        }
    }

    @Test func `a link is for one person alone`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            let path = try await ada.add("Reine")
            _ = try await ada.get(path)
            #expect(try await ada.post("\(path)/invitations", ["email": "no address"]).status == .badRequest)
            _ = try await ada.post("\(path)/invitations", ["email": "carl@example.org"])
            let link = try #require(await ada.get(path).between("readonly value=\"", "\""))
            let ben = try await site.browser(of: "ben@example.org")
            let token = link.split(separator: "/").last.map(String.init) ?? ""
            _ = try await ben.get("/")
            #expect(try await ben.post("/invitations/\(token)", ["answer": "accept"]).status != .seeOther)
            #expect(try await ben.get("/").text.contains("Nothing here yet"))
        }
    }
}

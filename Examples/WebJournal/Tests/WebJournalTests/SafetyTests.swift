import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Testing

@testable import webjournal

/// Goal: nobody gets at what is not theirs, and nobody else's page uses the site. Method: requests that a browser would send for such pages.
@Suite(.timeLimit(.minutes(30))) struct SafetyTests {
    @Test func `without a session there is nothing but signing in, and it leads back`() async throws {
        try await TestSite.run { site in
            let nobody = site.browser()
            for path in ["/", "/destinations/new", "/destinations/\(UUID().uuidString)", "/invitations/abc"] {
                let answer = try await nobody.get(path)
                #expect(answer.status == .seeOther)
                #expect(answer.headers.first(name: "Location") == (path == "/" ? "/sign-in" : "/sign-in?next=\(path)"))
            }
            #expect(try await nobody.get("/changes").status == .seeOther)
            _ = try await nobody.get("/sign-in")
            let back = try await nobody.post("/sign-in", ["email": "ada@example.org", "next": "/invitations/abc"])
            #expect(back.headers.first(name: "Location") == "/invitations/abc")
            let elsewhere = site.browser()
            _ = try await elsewhere.get("/sign-in")
            let own = try await elsewhere.post("/sign-in", ["email": "ada@example.org", "next": "//example.com/"])
            #expect(own.headers.first(name: "Location") == "/")
        }
    }

    @Test func `each answer has a strict policy, and the cookie is no script's`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            for path in ["/", "/style.css", "/live.js", "/icon.svg", "/nothing", "/destinations/\(UUID().uuidString)"] {
                let headers = try await ada.get(path).headers
                let policy = try #require(headers.first(name: "Content-Security-Policy"))
                #expect(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "\(path)")
                #expect(headers.first(name: "X-Content-Type-Options") == "nosniff", "\(path)")
            }
            let cookie = try #require(await ada.cookieHeaders.first { $0.hasPrefix("webjournal=") && !$0.contains("Max-Age=0") })
            #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax") && cookie.contains("Path=/"))
        }
    }

    @Test func `a form of another page changes nothing`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            let path = try await ada.add("Reine")
            _ = try await ada.get(path)
            #expect(try await ada.post("\(path)/delete", ["token": ""]).status == .forbidden)
            #expect(try await ada.post("\(path)/delete", ["token": String(repeating: "A", count: 32)]).status == .forbidden)
            for headers in [["Origin": "https://example.com"], ["Origin": "null"], ["Sec-Fetch-Site": "cross-site"]] {
                #expect(try await ada.post("\(path)/delete", [:], headers: headers).status == .forbidden)
            }
            #expect(try await ada.post("/sign-in", ["token": "x", "email": "ben@example.org"]).status == .forbidden)
            #expect(try await ada.get(path).status == .ok)
            #expect(try await ada.post("\(path)/delete", [:], headers: ["Sec-Fetch-Site": "same-origin"]).status == .seeOther)
        }
    }

    @Test func `a request for another name is refused`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            #expect(try await ada.get("/", headers: ["Host": "evil.example.com"]).status.code == 421)
            #expect(try await ada.get("/", headers: ["Host": "localhost:\(site.port)"]).status == .ok)
        }
    }

    @Test func `texts are shown as text`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            let hostile = "<img src=x onerror=\"document.title='broken'\"> & 'x'"
            let path = try await ada.add(hostile, details: "</textarea><script>alert(1)</script>")
            for page in [path, "/", "\(path)/edit", "\(path)/delete"] {
                let text = try await ada.get(page).text
                #expect(!text.contains("<img src=x") && !text.contains("<script>"), "\(page)")
                #expect(
                    text.contains("&lt;img src=x onerror=&quot;document.title=&#39;broken&#39;&quot;&gt; &amp; &#39;x&#39;"),
                    "\(page)")
            }
        }
    }

    @Test func `more bytes than a photo may have are refused, whether said before or not`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            _ = try await ada.get("/destinations/new")
            let large = Data(repeating: 7, count: 21 << 20)
            #expect(try await ada.post("/destinations", ["caption": "Large"], photo: large).status.code == 413)
            var request = await ada.request(
                "/destinations", .POST, headers: ["Content-Type": "application/x-www-form-urlencoded"])
            request.body = .stream(
                AsyncStream(ByteBuffer.self) { continuation in
                    for _ in 0..<64 { continuation.yield(ByteBuffer(repeating: 0x61, count: 512 << 10)) }
                    continuation.finish()
                }, length: .unknown)
            #expect(try await ada.send(request).status.code == 413)
            #expect(try await ada.get("/").text.contains("Nothing here yet"))
        }
    }

    @Test func `nobody sees what is not shared with them`() async throws {
        try await TestSite.run { site in
            let (ada, ben) = (try await site.browser(of: "ada@example.org"), try await site.browser(of: "ben@example.org"))
            let path = try await ada.add("Reine")
            let picture = try #require(await ada.get(path).between("data-live><img src=\"", "\""))
            _ = try await ben.get("/")
            for path in [path, picture, "\(path)/edit", "\(path)/delete"] { #expect(try await ben.get(path).status == .notFound) }
            for part in ["delete", "invitations", "permission", "removal", "end"] {
                #expect(try await ben.post("\(path)/\(part)", ["email": "ben@example.org"]).status == .notFound, "\(part)")
            }
            #expect(try await ada.get(path).status == .ok)
        }
    }

    @Test func `who has signed out is out, also with the old cookie`() async throws {
        try await TestSite.run { site in
            let ada = try await site.browser(of: "ada@example.org")
            _ = try await ada.get("/")
            let old = await ada.request("/")
            #expect(try await ada.post("/sign-out", [:]).status == .seeOther)
            #expect(try await ada.get("/").status == .seeOther)
            #expect(try await ada.send(old).status == .seeOther)
        }
    }
}

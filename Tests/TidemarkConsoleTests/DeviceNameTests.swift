import Foundation
import Testing
import TidemarkAdministration
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: devices have names that people recognise or chose, at little cost for the server. Method: the form of the account's
/// page, with names that are too long or too many.
@Suite(.timeLimit(.minutes(30))) struct DeviceNameTests {
    @Test func `a browser gets its usual name, and any other program keeps its own`() {
        let webKit = "AppleWebKit/537.36 (KHTML, like Gecko)"
        for (agent, name) in [
            ("Mozilla/5.0 (X11; Linux x86_64) \(webKit) Chrome/131.0.0.0 Safari/537.36", "Chrome on Linux"),
            ("Mozilla/5.0 (X11; Linux x86_64) \(webKit) HeadlessChrome/131.0.0.0 Safari/537.36", "Chrome on Linux"),
            ("Mozilla/5.0 (Windows NT 10.0; Win64; x64) \(webKit) Chrome/131.0.0.0 Safari/537.36 Edg/131.0", "Edge on Windows"),
            ("Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0", "Firefox on Linux"),
            ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) \(webKit) Version/18.1 Safari/605.1.15", "Safari on macOS"),
            ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) \(webKit) Version/18.1 Safari/604.1", "Safari on iPhone"),
            ("Mozilla/5.0 (Linux; Android 15) \(webKit) Chrome/131.0.0.0 Mobile Safari/537.36", "Chrome on Android"),
            ("Browser/1.0", "Browser/1.0"), ("Anna's Chrome/Laptop", "Anna's Chrome/Laptop"), ("Mozilla/5.0", "Mozilla/5.0"),
        ] {
            #expect(BrowserName.short(agent) == name)
        }
    }

    @Test func `a name that is too long is refused with its length, and so are more than twenty changes an hour`() async throws {
        let fixture = try await PeopleFixture()
        let cleo = fixture.console.cleo
        let browser = try await fixture.browser(cleo)
        let id = try await fixture.credentials.makeSession(
            account: cleo.id, container: ConsoleFixture.journal, environment: .development, kind: .device, device: "vm"
        ).session.id
        func form(_ name: String) -> [String: String] { ["action": "rename", "id": id, "device": name] }
        func device() async throws -> String? {
            try await fixture.credentials.sessions(of: cleo.id).first { $0.id == id }?.device
        }
        let long = try await browser.post("", form(String(repeating: "é", count: 150)))
        #expect(long.status == 400 && long.text.contains("has 200 bytes at the most, and this one has 300"))
        #expect(try await device() == "vm")
        for number in 1...20 { #expect(try await browser.post("", form("Phone \(number)")).status == 303) }
        let refused = try await browser.post("", form("Phone 21"))
        #expect(refused.status == 400 && refused.text.contains("were renamed 20 times within an hour: try again in 60 minutes"))
        #expect(try await device() == "Phone 20")
        fixture.console.advance(minutes: 60)
        let own = PersonalAccount(fixture.cloud, fixture.credentials, cleo, from: "")
        try await own.renameSession(id, to: "Phone 21")
        #expect(try await device() == "Phone 21")
    }
}

import Foundation
import Testing
import TidemarkAdministration
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: the names of devices are those that people give, and cost the server little. Method: the form of the account's page, with names that are
/// too long or too many.
@Suite(.timeLimit(.minutes(5))) struct DeviceNameTests {
    @Test func `a name that is too long is refused with its length, and so are more than twenty names an hour`() async throws {
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

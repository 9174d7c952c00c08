import ArgumentParser
import Foundation
import ReisebuchModel
import Testing
import Tidemark

@testable import reisebuch

/// The program: its demo, and its commands for two people.
@Suite(.timeLimit(.minutes(30))) @MainActor struct ProgramTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("reisebuch-\(UUID().uuidString)")

    private func run(_ arguments: String...) async throws {
        var command = try Reisebuch.parseAsRoot(arguments)
        if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
    }

    private func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    @Test func `the demo comes to its end, and all devices agree`() async throws {
        let story = try await Story(in: folder)
        try await story.tell()
        let devices = [story.laptop, story.tablet]
        var titles: [[String]] = []
        for device in devices {
            let book = try await TravelBook(in: device.folder)
            titles.append(try await book.container.fetchAll(Trip.self, sortedBy: [.ascending(\.title)]).map(\.title))
        }
        #expect(titles == [["Alpen", "Norwegen im Juni"], ["Alpen", "Norwegen im Juni"]])
        try FileManager.default.removeItem(at: folder)
    }

    @Test func `two people make, share and read a trip with the commands`() async throws {
        let (anna, ben, cloud) = (path("anna"), path("ben"), path("cloud"))
        try await run("sign-in", "--book", anna, "--cloud", cloud, "--email", "anna@example.org", "--name", "Anna")
        try await run("sign-in", "--book", ben, "--cloud", cloud, "--email", "ben@example.org", "--name", "Ben")
        try await run("new", "--book", anna, "Island", "--begins", "2026-02-01", "--by", "car")
        await #expect(throws: Screen.Refused.self) { try await run("new", "--book", anna, " ", "--begins", "2026-02-01") }
        try await run(
            "stop", "--book", anna, "Island", "Vík", "--arrival", "2026-02-03", "--country", "Island", "--tag", "Strand")
        try await run("write", "--book", anna, "Island", "Schwarzer Strand", "Basaltsäulen und Brandung.")
        try await run("sync", "--book", anna)
        let book = try await TravelBook(in: URL(fileURLWithPath: anna))
        let trip = try #require(try await book.trip("isl"))
        #expect(trip.transport == .car)
        let sharing = TripSharing(book, with: try await Account.databases(of: URL(fileURLWithPath: anna)))
        let link = try await sharing.invite("ben@example.org", to: trip, mayEdit: true)
        try await book.container.close()
        try await run("sync", "--book", anna)
        try await run("accept", "--book", ben, link)
        try await run("sync", "--book", ben)
        for command in ["list", "stats", "widget", "undo"] { try await run(command, "--book", anna) }
        for arguments in [["show", "Island"], ["search", "basalt"]] { try await run(arguments[0], "--book", ben, arguments[1]) }
        let theirs = try await TravelBook(in: URL(fileURLWithPath: ben))
        #expect(try await theirs.search("Brandung").map(\.place) == ["Vík"])
        try await theirs.container.close()
        try FileManager.default.removeItem(at: folder)
    }
}

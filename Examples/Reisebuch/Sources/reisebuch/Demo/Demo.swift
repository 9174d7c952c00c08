import ArgumentParser
import Foundation
import ReisebuchModel
import Tidemark
import TidemarkEmbeddedCloud

struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Plays two people with three devices in a temporary folder, and tells what happens.")

    @Flag(help: "Prints the SQL statements with their time to standard error.") var sql = false
    @Flag(help: "Keeps the folder, to look at it with 'tidemark' or 'sqlite3'.") var keep = false

    func run() async throws {
        if sql { SQLTrace.start() }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("reisebuch-\(UUID().uuidString.prefix(8))")
        defer { if !keep { try? FileManager.default.removeItem(at: folder) } }
        try await Story(in: folder).tell()
        if keep { print("\nThe books and the cloud are in \(folder.path)") }
    }
}

/// Anna has a laptop and a tablet, Ben has a phone, and there is a cloud.
struct Story {
    let laptop, tablet, phone: Device

    init(in folder: URL) async throws {
        let cloud = try EmbeddedCloud(at: folder.appendingPathComponent("cloud", isDirectory: true))
        laptop = try await Device("laptop", of: "anna@example.org", in: folder, cloud: cloud)
        tablet = try await Device("tablet", of: "anna@example.org", in: folder, cloud: cloud)
        phone = try await Device("phone", of: "ben@example.org", in: folder, cloud: cloud)
    }

    @MainActor func tell() async throws {
        for chapter in [writing, synchronizing, sharing, workingTogether, disagreeing, finding, deleting] { try await chapter() }
        for device in [laptop, tablet, phone] { try await device.container.close() }
    }

    func chapter(_ title: String) { print("\n\(title)") }
    func tells(_ sentence: String) { print("- \(sentence)") }

    @MainActor func shows(_ device: Device, where isAsWanted: (TripList) -> Bool = { $0.isLoaded }) async throws {
        let list = TripList(device.book)
        try await list.changed { isAsWanted($0) || $0.problem != nil }
        print("  \(device.name):")
        Screen.trips(list)
    }
}

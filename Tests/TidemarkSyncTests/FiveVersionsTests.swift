import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkStore
import TidemarkSync

/// Goal: the journal goes through five versions of its model, and no value that a person wrote is lost. Method: two devices, of
/// which one is always a version ahead; each writes with the fields of its version, and both synchronise after each step.
@Suite(.timeLimit(.minutes(30))) struct FiveVersionsTests {
    private static let type = "Destination"

    /// The changes that lead to each version.
    private static let versions: [[SchemaChange]] = [
        [],
        [.add(RecordTypeSchema(name: type, fields: [.init(name: "tags", type: .list(of: .string))]))],
        [.renameField("caption", of: type, to: "title")],
        [.retypeField("rating", of: type, to: .init(name: "stars", type: .double))],
        [.dropField("tags", of: type), .add(RecordTypeSchema(name: "Note", fields: [.init(name: "text", type: .string)]))],
    ]

    /// The values of a record in a version.
    private static func values(_ text: String, _ number: Int, version: Int) -> [String: FieldValue?] {
        var values: [String: FieldValue?] = [version < 3 ? "caption" : "title": .string(text)]
        values[version < 4 ? "rating" : "stars"] = version < 4 ? .int64(Int64(number)) : .double(Double(number))
        if (2...4).contains(version) { values["tags"] = .list([.string(text)], of: .string) }
        return values
    }

    @Test func `two devices that are never on the same version keep all values through five versions`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let ahead = try Device(scratch["ahead.tidemark"], database: cloud.database())
        let behind = try Device(scratch["behind.tidemark"], database: cloud.database())
        var written: [String: (text: String, number: Int)] = [:]

        func write(_ device: Device, _ name: String, _ text: String, _ number: Int, version: Int) async throws {
            try await device.set(name, Self.values(text, number, version: version))
            written[name] = (text, number)
        }
        func sync() async throws {
            for device in [ahead, behind, ahead] {
                let report = try await device.engine.sync()
                #expect(report.isComplete && report.deferred == 0)
            }
        }

        try await write(behind, "behind 1", "Senja", 1, version: 1)
        try await sync()
        var behindVersion = 1
        for version in 2...5 {
            _ = try await ahead.store.changeSchema(Self.versions[version - 1], author: "ahead")
            try await write(ahead, "ahead \(version)", "of ahead \(version)", version, version: version)
            // Both have unsent edits when the schema changes.
            try await write(behind, "behind \(behindVersion)", "edited \(version)", version + 10, version: behindVersion)
            try await sync()
            #expect(try Set(ahead.records().keys) == Set(behind.records().keys))
            // Edits that arrive after the other device has renamed the field, too.
            try await write(behind, "behind 1", "edited again \(version)", version + 20, version: behindVersion)
            try await sync()
            if version > 2 {
                behindVersion = version - 1
                _ = try await behind.store.changeSchema(Self.versions[behindVersion - 1], author: "behind")
                try await write(behind, "behind \(behindVersion)", "of behind \(version)", version, version: behindVersion)
                try await sync()
            }
        }
        // The older device is updated at last, and both have everything.
        for changes in Self.versions { _ = try await behind.store.changeSchema(changes, author: "behind") }
        try await sync()
        let (one, other) = (try ahead.records(), try behind.records())
        #expect(one == other)
        #expect(Set(one.keys) == Set(written.keys))
        for (name, values) in one {
            #expect(Set(values.keys) == ["title", "stars"], "\(name)")
            #expect(values["title"] == .string(written[name]!.text), "\(name)")
            #expect(values["stars"] == .double(Double(written[name]!.number)), "\(name)")
        }
        for device in [ahead, behind] {
            #expect(try await device.store.types().map(\.name).sorted() == ["Destination", "Note"])
            #expect(try await device.store.outbox().pending == 0)
        }
        let before = try ahead.reader().historyToken()
        try await sync()
        #expect(try ahead.reader().changes(since: before).transactions.isEmpty)
    }
}

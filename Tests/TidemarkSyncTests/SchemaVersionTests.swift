import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: devices with different versions of a program share records, and neither loses the other's values. Method: two devices
/// and an embedded cloud; one device changes its schema.
@Suite(.timeLimit(.minutes(30))) struct SchemaVersionTests {
    private func devices(
        _ scratch: Scratch, _ environment: StoreEnvironment = .development
    ) async throws -> (TestCloud, Device, Device) {
        let cloud = try await TestCloud(scratch)
        if environment == .production { try await cloud.cloud.deploySchemaOfEverything(cloud) }
        return (
            cloud,
            try Device(scratch["old.tidemark"], database: cloud.database(environment), containerEnvironment: environment),
            try Device(scratch["new.tidemark"], database: cloud.database(environment), containerEnvironment: environment)
        )
    }

    private func sync(_ devices: Device...) async throws {
        for device in devices {
            let report = try await device.engine.sync()
            #expect(report.isComplete && report.deferred == 0)
        }
    }

    @Test func `after a rename the older device keeps its field, and the newer one sends the new field`() async throws {
        let scratch = try Scratch()
        let (_, old, new) = try await devices(scratch)
        try await old.set("senja", ["caption": .string("Senja"), "rating": .int64(4)])
        try await sync(old, new)
        _ = try await new.store.changeSchema([.renameField("caption", of: "Destination", to: "title")], author: "test")
        try await sync(new, old, new)
        #expect(try new.records() == ["senja": ["title": .string("Senja"), "rating": .int64(4)]])
        #expect(
            try old.records() == ["senja": ["caption": .string("Senja"), "title": .string("Senja"), "rating": .int64(4)]])
        // The older device continues to edit its field; edits of the newer one don't change that field.
        try await old.set("senja", ["caption": .string("Senja in May"), "rating": .int64(5)])
        try await sync(old, new)
        #expect(try new.records() == ["senja": ["title": .string("Senja"), "rating": .int64(5)]])
        #expect(try await new.store.types()[0].fields.map(\.name).sorted() == ["rating", "title"])
        try await new.set("senja", ["title": .string("Senja in June")])
        try await sync(new, old)
        #expect(
            try old.records() == [
                "senja": ["caption": .string("Senja in May"), "title": .string("Senja in June"), "rating": .int64(5)]
            ])
    }

    @Test func `an edit of the older device arrives before the newer device has sent its rename`() async throws {
        let scratch = try Scratch()
        let (_, old, new) = try await devices(scratch)
        try await old.set("senja", ["caption": .string("Senja"), "rating": .int64(4)])
        try await sync(old, new)
        try await new.set("senja", ["caption": .string("Senja, unsent")])
        _ = try await new.store.changeSchema([.renameField("caption", of: "Destination", to: "title")], author: "test")
        try await old.set("senja", ["rating": .int64(5)])
        try await sync(old, new, old)
        #expect(try new.records() == ["senja": ["title": .string("Senja, unsent"), "rating": .int64(5)]])
        #expect(
            try old.records() == ["senja": ["caption": .string("Senja"), "title": .string("Senja, unsent"), "rating": .int64(5)]])
    }

    @Test func `two devices that make the same rename end with the same records`() async throws {
        let scratch = try Scratch()
        let (_, old, new) = try await devices(scratch)
        try await old.set("senja", ["caption": .string("Senja")])
        try await old.set("bodø", ["caption": .string("Bodø")])
        try await sync(old, new)
        let rename = SchemaChange.renameField("caption", of: "Destination", to: "title")
        _ = try await new.store.changeSchema([rename], author: "test")
        try await new.set("senja", ["title": .string("Senja in May")])
        try await sync(new, old)
        // This device has fetched the new field before it renames.
        _ = try await old.store.changeSchema([rename], author: "test")
        try await sync(old, new, old)
        #expect(try old.records() == new.records())
        #expect(try old.records()["senja"] == ["title": .string("Senja in May")])
        #expect(try old.records()["bodø"] == ["title": .string("Bodø")])
    }

    @Test func `an unsent record is sent with the fields that it has after a rename and a drop`() async throws {
        let scratch = try Scratch()
        let (_, old, new) = try await devices(scratch)
        try await new.set("senja", ["caption": .string("Senja"), "draft": .string("x"), "rating": .int64(4)])
        _ = try await new.store.changeSchema(
            [
                .renameField("caption", of: "Destination", to: "title"), .dropField("draft", of: "Destination"),
                .retypeField("rating", of: "Destination", to: .init(name: "rating", type: .double)),
            ], author: "test")
        try await sync(new, old)
        #expect(try old.records() == ["senja": ["title": .string("Senja"), "rating": .double(4)]])
        #expect(try old.records() == new.records())
    }

    @Test func `a dropped field stays in the cloud and on the other device, and does not come back`() async throws {
        let scratch = try Scratch()
        let (_, old, new) = try await devices(scratch)
        try await old.set("senja", ["caption": .string("Senja"), "rating": .int64(4)])
        try await sync(old, new)
        _ = try await new.store.changeSchema([.dropField("rating", of: "Destination")], author: "test")
        try await new.set("senja", ["caption": .string("Senja in May")])
        try await sync(new, old)
        #expect(try old.records() == ["senja": ["caption": .string("Senja in May"), "rating": .int64(4)]])
        try await old.set("senja", ["rating": .int64(5)])
        try await old.set("bodø", ["caption": .string("Bodø"), "rating": .int64(3)])
        try await sync(old, new)
        #expect(
            try new.records() == ["senja": ["caption": .string("Senja in May")], "bodø": ["caption": .string("Bodø")]])
        #expect(try old.records()["senja"]?["rating"] == .int64(5))
    }

    @Test func `a dropped field does not come back after renaming a field of its name and another type`() async throws {
        let scratch = try Scratch()
        let (_, old, new) = try await devices(scratch)
        try await old.set("senja", ["caption": .string("Senja"), "rating": .int64(4)])
        try await sync(old, new)
        _ = try await new.store.changeSchema([.dropField("rating", of: "Destination")], author: "test")
        try await new.set("x", ["rating": .string("good")])
        #expect(try await new.engine.sync().deferred == 1)
        _ = try await new.store.changeSchema([.renameField("rating", of: "Destination", to: "ratingText")], author: "test")
        let report = try await new.engine.sync()
        #expect(report.isComplete && report.deferred == 0)
        #expect(try new.records() == ["senja": ["caption": .string("Senja")], "x": ["ratingText": .string("good")]])
    }

    @Test func `an empty list does not bring a dropped list back, whatever its type`() async throws {
        let scratch = try Scratch()
        let (_, old, new) = try await devices(scratch)
        try await old.set("senja", ["caption": .string("Senja"), "tags": .list([.string("north")], of: .string)])
        try await sync(old, new)
        _ = try await new.store.changeSchema([.dropField("tags", of: "Destination")], author: "test")
        func apply(_ value: FieldValue, tag: String) async throws {
            let record = RemoteRecord(
                name: "bodø", type: "Destination", tag: tag, values: ["caption": .string("Bodø"), "tags": value], edited: nil,
                whole: { Data() })
            let schema = RecordTypeSchema(
                name: "Destination",
                fields: [.init(name: "caption", type: .string), .init(name: "tags", type: value.type)])
            _ = try await new.store.apply(
                [.saved(record)], schemas: [schema], author: "cloud", planner: RemoteChangePlanner.rejected)
            #expect(try new.reader().deferredRecords().isEmpty)
        }
        try await apply(.list([], of: .int64), tag: "one")
        #expect(try await new.store.types().first { $0.name == "Destination" }?.field(named: "tags") == nil)
        // A list with elements belongs to another field.
        try await apply(.list([.int64(7)], of: .int64), tag: "two")
        #expect(try new.records()["bodø"] == ["caption": .string("Bodø"), "tags": .list([.int64(7)], of: .int64)])
    }

    @Test func `an older version keeps the values that a newer one writes, and sends them on unchanged`() async throws {
        let scratch = try Scratch()
        let (_, old, new) = try await devices(scratch)
        try await old.set("senja", ["caption": .string("Senja")])
        try await sync(old, new)
        try await new.set("senja", ["kind": .string("archipelago"), "tags": .list([.string("north")], of: .string)])
        try await new.set("n1", ["text": .string("Wet")], type: "Note")
        try await sync(new, old)
        try await old.set("senja", ["caption": .string("edited")])
        try await sync(old, new)
        #expect(
            try new.records() == [
                "senja": [
                    "caption": .string("edited"), "kind": .string("archipelago"), "tags": .list([.string("north")], of: .string),
                ]
            ])
        #expect(try old.records() == new.records() && old.records("Note") == new.records("Note"))
        // This holds even after a deletion that an edit on the other device undoes.
        try await old.delete("senja")
        try await new.set("senja", ["kind": .string("island")])
        try await sync(new, old, new)
        #expect(try old.records() == new.records())
        #expect(try new.records()["senja"]?["kind"] == .string("island"))
    }

    @Test func `a production device adds the types and fields of the cloud`() async throws {
        let scratch = try Scratch()
        let (_, old, new) = try await devices(scratch, .production)
        let narrow = RecordTypeSchema(name: "Destination", fields: [.init(name: "caption", type: .string)])
        var wide = narrow
        wide.fields.append(.init(name: "rating", type: .int64))
        try await old.store.declare([narrow], environment: .development)
        try await new.store.declare(
            [wide, RecordTypeSchema(name: "Photo", fields: [.init(name: "title", type: .string)])], environment: .development)
        try await new.set("senja", ["caption": .string("Senja"), "rating": .int64(5)])
        try await new.set("p1", ["title": .string("Photo")], type: "Photo")
        try await sync(new, old)
        #expect(try old.records() == new.records() && old.records("Photo") == new.records("Photo"))
        try await old.set("senja", ["rating": .int64(4)])
        try await sync(old, new)
        #expect(try new.records()["senja"]?["rating"] == .int64(4))
        // A field that the program adds is still refused.
        await #expect(throws: StoreError.self) { try await old.set("senja", ["unknown": .int64(1)]) }
    }

    @Test func `a development container becomes a production container, and sends all of its records`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let url = scratch["a.tidemark"]
        do {
            let device = try Device(url, database: cloud.database())
            try await device.set("senja", ["caption": .string("Senja")])
            try await sync(device)
            let busy = await #expect(throws: ContainerEvent.Failure.self) { _ = try await device.container.makeProduction() }
            #expect(busy?.code == SyncErrorCode.anotherSyncer)
        }
        try await Device.gone(url)
        try await cloud.cloud.deploySchema(of: TestCloud.container)
        let container = try ContainerDirectory(openingAt: url)
        #expect(try await container.makeProduction(isDryRun: true).records == 1)
        #expect(try ContainerDirectory(openingAt: url).description.environment == .development)
        let change = try await container.makeProduction()
        #expect(change.isChanged && change.records == 1 && change.types == ["Destination"])
        #expect(try await change.container.makeProduction().isChanged == false)
        let device = try Device(url, database: cloud.database(.production))
        #expect(device.container.description.environment == .production)
        #expect(try await device.engine.sync().exported == 1)
        let other = try Device(scratch["b.tidemark"], database: cloud.database(.production), containerEnvironment: .production)
        try await sync(other)
        #expect(try other.records() == device.records())
    }

    @Test func `a record that production has refused is sent after a schema that accepts it is deployed`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let (development, zone) = (try cloud.database(), CloudZoneID("ByHand"))
        try await development.modifyZones(saving: [zone], deleting: [])
        // The schema was made by hand, without the field of edit times.
        func deploy(_ name: String, _ fields: [String: CloudValue]) async throws {
            let record = CloudRecord(CloudRecordID(name, in: zone), type: "Destination", fields: fields)
            let outcomes = try await development.modify(
                ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.create, record)]))
            #expect(outcomes.allSatisfy { if case .saved = $0 { true } else { false } })
            try await cloud.cloud.deploySchema(of: TestCloud.container)
        }
        try await deploy("one", ["caption": .string("x")])
        let device = try Device(
            scratch["a.tidemark"], database: cloud.database(.production), containerEnvironment: .production)
        let fields = ["caption", "note"].map { RecordTypeSchema.Field(name: $0, type: .string) }
        try await device.store.declare([RecordTypeSchema(name: "Destination", fields: fields)], environment: .development)
        try await device.set("senja", ["caption": .string("Senja")])
        #expect(try await device.engine.sync().exported == 1)
        try await device.set("senja", ["note": .string("windy")])
        #expect(try await device.engine.sync().exported == 0)
        #expect(try await device.engine.sync().exported == 0)
        try await deploy("two", ["note": .string("x")])
        #expect(try await device.engine.sync().exported == 1)
        #expect(try await device.store.outbox().pending == 0)
    }
}

import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkContainers
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: a container that is moved or restored continues its synchronisation. Method: real containers, and a cloud that records
/// what is sent.
@Suite(.timeLimit(.minutes(30))) struct MovingTests {
    @Test func `a moved container sends and fetches nothing twice, and keeps its set-aside records`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let recording = RecordingDatabase(try cloud.database())
        let url = scratch["a.tidemark"]
        do {
            let a = try Device(url, database: recording)
            try await a.set("aside", ["caption": .string("aside")])
            try await a.store.setAside(reason: "test")
            for index in 0..<20 { try await a.set("r\(index)", ["caption": .string("\(index)")]) }
            #expect(try await a.engine.sync().isComplete)
            try await a.set("r1", ["caption": .string("edited")])
            try await a.delete("r2")
        }
        try await Device.gone(url)
        let before = recording.sent.count
        _ = try StoreMover(
            from: url, to: scratch["group/a.tidemark"]
        ).run()
        let a = try Device(scratch["group/a.tidemark"], database: recording)
        let report = try await a.engine.sync()
        #expect(report.isComplete)
        #expect(report.exported == 2)
        #expect(report.imported == 0)
        #expect(recording.sent.count == before + 2)
        let quarantine = try #require(try a.container.quarantines().first)
        let reader = try StoreReader(container: quarantine.container(in: a.container))
        #expect(try reader.count(type: "Destination") == 1)
        #expect(!FileManager.default.fileExists(atPath: url.appendingPathComponent("quarantine").path))
    }

    @Test func `a container restored from an older backup gets back the cloud's records`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let url = scratch["a.tidemark"]
        do {
            let a = try Device(url, database: cloud.database())
            for index in 0..<5 { try await a.set("r\(index)", ["caption": .string("\(index)")]) }
            _ = try await a.engine.sync()
            try ContainerBackup(of: a.container, to: scratch["backup.tidemark"]).run()
            try await a.set("r1", ["caption": .string("after the backup")])
            try await a.delete("r2")
            _ = try await a.engine.sync()
        }
        try await Device.gone(url)
        try ContainerRestoration(
            of: ContainerDirectory(openingAt: scratch["backup.tidemark"]), to: url, replaces: true
        ).run()
        let a = try Device(url, database: cloud.database())
        #expect(try await a.engine.sync().isComplete)
        #expect(try a.records().keys.sorted() == ["r0", "r1", "r3", "r4"])
        #expect(try a.records()["r1"]?["caption"] == .string("after the backup"))
    }
}

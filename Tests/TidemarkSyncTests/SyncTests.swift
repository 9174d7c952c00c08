import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
import TidemarkTesting

/// Goal: two devices of one account end with the same records. Method: real containers, a real cloud in a directory.
@Suite(.timeLimit(.minutes(30))) struct SyncTests {
    @Test func `a record made on one device arrives on the other`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await a.set("senja", ["caption": .string("Senja"), "rating": .int64(5)])
        let report = try await a.engine.sync()
        #expect(report.exported == 1)
        #expect(report.isComplete)
        #expect(try await b.engine.sync().imported == 1)
        #expect(try b.records() == ["senja": ["caption": .string("Senja"), "rating": .int64(5)]])
        // Afterwards nothing is sent or fetched any more.
        #expect(try await a.engine.sync().imported == 0)
        #expect(try await b.engine.sync().exported == 0)
        #expect(try b.reader().outbox().pending == 0)
    }

    @Test func `edits of different fields on both devices are both kept`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await a.set("senja", ["caption": .string("Senja"), "rating": .int64(5)])
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        try await a.set("senja", ["caption": .string("Senja, Norway")])
        try await b.set("senja", ["rating": .int64(4)])
        _ = try await a.engine.sync()
        let report = try await b.engine.sync()
        #expect(report.conflicts == 0)
        _ = try await a.engine.sync()
        #expect(try a.records() == b.records())
        #expect(try a.records() == ["senja": ["caption": .string("Senja, Norway"), "rating": .int64(4)]])
    }

    @Test(arguments: [
        MergePolicy.mergeByPropertyObjectTrump, .mergeByPropertyStoreTrump, .overwrite, .rollback, .latestEdit,
    ])
    func `a field that both devices changed ends equal under each policy, in each order`(_ policy: MergePolicy) async throws {
        for isReversed in [false, true] {
            let scratch = try Scratch()
            let cloud = try await TestCloud(scratch)
            var configuration = SyncConfiguration()
            configuration.mergePolicy = { _ in policy }
            let a = try Device(scratch["a.tidemark"], database: cloud.database(), configuration: configuration)
            let b = try Device(scratch["b.tidemark"], database: cloud.database(), configuration: configuration)
            try await a.set("senja", ["caption": .string("Senja"), "rating": .int64(5)])
            _ = try await a.engine.sync()
            _ = try await b.engine.sync()
            try await a.set("senja", ["caption": .string("of A")])
            try await b.set("senja", ["caption": .string("of B")])
            try await b.set("senja", ["rating": .int64(1)])
            for device in isReversed ? [b, a, b, a] : [a, b, a, b] { _ = try await device.engine.sync() }
            #expect(try a.records() == b.records(), "\(policy.name)")
            #expect(try a.reader().outbox().pending == 0)
            if case .latestEdit = policy { #expect(try a.records()["senja"]?["caption"] == .string("of B")) }
            let second = isReversed ? a : b
            #expect(try second.reader().conflicts().count > 0, "\(policy.name)")
        }
    }

    @Test func `a deletion and a new record of the same name arrive in order, as both`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await a.set("senja", ["caption": .string("first"), "rating": .int64(5)])
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        try await a.delete("senja")
        try await a.set("senja", ["caption": .string("second")])
        let report = try await a.engine.sync()
        #expect(report.exported == 2)
        _ = try await b.engine.sync()
        let here = try a.records()
        #expect(here == ["senja": ["caption": .string("second")]], "\(here)")
        let there = try b.records()
        #expect(try there == a.records(), "\(there)")
    }

    @Test
    func `an edit and a deletion end alike on both devices, and the device that learns of both logs the conflict`() async throws {
        for policy in [MergePolicy.mergeByPropertyObjectTrump, .mergeByPropertyStoreTrump, .overwrite, .rollback, .latestEdit] {
            for isReversed in [false, true] {
                let scratch = try Scratch()
                let cloud = try await TestCloud(scratch)
                var configuration = SyncConfiguration()
                configuration.mergePolicy = { _ in policy }
                let a = try Device(scratch["a.tidemark"], database: cloud.database(), configuration: configuration)
                let b = try Device(scratch["b.tidemark"], database: cloud.database(), configuration: configuration)
                try await a.set("senja", ["caption": .string("Senja")])
                _ = try await a.engine.sync()
                _ = try await b.engine.sync()
                try await a.delete("senja")
                try await b.set("senja", ["caption": .string("edited")])
                for device in isReversed ? [b, a, b, a] : [a, b, a, b] { _ = try await device.engine.sync() }
                let isKept = [MergePolicy.mergeByPropertyObjectTrump, .overwrite, .latestEdit].contains { $0.name == policy.name }
                #expect(
                    try a.records() == (isKept ? ["senja": ["caption": .string("edited")]] : [:]), "\(policy.name) \(isReversed)")
                #expect(try b.records() == a.records(), "\(policy.name) \(isReversed)")
                #expect(try a.reader().outbox().pending == 0)
                #expect(try b.reader().outbox().pending == 0)
                // A is the one that has deleted it.
                let logged = try (isReversed ? a : b).reader().conflicts()
                let winner = isKept != isReversed ? "local" : "store"
                #expect(
                    Set(logged.map { "\($0.record) \($0.field ?? "whole") \($0.winner) \($0.policy)" }) == [
                        "senja whole \(winner) \(policy.name)"
                    ], "\(isReversed)")
            }
        }
    }

    @Test func `a second synchroniser of a store gets error 134410`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        #expect(throws: ContainerEvent.Failure(code: 134410, reason: "another process synchronises \(a.container.url.path)")) {
            try SyncEngine(container: a.container, database: cloud.database())
        }
    }
}

import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel

@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: most commits leave the length of the log's file as it is, and room in the file is no commit. Method: small saves, the length of
/// the file after each, and a copy without the log's index.
@Suite(.timeLimit(.minutes(30))) struct LogRoomTests {
    private let schema = RecordTypeSchema(name: "Place", fields: [.init(name: "caption", type: .string)])

    private func save(_ store: isolated RecordStore, _ number: Int) throws {
        let edit = RecordEdit(
            record: RecordName(type: "Place", name: "p\(number)"), base: .any, values: ["caption": .string("Place \(number)")],
            fields: ["caption"])
        _ = try store.save(
            [edit], schemas: [schema], blobs: [], author: TransactionAuthor("test", origin: .save), policy: { _ in .overwrite },
            check: { _ in })
    }

    private func length(_ scratch: Scratch) throws -> Int {
        let log = scratch["Test.tidemark/private.sqlite-wal"]
        return try FileManager.default.attributesOfItem(atPath: log.path)[.size] as? Int ?? 0
    }

    @Test func `most commits leave the length of the log's file, and all of them are in it`() async throws {
        let scratch = try Scratch()
        let store = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: scratch.container))
        var lengths: [Int] = []
        for number in 0..<100 {
            try await save(store, number)
            lengths.append(try length(scratch))
        }
        #expect(Set(lengths).count < 12)
        #expect(lengths == lengths.sorted())
        let pages = Int(try WriteAheadLogPages.count(scratch["Test.tidemark/private.sqlite-wal"]))
        #expect(lengths.last! - 32 - pages * (StoreFormat.pageSize + 24) <= 1 << 20)

        let copy = try Scratch()
        try FileManager.default.copyItem(at: scratch.container, to: copy.container)
        try FileManager.default.removeItem(at: copy["Test.tidemark/private.sqlite-shm"])
        #expect(try StoreReader(container: ContainerDirectory(openingAt: copy.container)).count(type: "Place") == 100)
        let reopened = try RecordStore(container: ContainerDirectory(openingAt: copy.container))
        try await save(reopened, 100)
        #expect(try StoreReader(container: ContainerDirectory(openingAt: copy.container)).count(type: "Place") == 101)
    }

    @Test func `an empty log stays empty, and what changes nothing makes no room`() async throws {
        let scratch = try Scratch()
        let store = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: scratch.container))
        try await save(store, 1)
        try await store.checkpoint()
        #expect(try length(scratch) == 0)
        try await save(store, 1)
        #expect(try length(scratch) == 0)
        try await save(store, 2)
        let before = try length(scratch)
        #expect(before > 0)
        try await save(store, 2)
        #expect(try length(scratch) == before)
    }
}

/// Counts the frames of a log that have its salt.
private enum WriteAheadLogPages {
    static func count(_ url: URL) throws -> Int {
        let log = try Data(contentsOf: url)
        let salt = log[16..<24]
        var (frames, place) = (0, 32)
        while place + 24 <= log.count, log[place + 8..<place + 16] == salt {
            frames += 1
            place += StoreFormat.pageSize + 24
        }
        return frames
    }
}

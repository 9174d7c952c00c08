import Foundation
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: where the index of a log can't be read, nobody knows whether the log has lost commits, and nothing goes on as if it had
/// not. Method: the index is a link to itself. `OpeningStatesTests` has the logs that have lost commits.
@Suite(.timeLimit(.minutes(10))) struct LogExaminationTests {
    @Test func `an index that can't be read ends what writes, verifies or copies, and changes nothing`() async throws {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        _ = try RecordStore(container: container)
        let index = scratch.container.appendingPathComponent("private.sqlite-shm")
        try? FileManager.default.removeItem(at: index)
        try FileManager.default.createSymbolicLink(atPath: index.path, withDestinationPath: index.lastPathComponent)
        let database = scratch.container.appendingPathComponent("private.sqlite")
        let before = try Data(contentsOf: database)
        // A writer lets SQLite open the database before it examines the log.
        let writing = #expect(throws: StoreError.self) { try RecordStore(container: container) }
        #expect(writing?.code == .io && writing?.message.hasPrefix("cannot open \(database.path): ") == true)
        let uses: [(String, () throws -> Void)] = [
            ("verify", { _ = try StoreVerification(of: container).run() }),
            ("back up", { _ = try ContainerBackup(of: container, to: scratch["Backup.tidemark"]).run() }),
            ("move", { _ = try StoreMover(from: scratch.container, to: scratch["Moved.tidemark"]).run() }),
        ]
        for (name, use) in uses {
            let error = #expect(throws: StoreError.self, "\(name)") { try use() }
            #expect(error?.code == .io, "\(name)")
            #expect(error?.message.hasPrefix("cannot read \(index.path): ") == true, "\(name): \(error?.message ?? "")")
        }
        #expect(try Data(contentsOf: database) == before)
        #expect(!FileManager.default.fileExists(atPath: scratch["Backup.tidemark"].path))
        #expect(!FileManager.default.fileExists(atPath: scratch["Moved.tidemark"].path))
        try FileManager.default.removeItem(at: index)
        _ = try RecordStore(container: container)
        #expect(try StoreVerification(of: container).run().problems == [])
    }
}

import Foundation
import GRDB
import Tidemark

/// Measures queries along a reference, beside GRDB with an index of the same column.
struct ReferenceBench {
    let folder: URL
    let photos: Int

    /// A page of a list has this many rows, each with the number of its photos.
    private static let rows = 20
    /// Stops of the whole store; each has as many photos.
    private static let stops = 1000

    /// Returns milliseconds and ratios by the name of the figure, one for each round.
    func run(rounds: Int) async throws -> [String: [Double]] {
        try? FileManager.default.removeItem(at: folder)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let journal = try PersistentContainer(
            directory: ContainerDirectory(openingOrCreatingAt: folder.appendingPathComponent("References.tidemark")))
        let stops = (0..<Self.stops).map { Stop(id: "stop-\($0)") }
        try await journal.save(stops)
        let all = (0..<photos).map { Photo(id: "photo-\($0)", stop: Reference("stop-\($0 % Self.stops)"), size: $0) }
        try await journal.save(all)
        let peer = try DatabasePool(path: folder.appendingPathComponent("peer.sqlite").path)
        try await peer.write { db in
            try db.execute(
                sql: "CREATE TABLE photo (id TEXT PRIMARY KEY, stop TEXT, size INTEGER); CREATE INDEX stops ON photo (stop)")
            for photo in all {
                try db.execute(
                    literal: "INSERT INTO photo VALUES (\(photo.id), \(photo.stop?.recordName), \(photo.size))")
            }
        }
        var report: [String: [Double]] = [:]
        for round in 0..<rounds {
            let page = (0..<Self.rows).map { stops[(round * Self.rows + $0) % stops.count] }
            let counts = try await StoreBench.median(21) { _ in
                let counts = try await journal.counts(Photo.self, referringTo: page, by: \.stop)
                precondition(counts.values.reduce(0, +) == photos / Self.stops * Self.rows)
            }
            let names = String(decoding: try JSONEncoder().encode(page.map(\.id)), as: UTF8.self)
            let peerCounts = try await StoreBench.median(21) { _ in
                let counts = try await peer.read { db in
                    try Row.fetchAll(
                        db, sql: "SELECT stop, count(*) FROM photo WHERE stop IN (SELECT value FROM json_each(?)) GROUP BY stop",
                        arguments: [names])
                }
                precondition(counts.count == Self.rows)
            }
            let lists = try await StoreBench.median(21) { _ in
                let lists = try await journal.fetchAll(Photo.self, referringTo: page, by: \.stop)
                precondition(lists.count == Self.rows)
            }
            let one = try await StoreBench.median(21) { _ in
                let count = try await journal.fetchAll(Photo.self, where: \.stop == page[0]).count
                precondition(count == photos / Self.stops)
            }
            report["counts, ms", default: []].append(counts / 1e6)
            report["counts ÷ GRDB", default: []].append(counts / peerCounts)
            report["lists, ms", default: []].append(lists / 1e6)
            report["one list, ms", default: []].append(one / 1e6)
        }
        try FileManager.default.removeItem(at: folder)
        return report
    }
}

private struct Stop: Tidemark.Record {
    var id: String
    var recordName: String { id }
}

private struct Photo: Tidemark.Record {
    var id: String
    var stop: Reference<Stop>?
    var size: Int
    var recordName: String { id }
}

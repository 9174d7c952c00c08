import Foundation
import GRDB

/// usage: grdb-peer MANIFEST DATABASE
///
/// JSON Lines into SQLite with GRDB: Codable records that Foundation decodes, inserted in transactions of 5,000, in WAL mode.
@main
struct GRDBPeer {
    private static let batchSize = 5000

    static func main() throws {
        guard CommandLine.arguments.count == 3 else {
            FileHandle.standardError.write(Data("usage: grdb-peer MANIFEST DATABASE\n".utf8))
            exit(2)
        }
        let lines = try LineReader(path: CommandLine.arguments[1])
        // A pool is in WAL mode.
        let database = try DatabasePool(path: CommandLine.arguments[2])
        try database.write(Destination.createTable)
        let decoder = JSONDecoder()
        var batch: [Destination] = []
        batch.reserveCapacity(batchSize)
        while let line = try lines.next() {
            batch.append(try decoder.decode(Destination.self, from: line))
            if batch.count == batchSize {
                try insert(batch, into: database)
                batch.removeAll(keepingCapacity: true)
            }
        }
        try insert(batch, into: database)
        try database.close()
    }

    private static func insert(_ batch: [Destination], into database: DatabasePool) throws {
        try database.write { db in
            for destination in batch { try destination.insert(db) }
        }
    }
}

/// An entry of the journal. Its time stays text, as with the other peers that store one row after the other.
struct Destination: Codable, PersistableRecord {
    static let databaseTableName = "records"

    var id: String
    var createdAt: String
    var caption: String
    var details: String
    var rating: Int
    var elevation: Double
    var image: String?

    @Sendable static func createTable(_ db: Database) throws {
        try db.create(table: databaseTableName) { table in
            table.primaryKey("id", .text)
            table.column("createdAt", .text).notNull()
            table.column("caption", .text).notNull()
            table.column("details", .text).notNull()
            table.column("rating", .integer).notNull()
            table.column("elevation", .double).notNull()
            table.column("image", .text)
        }
    }
}

/// The lines of a file, one after the other; memory is bounded by the longest.
final class LineReader {
    private let file: UnsafeMutablePointer<FILE>
    private var line: UnsafeMutablePointer<CChar>?
    private var capacity = 0

    init(path: String) throws {
        guard let file = fopen(path, "r") else { throw CocoaError(.fileReadNoSuchFile, userInfo: [NSFilePathErrorKey: path]) }
        self.file = file
    }

    deinit {
        free(line)
        fclose(file)
    }

    /// The next line that is not empty; `nil` at the end.
    func next() throws -> Data? {
        while true {
            let length = getline(&line, &capacity, file)
            if length < 0 {
                guard feof(file) != 0 else { throw CocoaError(.fileReadUnknown) }
                return nil
            }
            if length > 1 || line![0] != 0x0A { return Data(bytes: line!, count: length) }
        }
    }
}

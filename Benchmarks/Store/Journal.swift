import Foundation
import GRDB
import Tidemark

/// The record that both sides read and write.
struct Destination: Tidemark.Record, Identifiable {
    var id: UUID
    var createdAt: Date
    var caption: String
    var details: String
    var rating: Int
    var elevation: Double

    init(number: Int) {
        id = UUID()
        createdAt = Date(timeIntervalSince1970: 1_600_000_000 + Double(number))
        caption = "Destination \(number)"
        details = String(repeating: "Here the sea begins, and the road ends. ", count: 5 + number % 40)
        rating = number % 5
        elevation = Double(number) / 7
    }
}

/// The same, as a program that uses GRDB has it.
struct Peer: Codable, FetchableRecord, PersistableRecord {
    static let databaseTableName = "Destination"
    var id: UUID
    var createdAt: Date
    var caption: String
    var details: String
    var rating: Int
    var elevation: Double

    init(_ it: Destination) {
        (id, createdAt, caption, details, rating, elevation) =
            (it.id, it.createdAt, it.caption, it.details, it.rating, it.elevation)
    }

    static func create(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE Destination (
                    id BLOB PRIMARY KEY, createdAt TEXT NOT NULL, caption TEXT NOT NULL, details TEXT NOT NULL,
                    rating INTEGER NOT NULL, elevation REAL NOT NULL
                )
                """)
    }
}

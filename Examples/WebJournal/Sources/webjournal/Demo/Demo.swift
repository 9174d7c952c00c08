import Foundation
import Tidemark

/// Fills the journals of the demonstration with places of the sample journal.
struct Demo {
    /// The folder of the sample journal: `Examples/journal`.
    let sample: URL

    /// Places of the sample by the names of their pictures, and whose they are.
    static let places: [String: [String]] = [
        "ada@example.org": [
            "skogafoss.jpg", "shaman-rock.jpg", "fushimi-inari.jpg", "kawaguchi-2019.png", "uyuni.jpg", "baobabs.jpg",
            "stromboli.jpg",
            "reine.jpg", "moraine-lake.jpg", "bora-bora.jpg",
        ],
        "ben@example.org": ["deadvlei.png", "uluru.jpg", "goreme.jpg"],
    ]

    private struct Entry: Decodable {
        struct Position: Decodable { let latitude, longitude: Double }
        let id: UUID
        let createdAt: Date
        let caption, details, image: String
        let position: Position
    }

    /// Gives an empty journal its places.
    func fill(_ journal: Journal) async throws {
        guard try await journal.container.count(Destination.self) == 0 else { return }
        let wanted = Set(Self.places[journal.person.email] ?? [])
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        var destinations: [Destination] = []
        for line in try Data(contentsOf: sample.appendingPathComponent("journal.jsonl")).split(separator: 0x0a) {
            let entry = try decoder.decode(Entry.self, from: line)
            guard wanted.contains(entry.image.replacing("pictures/", with: "")) else { continue }
            var destination = Destination(
                id: entry.id, caption: entry.caption, details: entry.details, image: Asset(data: Data()))
            try await Photo(contentsOf: sample.appendingPathComponent(entry.image)).move(into: &destination, keepsPosition: false)
            destination.createdAt = entry.createdAt
            destination.position = Location(latitude: entry.position.latitude, longitude: entry.position.longitude)
            destinations.append(destination)
        }
        try await journal.container.save(destinations)
    }
}

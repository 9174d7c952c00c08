import Foundation
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// The travel journal's record, as a program would have it.
public struct Destination: Record, Identifiable, Equatable {
    public enum Season: String, Codable, Sendable { case summer, winter }

    public struct Note: Codable, Hashable, Sendable {
        public var text: String
        public var stars: Int
        public init(text: String, stars: Int) { (self.text, self.stars) = (text, stars) }
    }

    public var id: String
    public var createdAt: Date
    public var caption: String
    public var details: String
    public var image: Asset?
    public var rating: Int?
    public var elevation: Double?
    public var tags: [String]?
    public var position: Location?
    public var season: Season?
    public var notes: [Note]?
    public var isSecret: Bool?
    public var raw: Data?
    public var neighbour: Reference<Destination>?

    public init(_ id: String, caption: String, details: String = "", createdAt: Date = Date(timeIntervalSince1970: 1_700_000_000))
    {
        self.id = id
        self.caption = caption
        self.details = details
        self.createdAt = createdAt
    }

    public func validate() throws {
        if caption.allSatisfy(\.isWhitespace) { throw ValidationError("a destination needs a caption", field: "caption") }
    }
}

extension Scratch {
    /// The container of the scratch folder, made if there is none.
    public func journal(mergePolicy: MergePolicy = .mergeByPropertyObjectTrump) throws -> PersistentContainer {
        try PersistentContainer(
            directory: ContainerDirectory(openingOrCreatingAt: container), author: "test", mergePolicy: mergePolicy)
    }
}

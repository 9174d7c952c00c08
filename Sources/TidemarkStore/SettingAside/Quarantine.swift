public import Foundation
import GRDB
public import TidemarkModel
public import TidemarkSQLite

/// Records that were set aside when their account signed out, or another one signed in. They are a container of their own, in the
/// container's folder `quarantine`.
public struct Quarantine: Hashable, Sendable, Codable, Identifiable {
    /// Names the quarantine in its container.
    public let id: UUID
    /// Microseconds since 1970 UTC.
    public let time: Int64
    /// The account's name in the cloud container; `nil` for records that belonged to no account.
    public let user: String?
    /// Why the records were set aside, in a few words for people.
    public let reason: String
    /// How many records were set aside.
    public let records: Int
    /// How many saves and deletions no cloud had when the records were set aside.
    public let pending: Int
    /// The number of the scope, as the file of the quarantine has it.
    private let store: Int?
    private let refusals: Int?

    /// The store that the records were in, and to which they go back.
    public var scope: StoreScope { store.flatMap { StoreScope(rawValue: $0) } ?? .private }

    /// The number of saves in it that a cloud has refused.
    public var refused: Int { refusals ?? 0 }

    init(
        id: UUID, time: Int64, user: String?, reason: String, records: Int, pending: Int, refused: Int, scope: StoreScope
    ) {
        (self.id, self.time, self.user, self.reason, self.records, self.pending) = (id, time, user, reason, records, pending)
        store = scope.rawValue
        refusals = refused
    }

    static let folder = "quarantine"
    package static let description = "quarantine.json"

    package static let records = "records.tidemark"

    func place(in container: ContainerDirectory) -> URL { place(below: container.url) }

    package func place(below url: URL) -> URL {
        url.appendingPathComponent("\(Self.folder)/\(id.uuidString.lowercased())", isDirectory: true)
    }

    /// Makes the folder of the quarantine.
    package func makePlace(below url: URL) throws(StoreError) -> URL {
        let place = place(below: url)
        try Folder.make(place.deletingLastPathComponent(), mode: 0o700)
        try Folder.make(place, mode: 0o700)
        return place
    }

    /// Where the container with the records is.
    public func url(in container: ContainerDirectory) -> URL {
        place(in: container).appendingPathComponent(Self.records, isDirectory: true)
    }

    /// The container with the records.
    public func container(in container: ContainerDirectory) throws(StoreError) -> ContainerDirectory {
        try ContainerDirectory(openingAt: url(in: container))
    }
}

extension ContainerDirectory {
    /// Returns the quarantines, oldest first.
    public func quarantines() throws(StoreError) -> [Quarantine] {
        let folder = url.appendingPathComponent(Quarantine.folder, isDirectory: true)
        var found: [Quarantine] = []
        for entry in try Folder.entriesIfPresent(at: folder) where entry.kind == .folder {
            let file = folder.appendingPathComponent("\(entry.name)/\(Quarantine.description)")
            // A folder without a description was never finished.
            guard let data = try DurableFile.data(of: file), let it = try? JSONDecoder().decode(Quarantine.self, from: data),
                it.id.uuidString.lowercased() == entry.name
            else { continue }
            found.append(it)
        }
        return found.sorted { ($0.time, $0.id.uuidString) < ($1.time, $1.id.uuidString) }
    }

    /// Returns the quarantine of an identifier, or of the beginning of one.
    ///
    /// - Throws: ``StoreError`` `notFound`.
    public func quarantine(_ id: String) throws(StoreError) -> Quarantine {
        let found = try quarantines().filter { $0.id.uuidString.lowercased().hasPrefix(id.lowercased()) }
        guard let one = found.first, found.count == 1, !id.isEmpty else {
            throw StoreError(
                .notFound,
                found.isEmpty
                    ? "nothing is set aside under '\(id)'" : "several are set aside under '\(id)'; say more of the identifier")
        }
        return one
    }

    /// Deletes a quarantine permanently.
    public func discard(_ quarantine: Quarantine) throws(StoreError) {
        let place = quarantine.place(in: self)
        do {
            try Quarantine.remove(place)
        } catch {
            throw StoreError(error, doing: "remove \(place.path)")
        }
    }
}

extension Quarantine {
    /// Removes the folder of a quarantine, even of an unfinished one.
    static func remove(_ place: URL) throws {
        // The description goes first, so that a half-removed quarantine can't be restored.
        try DurableFile.remove(description, in: place)
        let container = place.appendingPathComponent(records, isDirectory: true)
        if FileManager.default.fileExists(atPath: container.path) {
            try DurableFile.remove(ContainerContents.description, in: container)
            try ContainerContents.remove(from: container)
            try ContainerContents.removeIfEmpty(container)
        }
        try ContainerContents.removeIfEmpty(place)
    }

    /// Removes all quarantines of a container.
    static func removeAll(in url: URL) throws {
        let all = url.appendingPathComponent(folder, isDirectory: true)
        for entry in try Folder.entriesIfPresent(at: all) where entry.kind == .folder && UUID(uuidString: entry.name) != nil {
            try remove(all.appendingPathComponent(entry.name, isDirectory: true))
        }
        try ContainerContents.removeIfEmpty(all)
    }
}

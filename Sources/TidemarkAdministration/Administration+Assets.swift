package import Foundation
package import TidemarkCloud
import TidemarkEmbeddedCloud
package import TidemarkIdentity
import TidemarkModel

/// The contents of assets, and what is known of a record's past.
extension Administration {
    /// Reads a part of an asset of a record.
    package func piece(
        of asset: CloudAsset, in place: RecordPlace, at offset: Int64, count: Int
    ) async throws(AdministrationError) -> Data {
        let opened = try await open(place)
        return try await wrapped {
            try await opened.database.piece(of: asset, in: place.zoneID, at: offset, count: count)
        }
    }

    /// Stores a content, for a record that names it then. One that no record names goes after a day.
    ///
    /// - Throws: ``AdministrationError`` `invalid` for one for which there is no room; `notFound`, `forbidden`, `busy`.
    package func upload(_ contents: Data, in place: RecordPlace) async throws(AdministrationError) -> CloudAsset {
        let opened = try await open(place)
        return try await wrapped { try await opened.database.upload(contents, in: place.zoneID) }
    }

    /// Entries of the audit log that are looked through for those of a record.
    private static let looked = 1_000

    /// Returns the last changes of a record by those who administer, the newest first. A cloud has no earlier versions of a record.
    ///
    /// - Complexity: O(entries of the container), 1,000 at the most.
    package func changes(of name: String, in place: RecordPlace) async throws(AdministrationError) -> [AuditEntry] {
        let opened = try await open(place)
        let wanted = Self.subject(name, place)
        let container = "\(place.container)/\(place.environment.rawValue)"
        let entries = try await wrapped {
            try await credentials.auditLog(container: place.container, limit: Self.looked)
        }
        return entries.filter { entry in
            entry.event.subject == wanted && entry.event.account == opened.account && entry.event.container == container
                && (entry.event.action == .administration("records.save")
                    || entry.event.action == .administration("records.delete"))
        }
    }

    /// How entries of the audit log name a record.
    static func subject(_ name: String, _ place: RecordPlace) -> String { "\(place.scope.name)/\(place.zone)/\(name)" }
}

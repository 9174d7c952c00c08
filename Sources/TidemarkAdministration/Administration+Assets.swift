package import Foundation
package import TidemarkCloud
import TidemarkEmbeddedCloud
package import TidemarkIdentity
import TidemarkModel

/// The contents of assets, and what is known of a record's past.
extension Administration {
    /// Reads a part of a record's asset: at most `count` bytes from an offset on.
    package typealias AssetReader = @Sendable (_ offset: Int64, _ count: Int) async throws(AdministrationError) -> Data

    /// Returns a function that reads an asset of a record. Whether the actor may see the asset is decided now, and not for each
    /// part.
    package func reader(of asset: CloudAsset, in place: RecordPlace) async throws(AdministrationError) -> AssetReader {
        let opened = try await open(place)
        return { offset, count throws(AdministrationError) in
            try await wrapped {
                try await opened.database.piece(of: asset, in: place.zoneID, at: offset, count: count)
            }
        }
    }

    /// Stores a content, which a record is to name. A content that no record names is removed after a day.
    ///
    /// - Throws: ``AdministrationError`` `invalid` if there is no room for the content; `notFound`, `forbidden`, `busy`.
    package func upload(_ contents: Data, in place: RecordPlace) async throws(AdministrationError) -> CloudAsset {
        let opened = try await open(place)
        return try await wrapped { try await opened.database.upload(contents, in: place.zoneID) }
    }

    /// How many entries of the audit log are searched for those of a record.
    private static let looked = 1_000

    /// Returns the last changes of a record by administrators, the newest first. A cloud has no earlier versions of a record.
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

    /// The most bytes of a subject in the audit log.
    private static let subjectMost = 200

    /// Names a record for the audit log. The log cuts long texts off, so a long name is shortened, and a digest tells it from
    /// others.
    static func subject(_ name: String, _ place: RecordPlace) -> String {
        let whole = "\(place.scope.name)/\(place.zone)/\(name)"
        guard whole.utf8.count > subjectMost || CredentialStore.line(whole) != whole else { return whole }
        let mark = AssetDigest.asset(of: Data(whole.utf8)).digest.prefix(16)
        return "\(CredentialStore.line(whole).prefix(40))… \(mark)"
    }
}

package import TidemarkCloud
import TidemarkModel

/// An examination of the rows of one container: it finds rows that are not as they were written, and references to assets that are missing.
/// The storages read the rows.
package struct RowExamination {
    /// A row that is damaged, or something that is missing.
    package struct Finding: Sendable {
        /// The kind of the row, in the words of reports.
        package enum Kind: String, Sendable {
            case zone, share, participant, record, reference, asset
        }

        package let kind: Kind
        /// The message for people. It does not name the container.
        package let message: String

        package init(_ kind: Kind, _ message: String) { (self.kind, self.message) = (kind, message) }
    }

    package private(set) var findings: [Finding] = []
    /// The assets that the container has, with their owners.
    package private(set) var assets: [(owner: String, asset: CloudAsset)] = []
    private var zones: [StoredZone.ID: StoredZone] = [:]
    /// Digests of assets, by their owners.
    private var digests: [String: Set<String>] = [:]

    package init() {}

    private mutating func note(_ kind: Finding.Kind, _ message: String) { findings.append(Finding(kind, message)) }

    /// Takes a zone, before its records.
    ///
    /// - Parameters:
    ///   - owner: The owner of the row.
    ///   - isWhole: Whether it is what was written.
    package mutating func examine(_ zone: StoredZone, of owner: String, isWhole: Bool) {
        zones[StoredZone.ID(owner: owner, number: zone.number)] = zone
        if !isWhole { note(.zone, "the zone '\(zone.place.name.prefix(255))' is not what was written") }
    }

    package mutating func noteShare(_ number: Int64) { note(.share, "the share \(number) is not what was written") }

    package mutating func noteParticipant(_ ordinal: Int64) {
        note(.participant, "the participant \(ordinal) of a share is not what was written")
    }

    /// Takes an asset that the container has, before the records.
    package mutating func add(_ asset: CloudAsset, of owner: String) {
        digests[owner, default: []].insert(asset.digest)
        assets.append((owner, asset))
    }

    package mutating func examine(_ record: StoredCloudRecord) {
        let zone = zones[record.zone]
        let zoneName = zone?.place.name ?? String(record.zone.number)
        let name = "'\(record.name.prefix(255))' of the zone '\(zoneName)'"
        guard record.damage == nil else { return note(.record, "the record \(name) is not what was written") }
        guard let zone else { return note(.record, "the record \(name) is in no zone") }
        guard !record.isDeleted else { return }
        guard let fields = try? FieldCoding.decode(record.fields) else {
            return note(.record, "the fields of the record \(name) can't be read")
        }
        let there = digests[zone.place.owner] ?? []
        for value in fields.values where value.type.scalar == .asset {
            for case .asset(let asset) in value.scalars where !there.contains(asset.digest) {
                note(.reference, "the record \(name) names the asset \(asset.digest), which the cloud does not have")
            }
        }
    }
}

import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A zone into which new records are saved, and the share of it that the caller has named.
struct SharePlace: Hashable, Sendable {
    /// The share; `nil` if the caller has named a zone.
    let share: Share?
    let name: ZoneName
    let zone: Int64

    /// Makes sure, in the transaction that saves into it, that the zone still exists and still has the share.
    ///
    /// - Throws: ``StoreError`` `notFound`.
    func check(_ db: Database, _ source: RecordSource) throws {
        guard let shares = try source.shares(db, ofZoneThatMayBeGone: zone) else { throw share?.isUnknown ?? name.isUnknown }
        guard let share else { return }
        let known = try shares.shares(scope: source.scope)
        guard known.contains(where: { $0.name == share.name && $0.zone == share.zone }) else { throw share.isUnknown }
    }
}

extension ZoneName {
    /// The error of a save into a zone that the store does not have.
    var isUnknown: StoreError {
        StoreError(
            .notFound,
            "the store has no zone '\(name)'. Nothing was saved. StoreReader.zones() lists the zones that are there")
    }
}

extension Share {
    /// The error of a save into a share that the container does not know.
    var isUnknown: StoreError {
        StoreError(
            .notFound,
            """
            the share '\(title ?? name)' is not in this container: it has ended, was left, or was not accepted here. Nothing was saved. \
            fetchShares() lists the shares that are there
            """)
    }
}

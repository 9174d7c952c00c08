import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A share into which new records are saved, and its zone in the share's store.
struct SharePlace: Hashable, Sendable {
    let share: Share
    let zone: Int64

    /// Makes sure that the share is still there, in the transaction that saves into it.
    ///
    /// - Throws: ``StoreError`` `notFound`.
    func check(_ db: Database, _ source: RecordSource) throws {
        let known = try source.shares(db, ofZoneThatMayBeGone: zone)?.shares(scope: source.scope) ?? []
        guard known.contains(where: { $0.name == share.name && $0.zone == share.zone }) else { throw share.isUnknown }
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

import TidemarkSQLite
import TidemarkStore

/// A step that a move, a backup or a restoration has just done. Tests stop the work there.
package enum MoveStep: String, CaseIterable, Sendable {
    /// The journal at the target marks it as a copy that can't be opened yet.
    case claimed
    /// The draft of the moved notice at the source says that a move has begun.
    case drafted
    case databaseCopied, assetCopied
    /// The copy is complete and durable.
    case copied
    case verified
    /// The target has its description. It can't be opened yet.
    case described
    /// The notice at the source says that the container has moved: from here on the target is the container.
    case switched
    /// The journal at the target is removed: the target is the container without the source's notice.
    case released
    case oldDatabasesRemoved, oldAssetsRemoved, oldLocksRemoved

    /// In a rollback: the target has a journal again, and depends on the source's notice.
    case recalled
    /// In a rollback: the source is the container again.
    case switchedBack
    case copyRemoved

    /// In a restoration: the copy has replaced the old container.
    case replaced
}

import TidemarkSQLite
import TidemarkStore

/// What a move has just done: tests stop it there.
package enum MoveStep: String, CaseIterable, Sendable {
    /// The target says that it is a copy which does not count.
    case claimed
    /// The source says that a move has begun.
    case drafted
    case databaseCopied, assetCopied
    /// All is there and durable.
    case copied
    case verified
    /// The target has its description, and does not count.
    case described
    /// The source says that it has moved: from here on the target counts.
    case switched
    /// The target counts by itself.
    case released
    case oldDatabasesRemoved, oldAssetsRemoved, oldLocksRemoved

    /// The target counts only by the source's word again.
    case recalled
    /// The source counts again.
    case switchedBack
    case copyRemoved

    /// Of a restoration: the copy has come to the place of what was there.
    case replaced
}

import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Counts the rows that an import has read, written and refused, and keeps the refusals.
///
/// `@unchecked Sendable`: the file is written in the store's transactions, one after the other. A mutex guards the counts.
final class RejectsLog: @unchecked Sendable {
    private let file: RejectsFile?
    private let account: LockedValue<ImportPosition>
    private let firstRejections = LockedValue<[ImportSummary.Rejection]>([])
    private let failed = LockedValue<ImportError?>(nil)
    private static let shownRejections = 10
    /// The number of rows that an interrupted run had read; `nil` if there was none.
    let resumedAfter: Int?
    /// The number of rows that an interrupted run had refused and that are not in the file.
    let rejectedElsewhere: Int

    private let scalesPictures: Bool

    init(
        file: RejectsFile?, source: String, resuming position: ImportPosition?, scalesPictures: Bool = false
    ) throws(ImportError) {
        self.file = file
        self.scalesPictures = scalesPictures
        try file?.begin(keeping: position?.rejectsLength ?? 0)
        let hasAll = position.map { $0.rejectsLength > 0 && $0.rejectsLength == file?.length } ?? true
        rejectedElsewhere = hasAll ? 0 : position?.rejected ?? 0
        account = LockedValue(position ?? ImportPosition(source: source))
        resumedAfter = position?.read
    }

    var shown: [ImportSummary.Rejection] { firstRejections.withLock { $0 } }
    var state: ImportPosition { account.withLock { $0 } }
    /// The error of writing the file. It happens in a transaction of the store, which would report it as an error of the store.
    var failure: ImportError? { failed.withLock { $0 } }

    /// Counts a batch that was just written. Its refusals are durable when this returns.
    func note(_ filled: FilledBatch, counts: ChangeCounts) throws -> ImportPosition {
        let batch = filled.batch
        let rejections = batch.rejections
        do {
            try file?.append(rejections)
        } catch {
            failed.withLock { $0 = error }
            throw error
        }
        firstRejections.withLock { first in
            first += rejections.prefix(Self.shownRejections - first.count).map {
                .init(line: $0.line, field: $0.field, reason: $0.message)
            }
        }
        return account.withLock { account in
            account.read += batch.readCount
            account.rejected += batch.rejectionCount
            account.counts += counts
            account.assets += batch.assetCounts(new: filled.blobs)
            if scalesPictures { account.pictures = (account.pictures ?? PictureCounts()) + PictureCounts(filled.blobs) }
            account.offset = filled.position.offset
            account.line = filled.position.line
            account.digest = filled.position.digest
            account.state = filled.position.state
            account.rejectsLength = file?.length ?? 0
            return account
        }
    }
}

import Foundation
import Synchronization
import TidemarkModel
import TidemarkStore

/// Keeps an import's account: what was read, written and refused so far, and the refusals themselves.
///
/// `@unchecked Sendable`: the file is written in the store's transactions, one after another; the account is behind a mutex.
final class RejectsLog: @unchecked Sendable {
    private let file: RejectsFile?
    private let account: Mutex<ImportCheckpoint>
    private let firstRejections = Mutex<[ImportSummary.Rejection]>([])
    private static let shownRejections = 10
    /// Rows that an interrupted run had read.
    let resumedAfter: Int?

    init(url: URL?, source: String, resuming checkpoint: ImportCheckpoint?) throws(ImportError) {
        file = try url.map { url throws(ImportError) in try RejectsFile(at: url, keeping: checkpoint?.rejectsLength ?? 0) }
        account = Mutex(checkpoint ?? ImportCheckpoint(source: source))
        resumedAfter = checkpoint?.read
    }

    var shown: [ImportSummary.Rejection] { firstRejections.withLock { $0 } }
    var state: ImportCheckpoint { account.withLock { $0 } }

    /// Enters a batch that was just written; the refusals are on disk when this returns.
    func note(_ filled: FilledBatch, counts: ChangeCounts) throws -> ImportCheckpoint {
        let batch = filled.batch
        let rejections = batch.rejections
        try file?.append(rejections)
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
            account.offset = filled.position.offset
            account.line = filled.position.line
            account.digest = filled.position.digest
            account.state = filled.position.state
            account.rejectsLength = file?.length ?? 0
            return account
        }
    }
}

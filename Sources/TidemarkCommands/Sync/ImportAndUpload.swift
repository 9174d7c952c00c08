import TidemarkModel
import TidemarkTransfer

/// The progress of an import and, with `--sync`, of the upload of its records, as one number.
struct ImportAndUpload: Sendable {
    /// A report of progress. Its numbers are totals since the start.
    enum Step: Sendable {
        case imported(ImportProgress)
        case importHasEnded(ImportSummary)
        /// The number of records that were sent.
        case sent(Int)
    }

    private let isSent: Bool
    private var progress: ImportProgress?
    private var summary: ImportSummary?
    private var hasEnded = false
    private var sent = 0
    /// The greatest progress so far. The progress never goes back, although the number of records to send is an estimate while
    /// the import goes on.
    private var furthest = 0

    /// - Parameter isSent: Whether the imported records are sent, too.
    init(isSent: Bool) { self.isSent = isSent }

    mutating func apply(_ step: Step) {
        switch step {
        case .imported(let state): (progress, summary) = (state, state.summary)
        case .importHasEnded(let summary): (self.summary, hasEnded) = (summary, true)
        case .sent(let count): sent = count
        }
        furthest = max(furthest, Int(share * Double(Self.whole)))
    }

    /// The finished part of ``total``.
    var done: Int { isSent ? furthest : progress?.done ?? 0 }

    /// The total; `nil` while it is not known: while standard input is read.
    var total: Int? {
        guard isSent else { return progress?.total }
        return hasEnded || progress?.total != nil ? Self.whole : nil
    }

    private static let whole = 1_000_000

    /// The finished share of the work. Half of the work is the import, half is the upload.
    private var share: Double {
        var imported = 1.0
        if !hasEnded { imported = progress.map { min(1, Double($0.done) / Double(max(1, $0.total ?? .max))) } ?? 0 }
        // The estimate expects as many changes in the rest of the source as in the part that was read.
        let changed = summary.map { $0.changes.inserted + $0.changes.updated + $0.changes.deleted } ?? 0
        let toSend = Double(changed) / max(imported, 0.000_001)
        let gone = toSend > 0 ? min(1, Double(sent) / toSend) : hasEnded ? 1 : 0
        return (imported + gone) / 2
    }

    /// Both counts, in words.
    var label: String {
        let records = Wording.count(summary?.read ?? 0, "record")
        var text = isSent ? "\(records) read, \(Wording.count(sent)) sent" : records
        guard let summary else { return text }
        if let progress {
            text +=
                progress.isFolder
                ? "  \(Wording.count(progress.done)) files" : "  \(Wording.bytes(progress.done + summary.assets.bytes))"
        }
        let seconds = max(0.001, summary.duration / .seconds(1))
        if !hasEnded { text += "  \(Wording.count(Int(Double(summary.read) / seconds)))/s" }
        if summary.rejected > 0 { text += "  \(Wording.count(summary.rejected)) refused" }
        return text
    }
}

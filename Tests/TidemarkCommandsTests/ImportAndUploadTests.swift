import Testing
import TidemarkModel

@testable import TidemarkCommands
@testable import TidemarkTransfer

/// Goal: one progress bar shows an import and its upload. Method: steps in an order as they occur, and the bar after each.
@Suite(.timeLimit(.minutes(30))) struct ImportAndUploadTests {
    private func summary(_ records: Int, rejected: Int = 0) -> ImportSummary {
        var summary = ImportSummary()
        (summary.read, summary.rejected) = (records + rejected, rejected)
        summary.changes.inserted = records
        summary.duration = .seconds(1)
        return summary
    }

    private func imported(_ records: Int, _ bytes: Int, of total: Int?) -> ImportAndUpload.Step {
        .imported(ImportProgress(summary: summary(records), done: bytes, total: total, isFolder: false))
    }

    @Test func `half of the bar is the import and half the upload, and the bar never goes back`() {
        var state = ImportAndUpload(isSent: true)
        var shown: [Double] = []
        let steps: [ImportAndUpload.Step] = [
            imported(100, 1000, of: 4000), .sent(100), imported(150, 2000, of: 4000), imported(400, 4000, of: 4000),
            .importHasEnded(summary(400)), .sent(250), .sent(400),
        ]
        for step in steps {
            state.apply(step)
            shown.append(Double(state.done) / Double(state.total ?? 0))
        }
        // After a quarter of the file there are 100 records, so 400 are expected; 100 are sent. After half of it there are 150,
        // so 300 are expected; at the end there are 400.
        let expected = [0.125, 0.25, 0.416, 0.625, 0.625, 0.812, 1]
        #expect(shown.map { ($0 * 1000).rounded(.down) / 1000 } == expected)
        #expect(state.label == "400 records read, 400 sent  4.0 kB")
    }

    @Test func `an import of unknown length shows both counts without a bar`() {
        var state = ImportAndUpload(isSent: true)
        state.apply(imported(100, 1000, of: nil))
        state.apply(.sent(40))
        #expect(state.total == nil)
        #expect(state.label.hasPrefix("100 records read, 40 sent"))
        state.apply(.importHasEnded(summary(100)))
        #expect(state.total != nil)
        #expect(Double(state.done) / Double(state.total ?? 0) == 0.7)
    }

    @Test func `an import that changes nothing is done when the file is read`() {
        var state = ImportAndUpload(isSent: true)
        state.apply(imported(0, 4000, of: 4000))
        state.apply(.importHasEnded(summary(0)))
        #expect(state.done == state.total)
    }

    @Test func `without an upload the bar is that of the import`() {
        var state = ImportAndUpload(isSent: false)
        state.apply(imported(100, 1000, of: 4000))
        #expect((state.done, state.total) == (1000, 4000))
        #expect(state.label.hasPrefix("100 records  1.0 kB"))
        state.apply(.imported(ImportProgress(summary: summary(3, rejected: 2), done: 5, total: 9, isFolder: true)))
        #expect(state.label == "5 records  5 files  5/s  2 refused")
    }
}

import Testing
import TidemarkModel

@testable import TidemarkCommands
@testable import TidemarkTransfer

/// Goal: one bar tells how far an import and its upload are. Method: steps as they come, and what the bar shows after each.
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

    @Test func `half of the bar is the import and half the sending, and it never goes back`() {
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
        // The first quarter has 100, so that 400 look likely; sent are 100. With 150 in the first half it looks like 300; then it is 400.
        let expected = [0.125, 0.25, 0.416, 0.625, 0.625, 0.812, 1]
        #expect(shown.map { ($0 * 1000).rounded(.down) / 1000 } == expected)
        #expect(state.label == "400 records read, 400 sent  4.0 kB")
    }

    @Test func `while nobody knows how much there is, both counts are told without a bar`() {
        var state = ImportAndUpload(isSent: true)
        state.apply(imported(100, 1000, of: nil))
        state.apply(.sent(40))
        #expect(state.total == nil)
        #expect(state.label.hasPrefix("100 records read, 40 sent"))
        state.apply(.importHasEnded(summary(100)))
        #expect(state.total != nil)
        #expect(Double(state.done) / Double(state.total ?? 0) == 0.7)
    }

    @Test func `an import that changes nothing is done when it has ended`() {
        var state = ImportAndUpload(isSent: true)
        state.apply(imported(0, 4000, of: 4000))
        state.apply(.importHasEnded(summary(0)))
        #expect(state.done == state.total)
    }

    @Test func `without an upload it is the import's own`() {
        var state = ImportAndUpload(isSent: false)
        state.apply(imported(100, 1000, of: 4000))
        #expect((state.done, state.total) == (1000, 4000))
        #expect(state.label.hasPrefix("100 records  1.0 kB"))
        state.apply(.imported(ImportProgress(summary: summary(3, rejected: 2), done: 5, total: 9, isFolder: true)))
        #expect(state.label == "5 records  5 files  5/s  2 refused")
    }
}

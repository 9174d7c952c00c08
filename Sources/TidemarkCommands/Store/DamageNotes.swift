import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Names damaged records on standard error.
enum DamageNotes {
    static func tell(_ damaged: [DamagedRecord], _ what: String) {
        for it in damaged.prefix(10) { Output.error("tidemark: \(it.record.title) is \(what)") }
        guard !damaged.isEmpty else { return }
        let more = damaged.count > 10 ? " (10 of them named above)" : ""
        Output.error(
            "tidemark: \(Wording.count(damaged.count, "damaged record"))\(more); repair with `tidemark verify --repair`")
    }
}

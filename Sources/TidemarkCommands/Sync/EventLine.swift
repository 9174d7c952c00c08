import Foundation
import TidemarkModel

/// An event as the tool prints it.
struct EventLine: Encodable {
    struct Failure: Encodable { let code: Int, reason: String }
    let identifier, store, type, start: String
    let end: String?
    let succeeded: Bool
    let error: Failure?
    let records: Int
    let bytes: Int64
    let conflicts: Int
    let totalRecords: Int?
    /// The container's store; `nil` for an event of both.
    let scope: String?

    init(_ event: ContainerEvent, of scope: StoreScope? = nil) {
        identifier = event.id.uuidString
        store = event.store.uuidString
        type = event.kind.name
        start = Timestamp.text(microseconds: event.start)
        end = event.end.map { Timestamp.text(microseconds: $0) }
        succeeded = event.succeeded
        error = event.failure.map { .init(code: $0.code, reason: $0.reason) }
        self.scope = scope?.name
        (records, bytes, conflicts, totalRecords) = (event.records, event.bytes, event.conflicts, event.totalRecords)
    }

    /// The number of changes that an export could not send, because the cloud has refused them or a change before them.
    private var refused: Int {
        guard type == ContainerEvent.Kind.export.name, end != nil, error == nil else { return 0 }
        return max(0, (totalRecords ?? 0) - records)
    }

    var text: String {
        var text = "\(start)  \(type.padding(toLength: 6, withPad: " ", startingAt: 0))  "
        if let error {
            text += "failed \(error.code): \(error.reason)"
        } else if end == nil {
            text += "running"
        } else {
            text += refused > 0 && records == 0 ? "nothing sent" : "done"
        }
        if records > 0 { text += "  \(Wording.count(records, "record"))" }
        if bytes > 0 { text += "  \(Wording.bytes(Int(bytes)))" }
        if conflicts > 0 { text += "  \(Wording.count(conflicts, "conflict"))" }
        if refused > 0 { text += "  \(Wording.count(refused)) refused" }
        if scope == StoreScope.shared.name { text += "  (what others share)" }
        return text
    }
}

extension ProgressBar {
    func show(_ event: ContainerEvent) {
        // A look-up of the account is no progress.
        guard event.kind != .setup else { return }
        let bytes = event.bytes > 0 ? ", \(Wording.bytes(Int(event.bytes)))" : ""
        let what = event.kind == .export ? "sent" : "fetched"
        show("\(what) \(Wording.count(event.records))\(bytes)", done: event.records, total: event.totalRecords)
    }
}

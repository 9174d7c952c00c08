import Foundation
import TidemarkCloud

/// The edits of a run. Each edit has the edits of the same record that its device knew: those that its store had applied, its own
/// and others'.
///
/// What a device knows is read from its store, and follows the change tags. A version in the cloud knows what its sender knew,
/// and what the version before it knew.
struct EditHistory {
    struct Event {
        let id: Int
        let record: String
        let device: Int
        /// The fields that a save changed; `nil` for a deletion.
        let fields: [String: String?]?
        /// The whole record after a save.
        let state: [String: String]
        /// The edits of the record that the device knew.
        let known: Set<Int>
        /// The time by the store's clock.
        let time: Int64
    }

    private(set) var events: [Event] = []
    /// The known edits of each device, by record.
    private var known: [[String: Set<Int>]]
    /// The edits that versions in the cloud know, by the versions' tags.
    private var versions: [String: Set<Int>] = [:]
    /// The edits that requests carry, by the requests' tokens and by record.
    private var carried: [String: [String: Set<Int>]] = [:]
    /// The edits that the cloud knows of each record, also of deleted ones.
    private var cloud: [String: Set<Int>] = [:]
    /// The edits that a device knows once it has fetched up to a change token. Devices may differ: a fetch leaves out a record
    /// that has changed since, and another device may have fetched the record before.
    private var tokens: [[String: [String: Set<Int>]]]

    /// The edits that devices knew of records which were then set aside.
    private var quarantined: [UUID: [String: Set<Int>]] = [:]

    init(devices: Int) {
        known = Array(repeating: [:], count: devices)
        tokens = Array(repeating: [:], count: devices)
    }

    /// Records what a device's store has applied.
    ///
    /// - Parameter deferUntilReply: Records that the store has deferred, although it has fetched up to the token.
    mutating func look(_ device: Int, token: String?, tags: [String: String], deferUntilReply: Set<String>) {
        if let token, let all = tokens[device][token] {
            known[device].merge(all.filter { !deferUntilReply.contains($0.key) }) { $0.union($1) }
        }
        for (record, tag) in tags { known[device][record, default: []].formUnion(versions[tag] ?? []) }
    }

    /// Returns what a device knows, for ``putBack(_:to:)``.
    func knowledge(of device: Int) -> [String: Set<Int>] { known[device] }

    /// Records that a device's store was put back to an earlier state. It knows only what it knew then.
    mutating func putBack(_ device: Int, to knowledge: [String: Set<Int>]) { known[device] = knowledge }

    /// Records that a device's store was emptied, and its records were set aside, unless there were none.
    mutating func setAside(_ device: Int, as quarantine: UUID?) {
        if let quarantine { quarantined[quarantine] = known[device] }
        known[device] = [:]
    }

    /// Records that a record came back from a quarantine as an edit.
    mutating func restore(_ record: String, by device: Int, from quarantine: UUID) {
        let brought = quarantined[quarantine]?[record] ?? []
        let sent = carried.values.reduce(into: Set<Int>()) { $0.formUnion($1[record] ?? []) }
        restored.formUnion(events.filter { $0.device == device && brought.contains($0.id) && sent.contains($0.id) }.map(\.id))
        known[device][record, default: []].formUnion(quarantined[quarantine]?[record] ?? [])
    }

    /// Edits that were being sent when they were set aside, and that came back as new edits: whether the cloud has them is not
    /// known.
    private(set) var restored: Set<Int> = []

    /// The edits that the cloud has acknowledged, whether or not it still has them.
    var acknowledged: Set<Int> { versions.values.reduce(into: []) { $0.formUnion($1) } }

    /// Records that the cloud has lost everything.
    mutating func loseCloud() {
        cloud = [:]
        lost.formUnion(acknowledged)
    }

    /// Edits that the cloud had acknowledged before it lost everything.
    private(set) var lost: Set<Int> = []

    /// The names of the edited records, sorted.
    var records: [String] { Set(events.map(\.record)).sorted() }

    /// Records an edit, after ``look(_:token:tags:deferUntilReply:)``.
    mutating func edit(
        _ id: Int, _ record: String, by device: Int, fields: [String: String?]?, state: [String: String], time: Int64
    ) {
        let known = known[device][record] ?? []
        events.append(
            Event(id: id, record: record, device: device, fields: fields, state: state, known: known, time: time))
        self.known[device][record, default: []].insert(id)
    }

    /// Records that a request is about to be sent, for the first time or again, after ``look(_:token:tags:deferUntilReply:)``.
    mutating func send(_ request: ModifyRecordsRequest, by device: Int) {
        guard let token = request.clientToken, carried[token] == nil else { return }
        carried[token] = request.operations.reduce(into: [:]) { carried, operation in
            let record = operation.record.id.recordName
            var all = known[device][record] ?? []
            // If the record was made again since the deletion, that is sent after it.
            if operation.isDeletion {
                let own = events.filter { $0.device == device && $0.record == record }
                if let deletion = own.last(where: { $0.fields == nil }) {
                    all.subtract(own.filter { $0.id > deletion.id }.map(\.id))
                }
            }
            carried[record] = all
        }
    }

    /// Records that the cloud has carried a request out.
    mutating func commit(_ request: ModifyRecordsRequest, _ outcomes: [RecordOutcome]) {
        guard let token = request.clientToken, let carried = carried[token] else { return }
        for (operation, outcome) in zip(request.operations, outcomes) {
            let record = operation.record.id.recordName
            let before = operation.record.changeTag.flatMap { versions[$0] } ?? []
            let all = before.union(carried[record] ?? [])
            switch outcome {
            case .saved(let saved):
                guard let tag = saved.changeTag, versions[tag] == nil else { continue }
                versions[tag] = all
                cloud[record, default: []].formUnion(all)
            case .deleted: cloud[record, default: []].formUnion(all)
            case .failed: break
            }
        }
    }

    /// Records the changes since a token that the cloud returns to a device.
    mutating func answer(_ changes: ZoneChanges, since token: String?, to device: Int) {
        let new = changes.token.rawValue
        guard changes.moreComing else {
            tokens[device][new] = cloud
            return
        }
        var known = token.flatMap { tokens[device][$0] } ?? [:]
        for change in changes.changes {
            let name =
                switch change {
                case .saved(let record): record.id.recordName
                case .deleted(let deletion): deletion.id.recordName
                }
            known[name] = cloud[name]
        }
        // A token may be reached in several ways.
        if let other = tokens[device][new] {
            for (name, edits) in known { known[name] = other[name]?.intersection(edits) }
        }
        tokens[device][new] = known
    }
}

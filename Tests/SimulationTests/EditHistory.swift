import Foundation
import TidemarkCloud

/// What was edited in a run, and what the device knew that edited: which edits of the same record its store had taken in, its own and
/// others'.
///
/// Knowledge is read from the stores and follows the change tags: a version in the cloud knows what the device knew that sent it, and
/// the version that it replaced.
struct EditHistory {
    struct Event {
        let id: Int
        let record: String
        let device: Int
        /// Of a save, the fields that it changed; `nil` for a deletion.
        let fields: [String: String?]?
        /// Of a save, the whole record afterwards.
        let state: [String: String]
        /// Edits of the record that were known.
        let known: Set<Int>
        /// By the store's clock.
        let time: Int64
    }

    private(set) var events: [Event] = []
    /// By device and record.
    private var known: [[String: Set<Int>]]
    /// What versions in the cloud know, by their tags.
    private var versions: [String: Set<Int>] = [:]
    /// What requests carry, by their tokens and records.
    private var carried: [String: [String: Set<Int>]] = [:]
    /// What the cloud knows of each record, its tombstones among them.
    private var cloud: [String: Set<Int>] = [:]
    /// What a device knows that has come as far as a change token; not the same for all, as a record that was changed since is left out of
    /// what one fetches, and not of what another has fetched before.
    private var tokens: [[String: [String: Set<Int>]]]

    /// What devices knew whose records were set aside.
    private var quarantined: [UUID: [String: Set<Int>]] = [:]

    init(devices: Int) {
        known = Array(repeating: [:], count: devices)
        tokens = Array(repeating: [:], count: devices)
    }

    /// Takes note of what a device's store has taken in.
    ///
    /// - Parameter deferUntilReply: Records that it has deferred, though it has come as far as the token.
    mutating func look(_ device: Int, token: String?, tags: [String: String], deferUntilReply: Set<String>) {
        if let token, let all = tokens[device][token] {
            known[device].merge(all.filter { !deferUntilReply.contains($0.key) }) { $0.union($1) }
        }
        for (record, tag) in tags { known[device][record, default: []].formUnion(versions[tag] ?? []) }
    }

    /// What a device knows, to be given back to ``putBack(_:to:)``.
    func knowledge(of device: Int) -> [String: Set<Int>] { known[device] }

    /// A device's store was put back to an earlier state: it knows no more than it did then.
    mutating func putBack(_ device: Int, to knowledge: [String: Set<Int>]) { known[device] = knowledge }

    /// A device's store was emptied, and what it had set aside; or not, where there was nothing.
    mutating func setAside(_ device: Int, as quarantine: UUID?) {
        if let quarantine { quarantined[quarantine] = known[device] }
        known[device] = [:]
    }

    /// A record of what was set aside has come back as an edit.
    mutating func restore(_ record: String, by device: Int, from quarantine: UUID) {
        let brought = quarantined[quarantine]?[record] ?? []
        let sent = carried.values.reduce(into: Set<Int>()) { $0.formUnion($1[record] ?? []) }
        restored.formUnion(events.filter { $0.device == device && brought.contains($0.id) && sent.contains($0.id) }.map(\.id))
        known[device][record, default: []].formUnion(quarantined[quarantine]?[record] ?? [])
    }

    /// Edits that were sent when they were set aside, and came back as edits made anew: nobody knew any more whether the cloud had them.
    private(set) var restored: Set<Int> = []

    /// Edits that the cloud has acknowledged, whatever became of it since.
    var acknowledged: Set<Int> { versions.values.reduce(into: []) { $0.formUnion($1) } }

    /// The cloud has lost everything.
    mutating func loseCloud() {
        cloud = [:]
        lost.formUnion(acknowledged)
    }

    /// Edits that the cloud had acknowledged before it lost everything.
    private(set) var lost: Set<Int> = []

    /// The records that were edited, in order.
    var records: [String] { Set(events.map(\.record)).sorted() }

    /// An edit, after ``look(_:token:tags:deferUntilReply:)``.
    mutating func edit(
        _ id: Int, _ record: String, by device: Int, fields: [String: String?]?, state: [String: String], time: Int64
    ) {
        let known = known[device][record] ?? []
        events.append(
            Event(id: id, record: record, device: device, fields: fields, state: state, known: known, time: time))
        self.known[device][record, default: []].insert(id)
    }

    /// A request is to be sent, for the first time or again, after ``look(_:token:tags:deferUntilReply:)``.
    mutating func send(_ request: ModifyRecordsRequest, by device: Int) {
        guard let token = request.clientToken, carried[token] == nil else { return }
        carried[token] = request.operations.reduce(into: [:]) { carried, operation in
            let record = operation.record.id.recordName
            var all = known[device][record] ?? []
            // What was made anew since the deletion comes behind it.
            if operation.isDeletion {
                let own = events.filter { $0.device == device && $0.record == record }
                if let deletion = own.last(where: { $0.fields == nil }) {
                    all.subtract(own.filter { $0.id > deletion.id }.map(\.id))
                }
            }
            carried[record] = all
        }
    }

    /// The cloud has done it.
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

    /// The cloud tells a device what has changed since a token.
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
        // The same place may be come to on several ways.
        if let other = tokens[device][new] {
            for (name, edits) in known { known[name] = other[name]?.intersection(edits) }
        }
        tokens[device][new] = known
    }
}

import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// The reason why the cloud does not have a record as it is here, as the tool prints it.
struct SyncIssueLine: Encodable {
    let type, record, kind: String
    let fields: [String]
    let pendingSince: String?
    let attempts: Int
    let code, reason, lastTry, nextTry, waitsFor: String?
    let state: String

    init(_ entry: SyncIssue) {
        func time(_ microseconds: Int64?) -> String? { microseconds.map { Timestamp.text(microseconds: $0) } }
        (type, record, kind, fields) = (entry.type, entry.record, "\(entry.kind)", entry.fields)
        (pendingSince, lastTry, nextTry) = (time(entry.pendingSince), time(entry.lastTry), time(entry.nextTry))
        (attempts, code, reason, waitsFor) = (entry.attempts, entry.code, entry.reason, entry.waitsFor)
        state =
            entry.waitsFor != nil ? "waiting" : entry.isAwaitingRetry ? "retry" : entry.code != nil ? "refused" : "queued"
    }

    var text: String { line(with: reason ?? "") }

    /// The lines of the issue: a reason of more than two sentences has a line for each.
    func lines(_ remedies: FieldRemedies) -> [String] {
        // The sentences are split before paths are put in, because a path may contain the end of a sentence.
        let sentences = FieldRemedies.sentences(reason ?? "").map(remedies.filledIn)
        guard sentences.count > 2 else { return [line(with: sentences.joined(separator: " "))] }
        return [line(with: "")] + sentences.map { "  \($0)" }
    }

    private func line(with reason: String) -> String {
        var text = "\(kind) \(RecordName(type: type, name: record).title): "
        text += state == "retry" ? "waits to be tried again" : state
        if let since = pendingSince { text += " since \(since)" }
        if let code {
            text += "; tried \(Wording.count(attempts, "time")), last at \(lastTry ?? "?"): \(code)"
            if !reason.isEmpty { text += ": \(reason)" }
        }
        if let waitsFor { return text + "; goes when \(waitsFor) has gone" }
        if state == "retry" { return text + "; tried again at the next sync" }
        if code == StoreError.Code.damaged.rawValue { return text + "; sent when it is repaired" }
        // A schema that accepts the record may have been deployed since.
        if code == CloudError.Code.invalidArguments.rawValue {
            return text + "; tried again when it is changed, and at the next sync"
        }
        if code == CloudError.Code.limitExceeded.rawValue, let nextTry {
            return text + "; tried again when it is changed, when the cloud has other limits, and at \(nextTry)"
        }
        if code != nil { text += nextTry.map { "; next try at \($0)" } ?? "; tried again when it is changed" }
        return text
    }
}

/// A deferred record as the tool prints it: a record of the cloud that was not imported, or only in part.
struct DeferredLine: Encodable {
    let type, record, reason: String
    /// Why the record was not imported, without the remedy.
    let cause: String
    /// The part of the cause that several records have in common, for the one line about all of them.
    let commonCause: String
    /// The fields that have another type here.
    let conflicts: [FieldTypeConflict]

    private enum CodingKeys: String, CodingKey {
        case type, record, reason
    }

    init(
        _ deferred: DeferredRecord, _ collision: NameCollision? = nil, _ conflicts: [FieldTypeConflict] = [],
        _ missing: [MissingContent] = []
    ) {
        (type, record, self.conflicts) = (deferred.type, deferred.name, collision == nil ? conflicts : [])
        if !missing.isEmpty {
            let isLost = missing.contains { $0.code == .assetNotAvailable }
            var remedy = "; the next sync tries again"
            if isLost { remedy += ". If the cloud has lost it, save the file again on a device that has it" }
            cause = missing.map { "\($0.text): \($0.reason)" }.joined(separator: "; ") + remedy
            commonCause = missing.map(\.text).joined(separator: "; ") + " ('--all' has the reason of each)" + remedy
            reason = cause
            return
        }
        if let collision {
            cause = "\(collision); what the cloud has of it is kept until the store can hold it"
            reason = cause
        } else if let first = conflicts.first {
            let fields = conflicts.map { "the field \($0.field) is \($0.here) here and \($0.cloud) in the cloud" }
            cause = fields.joined(separator: ", ")
            let field = "--type \(deferred.type) \(first.field)"
            var remedy = "give it another name here: 'tidemark schema rename <path> \(field) <name>'"
            if FieldRemedies.converts(first) {
                // A shell takes the angle brackets of a list's type for redirections.
                let cloud = "\(first.cloud)".contains("<") ? "\"\(first.cloud)\"" : "\(first.cloud)"
                remedy = "give it that type: 'tidemark schema retype <path> \(field) \(cloud)', or \(remedy)"
            }
            reason = "\(cause); \(remedy). The cloud's values come with the next sync"
        } else {
            cause = deferred.reason.explanation
            reason = cause
        }
        commonCause = cause
    }

    /// The record's name, with its type unless the name begins with the type.
    var title: String { RecordName(type: type, name: record).title }

    var text: String { "\(title): \(reason)" }
}

extension MissingContent {
    /// The missing content, and the code of the error.
    fileprivate var text: String { "the content of the field \(field) could not be fetched: \(code.rawValue)" }
}

extension DeferredRecord.Reason {
    /// Why a record of the cloud was not imported, and the remedy.
    var explanation: String {
        switch self {
        case .schema: "the store lacks its type or some of its fields; it is imported when they exist"
        case .asset: "a file that it names could not be fetched; the next sync tries again"
        case .name: "a record of another type has its name here; rename or delete that"
        case .conflict: "both sides changed it; resolve it with 'tidemark conflicts resolve'"
        case .damaged: "the record is damaged here; it is imported when it is repaired ('tidemark verify --repair')"
        case .damagedInCloud:
            "the cloud's copy is damaged; a device that has it whole sends it again, else the cloud's administrator has to help"
        case .move: "it was deleted in its zone; the next sync finds out whether it has moved to another one"
        case .deletion: "it was deleted in the cloud and edited here; resolve it with 'tidemark conflicts resolve'"
        }
    }
}

import TidemarkCloud
import TidemarkModel
import TidemarkStore

/// Decides what happens to a change after the cloud's reply.
struct ExportReaction {
    let mapping: RecordMapping
    let environment: SyncEnvironment

    /// The pause of a record that was refused for a reason that may pass.
    static let pause: Int64 = 60_000_000
    /// The pause of a record for which a person has to act.
    static let longPause: Int64 = 600_000_000
    /// The pause of a record that is too large for the cloud's limits. New limits that the cloud announces end it.
    static let limitPause: Int64 = 86_400_000_000

    /// Returns when to send a change again that the cloud does not accept as it is; `nil` if the record has to be edited first. A
    /// deletion can't be edited, and a record that is too large for the cloud's limits may be within new ones.
    func nextTry(of item: ExportItem, _ error: CloudError) -> Int64? {
        if item.key.kind == .delete { return environment.now() + Self.longPause }
        return ErrorReaction(error.code) == .halve ? environment.now() + Self.limitPause : nil
    }

    /// The result that the store applies for a change that the cloud has answered with an error.
    ///
    /// - Parameter changed: Gets the cloud's version of the record, where the two are to be merged.
    func result(
        _ error: CloudError, _ item: ExportItem, _ changed: inout [ZoneChanges.Change]
    ) -> ExportResult {
        switch ErrorReaction(error.code) {
        // The cloud can't have deleted a record that it never had: it lacks something else, such as the type in production.
        case .merge where error.serverRecord == nil && item.key.kind == .save && item.tag == nil && error.code == .unknownItem:
            return .refused(code: error.code.rawValue, reason: error.reason, nextTry: environment.now() + Self.pause)
        case .merge:
            if let record = error.serverRecord {
                changed.append(.saved(record))
            } else if item.key.kind == .delete {
                // The record is gone already.
                return .deleted
            } else {
                changed.append(.deleted(.init(id: CloudRecordID(item.name, in: mapping.zone), type: item.type)))
            }
            return .undone
        case .innocent, .retry, .resend, .uploadAssets, .remakeZone, .wipe, .refetch: return .undone
        case .park:
            return .refused(code: error.code.rawValue, reason: error.reason, nextTry: environment.now() + Self.pause)
        // In a zone of another owner, a refusal of the cloud is final: the change is reverted here.
        case .ask where mapping.isRefusal(error): return .rejected(code: error.code.rawValue, reason: Self.reason(error))
        case .ask:
            return .refused(code: error.code.rawValue, reason: error.reason, nextTry: environment.now() + Self.longPause)
        case .halve, .report:
            return .refused(code: error.code.rawValue, reason: error.reason, nextTry: nextTry(of: item, error))
        }
    }

    /// The reason of an error, with the remedies of a refused permission.
    static func reason(_ error: CloudError) -> String {
        guard let denial = error.denial else { return error.reason }
        return denial.reason + (denial.remedy.map { "; \($0.text)" } ?? "")
    }

    /// Whether a reply has an outcome of the right kind for each item.
    static func isAnswer(_ outcomes: [RecordOutcome], to request: SentRequest) -> Bool {
        outcomes.count == request.items.count
            && zip(request.items, outcomes).allSatisfy { item, outcome in
                switch outcome {
                case .saved: item.key.kind == .save
                case .deleted: item.key.kind == .delete
                case .failed: true
                }
            }
    }

    /// Whether a reply names an item that is to blame for the failure of the others.
    static func hasCause(_ outcomes: [RecordOutcome]) -> Bool {
        outcomes.contains { outcome in
            if case .failed(let error) = outcome { error.code != .batchRequestFailed } else { false }
        }
    }
}

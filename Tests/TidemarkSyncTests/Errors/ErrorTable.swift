import Foundation
import TidemarkCloud

/// The outcome of a change or a fetch that a cloud answers with an error.
enum ErrorOutcome: Hashable, Sendable {
    /// The synchronisation tries again by itself, after longer and longer pauses.
    case again
    /// The record has an issue, and is sent again after so many seconds; if `nil`, when it is edited.
    case issue(after: Int64?)
    /// The synchronisation stops, and the next one starts again.
    case stops
    /// The store is emptied, and changes that the cloud does not have are set aside.
    case emptied
    /// The record is here without its content, which the next synchronisation fetches.
    case deferred
    /// Nothing is left to do.
    case done
}

/// The outcomes of all errors of a cloud, as in the guide.
enum ErrorTable {
    /// The text is the table in Documentation/Guides/Sync.md. If a cell has two words, the first is for an error that occurs
    /// once, the second for one that occurs each time.
    static let text = """
        | code | account, zone | list of changes | request | new record | changed record | deletion | upload | download |
        |---|---|---|---|---|---|---|---|---|
        | `networkUnavailable` | again | again | again | again, 1 min | again, 1 min | again, 1 min | again | again |
        | `networkFailure` | again | again | again | again, 1 min | again, 1 min | again, 1 min | again | again |
        | `serviceUnavailable` | again | again | again | again, 1 min | again, 1 min | again, 1 min | again | again |
        | `requestRateLimited` | again | again | again | again, 1 min | again, 1 min | again, 1 min | again | again |
        | `zoneBusy` | again | again | again | again, 1 min | again, 1 min | again, 1 min | again | again |
        | `accountTemporarilyUnavailable` | again | again | again | again, 1 min | again, 1 min | again, 1 min | again | again |
        | `serverRecordChanged` | again | again | again | again, 1 min | again, 1 min | again, 1 min | again | again |
        | `limitExceeded` | again | again | again, 1 day | 1 day | 1 day | 10 min | 1 min | deferred |
        | `batchRequestFailed` | again | again | again | again, 1 min | again, 1 min | again, 1 min | again | again |
        | `zoneNotFound` | again | again | again | again, 1 min | again, 1 min | again, 1 min | again | again |
        | `userDeletedZone` | again | emptied | emptied | again, 1 min | again, 1 min | again, 1 min | emptied | emptied |
        | `changeTokenExpired` | again | again | again | again, 1 min | again, 1 min | again, 1 min | again | again |
        | `referenceViolation` | again | again | again | 1 min | 1 min | 1 min | again | again |
        | `assetNotAvailable` | again | again | again | again, 1 min | again, 1 min | again, 1 min | 1 min | deferred |
        | `quotaExceeded` | stops | again | 10 min | 10 min | 10 min | 10 min | 10 min | again |
        | `notAuthenticated` | stops | again | again, 10 min | 10 min | 10 min | 10 min | again, 10 min | again |
        | `secondFactorRequired` | stops | again | 10 min | 10 min | 10 min | 10 min | 10 min | again |
        | `permissionFailure` | stops | again | 10 min | 10 min | 10 min | 10 min | 10 min | deferred |
        | `alreadyShared` | again | again | again, edit | edit | edit | 10 min | again, edit | again |
        | `recordDamaged` | again | again | again, edit | edit | edit | 10 min | again, edit | again |
        | `unknownItem` | again | again | again | 1 min | again, 1 min | done | again | again |
        | `invalidArguments` | again | again | again, edit | edit | edit | 10 min | again, 1 min | deferred |
        | `internalError` | again | again | again | edit | edit | 10 min | again | again |
        | any other | again | again | again, edit | edit | edit | 10 min | again, edit | again |
        """

    /// A code that no version knows.
    static let unknown = CloudError.Code(rawValue: "tooNewToBeKnown")

    struct Row: Sendable {
        let code: CloudError.Code
        fileprivate let cells: [String]

        /// The outcome of an error that occurs once, or each time.
        func outcome(of operation: ScriptedDatabase.Operation, always: Bool) -> ErrorOutcome? {
            let column =
                switch operation {
                case .account, .makeZone: 0
                case .listZones, .fetch: 1
                case .saveRequest, .deleteRequest, .missingAssets: 2
                case .save: 3
                case .edit: 4
                case .delete: 5
                case .upload: 6
                case .download: 7
                }
            guard column < cells.count else { return nil }
            let words = cells[column].components(separatedBy: ", ")
            switch always ? words[words.count - 1] : words[0] {
            case "again": return .again
            case "1 min": return .issue(after: 60)
            case "10 min": return .issue(after: 600)
            // A deleted record can't be edited.
            case "1 day": return .issue(after: operation == .deleteRequest ? 600 : 86_400)
            // A deleted record can't be edited.
            case "edit": return .issue(after: operation == .deleteRequest ? 600 : nil)
            case "stops": return .stops
            case "emptied": return .emptied
            case "deferred": return .deferred
            case "done": return .done
            default: return nil
            }
        }
    }

    static let rows: [Row] = text.split(separator: "\n").dropFirst(2).map { line in
        let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        let name = cells[0].trimmingCharacters(in: ["`"])
        return Row(
            code: name == "any other" ? unknown : CloudError.Code(rawValue: name), cells: Array(cells.dropFirst()))
    }
}

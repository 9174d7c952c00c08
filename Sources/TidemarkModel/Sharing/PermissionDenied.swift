public import Foundation

/// The error of an operation that the actor may not perform. Nothing was changed.
public struct PermissionDenied: Error, Hashable, Sendable {
    /// The record; `nil` if the operation is about a share or a zone.
    public let record: RecordName?
    /// The rule that forbids the operation, with the remedy.
    public let decision: ShareDecision

    /// Makes the error for a record, or for a share or a zone where `record` is `nil`.
    public init(record: RecordName?, decision: ShareDecision) {
        self.record = record
        self.decision = decision
    }
}

extension PermissionDenied: CustomStringConvertible {
    public var description: String {
        let what = record.map { "\(decision.operation.rawValue) of \($0.type) \($0.name)" } ?? decision.operation.rawValue
        let remedy = decision.remedy.map { "; \($0.text)" } ?? ""
        return "\(what) is not allowed: \(decision.reason)\(remedy)"
    }
}

extension PermissionDenied: LocalizedError {
    /// The error message: the text of `localizedDescription`, in the language of ``ErrorLanguage/current``.
    public var errorDescription: String? {
        ErrorLanguage.current == .english ? description : decision.sentence(in: .current)
    }
    /// The message in English, which names the record, where the description is a general sentence in another language.
    public var failureReason: String? { ErrorLanguage.current == .english ? nil : description }
    /// The remedy; `nil` when none is known, or when the description has it.
    public var recoverySuggestion: String? { decision.remedy?.sentence(in: .current) }
}

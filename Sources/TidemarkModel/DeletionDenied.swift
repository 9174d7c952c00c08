public import Foundation

/// The error of a deletion that a delete rule or a permission forbids. Nothing was deleted.
public struct DeletionDenied: Error, Hashable, Sendable {
    /// Why a record may not be deleted.
    public enum Reason: Hashable, Sendable {
        /// Another record refers to it by a field whose rule is ``DeleteRule/deny``.
        case isReferredTo(by: RecordName, field: String)
        /// The record would be deleted or changed with the record that it refers to, and the actor may not do that.
        case notPermitted(ShareDecision)
    }

    /// A record that prevents the deletion.
    public struct Refusal: Hashable, Sendable {
        /// The record that may not be deleted, or not be changed.
        public let record: RecordName
        /// Why.
        public let reason: Reason

        /// Makes a refusal.
        public init(record: RecordName, reason: Reason) {
            self.record = record
            self.reason = reason
        }
    }

    /// All refusals, at least one.
    public let refusals: [Refusal]

    /// Makes the error of refusals.
    public init(refusals: [Refusal]) { self.refusals = refusals }
}

extension DeletionDenied: CustomStringConvertible {
    public var description: String {
        let shown = refusals.prefix(3).map { refusal in
            switch refusal.reason {
            case .isReferredTo(let other, let field):
                "\(other.type) \(other.name) refers to \(refusal.record.type) \(refusal.record.name) by '\(field)', and its delete rule is deny"
            case .notPermitted(let decision):
                "\(decision.operation.rawValue) of \(refusal.record.type) \(refusal.record.name) is not allowed: \(decision.reason)"
            }
        }
        let more = refusals.count > 3 ? " and \(refusals.count - 3) more" : ""
        return "nothing was deleted: \(shown.joined(separator: "; "))\(more)"
    }
}

extension DeletionDenied: LocalizedError {
    /// The error message: the text of `localizedDescription`, in the language of ``ErrorLanguage/current``.
    public var errorDescription: String? {
        guard ErrorLanguage.current == .german else { return description }
        return switch refusals.first?.reason {
        case .notPermitted(let decision): decision.sentence(in: .german)
        case .isReferredTo, nil: "Es wurde nichts gelöscht, weil andere Datensätze darauf verweisen."
        }
    }
    /// The refusals in English, where the description is a general sentence in another language.
    public var failureReason: String? { ErrorLanguage.current == .english ? nil : description }
    /// The remedy.
    public var recoverySuggestion: String? {
        switch (refusals.first?.reason, ErrorLanguage.current) {
        case (.isReferredTo, .english): "Delete the records that refer to it first, or have them refer to another record."
        case (.isReferredTo, .german):
            "Zuerst die Datensätze löschen, die darauf verweisen, oder sie auf einen anderen verweisen lassen."
        case (.notPermitted(let decision), let language): decision.remedy?.sentence(in: language)
        case (nil, _): nil
        }
    }
}

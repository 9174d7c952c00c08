import Foundation
public import TidemarkCloud
import TidemarkModel
public import TidemarkStore

/// A content that a record of the cloud names and that could not be fetched, with the reason.
public struct MissingContent: Hashable, Sendable {
    /// The field that names the content.
    public let field: String
    /// The code of the error with which the last download ended.
    public let code: CloudError.Code
    /// The reason that belongs to `code`, in words for people.
    public let reason: String
}

extension DeferredRecord {
    /// Returns the contents that could not be fetched, sorted by field. Empty where the record was deferred for another reason.
    ///
    /// - Throws: `CloudError` where the deferred record can't be read.
    public func missingContents() throws(CloudError) -> [MissingContent] {
        guard reason == .asset else { return [] }
        let name = Self.missingContentsField
        guard case .list(let elements, .string)? = try FieldCoding.decode(whole, only: [name])[name] else { return [] }
        let texts = elements.compactMap { element -> String? in
            if case .string(let text) = element { text } else { nil }
        }
        return stride(from: 0, to: texts.count - 2, by: 3).map { index in
            MissingContent(
                field: texts[index], code: CloudError.Code(rawValue: texts[index + 1]), reason: texts[index + 2])
        }
    }

    /// A field that only deferred records have, beside those of the cloud: why contents could not be fetched.
    private static let missingContentsField = "tide_missing"

    /// Encodes a record's fields to be stored if the record is deferred.
    ///
    /// - Parameter missing: The errors with which downloads have ended, by the field that names the content.
    static func encode(_ fields: [String: CloudValue], missing: [String: CloudError]) -> Data {
        guard !missing.isEmpty else { return FieldCoding.encode(fields) }
        let texts = missing.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value.code.rawValue, $0.value.reason] }
        return FieldCoding.encode(
            fields.merging([missingContentsField: .list(texts.map { .string($0) }, of: .string)]) { $1 })
    }

    /// The record's fields as they came from the cloud.
    ///
    /// - Throws: `CloudError` where they can't be read.
    func fields() throws(CloudError) -> [String: CloudValue] {
        var fields = try FieldCoding.decode(whole)
        fields[Self.missingContentsField] = nil
        return fields
    }
}

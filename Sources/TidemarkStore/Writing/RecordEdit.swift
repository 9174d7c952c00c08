public import Foundation
public import TidemarkModel
import TidemarkSQLite

/// The names of the fields of several edits, in the order of their values.
package final class FieldNames: Sendable {
    package let list: [String]
    package let set: Set<String>

    /// Whether any of the fields may have assets.
    let mayHaveAssets: Bool

    package init(_ list: [String], mayHaveAssets: Bool) {
        (self.list, set, self.mayHaveAssets) = (list, Set(list), mayHaveAssets)
    }
}

/// The change that a program wants to make to one record.
package struct RecordEdit: Sendable {
    package enum Base: Sendable {
        /// The values of the edit count, whatever the store has.
        case any
        /// The record is believed to be new.
        case none
        /// The record as it was loaded.
        case loaded(version: Int64, values: [String: FieldValue])
    }

    private enum Content: Sendable {
        case deletion(fields: Set<String>)
        case named([String: FieldValue], fields: Set<String>)
        /// The values in the order of the names.
        case listed([FieldValue?], FieldNames)
    }

    package var record: RecordName
    package var base: Base
    private var content: Content
    /// When fields were edited. Other fields have the transaction's time.
    package var times: [String: EditTime]
    /// The zone of a new record; in a shared store also the zone of an existing one. `nil` stands for the record's present zone.
    /// A new record then goes into the default zone, which a shared store with other zones does not have.
    package var zone: Int64?

    package init(
        record: RecordName, base: Base, values: [String: FieldValue]?, fields: Set<String>,
        times: [String: EditTime] = [:], zone: Int64? = nil
    ) {
        self.record = record
        self.base = base
        content = values.map { .named($0, fields: fields) } ?? .deletion(fields: fields)
        self.times = times
        self.zone = zone
    }

    /// Creates an edit of all the fields of a list.
    ///
    /// - Parameters:
    ///   - values: The values in the order of `names`; `nil` for no value.
    ///   - names: The names of the fields, which the edits of one save share.
    package init(record: RecordName, base: Base, values: [FieldValue?], names: FieldNames, zone: Int64?) {
        self.record = record
        self.base = base
        content = .listed(values, names)
        times = [:]
        self.zone = zone
    }

    package var isDeletion: Bool {
        if case .deletion = content { true } else { false }
    }

    /// The values that the record gets; `nil` for a deletion. Fields that are not among `fields` stay as they are.
    ///
    /// - Complexity: O(n) in the fields of an edit whose values are a list.
    package var values: [String: FieldValue]? {
        get {
            switch content {
            case .deletion: return nil
            case .named(let values, _): return values
            case .listed(let values, let names):
                var named = [String: FieldValue](minimumCapacity: values.count)
                for (name, value) in zip(names.list, values) { named[name] = value }
                return named
            }
        }
        set { content = newValue.map { .named($0, fields: fields) } ?? .deletion(fields: fields) }
    }

    /// The names of the fields that the edit sets or clears.
    package var fields: Set<String> {
        switch content {
        case .deletion(let fields), .named(_, let fields): fields
        case .listed(_, let names): names.set
        }
    }

    /// The values as a list; `nil` where the edit has them by name.
    var listed: (values: [FieldValue?], names: FieldNames)? {
        if case .listed(let values, let names) = content { (values, names) } else { nil }
    }

    /// Calls `body` with the identifiers of the assets that a field names.
    package func forEachAsset(_ body: (String) -> Void) {
        func visit(_ value: FieldValue) {
            switch value {
            case .asset, .list(_, of: .asset): value.assetIDs.forEach(body)
            default: break
            }
        }
        switch content {
        case .deletion: break
        case .named(let values, _): values.values.forEach(visit)
        case .listed(let values, let names) where names.mayHaveAssets: for case let value? in values { visit(value) }
        case .listed: break
        }
    }
}

/// The result of a save.
package struct SaveOutcome: Sendable {
    package var counts = ChangeCounts()
    /// Conflicts that were resolved.
    package var conflicts: [MergeConflict] = []
    /// Records that were edited, as they are now; `nil` where they are gone.
    package var saved: [RecordName: StoredVersion?] = [:]
    /// The names in the store of edited records, if they differ from the names of the edits.
    package var names: [RecordName: String] = [:]
    /// Records that were merged with another of their unique key, with its name.
    package var replaced: [RecordName: String] = [:]
    /// Records that were deleted with a record that they refer to, by the delete rule cascade.
    package var cascaded: [RecordName] = []
    /// The number of edits from a quarantine that can't be made here, and were added to the refused saves.
    package var refused = 0
    /// The number of its transaction in history; `nil` when nothing was changed.
    package var transaction: Int64?
}

/// A record's state in a store.
package struct StoredVersion: Hashable, Sendable {
    package let version: Int64
    /// Fields that have a value.
    package let values: [String: FieldValue]

    package init(version: Int64, values: [String: FieldValue]) {
        self.version = version
        self.values = values
    }
}

/// Records that could not be saved because others have changed them, under the policy ``MergePolicy/error``.
public struct UnresolvedConflicts: Error, Sendable {
    /// Each with its three versions.
    public let records: [RecordMerge.Unresolved]
}

extension UnresolvedConflicts: CustomStringConvertible {
    public var description: String {
        let names = records.prefix(3).map { record in
            RecordName(type: record.type, name: record.record).title
                + (record.fields.isEmpty ? "" : " (\(record.fields.joined(separator: ", ")))")
        }
        let more = records.count > 3 ? " and \(records.count - 3) more" : ""
        return """
            not saved: \(names.joined(separator: ", "))\(more) changed in the store since. Load the records again and repeat the edit, or save with \
            another merge policy
            """
    }
}

extension UnresolvedConflicts: LocalizedError {
    /// The error message: the text of `localizedDescription`, in the language of ``ErrorLanguage/current``.
    public var errorDescription: String? {
        switch ErrorLanguage.current {
        case .english: description
        case .german: "Andere haben dieselben Datensätze inzwischen anders geändert."
        }
    }
    /// The conflicts in English, where the description is a general sentence in another language.
    public var failureReason: String? { ErrorLanguage.current == .english ? nil : description }
    /// The remedy; `nil` when none is known, or when the description has it.
    public var recoverySuggestion: String? {
        switch ErrorLanguage.current {
        case .english: "Load the records again and repeat the edit, or save with another merge policy."
        case .german: "Die Datensätze neu laden und die Änderung wiederholen, oder mit einer anderen Merge-Regel sichern."
        }
    }
}

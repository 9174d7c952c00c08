import Foundation
import TidemarkSQLite

/// An order of a type's records by one field.
///
/// ```swift
/// let newestFirst = [RecordSort<Destination>.descending(\.createdAt)]
/// let byCaption = try await journal.fetchAll(
///     Destination.self, sortedBy: [.ascending(\.caption, order: .localizedStandard)])
/// ```
public struct RecordSort<R: Record>: Hashable, Sendable {
    /// The field's name. It is empty when the key path does not name a stored property; then the fetch throws.
    public let field: String
    /// Whether the greatest value comes first.
    public let isDescending: Bool
    /// The order of texts.
    public let order: TextOrder
    /// The reason why the key path can't be sorted by; `nil` when it can.
    let failure: SortFailure?

    private init(field: String, isDescending: Bool, order: TextOrder) {
        (self.field, self.isDescending, self.order, failure) = (field, isDescending, order, nil)
    }

    private init<Value>(_ property: KeyPath<R, Value>, isDescending: Bool, order: TextOrder?) {
        self.isDescending = isDescending
        self.order = order ?? (Value.self == Decimal.self || Value.self == Decimal?.self ? .decimal : .binary)
        do throws(StoreError) {
            field = try PropertyNames.name(of: property)
            failure = nil
        } catch {
            field = ""
            failure = SortFailure(message: error.message)
        }
    }

    /// Sorts from the least value to the greatest. Records without a value come first.
    ///
    /// - Parameters:
    ///   - field: The name that the field has in the store.
    ///   - order: The order of texts.
    public static func ascending(_ field: String, order: TextOrder = .binary) -> RecordSort {
        RecordSort(field: field, isDescending: false, order: order)
    }

    /// Sorts from the greatest value to the least. Records without a value come last.
    ///
    /// - Parameters:
    ///   - field: The name that the field has in the store.
    ///   - order: The order of texts.
    public static func descending(_ field: String, order: TextOrder = .binary) -> RecordSort {
        RecordSort(field: field, isDescending: true, order: order)
    }

    /// Sorts by a stored property from the least value to the greatest. Records without a value come first.
    ///
    /// - Parameters:
    ///   - property: A stored property, as `\.caption`.
    ///   - order: The order of texts; by default ``TextOrder/decimal`` for a `Decimal`, and ``TextOrder/binary`` for all other
    ///     types.
    public static func ascending<Value>(_ property: KeyPath<R, Value>, order: TextOrder? = nil) -> RecordSort {
        RecordSort(property, isDescending: false, order: order)
    }

    /// Sorts by a stored property from the greatest value to the least. Records without a value come last.
    ///
    /// - Parameters:
    ///   - property: A stored property, as `\.createdAt`.
    ///   - order: The order of texts; by default ``TextOrder/decimal`` for a `Decimal`, and ``TextOrder/binary`` for all other
    ///     types.
    public static func descending<Value>(_ property: KeyPath<R, Value>, order: TextOrder? = nil) -> RecordSort {
        RecordSort(property, isDescending: true, order: order)
    }
}

/// The error of a key path that names no field.
struct SortFailure: Hashable, Sendable {
    let message: String
}

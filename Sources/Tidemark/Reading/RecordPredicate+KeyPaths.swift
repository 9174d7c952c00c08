import TidemarkSQLite

extension RecordPredicate {
    /// Begins a comparison with a stored property.
    ///
    /// ```swift
    /// let fjords = try await journal.fetchAll(
    ///     Destination.self, where: .field(\.caption).contains("fjord", options: [.caseInsensitive]))
    /// ```
    ///
    /// - Parameter property: A stored property of the record type, as `\.caption`. Any other key path makes the fetch throw
    ///   ``StoreError`` `invalid`.
    public static func field<Value>(_ property: KeyPath<R, Value>) -> Property<Value> {
        Property(name: Result { () throws(StoreError) in try PropertyNames.name(of: property) })
    }

    /// A stored property in a predicate, named by a key path, before its comparison.
    public struct Property<Value>: Sendable {
        let name: Result<String, StoreError>

        fileprivate func predicate(_ node: (String) -> PredicateNode) -> RecordPredicate {
            switch name {
            case .success(let name): RecordPredicate(node(name))
            case .failure(let error): RecordPredicate(.invalid(error))
            }
        }

        fileprivate func compare(_ operation: PredicateNode.Operator, _ value: (some Encodable)?) -> RecordPredicate {
            predicate { .compare($0, operation, value) }
        }
    }
}

extension RecordPredicate.Property where Value: Encodable {
    /// Matches records whose value is one of the given values.
    ///
    /// - Parameter values: The values; a `nil` is ignored.
    public func isIn(_ values: some Sequence<Value>) -> RecordPredicate<R> { predicate { .isIn($0, values) } }
}

extension RecordPredicate.Property where Value == String {
    /// Matches records whose text contains another text.
    ///
    /// - Parameters:
    ///   - text: The text to look for.
    ///   - options: The differences to ignore; by default none.
    public func contains(_ text: String, options: TextOptions = []) -> RecordPredicate<R> {
        predicate { .text($0, .contains, text, options) }
    }

    /// Matches records whose text begins with another text.
    ///
    /// - Parameters:
    ///   - prefix: The beginning to look for.
    ///   - options: The differences to ignore; by default none.
    public func begins(with prefix: String, options: TextOptions = []) -> RecordPredicate<R> {
        predicate { .text($0, .beginsWith, prefix, options) }
    }
}

extension RecordPredicate.Property where Value == String? {
    /// Matches records whose text contains another text.
    ///
    /// - Parameters:
    ///   - text: The text to look for.
    ///   - options: The differences to ignore; by default none.
    public func contains(_ text: String, options: TextOptions = []) -> RecordPredicate<R> {
        predicate { .text($0, .contains, text, options) }
    }

    /// Matches records whose text begins with another text.
    ///
    /// - Parameters:
    ///   - prefix: The beginning to look for.
    ///   - options: The differences to ignore; by default none.
    public func begins(with prefix: String, options: TextOptions = []) -> RecordPredicate<R> {
        predicate { .text($0, .beginsWith, prefix, options) }
    }
}

extension RecordPredicate.Property {
    /// Matches records whose list has this element.
    public func contains<Element: Encodable>(_ element: Element) -> RecordPredicate<R> where Value == [Element] {
        compare(.contains, element)
    }

    /// Matches records whose list has this element.
    public func contains<Element: Encodable>(_ element: Element) -> RecordPredicate<R> where Value == [Element]? {
        compare(.contains, element)
    }

    /// Matches records whose list has a reference to this record.
    public func contains<Target: Record>(_ record: Target) -> RecordPredicate<R> where Value == [Reference<Target>] {
        compare(.contains, Reference(record))
    }

    /// Matches records whose list has a reference to this record.
    public func contains<Target: Record>(_ record: Target) -> RecordPredicate<R> where Value == [Reference<Target>]? {
        compare(.contains, Reference(record))
    }
}

/// The property has this value.
public func == <R: Record, Value: Encodable & Equatable>(property: KeyPath<R, Value>, value: Value) -> RecordPredicate<R> {
    .field(property).compare(.equal, value)
}
/// The property refers to this record.
public func == <R: Record, Target: Record>(property: KeyPath<R, Reference<Target>>, record: Target) -> RecordPredicate<R> {
    .field(property).compare(.equal, Reference(record))
}
/// The property refers to this record.
public func == <R: Record, Target: Record>(property: KeyPath<R, Reference<Target>?>, record: Target) -> RecordPredicate<R> {
    .field(property).compare(.equal, Reference(record))
}
/// The property has another value, or none.
public func != <R: Record, Value: Encodable & Equatable>(property: KeyPath<R, Value>, value: Value) -> RecordPredicate<R> {
    .field(property).compare(.unequal, value)
}
/// The property refers to another record.
public func != <R: Record, Target: Record>(property: KeyPath<R, Reference<Target>>, record: Target) -> RecordPredicate<R> {
    .field(property).compare(.unequal, Reference(record))
}
/// The property refers to another record, or to none.
public func != <R: Record, Target: Record>(property: KeyPath<R, Reference<Target>?>, record: Target) -> RecordPredicate<R> {
    .field(property).compare(.unequal, Reference(record))
}
/// The property's value comes before another.
public func < <R: Record, Value: Encodable & Comparable>(property: KeyPath<R, Value>, value: Value) -> RecordPredicate<R> {
    .field(property).compare(.less, value)
}
/// The property's value comes before another. A record without a value is not among the results.
public func < <R: Record, Value: Encodable & Comparable>(property: KeyPath<R, Value?>, value: Value) -> RecordPredicate<R> {
    .field(property).compare(.less, value)
}
/// The property's value comes before another, or is the same.
public func <= <R: Record, Value: Encodable & Comparable>(property: KeyPath<R, Value>, value: Value) -> RecordPredicate<R> {
    .field(property).compare(.lessOrEqual, value)
}
/// The property's value comes before another, or is the same. A record without a value is not among the results.
public func <= <R: Record, Value: Encodable & Comparable>(property: KeyPath<R, Value?>, value: Value) -> RecordPredicate<R> {
    .field(property).compare(.lessOrEqual, value)
}
/// The property's value comes after another.
public func > <R: Record, Value: Encodable & Comparable>(property: KeyPath<R, Value>, value: Value) -> RecordPredicate<R> {
    .field(property).compare(.greater, value)
}
/// The property's value comes after another. A record without a value is not among the results.
public func > <R: Record, Value: Encodable & Comparable>(property: KeyPath<R, Value?>, value: Value) -> RecordPredicate<R> {
    .field(property).compare(.greater, value)
}
/// The property's value comes after another, or is the same.
public func >= <R: Record, Value: Encodable & Comparable>(property: KeyPath<R, Value>, value: Value) -> RecordPredicate<R> {
    .field(property).compare(.greaterOrEqual, value)
}
/// The property's value comes after another, or is the same. A record without a value is not among the results.
public func >= <R: Record, Value: Encodable & Comparable>(property: KeyPath<R, Value?>, value: Value) -> RecordPredicate<R> {
    .field(property).compare(.greaterOrEqual, value)
}

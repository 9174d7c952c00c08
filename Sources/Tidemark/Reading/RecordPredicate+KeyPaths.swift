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

    /// A stored property, named by a key path, that is yet to be compared.
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
    /// Tells whether the value is one of these.
    ///
    /// - Parameter values: The values; `nil` is none.
    public func isIn(_ values: some Sequence<Value>) -> RecordPredicate<R> { predicate { .isIn($0, values) } }
}

extension RecordPredicate.Property where Value == String {
    /// Tells whether the text has another in it.
    ///
    /// - Parameters:
    ///   - text: What is looked for.
    ///   - options: The differences that do not count; none if nothing is said.
    public func contains(_ text: String, options: TextOptions = []) -> RecordPredicate<R> {
        predicate { .text($0, .contains, text, options) }
    }

    /// Tells whether the text begins with another.
    ///
    /// - Parameters:
    ///   - prefix: What it begins with.
    ///   - options: The differences that do not count; none if nothing is said.
    public func begins(with prefix: String, options: TextOptions = []) -> RecordPredicate<R> {
        predicate { .text($0, .beginsWith, prefix, options) }
    }
}

extension RecordPredicate.Property where Value == String? {
    /// Tells whether the text has another in it.
    ///
    /// - Parameters:
    ///   - text: What is looked for.
    ///   - options: The differences that do not count; none if nothing is said.
    public func contains(_ text: String, options: TextOptions = []) -> RecordPredicate<R> {
        predicate { .text($0, .contains, text, options) }
    }

    /// Tells whether the text begins with another.
    ///
    /// - Parameters:
    ///   - prefix: What it begins with.
    ///   - options: The differences that do not count; none if nothing is said.
    public func begins(with prefix: String, options: TextOptions = []) -> RecordPredicate<R> {
        predicate { .text($0, .beginsWith, prefix, options) }
    }
}

extension RecordPredicate.Property {
    /// Tells whether the list has this element.
    public func contains<Element: Encodable>(_ element: Element) -> RecordPredicate<R> where Value == [Element] {
        compare(.contains, element)
    }

    /// Tells whether the list has this element.
    public func contains<Element: Encodable>(_ element: Element) -> RecordPredicate<R> where Value == [Element]? {
        compare(.contains, element)
    }

    /// Tells whether the list has a reference to this record.
    public func contains<Target: Record>(_ record: Target) -> RecordPredicate<R> where Value == [Reference<Target>] {
        compare(.contains, Reference(record))
    }

    /// Tells whether the list has a reference to this record.
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

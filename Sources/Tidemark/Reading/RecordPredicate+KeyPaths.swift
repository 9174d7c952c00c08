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

extension RecordPredicate.Property where Value: ReferenceValue {
    /// Matches records that refer to a record which matches a predicate; of a list, one of its references is enough.
    ///
    /// ```swift
    /// let stops = try await journal.fetchAll(Stop.self, where: .field(\.trip).matches(\.title == "Lofoten"))
    /// ```
    ///
    /// - Parameter predicate: The condition of the other record. Both records are looked for in the same store. A field that is named
    ///   by a text must be one of the other type in each store; a property that is named by a key path need not be.
    /// - Complexity: O(n) in the records of the other type, unless the predicate names them.
    public func matches(_ predicate: RecordPredicate<Value.Target>) -> RecordPredicate<R> {
        self.predicate { .refersTo($0, .init(Value.Target.self, where: predicate)) }
    }
}

extension RecordPredicate {
    /// Matches records that a property of another record type refers to.
    ///
    /// ```swift
    /// let begun = try await journal.fetchAll(Trip.self, where: .isReferenced(by: \Stop.trip, where: \.nights > 0))
    /// let empty = try await journal.fetchAll(Trip.self, where: !.isReferenced(by: \Stop.trip))
    /// ```
    ///
    /// - Parameters:
    ///   - property: A stored property that is a reference, or a list of references.
    ///   - predicate: The condition of the other records; by default all of them. They are looked for in the same store.
    /// - Complexity: O(n) in the records of both types.
    public static func isReferenced<Source: Record, Value: ReferenceValue>(
        by property: KeyPath<Source, Value>, where predicate: RecordPredicate<Source>? = nil
    ) -> RecordPredicate where Value.Target == R {
        do {
            return RecordPredicate(
                .isReferenced(by: try PropertyNames.name(of: property), .init(Source.self, where: predicate)))
        } catch {
            return RecordPredicate(.invalid(error))
        }
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

/// The records of a type that are wanted.
///
/// ```swift
/// let recent = try await journal.fetchAll(
///     Destination.self, where: \.createdAt > lastWeek && .field(\.caption).contains("fjord"))
/// let long = try await journal.fetchAll(Destination.self, where: .sql("length(details) > ?", 1000))
/// let rated = try await journal.fetchAll(Destination.self, where: .field("rating") >= 4)
/// ```
///
/// A key path such as `\.rating` names a stored property, and the compiler checks the value that it is compared with; see
/// ``Record/fieldName(of:)``. A text names a field as the record type has it, and the record's name as ``Record/nameField`` says; it is
/// checked when the predicate is used. As in SQL, a field without a value is neither greater nor less than anything; it is equal to `nil`
/// and unequal to every value.
///
/// A `Decimal` is compared as a number. A `UUID` is equal to a text or a reference that has it in either case.
public struct RecordPredicate<R: Record>: Sendable {
    let node: PredicateNode

    init(_ node: PredicateNode) { self.node = node }

    /// Begins a comparison with a field.
    ///
    /// - Parameter name: The name that the field has in the store. A name that the record type does not have makes the fetch throw
    ///   ``StoreError`` `schema`.
    public static func field(_ name: String) -> Field { Field(name: name) }

    /// Both hold.
    public static func && (left: RecordPredicate, right: RecordPredicate) -> RecordPredicate {
        RecordPredicate(.all([left.node, right.node]))
    }

    /// At least one of both holds.
    public static func || (left: RecordPredicate, right: RecordPredicate) -> RecordPredicate {
        RecordPredicate(.any([left.node, right.node]))
    }

    /// The predicate does not hold.
    public static prefix func ! (predicate: RecordPredicate) -> RecordPredicate { RecordPredicate(.not(predicate.node)) }

    /// A field, named by a text, that is yet to be compared.
    public struct Field: Sendable {
        let name: String

        /// Begins a comparison with a field.
        ///
        /// - Parameter name: The name that the field has in the store.
        public static func field(_ name: String) -> Field { Field(name: name) }

        /// Tells whether a text has this in it, in the same spelling; whether a list has this element.
        ///
        /// - Parameter value: A text, or an element of the list. A `UUID` is found in either case.
        public func contains(_ value: some Encodable) -> RecordPredicate { compare(.contains, value) }

        /// Tells whether a text has another in it.
        ///
        /// - Parameters:
        ///   - text: What is looked for.
        ///   - options: The differences that do not count.
        /// - Complexity: O(n) in the records; with options, each text is folded in Swift.
        public func contains(_ text: String, options: TextOptions) -> RecordPredicate {
            RecordPredicate(.text(name, .contains, text, options))
        }

        /// Tells whether a text begins with another.
        ///
        /// - Parameters:
        ///   - prefix: What it begins with.
        ///   - options: The differences that do not count; none if nothing is said.
        public func begins(with prefix: String, options: TextOptions = []) -> RecordPredicate {
            RecordPredicate(.text(name, .beginsWith, prefix, options))
        }

        /// Tells whether the value is one of these.
        ///
        /// - Parameter values: The values; `nil` is none.
        public func isIn(_ values: some Sequence<some Encodable>) -> RecordPredicate { RecordPredicate(.isIn(name, values)) }

        func compare(_ operation: PredicateNode.Operator, _ value: (some Encodable)?) -> RecordPredicate {
            RecordPredicate(.compare(name, operation, value))
        }
    }
}

/// The field has this value; `nil` for none.
public func == <R: Record>(field: RecordPredicate<R>.Field, value: (some Encodable)?) -> RecordPredicate<R> {
    field.compare(.equal, value)
}
/// The field has another value, or none.
public func != <R: Record>(field: RecordPredicate<R>.Field, value: (some Encodable)?) -> RecordPredicate<R> {
    field.compare(.unequal, value)
}
/// The field has no value.
public func == <R: Record>(field: RecordPredicate<R>.Field, none: _OptionalNilComparisonType) -> RecordPredicate<R> {
    field.compare(.equal, nil as String?)
}
/// The field has a value.
public func != <R: Record>(field: RecordPredicate<R>.Field, none: _OptionalNilComparisonType) -> RecordPredicate<R> {
    field.compare(.unequal, nil as String?)
}
/// The field's value comes before another. A record without a value is not among the results.
public func < <R: Record>(field: RecordPredicate<R>.Field, value: some Encodable) -> RecordPredicate<R> {
    field.compare(.less, value)
}
/// The field's value comes before another, or is the same. A record without a value is not among the results.
public func <= <R: Record>(field: RecordPredicate<R>.Field, value: some Encodable) -> RecordPredicate<R> {
    field.compare(.lessOrEqual, value)
}
/// The field's value comes after another. A record without a value is not among the results.
public func > <R: Record>(field: RecordPredicate<R>.Field, value: some Encodable) -> RecordPredicate<R> {
    field.compare(.greater, value)
}
/// The field's value comes after another, or is the same. A record without a value is not among the results.
public func >= <R: Record>(field: RecordPredicate<R>.Field, value: some Encodable) -> RecordPredicate<R> {
    field.compare(.greaterOrEqual, value)
}

/// A condition that selects records of a type.
///
/// ```swift
/// let recent = try await journal.fetchAll(
///     Destination.self, where: \.createdAt > lastWeek && .field(\.caption).contains("fjord"))
/// let long = try await journal.fetchAll(Destination.self, where: .sql("length(details) > ?", 1000))
/// let rated = try await journal.fetchAll(Destination.self, where: .field("rating") >= 4)
/// ```
///
/// A key path such as `\.rating` names a stored property, and the compiler checks the type of the value that it is compared with;
/// see ``Record/fieldName(of:)``. A text names a field by its name in the store, or the record's name by ``Record/nameField``. The
/// text is checked when the predicate is used. As in SQL, a field without a value is neither greater nor less than any value. It is
/// equal to `nil`, and unequal to every value.
///
/// A `Decimal` is compared as a number. A `UUID` is equal to a text or a reference that has it in upper or lower case.
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

    /// A field in a predicate, named by a text, before its comparison.
    public struct Field: Sendable {
        let name: String

        /// Begins a comparison with a field.
        ///
        /// - Parameter name: The name that the field has in the store.
        public static func field(_ name: String) -> Field { Field(name: name) }

        /// Matches records whose text contains this text in the same spelling, or whose list has this element.
        ///
        /// - Parameter value: A text, or an element of the list. A `UUID` is found in upper and lower case.
        public func contains(_ value: some Encodable) -> RecordPredicate { compare(.contains, value) }

        /// Matches records whose text contains another text.
        ///
        /// - Parameters:
        ///   - text: The text to look for.
        ///   - options: The differences to ignore.
        /// - Complexity: O(n) in the records. With options, Swift code folds each text.
        public func contains(_ text: String, options: TextOptions) -> RecordPredicate {
            RecordPredicate(.text(name, .contains, text, options))
        }

        /// Matches records whose text begins with another text.
        ///
        /// - Parameters:
        ///   - prefix: The beginning to look for.
        ///   - options: The differences to ignore; by default none.
        public func begins(with prefix: String, options: TextOptions = []) -> RecordPredicate {
            RecordPredicate(.text(name, .beginsWith, prefix, options))
        }

        /// Matches records whose value is one of the given values.
        ///
        /// - Parameter values: The values; a `nil` is ignored.
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

public import Foundation
import GRDB

/// The order of texts in a sort.
///
/// ```swift
/// let norwegian = TextOrder.localized(Locale(identifier: "nb_NO"))
/// let places = try await journal.fetchAll(Destination.self, sortedBy: [.ascending(\.caption, order: norwegian)])
/// ```
///
/// Numbers, times and bytes always have the same order.
public struct TextOrder: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case binary, caseInsensitive, decimal
        case localized(String)
    }

    let kind: Kind

    /// The order of the bytes of UTF-8: upper case before lower case, letters with diacritics after `z`. SQLite itself compares
    /// the texts.
    public static let binary = TextOrder(kind: .binary)
    /// The order ``binary``, without a difference between upper and lower case.
    public static let caseInsensitive = TextOrder(kind: .caseInsensitive)
    /// The order of numbers. A `Decimal` property is stored as a text. Texts that are not numbers come first.
    public static let decimal = TextOrder(kind: .decimal)
    /// The order that a person expects in the current locale. Numbers in texts are compared by their values. As
    /// `String.localizedStandardCompare`.
    public static var localizedStandard: TextOrder { localized(.current) }
    /// The order that a person expects in a locale. Numbers in texts are compared by their values.
    ///
    /// - Parameter locale: The locale. Its language determines the order: `Å` is the last letter in Norwegian, and an `A` in
    ///   German.
    public static func localized(_ locale: Locale) -> TextOrder { TextOrder(kind: .localized(locale.identifier)) }

    /// The name of the collation in SQL; `nil` for SQLite's own.
    var collation: String? {
        switch kind {
        case .binary: nil
        case .caseInsensitive: "tide_case_insensitive"
        case .decimal: "tide_decimal"
        case .localized(let locale): "tide_locale_" + locale.utf8.map { String(format: "%02x", $0) }.joined()
        }
    }

    /// A function that compares two texts; `nil` for SQLite's own order.
    var comparison: (@Sendable (String, String) -> ComparisonResult)? {
        switch kind {
        case .binary: nil
        case .caseInsensitive:
            { one, other in
                let order = TextOrder.binary(TextOptions.caseInsensitive.fold(one), TextOptions.caseInsensitive.fold(other))
                return order == .orderedSame ? TextOrder.binary(one, other) : order
            }
        case .decimal:
            { one, other in
                switch (Decimal(number: one), Decimal(number: other)) {
                case (let one?, let other?): one < other ? .orderedAscending : one > other ? .orderedDescending : .orderedSame
                case (nil, nil): TextOrder.binary(one, other)
                case (nil, _): .orderedAscending
                case (_, nil): .orderedDescending
                }
            }
        case .localized(let identifier):
            { [locale = Locale(identifier: identifier)] one, other in
                one.compare(
                    other, options: [.caseInsensitive, .numeric, .widthInsensitive, .forcedOrdering], range: nil, locale: locale)
            }
        }
    }

    private static func binary(_ one: String, _ other: String) -> ComparisonResult {
        if one.utf8.elementsEqual(other.utf8) { return .orderedSame }
        return one.utf8.lexicographicallyPrecedes(other.utf8) ? .orderedAscending : .orderedDescending
    }
}

/// Differences between texts that do not count in a search.
public struct TextOptions: OptionSet, Hashable, Sendable {
    /// The bits of the options.
    public let rawValue: Int

    /// Creates options from their bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Upper and lower case are the same.
    public static let caseInsensitive = TextOptions(rawValue: 1)
    /// A letter is the same with and without diacritics: `Å` is `A`. A separate letter, such as `Ø`, stays different.
    public static let diacriticInsensitive = TextOptions(rawValue: 2)

    /// Returns a text without the differences.
    func fold(_ text: String) -> String {
        var options: String.CompareOptions = []
        if contains(.caseInsensitive) { options.insert(.caseInsensitive) }
        if contains(.diacriticInsensitive) { options.insert(.diacriticInsensitive) }
        return text.folding(options: options, locale: nil)
    }
}

/// A function or a collation that queries need and SQLite does not have. A connection gets it with the first query that needs it.
enum SQLExtension: Hashable, Sendable {
    /// A function that compares two texts as numbers: -1, 0 or 1; `NULL` when one of them is not a number.
    case decimalOrder
    /// An aggregate: the sum of texts that are numbers, as a text. Other texts do not count.
    case decimalSum
    /// A function of a text and the bits of ``TextOptions``, which removes the differences.
    case fold
    /// A collation.
    case order(TextOrder)

    var name: String {
        switch self {
        case .decimalOrder: "tide_decimal_order"
        case .decimalSum: "tide_decimal_sum"
        case .fold: "tide_fold"
        case .order(let order): order.collation ?? "BINARY"
        }
    }

    /// Adds the extension to a connection that does not have it.
    func install(on db: Database) throws {
        var isCollation = false
        if case .order = self { isCollation = true }
        let list = isCollation ? "pragma_collation_list" : "pragma_function_list"
        guard try Int.fetchOne(db, sql: "SELECT 1 FROM \(list) WHERE name = ? LIMIT 1", arguments: [name]) == nil else { return }
        switch self {
        case .order(let order):
            if let comparison = order.comparison { db.add(collation: DatabaseCollation(name, function: comparison)) }
        case .decimalOrder:
            db.add(
                function: DatabaseFunction(name, argumentCount: 2, pure: true) { values in
                    guard let one = String.fromDatabaseValue(values[0]).flatMap({ Decimal(number: $0) }),
                        let other = String.fromDatabaseValue(values[1]).flatMap({ Decimal(number: $0) })
                    else { return nil }
                    return one < other ? -1 : one > other ? 1 : 0
                })
        case .decimalSum:
            db.add(function: DatabaseFunction(name, argumentCount: 1, pure: true, aggregate: DecimalSum.self))
        case .fold:
            db.add(
                function: DatabaseFunction(name, argumentCount: 2, pure: true) { values in
                    guard let text = String.fromDatabaseValue(values[0]), let bits = Int.fromDatabaseValue(values[1]) else {
                        return nil
                    }
                    return TextOptions(rawValue: bits).fold(text)
                })
        }
    }
}

/// Adds up texts that are numbers.
struct DecimalSum: DatabaseAggregate {
    private var sum: Decimal?

    init() {}

    init(adding values: [DatabaseValue]) throws {
        for value in values { try step([value]) }
    }

    mutating func step(_ values: [DatabaseValue]) throws {
        guard let number = String.fromDatabaseValue(values[0]).flatMap({ Decimal(number: $0) }) else { return }
        let sum = (sum ?? 0) + number
        guard !sum.isNaN else { throw AggregateState.decimalOverflow }
        self.sum = sum
    }

    func finalize() throws -> (any DatabaseValueConvertible)? { sum?.description }
}

extension Decimal {
    /// Reads a text as a number; `nil` when not all of the text is one.
    init?(number text: String) {
        guard Self.isNumber(text) else { return nil }
        self.init(string: text, locale: Self.plain)
        guard !isNaN else { return nil }
    }

    /// Returns whether a whole text is a number: a sign, digits, a point with digits, an exponent. `Decimal` itself would read
    /// the number at the beginning, and ignore the rest.
    private static func isNumber(_ text: String) -> Bool {
        var rest = Substring(text).utf8
        func skip(_ characters: String) -> Bool {
            guard let first = rest.first, characters.utf8.contains(first) else { return false }
            rest = rest.dropFirst()
            return true
        }
        func skipDigits() -> Int {
            let digits = rest.prefix { (0x30...0x39).contains($0) }.count
            rest = rest.dropFirst(digits)
            return digits
        }
        _ = skip("+-")
        var digits = skipDigits()
        if skip(".") { digits += skipDigits() }
        guard digits > 0 else { return false }
        if skip("eE") {
            _ = skip("+-")
            guard skipDigits() > 0 else { return false }
        }
        return rest.isEmpty
    }

    private static let plain = Locale(identifier: "en_US_POSIX")
}

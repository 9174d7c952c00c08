public import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A value that is computed from several records: their number, or the sum, average, minimum or maximum of a property.
///
/// ``RecordReading/aggregate(_:_:where:)`` computes it for all records that match, and `aggregates(_:_:by:where:)` for each group
/// of them.
public struct Aggregate<R: Record, Value: Sendable>: Sendable {
    let function: AggregateFunction
    /// The field; `nil` for the number of records.
    let field: Result<String, StoreError>?
    /// Whether the field's texts are numbers.
    let isDecimal: Bool
    /// Makes the value from the stores' results.
    let value: @Sendable (AggregateState, FieldType?) throws -> Value

    private init<Property>(
        _ function: AggregateFunction, _ property: KeyPath<R, Property>?,
        _ value: @escaping @Sendable (AggregateState, FieldType?) throws -> Value
    ) {
        self.function = function
        field = property.map { property in Result { () throws(StoreError) in try PropertyNames.name(of: property) } }
        isDecimal = Property.self == Decimal.self || Property.self == Decimal?.self
        self.value = value
    }
}

extension Aggregate where Value == Int {
    /// The number of records.
    public static var count: Aggregate {
        Aggregate(.count, nil as KeyPath<R, Int>?) { state, _ in state.count }
    }

    /// The number of records that have a value of a property.
    ///
    /// - Parameter property: A stored property.
    public static func count<Property>(_ property: KeyPath<R, Property>) -> Aggregate {
        Aggregate(.count, property) { state, _ in state.count }
    }
}

extension Aggregate where Value: AggregatedNumber {
    /// The sum of the values of a property; 0 without any value.
    ///
    /// - Parameter property: A stored property that is a number.
    public static func sum(_ property: KeyPath<R, Value>) -> Aggregate {
        Aggregate(.sum, property) { state, _ in try Value(aggregated: state.sum) }
    }

    /// The sum of the values of a property, of the records that have one; 0 without any value.
    ///
    /// - Parameter property: A stored property that is a number.
    public static func sum(_ property: KeyPath<R, Value?>) -> Aggregate {
        Aggregate(.sum, property) { state, _ in try Value(aggregated: state.sum) }
    }
}

extension Aggregate where Value == Double? {
    /// The average of the values of a property, of the records that have one; `nil` without any value.
    ///
    /// - Parameter property: A stored property that is a number.
    public static func average<Number: AggregatedNumber>(_ property: KeyPath<R, Number>) -> Aggregate {
        Aggregate(.average, property) { state, _ in state.average }
    }

    /// The average of the values of a property, of the records that have one; `nil` without any value.
    ///
    /// - Parameter property: A stored property that is a number.
    public static func average<Number: AggregatedNumber>(_ property: KeyPath<R, Number?>) -> Aggregate {
        Aggregate(.average, property) { state, _ in state.average }
    }
}

extension Aggregate {
    /// The least value of a property; `nil` without any value.
    ///
    /// - Parameter property: A stored property. Texts are compared by their bytes, `Decimal` as numbers.
    public static func minimum<Property: Comparable & Decodable>(_ property: KeyPath<R, Property>) -> Aggregate
    where Value == Property? {
        Aggregate(.minimum, property) { state, type in try state.extreme(Property.self, type) }
    }

    /// The least value of a property, of the records that have one; `nil` without any value.
    ///
    /// - Parameter property: A stored property. Texts are compared by their bytes, `Decimal` as numbers.
    public static func minimum<Property: Comparable & Decodable>(_ property: KeyPath<R, Property?>) -> Aggregate
    where Value == Property? {
        Aggregate(.minimum, property) { state, type in try state.extreme(Property.self, type) }
    }

    /// The greatest value of a property; `nil` without any value.
    ///
    /// - Parameter property: A stored property. Texts are compared by their bytes, `Decimal` as numbers.
    public static func maximum<Property: Comparable & Decodable>(_ property: KeyPath<R, Property>) -> Aggregate
    where Value == Property? {
        Aggregate(.maximum, property) { state, type in try state.extreme(Property.self, type) }
    }

    /// The greatest value of a property, of the records that have one; `nil` without any value.
    ///
    /// - Parameter property: A stored property. Texts are compared by their bytes, `Decimal` as numbers.
    public static func maximum<Property: Comparable & Decodable>(_ property: KeyPath<R, Property?>) -> Aggregate
    where Value == Property? {
        Aggregate(.maximum, property) { state, type in try state.extreme(Property.self, type) }
    }
}

/// A number that the stores can add up: an `Int`, a `Double` or a `Decimal`.
public protocol AggregatedNumber: Sendable {
    /// Makes the number of a sum.
    ///
    /// - Throws: ``StoreError`` `invalid` when the sum does not fit.
    init(aggregated sum: AggregatedSum) throws
}

/// A sum as the stores compute it.
public struct AggregatedSum: Sendable {
    /// The sum of whole numbers; `nil` when one of the values is not whole.
    let whole: Int64?
    let real: Double
    /// The sum of values that are stored as texts; `nil` for other values.
    var decimal: Decimal?
}

extension Int: AggregatedNumber {
    /// The sum of whole numbers.
    ///
    /// - Throws: ``StoreError`` `invalid` for a sum that is not whole, or has more than 64 bits.
    public init(aggregated sum: AggregatedSum) throws {
        guard let whole = sum.whole, let number = Int(exactly: whole) else {
            throw StoreError(.invalid, "the sum \(sum.real) is not a whole number of 64 bits")
        }
        self = number
    }
}

extension Double: AggregatedNumber {
    /// The sum as a floating-point number.
    public init(aggregated sum: AggregatedSum) throws { self = sum.real }
}

extension Decimal: AggregatedNumber {
    /// The sum, without rounding errors up to 38 digits. Texts in the store that are not numbers are ignored.
    public init(aggregated sum: AggregatedSum) throws { self = sum.decimal ?? Decimal(sum.real) }
}

enum AggregateFunction: Hashable, Sendable {
    case count, sum, average, minimum, maximum

    /// The columns of the function in SQL: a count and a value. ``AggregateState`` combines those of two stores.
    func columns(_ field: String?, isDecimal: Bool) -> [String] {
        let field = field ?? "*"
        switch self {
        case .count: return ["count(\(field))", "NULL"]
        case .sum where isDecimal, .average where isDecimal:
            return ["count(\(SQLExtension.decimalOrder.name)(\(field), '0'))", "\(SQLExtension.decimalSum.name)(\(field))"]
        case .sum, .average: return ["count(\(field))", "sum(\(field))"]
        case .minimum, .maximum:
            let name = self == .minimum ? "min" : "max"
            let collation = isDecimal ? TextOrder.decimal.collation.map { " COLLATE \($0)" } ?? "" : ""
            return ["count(\(field))", "\(name)(\(field)\(collation))"]
        }
    }
}

/// The intermediate result of an aggregate for one group.
struct AggregateState: Sendable {
    private let function: AggregateFunction
    private let isDecimal: Bool
    private(set) var count: Int
    private var value: DatabaseValue

    init(_ function: AggregateFunction, isDecimal: Bool, count: Int = 0, value: DatabaseValue = .null) {
        (self.function, self.isDecimal, self.count, self.value) = (function, isDecimal, count, value)
    }

    /// Adds the result of another store.
    ///
    /// - Throws: ``StoreError`` `invalid` when a sum of whole numbers does not fit into 64 bits.
    mutating func add(_ other: AggregateState) throws {
        count += other.count
        guard !other.value.isNull else { return }
        guard !value.isNull else {
            value = other.value
            return
        }
        switch function {
        case .count: break
        case .sum where isDecimal, .average where isDecimal:
            value = try DecimalSum(adding: [value, other.value]).finalize()?.databaseValue ?? .null
        case .sum, .average:
            if let one = Int64.fromExactInteger(value), let two = Int64.fromExactInteger(other.value) {
                let (sum, overflow) = one.addingReportingOverflow(two)
                guard !overflow else { throw Self.overflow }
                value = sum.databaseValue
            } else {
                value = (real + other.real).databaseValue
            }
        case .minimum, .maximum:
            let order = RecordOrder.compare(value, other.value, isDecimal ? TextOrder.decimal.comparison : nil)
            if function == .minimum ? order > 0 : order < 0 { value = other.value }
        }
    }

    static let decimalOverflow = StoreError(.invalid, "the sum is greater than a Decimal can be")
    static let overflow = StoreError(.invalid, "the sum is greater than a whole number of 64 bits can be")

    private var decimal: Decimal { String.fromDatabaseValue(value).flatMap { Decimal(number: $0) } ?? 0 }
    private var real: Double { isDecimal ? NSDecimalNumber(decimal: decimal).doubleValue : Double.fromDatabaseValue(value) ?? 0 }

    var sum: AggregatedSum {
        AggregatedSum(
            whole: value.isNull ? 0 : Int64.fromExactInteger(value), real: real, decimal: isDecimal ? decimal : nil)
    }

    var average: Double? { count == 0 ? nil : real / Double(count) }

    func extreme<Property: Decodable>(_ type: Property.Type, _ field: FieldType?) throws -> Property? {
        guard !value.isNull, let field else { return nil }
        do {
            return try FieldDecoder.decode(
                type, StoredField(content: .element(value), type: field, assets: AssetPlace(folder: URL(fileURLWithPath: "/"))))
        } catch let error as FieldError {
            throw StoreError(.invalid, "the value can't be read as \(type): it \(error.message)")
        }
    }
}

extension Int64 {
    /// The whole number of a value that is stored as one; `nil` for other values.
    fileprivate static func fromExactInteger(_ value: DatabaseValue) -> Int64? {
        if case .int64(let number) = value.storage { number } else { nil }
    }
}

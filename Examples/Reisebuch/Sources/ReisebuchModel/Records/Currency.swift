import Foundation

/// The currency of a trip.
public enum Currency: String, Codable, CaseIterable, Sendable {
    case eur = "EUR"
    case nok = "NOK"
    case isk = "ISK"

    /// An amount for the person: `1.234,50 €`.
    public func text(_ amount: Decimal) -> String {
        amount.formatted(.currency(code: rawValue).locale(.reisebuch))
    }
}

extension Locale {
    /// The language of the app.
    public static let reisebuch = Locale(identifier: "de_DE")
}

extension Date {
    /// The day for the person: `3. Juni 2025`.
    public var dayText: String {
        formatted(Date.FormatStyle(date: .long, time: .omitted, locale: .reisebuch, timeZone: .gmt))
    }

    /// A day at noon in Greenwich: the same day for everybody who reads it.
    public init(year: Int, month: Int, day: Int) {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        self = calendar.date(from: DateComponents(year: year, month: month, day: day, hour: 12)) ?? .distantPast
    }
}

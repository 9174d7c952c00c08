import Foundation
import ReisebuchModel
import Tidemark

/// Draws on a terminal what views would show.
enum Screen {
    @MainActor static func trips(_ list: TripList) {
        for row in list.rows {
            let badges = [count(row.stops, "Halt", "Halte"), count(row.photos, "Foto", "Fotos")]
            let owner = row.access.owner.map { "von \($0)" } ?? (row.access.isShared ? "geteilt" : nil)
            let buttons = [
                row.access.canEdit ? "Ändern" : nil, row.access.canDelete ? "Löschen" : nil,
                row.access.canLeave ? "Verlassen" : nil,
            ].compactMap(\.self)
            let parts = [row.trip.title, row.trip.begins.dayText] + badges + [owner].compactMap(\.self)
            print("  " + parts.joined(separator: " · ") + "  [" + buttons.joined(separator: "] [") + "]")
            if let reason = row.access.reason { print("      \(reason)") }
        }
        if list.rows.isEmpty { print("  (keine Reisen)") }
        if list.content.unreadable > 0 { print("  \(list.content.unreadable) weitere brauchen eine neuere Version der App") }
    }

    static func heading(of trip: Trip) {
        let stars = trip.rating.map { ", \($0.formatted(.number.locale(.reisebuch))) Sterne" } ?? ""
        print("  \(trip.title), \(trip.transport.label)\(stars)")
    }

    static func page(_ page: TripPage) {
        heading(of: page.trip)
        for part in page.parts {
            let tags = part.tags.map { " #\($0)" }.joined()
            print("  \(part.stop.position). \(part.stop.place), \(count(part.stop.nights, "Nacht", "Nächte"))\(tags)")
            if let place = part.stop.location { print("       \(place.text)") }
            if let guide = part.guide { print("       mit \(guide)") }
            for entry in part.entries { print("       \(entry.heading): \(entry.text)") }
            for photo in part.photos {
                print("       [\(photo.caption), \(bytes(photo.image))\(photo.image.isDownloaded ? "" : ", noch in der Cloud")]")
            }
        }
        for booking in page.bookings { print("  gebucht: \(booking.provider), \(page.trip.currency.text(booking.price))") }
    }

    static func bytes(_ asset: Asset?) -> String { "\(((asset?.size ?? 0) + 500) / 1000) KB" }

    static func hits(_ hits: [DiaryHit]) {
        for hit in hits { print("  \(hit.place), \(hit.entry.day.dayText): \(hit.excerpt.marked("[", "]"))") }
        if hits.isEmpty { print("  (nichts gefunden)") }
    }

    static func statistics(_ numbers: Statistics) {
        print("  \(numbers.trips) Reisen, \(count(numbers.stops, "Halt", "Halte")), \(count(numbers.nights, "Nacht", "Nächte"))")
        for (country, nights) in numbers.nightsByCountry { print("    \(country): \(count(nights, "Nacht", "Nächte"))") }
        for stay in numbers.longestStays { print("    am längsten: \(stay.place) (\(stay.trip)), \(stay.nights)") }
        for (tag, stops) in numbers.tags { print("    #\(tag): \(stops)") }
        if numbers.booked > 0 { print("    gebucht: \(Currency.eur.text(numbers.booked))") }
    }

    static func contents(_ counts: [String: Int]) -> String {
        let names = [
            ("Trip", "Reise", "Reisen"), ("Stop", "Halt", "Halte"), ("Photo", "Foto", "Fotos"),
            ("DiaryEntry", "Eintrag", "Einträge"),
        ]
        return names.compactMap { type, one, many in counts[type].map { count($0, one, many) } }.joined(separator: ", ")
    }

    static func text(_ deletion: TravelBook.Deletion, of trip: Trip) -> String {
        switch deletion {
        case .deleted(let along): "„\(trip.title)“ ist gelöscht, und \(count(along, "weiterer Eintrag", "weitere Einträge"))."
        case .booked(let providers): "„\(trip.title)“ ist noch gebucht: \(providers.joined(separator: ", "))."
        case .refused(let reason): reason
        }
    }

    static func text(_ outcome: TripEditor.Outcome, saved: String) -> String {
        switch outcome {
        case .saved: saved
        case .invalid(let message, _), .failed(let message): message
        case .conflict(let fields): "Andere haben dasselbe geändert: \(fields.joined(separator: ", "))"
        }
    }

    /// Prints what became of a save, and throws where nothing was saved.
    static func outcome(_ outcome: TripEditor.Outcome, saved: String) throws {
        guard outcome == .saved else { throw Refused(errorDescription: text(outcome, saved: saved)) }
        print(saved)
    }

    struct Refused: LocalizedError { let errorDescription: String? }

    static func count(_ number: Int, _ one: String, _ many: String) -> String { "\(number) \(number == 1 ? one : many)" }
}

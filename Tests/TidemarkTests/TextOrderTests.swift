import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel

/// Goal: texts are sorted and searched as a speaker of the language expects.
/// Method: names of places whose order is known in Norwegian and in German.
@Suite(.timeLimit(.minutes(30))) struct TextOrderTests {
    static let captions = ["Oslo", "Senja", "bergen", "Ålesund", "Österdalen", "Aalborg", "Etappe 10", "Etappe 9"]

    private func journal(_ scratch: Scratch) async throws -> PersistentContainer {
        let journal = try scratch.journal()
        let all = Self.captions.enumerated().map { Destination("d\($0)", caption: $1) }
        try await journal.save(Array(all.dropLast(4)))
        // The records of the two stores are merged in the same order.
        try await journal.save(Array(all.suffix(4)), in: scratch.acceptedShare())
        return journal
    }

    @Test func `sorts follow the locale`() async throws {
        let scratch = try Scratch()
        let journal = try await journal(scratch)
        func sorted(_ order: TextOrder) async throws -> [String] {
            try await journal.fetchAll(Destination.self, sortedBy: [.ascending(\.caption, order: order)]).map(\.caption)
        }
        #expect(
            try await sorted(.localized(Locale(identifier: "nb_NO"))) == [
                "bergen", "Etappe 9", "Etappe 10", "Oslo", "Senja", "Österdalen", "Aalborg", "Ålesund",
            ])
        #expect(
            try await sorted(.localized(Locale(identifier: "de_DE"))) == [
                "Aalborg", "Ålesund", "bergen", "Etappe 9", "Etappe 10", "Oslo", "Österdalen", "Senja",
            ])
        #expect(
            try await sorted(.caseInsensitive) == [
                "Aalborg", "bergen", "Etappe 10", "Etappe 9", "Oslo", "Senja", "Ålesund", "Österdalen",
            ])
        #expect(try await sorted(.binary) == Self.captions.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
        #expect(try await sorted(.localizedStandard) == sorted(.localized(.current)))
        // The same connection sorts again: by name, from the greatest to the least, with a limit.
        let last = try await journal.fetchAll(
            Destination.self, sortedBy: [.descending("caption", order: .localized(Locale(identifier: "nb_NO")))], limit: 2)
        #expect(last.map(\.caption) == ["Ålesund", "Aalborg"])
    }

    @Test func `searches ignore case and diacritics with options`() async throws {
        let scratch = try Scratch()
        let journal = try await journal(scratch)
        func found(_ predicate: Tidemark.RecordPredicate<Destination>) async throws -> [String] {
            try await journal.fetchAll(Destination.self, where: predicate).map(\.caption)
        }
        #expect(try await found(.field(\.caption).contains("BERG")) == [])
        #expect(try await found(.field(\.caption).contains("BERG", options: .caseInsensitive)) == ["bergen"])
        #expect(
            try await found(.field(\.caption).begins(with: "ales", options: [.caseInsensitive, .diacriticInsensitive])) == [
                "Ålesund"
            ])
        #expect(try await found(.field(\.caption).begins(with: "Ost", options: .diacriticInsensitive)) == ["Österdalen"])
        #expect(
            try await found(.field("caption").contains("OST", options: [.caseInsensitive, .diacriticInsensitive])) == [
                "Österdalen"
            ])
        #expect(try await found(.field("caption").begins(with: "ost", options: .caseInsensitive)) == [])
        #expect(
            try await journal.deleteAll(Destination.self, where: .field(\.caption).contains("SENJA", options: .caseInsensitive))
                == ["d1"])
    }
}

import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: aggregates, groups, sections and joins are those of the records. Method: a few stops with known answers; and a thousand,
/// compared with the same computed in Swift.
@Suite(.timeLimit(.minutes(30))) struct AggregateTests {
    struct Trip: Tidemark.Record, Identifiable, Equatable {
        var id = UUID()
        var title: String
    }

    enum Season: String, Codable, Sendable { case summer, winter }

    struct Stop: Tidemark.Record, Equatable {
        var id: String
        var nights = 1
        var height: Double?
        var price: Decimal?
        var day: Date
        var season: Season?
        var country = ""
        var trip: Reference<Trip>?
        var tags: [String] = []
        var recordName: String { id }
    }

    private let scratch: Scratch
    private let journal: PersistentContainer
    private let trips = [Trip(title: "North"), Trip(title: "South")]
    private let stops: [Stop]

    init() async throws {
        scratch = try Scratch()
        journal = try scratch.journal()
        let trips = trips
        let seasons: [Season?] = [nil, .summer, .winter]
        let countries = ["NO", "SE", "FI", "DK"]
        stops = (0..<1000).map { number in
            var stop = Stop(id: "stop \(number)", day: Date(timeIntervalSince1970: Double(number % 10) * 86_400))
            stop.nights = number % 7
            if number % 3 != 0 { stop.height = Double(number) / 4 }
            if number % 2 != 0 { stop.price = Decimal(number % 13) + Decimal(0.5) }
            stop.season = seasons[number % 3]
            stop.country = countries[number % 4]
            if number % 5 != 0 { stop.trip = Reference(trips[number % 2]) }
            stop.tags = ["a"]
            return stop
        }
        try await journal.save(trips)
        try await journal.save(stops)
    }

    @Test func `values of all records are computed in one query`() async throws {
        let (count, nights, average, least, greatest) = try await journal.aggregate(
            Stop.self, .count, .sum(\.nights), .average(\.height), .minimum(\.day), .maximum(\.price))
        #expect(count == 1000 && nights == stops.reduce(0) { $0 + $1.nights })
        let heights = stops.compactMap(\.height)
        #expect(abs(try #require(average) - heights.reduce(0, +) / Double(heights.count)) < 1e-9)
        #expect(least == stops.map(\.day).min() && greatest == stops.compactMap(\.price).max())
        let high = try await journal.aggregate(Stop.self, .count(\.height), where: \.country == "NO")
        #expect(high == stops.count { $0.height != nil && $0.country == "NO" })
        let (sum, most, mean) = try await journal.aggregate(
            Stop.self, .sum(\.height), .maximum(\.nights), .average(\.nights), where: \.nights > 100)
        #expect(sum == 0 && most == nil && mean == nil)
        #expect(try await journal.aggregate(Trip.self, .count) == 2)
    }

    @Test func `values of groups are those of the records in each group`() async throws {
        let byCountry = try await journal.aggregates(Stop.self, .count, .sum(\.nights), by: \.country, where: \.nights > 0)
        #expect(byCountry.map(\.group) == ["DK", "FI", "NO", "SE"])
        for (country, (count, nights)) in byCountry {
            let those = stops.filter { $0.country == country && $0.nights > 0 }
            #expect(count == those.count && nights == those.reduce(0) { $0 + $1.nights })
        }
        let byTrip = try await journal.aggregates(Stop.self, .count, by: \.trip)
        #expect(byTrip.count == 3 && byTrip[0].group == nil && byTrip[0].values == 200)
        for (trip, count) in byTrip { #expect(count == stops.count { $0.trip == trip }) }
        let bySeason = try await journal.counts(Stop.self, by: \.season)
        #expect(bySeason.map(\.value) == [nil, .summer, .winter] && bySeason.map(\.count) == [334, 333, 333])
        #expect(try await journal.distinctValues(of: \Stop.season) == [.summer, .winter])
        #expect(try await journal.distinctValues(of: \Stop.day, where: \.nights == 3).count == 10)
        await #expect(throws: StoreError(.invalid, "")) { try await journal.counts(Stop.self, by: \.tags) }
    }

    @Test func `decimals are added exactly, in groups, too, and texts that are no numbers do not count`() async throws {
        struct Text: Tidemark.Record {
            static let recordType = "Stop"
            var id: String
            var price: String
            var country = "NO"
            var recordName: String { id }
        }
        var (cent, great) = (Stop(id: "cent", day: .distantPast), Stop(id: "great", day: .distantPast))
        (cent.price, great.price) = (Decimal(string: "0.01"), Decimal(string: "900719925474099312345.67"))
        (cent.country, great.country) = ("NO", "NO")
        try await journal.save([cent, great])
        try await journal.save(Text(id: "text", price: "about 5"))
        let prices = (stops + [cent, great]).filter { $0.country == "NO" }.compactMap(\.price)
        let (sum, average, count) = try await journal.aggregate(
            Stop.self, .sum(\.price), .average(\.price), .count(\.price), where: \.country == "NO")
        #expect(sum == prices.reduce(0, +) && "\(sum)".hasSuffix(".68"))
        #expect(average == NSDecimalNumber(decimal: sum).doubleValue / Double(prices.count) && count == prices.count + 1)
        let groups = try await journal.aggregates(Stop.self, .sum(\.price), by: \.country, where: \.price != nil)
        #expect(groups.map(\.group) == ["DK", "NO", "SE"])
        for (country, value) in groups {
            let those = (stops + [cent, great]).filter { $0.country == country }.compactMap(\.price)
            #expect(value == those.reduce(0, +))
        }
        #expect(try await journal.aggregate(Stop.self, .sum(\.price), where: \.nights > 100) == 0)
        await #expect(throws: StoreError(.invalid, "")) {
            for id in ["one", "two"] { try await journal.save(Text(id: id, price: "\(Decimal.greatestFiniteMagnitude)")) }
            _ = try await journal.aggregate(Stop.self, .sum(\.price))
        }
    }

    @Test func `a sum of decimals covers both stores`() async throws {
        let place = try TwoUserFixture(scratch)
        let (anna, ben) = (try await place.person("anna"), try await place.person("ben"))
        var theirs = Stop(id: "theirs", day: .distantPast)
        theirs.price = Decimal(string: "0.1")
        try await anna.container.save(theirs)
        let (_, link) = try await anna.share(theirs, with: ben)
        try await anna.sync()
        try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        var mine = Stop(id: "mine", day: .distantPast)
        mine.price = Decimal(string: "0.2")
        try await ben.container.save(mine)
        #expect(try await ben.container.aggregate(Stop.self, .sum(\.price)) == Decimal(string: "0.3"))
        #expect(
            try await ben.container.aggregates(Stop.self, .sum(\.price), by: \.country).map(\.values) == [Decimal(string: "0.3")])
    }

    @Test func `a sum that is too great is refused, and an unreadable value belongs to no group`() async throws {
        struct Newer: Tidemark.Record {
            static let recordType = "Stop"
            var id: String
            var nights: Int
            var season: String
            var recordName: String { id }
        }
        try await journal.save(Newer(id: "newer", nights: .max, season: "spring"))
        await #expect(throws: StoreError(.invalid, "")) { try await journal.aggregate(Stop.self, .sum(\.nights)) }
        #expect(try await journal.counts(Stop.self, by: \.season).map(\.count) == [334, 333, 333])
        #expect(try await journal.counts(Newer.self, by: \.season).map(\.value) == ["spring", "summer", "winter"])
    }

    @Test func `sections have the records of one key, by a property and by a function`() async throws {
        let days = try await journal.sections(Stop.self, by: \.day, sortedBy: [.descending(\.day), .ascending("_name")])
        #expect(days.map(\.key) == days.map(\.key).sorted(by: >) && days.count == 10)
        #expect(
            days.allSatisfy { section in section.records.count == 100 && section.records.allSatisfy { $0.day == section.key } })
        let halves = try await journal.sections(Stop.self, by: { $0.nights > 3 }, where: \.country == "SE")
        #expect(Set(halves.map(\.key)) == [true, false])
        #expect(halves.reduce(0) { $0 + $1.records.count } == 250)
    }

    @Test func `records are returned with the record that they refer to`() async throws {
        let joined = try await journal.fetchAll(Stop.self, joining: \.trip, sortedBy: [.descending("_name")], limit: 300)
        #expect(joined.count == 300)
        for (stop, trip) in joined { #expect(trip == trips.first { Reference($0) == stop.trip }) }
        struct Dangling: Tidemark.Record {
            var id: String
            var trip: Reference<Trip>
            var recordName: String { id }
        }
        try await journal.save([
            Dangling(id: "a", trip: Reference("gone")), Dangling(id: "b", trip: Reference(trips[0].id.uuidString)),
        ])
        let found = try await journal.fetchAll(Dangling.self, joining: \.trip, sortedBy: [.ascending("_name")])
        #expect(found.map(\.related) == [nil, trips[0]])
    }
}

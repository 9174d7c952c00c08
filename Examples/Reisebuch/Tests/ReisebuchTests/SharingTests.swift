import Foundation
import ReisebuchModel
import Testing
import Tidemark
import TidemarkEmbeddedCloud
import TidemarkTesting

/// Trips that are shared and synchronised, in virtual time.
@Suite(.timeLimit(.minutes(30))) @MainActor struct SharingTests {
    /// A person with a device: a temporary book, and the databases of an account.
    struct Person {
        let book: TravelBook
        let databases: CloudDatabases
        let sharing: TripSharing
        let clock: TestClock

        func sync() async throws {
            let sync = try await book.container.sync(with: databases, environment: clock.environment)
            defer { sync.close() }
            if let failure = try await sync.sync().failure { throw failure }
        }
    }

    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    private let cloud: EmbeddedCloud
    private let clock = TestClock(movesWhenWaiting: true)

    init() throws { cloud = try EmbeddedCloud(at: folder) }

    private func person(_ name: String) async throws -> Person {
        let account = try await cloud.addAccount("\(name)@example.org", name: PersonName(givenName: name))
        let databases = try cloud.databases(of: "org.example.reisebuch", account: account.id)
        let book = try await TravelBook.temporary(device: name)
        return Person(book: book, databases: databases, sharing: TripSharing(book, with: databases), clock: clock)
    }

    private func share(_ trip: Trip, of anna: Person, with ben: Person, mayEdit: Bool = true) async throws {
        let link = try await anna.sharing.invite("Ben@example.org", to: trip, mayEdit: mayEdit)
        try await anna.sync()
        #expect(try await ben.sharing.describe(link) == "\(trip.title) von Anna")
        try await ben.sharing.accept(link)
        try await ben.sync()
    }

    @Test func `a share has what the trip owns, and not the trip with the same tag`() async throws {
        let (anna, ben) = (try await person("Anna"), try await person("Ben"))
        let test = try await TestBook(anna.book)
        try await test.container.save(test.entry("Eins", "Ein Fjord."))
        #expect(try await anna.sharing.preview(of: test.norway) == ["Trip": 1, "Stop": 3, "DiaryEntry": 1])
        try await share(test.norway, of: anna, with: ben)
        #expect(try await ben.book.container.fetchAll(Trip.self).map(\.title) == ["Norwegen"])
        #expect(try await ben.book.container.count(Stop.self) == 3)
        // A device that has never saved an entry finds it all the same.
        #expect(try await ben.book.search("Fjord").map(\.place) == ["Reine"])
        try await anna.sync()
        let people = try await anna.sharing.people(of: test.norway)
        #expect(people == ["Anna: nimmt teil, Eigentümer", "Ben: nimmt teil, darf ändern"])
    }

    @Test func `what a participant adds to a trip is in the share, from a sheet and without one`() async throws {
        let (anna, ben) = (try await person("Anna"), try await person("Ben"))
        let test = try await TestBook(anna.book)
        try await share(test.norway, of: anna, with: ben)
        let editor = try #require(try await TripEditor(test.norway.id, in: ben.book))
        let cape = editor.addStop("Nordkap", arrival: Date(year: 2025, month: 6, day: 9))
        #expect(await editor.save() == .saved)
        try await ben.book.container.save(DiaryEntry(at: cape, on: cape.arrival, heading: "Am Kap", text: "Wind."))
        // A new trip belongs to nobody's trip: the share has to be named.
        let family = try #require(try await ben.book.container.fetchShares().first)
        let another = await TripEditor(newTripIn: ben.book, share: family)
        another.trip.title = "Spitzbergen"
        #expect(await another.save() == .saved)
        try await ben.sync()
        try await anna.sync()
        #expect(try await test.container.fetchAll(Trip.stops, of: test.norway).map(\.place).last == "Nordkap")
        #expect(try await test.container.count(DiaryEntry.self) == 1)
        #expect(try await anna.book.trip("Spitzbergen") != nil)
    }

    @Test func `rows have the buttons that the person may use`() async throws {
        let (anna, ben) = (try await person("Anna"), try await person("Ben"))
        let test = try await TestBook(anna.book)
        try await share(test.norway, of: anna, with: ben, mayEdit: false)
        let list = TripList(ben.book)
        try await list.changed { $0.rows.first?.access.owner == "Anna" }
        var access = try #require(list.rows.first?.access)
        #expect(!access.canEdit && !access.canDelete && access.canLeave)
        #expect(access.reason?.isEmpty == false)
        try await anna.sharing.setMayEdit(true, "ben@example.org", of: test.norway)
        try await ben.sync()
        try await list.changed { $0.rows.first?.access.canEdit == true }
        access = try #require(list.rows.first?.access)
        #expect(access.canLeave && !access.canDelete)
        try await ben.sharing.end(test.norway)
        try await list.changed { $0.rows.isEmpty }
        #expect(try await anna.book.trip("Norwegen") != nil)
    }

    @Test func `a share is called like its trip`() async throws {
        let (anna, ben) = (try await person("Anna"), try await person("Ben"))
        let test = try await TestBook(anna.book)
        try await share(test.norway, of: anna, with: ben)
        var renamed = test.norway
        renamed.title = "Norwegen im Juni"
        try await test.container.save(renamed)
        try await anna.sync()
        try await ben.sync()
        #expect(try await ben.book.container.fetchShares().map(\.title) == ["Norwegen im Juni"])
    }
}

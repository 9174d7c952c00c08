import Foundation
import ReisebuchModel
import Tidemark

extension Story {
    @MainActor func writing() async throws {
        chapter("1. Anna writes, without a network")
        let editor = await TripEditor(newTripIn: laptop.book)
        editor.trip.begins = Date(year: 2025, month: 6, day: 3)
        tells("She forgets the title: \(Screen.text(await editor.save(), saved: ""))")
        (editor.trip.title, editor.trip.transport, editor.trip.budget) = ("Norwegen", .ship, 2400)
        let ingrid = Guide("Ingrid")
        try await laptop.container.save(ingrid)
        for (number, (place, nights, tags)) in [
            ("Ålesund", 1, ["Hafen"]), ("Reine", 3, ["Fjord", "Wandern"]), ("Tromsø", 2, ["Fjord", "Nordlicht"]),
        ].enumerated() {
            let arrival = Date(year: 2025, month: 6, day: 3 + 2 * number)
            var stop = editor.addStop(place, country: "Norwegen", arrival: arrival)
            (stop.nights, stop.tags) = (nights, try await laptop.book.tags(named: tags))
            if place == "Reine" { (stop.location, stop.guide) = (Location(latitude: 67.93, longitude: 13.09), Reference(ingrid)) }
            editor.update(stop)
        }
        tells("With one: \(Screen.text(await editor.save(), saved: "gespeichert, mit drei Halten in einem Zug"))")

        let alps = Trip(title: "Alpen", begins: Date(year: 2024, month: 8, day: 1))
        var lake = Stop(of: alps, at: 1, place: "Königssee", country: "Deutschland", arrival: alps.begins)
        lake.tags = try await laptop.book.tags(named: ["Wandern"])
        try await laptop.container.save([alps, lake, Booking(of: alps, .room, by: "Hütte am See", for: 86.5)])

        let reine = try await laptop.stops(of: "Norwegen")[1]
        let diary = [
            ("Auf dem Reinebringen", "1978 Stufen bis oben. Die Bergtour hat sich gelohnt: unter uns lag der ganze Fjord."),
            ("Ruhetag", "Stockfisch probiert, dem Regen zugehört. Ruhige See."),
        ]
        for (day, (heading, text)) in diary.enumerated() {
            try await laptop.container.save(
                DiaryEntry(at: reine, on: reine.arrival + Double(day) * 86_400, heading: heading, text: text))
        }
        try await PhotoAlbum(of: reine, in: laptop.book)
            .add(DemoPicture.file, caption: "Blick vom Gipfel", takenAt: reine.arrival)
        try await shows(laptop)
    }

    @MainActor func synchronizing() async throws {
        chapter("2. Her tablet gets all of it")
        let monitor = SyncMonitor(tablet.book)
        tells("The laptop before: \(SyncLine.text(try laptop.container.syncStatus()))")
        for device in [laptop, tablet] { device.goOnline() }
        try await tablet.waits(for: 1, Photo.self)
        try await tablet.waits(for: 2, DiaryEntry.self)
        try await laptop.sent()
        tells("The laptop now: \(SyncLine.text(try laptop.container.syncStatus()))")
        tells("The tablet tells of its account: \(monitor.accountNews.joined(separator: ", "))")
        if let page = try await TripPage(of: tablet.trip("Norwegen").id, in: try tablet.container.snapshot()) {
            Screen.page(page)
            try await looking(at: page.parts[1])
        }
    }

    /// Thumbnails come with their photos; a picture comes when somebody looks at it.
    @MainActor private func looking(at part: TripPage.Part) async throws {
        let (album, photo) = (PhotoAlbum(of: part.stop, in: tablet.book), part.photos[0])
        tells("The list shows the thumbnail, of \(Screen.bytes(photo.imageThumbnail))")
        let picture = try await album.open(photo)
        tells("She looks at the picture: it has come now, \(picture.count == photo.image.size ? Screen.bytes(photo.image) : "?")")
    }
}

/// A photo of the repository's sample data.
enum DemoPicture {
    static let file: URL = {
        let folder = (0..<5).reduce(URL(fileURLWithPath: #filePath)) { url, _ in url.deletingLastPathComponent() }
        return folder.appendingPathComponent("journal/pictures/reine.jpg")
    }()
}

import Foundation
import ReisebuchModel
import Tidemark

extension Story {
    @MainActor func sharing() async throws {
        chapter("3. Anna shares one trip with Ben")
        let norway = try await laptop.trip("Norwegen")
        tells(
            "The trip to the Alps has a tag in common with it. What goes along: \(Screen.contents(try await laptop.sharing.preview(of: norway)))"
        )
        let link = try await laptop.sharing.invite("ben@example.org", to: norway, mayEdit: true)
        tells("Ben gets a link and reads: \(try await phone.sharing.describe(link))")
        phone.goOnline()
        try await phone.sharing.accept(link)
        phone.container.requestSync()
        try await phone.waits(for: 3, Stop.self)
        try await phone.waits(for: 1, Photo.self)
        try await shows(phone) { $0.rows.first?.access.owner != nil }
        tells("Who takes part: \(try await laptop.sharing.people(of: norway).joined(separator: "; "))")
    }

    @MainActor func workingTogether() async throws {
        chapter("4. Ben writes, too")
        guard let editor = try await TripEditor(try await phone.trip("Norwegen").id, in: phone.book) else { return }
        editor.addStop("Nordkap", country: "Norwegen", arrival: Date(year: 2025, month: 6, day: 10))
        tells("A stop from his phone: \(Screen.text(await editor.save(), saved: "gespeichert"))")
        try await tablet.waits(for: 1, Stop.self, where: \.place == "Nordkap")
        tells("It is on Anna's tablet, in the share, because the trip owns it")
        try await laptop.sharing.setMayEdit(false, "ben@example.org", of: editor.trip)
        phone.container.requestSync()
        tells("Anna lets him only read. His buttons are gone:")
        try await shows(phone) { $0.rows.first?.access.canEdit == false }
        editor.trip.rating = 5
        tells("A save that was begun before says why: \(Screen.text(await editor.save(), saved: "gespeichert"))")

        var renamed = try await laptop.trip("Norwegen")
        renamed.title = "Norwegen im Juni"
        try await laptop.container.save(renamed)
        try await phone.waits { try await $0.trip("Norwegen im Juni") != nil }
        try await laptop.sent()
        try await phone.waits(forShares: { shares in shares.map(\.title) == ["Norwegen im Juni"] })
        tells("Anna gives the trip another title, and the share is called so as well: \(renamed.title)")
    }
}

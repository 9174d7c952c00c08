import Foundation
import TestSupport
import Testing

/// Goal: the example program does what the guide's journal does, for several people. Method: its program as processes, a folder
/// for each person, over one cloud; whole outputs compared.
@Suite(.timeLimit(.minutes(30))) struct TravelJournalTests {
    private let scratch: Scratch
    private let journal: Tool

    init() throws {
        scratch = try Scratch()
        journal = try Tool(named: "journal")
        for number in 1...3 { try scratch.write(Picture.png(number), to: "\(number).png") }
    }

    private func path(_ name: String) -> String { scratch[name].path }

    @discardableResult
    private func run(
        _ command: String, _ name: String, _ arguments: String..., expecting status: Int32 = 0
    ) async throws -> Tool.Result {
        let result = try await journal.run([command, path(name)] + arguments)
        #expect(result.status == status, "\(command) \(name) \(arguments): \(result.output)\(result.errors)")
        return result
    }

    private func signIn(_ names: String...) async throws {
        for name in names {
            try await run(
                "sign-in", name, "--cloud", path("cloud"), "--email", "\(name)@example.org", "--given-name", name.capitalized,
                "--family-name", "Berg")
        }
    }

    private func add(_ caption: String, to name: String, photo: Int) async throws {
        try await run("add", name, "--caption", caption, "--details", "It rained.", "--photo", path("\(photo).png"))
    }

    /// The captions and badges of the list.
    private func list(_ name: String) async throws -> [String] {
        try await run("list", name).output.split(separator: "\n").map { String($0.split(separator: "  ", maxSplits: 1)[1]) }
    }

    private func show(_ name: String, _ destination: String) async throws -> [String] {
        try await run("show", name, destination).output.split(separator: "\n").map(String.init)
    }

    private func refusal(_ command: String, _ name: String, _ arguments: String...) async throws -> String {
        let result = try await journal.run([command, path(name)] + arguments)
        #expect(result.status != 0, "\(result.output)")
        return result.errors
    }

    @Test func `a destination needs a photo, a caption and details, and an edit must change something`() async throws {
        let photo = path("1.png")
        #expect(
            try await refusal("add", "ada", "--caption", " ", "--details", "x", "--photo", photo).contains("needs a caption"))
        #expect(
            try await refusal("add", "ada", "--caption", "x", "--details", "\n", "--photo", photo).contains("needs details"))
        #expect(
            try await refusal("add", "ada", "--caption", "x", "--details", "x", "--photo", path("none.png"))
                .contains("needs a photo"))
        #expect(try await refusal("add", "ada", "--caption", "x", "--details", "x").contains("--photo"))
        #expect(try await list("ada") == [])
        try await add("Senja", to: "ada", photo: 1)
        try await add("Geysir", to: "ada", photo: 2)
        #expect(try await list("ada") == ["Geysir", "Senja"])
        #expect(try await refusal("edit", "ada", "Senja", "--caption", "Senja", "--photo", photo).contains("nothing was changed"))
        #expect(try await refusal("edit", "ada", "Senja", "--caption", "").contains("needs a caption"))
        try await run("edit", "ada", "Senja", "--photo", path("3.png"))
        #expect(try await show("ada", "Senja").contains("photo:   \(Picture.png(3).count) bytes"))
    }

    @Test func `a destination is shared, edited by several people, refused, left and kept`() async throws {
        try await signIn("ada", "ben", "ida")
        try await add("Senja", to: "ada", photo: 1)
        try await add("Geysir", to: "ada", photo: 2)
        try await run("share", "ada", "Senja")
        #expect(try await list("ada") == ["Geysir", "Senja  [shared]"])
        let toBen = try await run("invite", "ada", "Senja", "ben@example.org").output.trimmingCharacters(in: .newlines)
        let toIda = try await run("invite", "ada", "Senja", "ida@example.org", "--read-only").output
            .trimmingCharacters(in: .newlines)
        try await run("sync", "ada")
        for (name, link) in [("ben", toBen), ("ida", toIda)] {
            let accepted = try await run("accept", name, link)
            #expect(accepted.output == "accepted 'Senja' of Ada Berg\n")
            #expect(try await run("sync", name).output == "1 fetched, 0 sent, 0 waiting\n")
            #expect(try await list(name) == ["Senja  [shared]"])
        }
        try await run("sync", "ada")
        let people = [
            "Ada Berg: Accepted, Owner, Read-Write", "Ben Berg: Accepted, Private User, Read-Write",
            "Ida Berg: Accepted, Private User, Read-Only",
        ]
        let photo = "photo:   \(Picture.png(1).count) bytes"
        #expect(
            try await show("ada", "Senja") == [
                "Senja", "It rained.", photo, "edit:    yes: the owner may", "delete:  yes: the owner may",
            ] + people)
        try await run("sync", "ida")
        #expect(
            try await show("ida", "Senja") == [
                "Senja", "It rained.", photo,
                "edit:    no: the permission is Read-Only; ask the owner for the permission Read-Write",
                "delete:  no: the permission is Read-Only",
            ] + people)

        // Edits on both sides.
        try await run("edit", "ada", "Senja", "--caption", "Senja in June")
        try await run("edit", "ben", "Senja", "--details", "We saw a whale.")
        for name in ["ben", "ada", "ben", "ida"] { try await run("sync", name) }
        for name in ["ada", "ben", "ida"] {
            #expect(try await show(name, "Senja in June").prefix(2) == ["Senja in June", "We saw a whale."])
        }

        // The device refuses these, with the reason.
        for arguments in [["edit", path("ida"), "Senja in June", "--caption", "x"], ["delete", path("ida"), "Senja in June"]] {
            let denied = try await journal.run(arguments)
            #expect(denied.status != 0)
            #expect(denied.errors.contains("the permission is Read-Only; ask the owner for the permission Read-Write"))
        }
        try await run("permit", "ada", "Senja in June", "ida@example.org")
        try await run("sync", "ida")
        try await run("edit", "ida", "Senja in June", "--details", "Ida saw two.")
        for name in ["ida", "ada", "ben"] { try await run("sync", name) }
        #expect(try await show("ada", "Senja in June")[1] == "Ida saw two.")

        // The permission ends while Ben edits.
        try await run("edit", "ben", "Senja in June", "--caption", "Too late")
        try await run("permit", "ada", "Senja in June", "Ben Berg", "--read-only")
        let taken = try await run("sync", "ben").output.split(separator: "\n")
        #expect(taken.count == 2 && taken.last?.hasPrefix("reverted: update of ") == true, "\(taken)")
        #expect(try await list("ben") == ["Senja in June  [shared]"])
        try await run("edit", "ida", "Senja in June", "--caption", "Also too late")
        try await run("remove", "ada", "Senja in June", "Ida Berg")
        #expect(try await run("sync", "ida").output.contains("reverted: "))
        #expect(try await list("ida") == [])

        // Ben leaves and Ada stops sharing: the owner keeps the destination.
        #expect(try await refusal("stop", "ben", "Senja in June").contains("only the owner may share, or stop it"))
        try await run("leave", "ben", "Senja in June")
        #expect(try await list("ben") == [])
        try await run("sync", "ada")
        #expect(try await show("ada", "Senja in June").suffix(2).allSatisfy { $0.contains("Removed, Private User") })
        try await run("stop", "ada", "Senja in June")
        #expect(try await list("ada") == ["Geysir", "Senja in June"])
        #expect(try await refusal("stop", "ada", "Geysir").contains("'Geysir' is not shared"))
    }
}

import Foundation
import TestSupport
import Testing

/// Goal: an import that is killed at any moment leaves whole batches, and `--resume` gives the store of an undisturbed run.
/// Method: SIGKILL at random moments of real processes; exports and verification compared. `make prove` makes more runs.
@Suite(.timeLimit(.minutes(30))) struct KillTests {
    @Test func `killed at random moments and resumed, an import ends in the same store`() async throws {
        var random = Randomness("kills")
        let tool = try Tool()
        let scratch = try Scratch()
        let pictures = 24
        for number in 0..<pictures { try scratch.write(Picture.png(number), to: "pictures/\(number).png") }
        let lines = (0..<1200).map { number in
            let image = number % 50 == 0 ? #", "image": "pictures/\#(number / 50 % pictures).png""# : ""
            return #"{"id": "r\#(number)", "caption": "\#(String(repeating: "c\(number)", count: 20))"\#(image)}"#
        }
        let file = try scratch.writeLines(lines, to: "journal.jsonl")
        func arguments(_ container: String) -> [String] {
            [
                "import", file.path, "--into", container, "--type", "Destination", "--id", "id", "--plain-ids", "--asset",
                "image", "--batch",
                "50", "--json",
            ]
        }
        func export(_ container: String) async throws -> String {
            let whole = try await tool.run(["export", container, "--type", "Destination", "--to", "-"]).output
            return whole.split(separator: "\n").sorted().joined(separator: "\n")
        }
        let undisturbed = scratch["undisturbed"].path
        let clock = ContinuousClock()
        let start = clock.now
        #expect(try await tool.run(arguments(undisturbed)).status == 0)
        // The time of an undisturbed run; other tests run at the same time, so the shortest known time counts.
        var length = clock.now - start
        let expected = try await export(undisturbed)

        var kills = 0
        var round = 0
        while kills < 100 {
            round += 1
            let container = scratch["killed-\(round)"].path
            var isDone = false
            while !isDone {
                let delay = length * Double.random(in: 0.02...1, using: &random)
                let began = clock.now
                let result = try await tool.run(arguments(container) + ["--resume"], killingAfter: delay)
                if result.signal != nil {
                    kills += 1
                } else {
                    #expect(result.status == 0, "\(result.errors)")
                    #expect(try result.json()["read"] as? Int == 1200)
                    isDone = true
                    length = min(length, clock.now - began)
                }
            }
            let verify = try await tool.run(["verify", container, "--json"])
            #expect(try verify.json()["ok"] as? Bool == true, "\(verify.output)")
            #expect(try await export(container) == expected)
            try FileManager.default.removeItem(atPath: container)
        }
    }
}

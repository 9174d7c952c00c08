import Foundation
import Testing

@testable import TidemarkStore

/// Goal: if records are merged into one in any order, the last name is found. Method: chains with known ends.
@Suite(.timeLimit(.minutes(30))) struct RecordReplacementTests {
    @Test func `a record that was merged in many steps has the name of the last one`() {
        var replacements = RecordReplacements()
        let count = 20_000
        for number in (1..<count).reversed() {
            replacements.note("c\(number)", as: "c\(number - 1)", of: "Code", zone: 1)
        }
        let names = replacements.names
        #expect(names.count == count - 1)
        #expect(Set(names.values) == ["c0"])
        let groups = replacements.takePending()
        #expect(groups.map(\.names.count) == [count - 1])
        #expect(Set(groups.flatMap(\.names.values)) == ["c0"])
        #expect(replacements.takePending().isEmpty)
        // A later step still leads to the end.
        replacements.note("d", as: "c\(count - 1)", of: "Code", zone: 1)
        #expect(replacements.takePending().map(\.names) == [["d": "c0"]])
    }

    @Test func `records of two zones and types are told apart, and UUIDs are found in either case`() {
        var replacements = RecordReplacements()
        let id = UUID().uuidString
        replacements.note(id, as: "a", of: "Code", zone: 1)
        replacements.note("x", as: "b", of: "Code", zone: 2)
        replacements.note("x", as: "c", of: "Part", zone: 1)
        #expect(replacements.contains(GoneRecord(type: "Code", name: id.lowercased(), zone: nil)))
        #expect(replacements.contains(GoneRecord(type: "Code", name: "x", zone: 2)))
        #expect(!replacements.contains(GoneRecord(type: "Code", name: "x", zone: 1)))
        #expect(!replacements.contains(GoneRecord(type: "Note", name: "x", zone: nil)))
        let groups = replacements.takePending()
        #expect(
            groups.map { "\($0.type) \($0.zone) \($0.names.values.sorted())" } == [
                "Code 1 [\"a\"]", "Code 2 [\"b\"]", "Part 1 [\"c\"]",
            ])
    }
}

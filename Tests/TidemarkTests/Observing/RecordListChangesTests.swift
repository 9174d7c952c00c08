import TestSupport
import Testing

@testable import Tidemark

/// Goal: the changes lead from the previous list to the new one, with as few moved records as possible.
/// Method: lists by hand, and random lists. The differences of the random lists are applied, and compared with the result of a slow
/// search.
@Suite(.timeLimit(.minutes(30))) struct RecordListChangesTests {
    private func keys(_ text: String, version: (String) -> Int64 = { _ in 1 }) -> [RecordListKey] {
        text.map { RecordListKey(name: String($0), scope: 2, version: version(String($0))) }
    }

    @Test func `a record that changes its place is the only one that moves`() {
        let changes = RecordListChanges(from: keys("abcdef"), to: keys("aecdbf"))
        #expect(changes.moved.count == 2)
        let one = RecordListChanges(from: keys("abcdef"), to: keys("eabcdf"))
        #expect(one.moved.map(\.recordName) == ["e"] && one.moved.map { [$0.oldIndex, $0.newIndex] } == [[4, 0]])
        #expect(one.inserted.isEmpty && one.deleted.isEmpty && one.changed.isEmpty)
        #expect(RecordListChanges(from: keys("abc"), to: keys("abc")).isEmpty)
    }

    @Test func `records of the same name are paired in their order, and a different store is a change`() {
        let changes = RecordListChanges(from: keys("aab"), to: keys("aaab"))
        #expect(changes.inserted.count == 1 && changes.deleted.isEmpty && changes.moved.isEmpty)
        let other = RecordListChanges(from: keys("a"), to: [RecordListKey(name: "a", scope: 3, version: 1)])
        #expect(other.changed.map(\.recordName) == ["a"] && other.inserted.isEmpty)
    }

    /// Returns the length of a longest increasing subsequence, by comparing all pairs.
    private func longestRise(_ numbers: [Int]) -> Int {
        var lengths: [Int] = []
        for (index, number) in numbers.enumerated() {
            lengths.append(1 + (numbers[..<index].indices.filter { numbers[$0] < number }.map { lengths[$0] }.max() ?? 0))
        }
        return lengths.max() ?? 0
    }

    @Test func `the differences of random lists lead from one to the other`() throws {
        var random = Randomness("differences of lists")
        for _ in 0..<500 {
            let names = (0..<Int.random(in: 1...30, using: &random)).map { "\($0)" }
            func list(_ version: Int64) -> [RecordListKey] {
                var some = names.filter { _ in Bool.random(using: &random) }
                if Bool.random(using: &random) { some.shuffle(using: &random) }
                return some.map { RecordListKey(name: $0, scope: 2, version: Bool.random(using: &random) ? 1 : version) }
            }
            let (old, new) = (list(1), list(2))
            let changes = RecordListChanges(from: old, to: new)
            #expect(old.map(\.name).applying(changes.difference) == new.map(\.name))
            let (before, after) = (Set(old.map(\.name)), Set(new.map(\.name)))
            #expect(Set(changes.inserted.map(\.recordName)) == after.subtracting(before))
            #expect(Set(changes.deleted.map(\.recordName)) == before.subtracting(after))
            let staying = new.filter { before.contains($0.name) }
            #expect(changes.changed.map(\.recordName) == staying.filter { $0.version == 2 }.map(\.name))
            #expect(changes.changed.allSatisfy { new[$0.index].name == $0.recordName })
            let places = staying.map { it in old.firstIndex { $0.name == it.name }! }
            #expect(changes.moved.count == places.count - longestRise(places))
            for position in changes.inserted { #expect(new[position.index].name == position.recordName) }
            for position in changes.deleted { #expect(old[position.index].name == position.recordName) }
        }
    }
}

import Testing
import TidemarkModel

@testable import TidemarkTransfer

/// Goal: copies of assets get readable names, even if many records have the same caption. Method: the names alone, without files.
@Suite(.timeLimit(.minutes(30))) struct AssetNamesTests {
    private let schema = RecordTypeSchema(name: "Photo", fields: [.init(name: "caption", type: .string)])

    @Test func `thousands of records with one caption get a name each`() {
        var names = AssetNames(schema)
        let all = (0..<20_000).map { _ in names.name("Senja", "png") { _ in true } }
        #expect(all.prefix(3) == ["Senja.png", "Senja-2.png", "Senja-3.png"] && all.last == "Senja-20000.png")
        #expect(Set(all).count == all.count)
    }

    @Test func `a copy of an earlier export is found again, whichever records come before it`() {
        var names = AssetNames(schema)
        // Two files are there, and each is free only for its own record.
        #expect(names.name("a", "png") { $0 == "a-2.png" } == "a-2.png")
        #expect(names.name("a", "png") { $0 == "a.png" } == "a.png")
        #expect(names.name("A", "png") { _ in true } == "A-3.png")
    }

    @Test func `a caption as long as a book becomes a name of moderate length`() {
        let name = AssetNames.safe(String(repeating: "e\u{301}\u{202e}", count: 1 << 20))
        #expect(name.hasPrefix("é-é") && name.utf8.count <= 100)
        #expect(AssetNames.safe("a/../../etc/passwd") == "passwd" && AssetNames.safe("...").isEmpty)
    }
}

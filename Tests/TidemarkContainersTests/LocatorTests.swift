import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel

@testable import TidemarkContainers
@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: an extension finds the right container in a tree, and broken or hostile files there do no harm. Method: real trees;
/// their whole content compared before and after.
@Suite(.timeLimit(.minutes(30))) struct LocatorTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// Makes a whole container, as it is before any write.
    @discardableResult
    private func makeContainer(_ path: String) throws -> URL {
        let url = scratch["tree/\(path)"]
        _ = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: url))
        return url
    }

    private func search(
        _ name: String = "Journal", _ location: StoreLocation = .default, limits: StoreLocator.Limits = .init()
    ) throws -> StoreSearch {
        try StoreLocator(
            name: name, under: scratch["tree"], location: location, environment: ["XDG_DATA_HOME": scratch["data"].path],
            limits: limits
        ).search()
    }

    private func shown(_ search: StoreSearch) -> [String] {
        search.candidates.map { "\($0.kind.rawValue) \($0.url.path.dropFirst(scratch.url.path.count + 1))" }
    }

    private func reasons(_ search: StoreSearch) -> [String] {
        search.skipped.map { $0.reason.replacingOccurrences(of: scratch.url.path + "/", with: "") }
    }

    /// Everything in the scratch folder: paths, kinds, contents and times of change.
    private func state() throws -> [String: String] {
        let files = FileManager.default
        let paths = try files.subpathsOfDirectory(atPath: scratch.url.path)
        return try paths.reduce(into: [:]) { state, path in
            var status = stat()
            lstat(scratch[path].path, &status)
            let content = status.st_mode & S_IFMT == S_IFREG ? "\(try Data(contentsOf: scratch[path]).hashValue)" : ""
            state[path] = "\(status.st_mode) \(status.st_size) \(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec) \(content)"
        }
    }

    @Test func `cloud-backed containers come first, local ones second, the default location last, each with its reason`() throws {
        for path in ["b/c/store", "local/store", "z/store", "a/local/store", "a/b/store"] {
            try makeContainer("\(path)/Journal.tidemark")
            try makeContainer("\(path)/Other.tidemark")
        }
        try FileManager.default.createDirectory(at: scratch["data/tidemark"], withIntermediateDirectories: true)
        try FileManager.default.moveItem(
            at: try makeContainer("default/Journal.tidemark"), to: scratch["data/tidemark/Journal.tidemark"])
        let before = try state()
        let search = try search()
        #expect(
            shown(search) == [
                "cloudBacked tree/z/store/Journal.tidemark", "cloudBacked tree/a/b/store/Journal.tidemark",
                "cloudBacked tree/b/c/store/Journal.tidemark", "local tree/local/store/Journal.tidemark",
                "local tree/a/local/store/Journal.tidemark", "default data/tidemark/Journal.tidemark",
            ])
        #expect(search.best?.url.path == scratch["tree/z/store/Journal.tidemark"].path)
        #expect(
            Set(search.candidates.map(\.reason)) == [
                "it lies in a folder 'store': a cloud stands behind it",
                "it lies in 'local/store': it is kept on this device only",
                "it lies at the default location",
            ])
        #expect(search.skipped.isEmpty)
        #expect(search.isComplete)
        #expect(search.best?.container == (try ContainerDirectory(openingAt: search.best!.url)))
        #expect(try state() == before)
    }

    @Test func `the names of the folders above the tree count, and a tree may be given by a link`() throws {
        try makeContainer("local/store/Journal.tidemark")
        func found(_ path: String) throws -> [StoreCandidate.Kind] {
            try StoreLocator(
                name: "Journal", under: scratch[path], location: .default, environment: ["XDG_DATA_HOME": scratch["data"].path]
            ).search().candidates.map(\.kind)
        }
        #expect(try found("tree/local") == [.local])
        #expect(try found("tree/local/store") == [.local])
        try FileManager.default.createSymbolicLink(at: scratch["link"], withDestinationURL: scratch["tree"])
        #expect(try found("link") == [.local])
    }

    @Test func `a container at the default location within the tree is found once`() throws {
        let url = try makeContainer("Journal.tidemark")
        #expect(
            reasons(try search()) == [
                "tree/Journal.tidemark does not lie in a folder named 'store', and is not at the default location"
            ])
        let named = try search("Journal", .directory(url.deletingLastPathComponent()))
        #expect(shown(named) == ["default tree/Journal.tidemark"])
        #expect(named.skipped.isEmpty)
        let other = try makeContainer("store/Journal.tidemark")
        let both = try search("Journal", .directory(other.deletingLastPathComponent()))
        #expect(shown(both) == ["cloudBacked tree/store/Journal.tidemark"])
    }

    @Test func `without a tree, the folder of the location is searched, even if it does not exist`() throws {
        let environment = ["XDG_DATA_HOME": scratch["tree"].path]
        func search(_ location: StoreLocation) throws -> StoreSearch {
            try StoreLocator(name: "Journal", under: nil, location: location, environment: environment).search()
        }
        #expect(try search(.default) == StoreSearch())
        #expect(try search(.group("group.com.example")) == StoreSearch())
        #expect(try search(.directory(scratch["nowhere"])) == StoreSearch())
        for folder in ["tidemark", "tidemark-groups/group.com.example"] {
            try makeContainer("\(folder)/store/Journal.tidemark")
            try makeContainer("\(folder)/Journal.tidemark")
        }
        chmod(scratch["tree/tidemark-groups"].path, 0o700)
        chmod(scratch["tree/tidemark-groups/group.com.example"].path, 0o700)
        #expect(
            shown(try search(.default)) == [
                "cloudBacked tree/tidemark/store/Journal.tidemark", "default tree/tidemark/Journal.tidemark",
            ])
        #expect(
            shown(try search(.group("group.com.example"))) == [
                "cloudBacked tree/tidemark-groups/group.com.example/store/Journal.tidemark",
                "default tree/tidemark-groups/group.com.example/Journal.tidemark",
            ])
        #expect(throws: StoreError(.notFound, "")) { try StoreLocator(name: "Journal", under: scratch["nowhere"]).search() }
        #expect(throws: StoreError(.invalidName, "")) { try StoreLocator(name: "../Journal", under: scratch["tree"]) }
    }

    @Test func `broken candidates are skipped, and named with the reason`() throws {
        func make(_ folder: String, _ damage: (URL) throws -> Void) throws {
            try damage(try makeContainer("\(folder)/store/Journal.tidemark"))
        }
        func write(_ text: String, _ file: String) -> (URL) throws -> Void {
            { try Data(text.utf8).write(to: $0.appendingPathComponent(file)) }
        }
        func remove(_ file: String) -> (URL) throws -> Void {
            { try FileManager.default.removeItem(at: $0.appendingPathComponent(file)) }
        }
        try make("a", remove("container.json"))
        try make("b", write("{", "container.json"))
        try make("c", write(#"{"format": 99}"#, "container.json"))
        try make("d", write(String(repeating: " ", count: 70_000), "container.json"))
        try make("e", remove("private.sqlite"))
        try make("f", write("", "private.sqlite"))
        try make("g", write("SQLite format 2", "private.sqlite"))
        try make("h") { url in
            for file in ["private.sqlite", "private.sqlite-wal", "private.sqlite-shm"] { try remove(file)(url) }
            let queue = try DatabaseQueue(path: url.appendingPathComponent("private.sqlite").path)
            try queue.inDatabase { try $0.execute(sql: "CREATE TABLE theirs (a)") }
        }
        try make("i") { url in
            let queue = try DatabaseQueue(path: url.appendingPathComponent("private.sqlite").path)
            try queue.inDatabase { try $0.execute(sql: "PRAGMA user_version = 7; PRAGMA wal_checkpoint(TRUNCATE)") }
        }
        try make("j") { url in
            try FileManager.default.removeItem(at: url)
            try write("", "")(url)
        }
        try make("k") { url in
            try remove("private.sqlite")(url)
            try FileManager.default.createDirectory(
                at: url.appendingPathComponent("private.sqlite"), withIntermediateDirectories: true)
        }
        try make("l") { _ in }
        let before = try state()
        let search = try search()
        #expect(shown(search) == ["cloudBacked tree/l/store/Journal.tidemark"])
        func at(_ folder: String, _ file: String = "") -> String { "tree/\(folder)/store/Journal.tidemark\(file)" }
        let newest = "this version reads up to \(ContainerDirectory.format)"
        let expected: [(String, StoreError.Code)] = [
            ("\(at("a")) is no Tidemark container: it has no container.json", .notAStore),
            ("\(at("b", "/container.json")) is not the description of a Tidemark container", .notAStore),
            ("\(at("c")) has format 99; \(newest). Update Tidemark to open it", .newerFormat),
            ("\(at("d", "/container.json")) is not the description of a Tidemark container: it is too long", .notAStore),
            ("\(at("e")) has no private store: private.sqlite is missing or empty", .notFound),
            ("\(at("f")) has no private store: private.sqlite is missing or empty", .notFound),
            ("\(at("g", "/private.sqlite")) is no SQLite database, or it is damaged", .notAStore),
            ("\(at("h", "/private.sqlite")) is a SQLite database, but no Tidemark store", .notAStore),
            ("\(at("i", "/private.sqlite")) has format 7; \(newest). Update Tidemark to open it", .newerFormat),
            ("\(at("j")) is a file, and a container is a directory", .notAStore),
            ("\(at("k", "/private.sqlite")) is not a file", .notAStore),
        ]
        #expect(reasons(search) == expected.map(\.0))
        #expect(search.skipped.map(\.code) == expected.map(\.1))
        #expect(try state() == before)
    }

    @Test func `a store shows what it is in its first page, as soon as it is made`() throws {
        let url = try makeContainer("store/Journal.tidemark")
        let header = try Data(contentsOf: url.appendingPathComponent("private.sqlite"))
        #expect(Array(header[68..<72]) == Array("Tide".utf8))
        #expect(shown(try search()) == ["cloudBacked tree/store/Journal.tidemark"])
    }

    @Test func `symbolic links are not followed, in circles or out of the tree`() throws {
        let files = FileManager.default
        try files.moveItem(at: try makeContainer("store/Journal.tidemark"), to: scratch["Journal.tidemark"])
        try files.createDirectory(at: scratch["outside/store"], withIntermediateDirectories: true)
        try files.copyItem(at: scratch["Journal.tidemark"], to: scratch["outside/store/Journal.tidemark"])
        try files.createDirectory(at: scratch["tree/a/local/store"], withIntermediateDirectories: true)
        for (link, target) in [
            ("circle", "."), ("up", ".."), ("out", "../outside"), ("store/Journal.tidemark", "../../Journal.tidemark"),
            ("a/store", "../../outside/store"), ("a/local/store/Journal.tidemark", scratch["Journal.tidemark"].path),
        ] {
            try files.createSymbolicLink(atPath: scratch["tree/\(link)"].path, withDestinationPath: target)
        }
        for (folder, file) in [("b", "container.json"), ("c", "private.sqlite")] {
            let url = try makeContainer("\(folder)/store/Journal.tidemark").appendingPathComponent(file)
            try files.removeItem(at: url)
            try files.createSymbolicLink(at: url, withDestinationURL: scratch["Journal.tidemark/\(file)"])
        }
        let search = try search()
        #expect(search.candidates.isEmpty)
        #expect(search.isComplete)
        let found = reasons(search)
        #expect(found.count == 4)
        #expect(found[0] == "tree/a/local/store/Journal.tidemark is a symbolic link, and none is followed here")
        #expect(found[1].hasPrefix("cannot open the file tree/b/store/Journal.tidemark/container.json: "))
        #expect(found[2] == "tree/c/store/Journal.tidemark/private.sqlite is not a file")
        #expect(found[3] == "tree/store/Journal.tidemark is a symbolic link, and none is followed here")
    }

    @Test(.timeLimit(.minutes(30))) func `hostile names and files do no harm`() throws {
        try makeContainer("store/Journal.tidemark")
        for name in [
            "\n", "..%2f..", "~", "*", "; rm -rf", "-rf", "\u{202e}", "store ", "Store", String(repeating: "x", count: 255),
        ] {
            try makeContainer("\(name)/Journal.tidemark")
        }
        // A name that is not UTF-8.
        let bytes: [CChar] = Array(scratch["tree"].path.utf8CString.dropLast()) + [0x2f, -1, -2, 0x2f].prefix(3) + [0]
        #expect(mkdir(bytes, 0o700) == 0)
        for (folder, file) in [("a", "container.json"), ("b", "private.sqlite")] {
            let url = try makeContainer("\(folder)/store/Journal.tidemark").appendingPathComponent(file)
            try FileManager.default.removeItem(at: url)
            #expect(mkfifo(url.path, 0o600) == 0)
        }
        let search = try search()
        #expect(shown(search) == ["cloudBacked tree/store/Journal.tidemark"])
        #expect(search.skipped.count == 12)
    }

    @Test func `depth and number of names are limited, and the result says what was left out`() throws {
        try makeContainer("1/2/store/Journal.tidemark")
        try makeContainer("store/Journal.tidemark")
        let shallow = try search(limits: .init(depth: 2, entries: 1000))
        #expect(shown(shallow) == ["cloudBacked tree/store/Journal.tidemark"])
        #expect(!shallow.isComplete)
        let deep = try search(limits: .init(depth: 3, entries: 1000))
        #expect(deep.candidates.count == 2)
        #expect(deep.isComplete)
        // The folder of the tree and that of `store`.
        let few = try search(limits: .init(depth: 3, entries: 4))
        #expect(shown(few) == ["cloudBacked tree/store/Journal.tidemark"])
        #expect(!few.isComplete)
        #expect(try search(limits: .init(depth: 3, entries: 7)).isComplete)
    }

    // Root may read everything.
    @Test(.enabled(if: geteuid() != 0)) func `unreadable folders are skipped`() throws {
        try makeContainer("a/store/Journal.tidemark")
        chmod(scratch["tree/a"].path, 0)
        defer { chmod(scratch["tree/a"].path, 0o700) }
        #expect(reasons(try search()) == ["cannot open the folder tree/a: Permission denied"])
    }

    #if os(Linux)
        @Test func `a search leaves the locks of this process's open stores alone`() throws {
            let url = try makeContainer("store/Journal.tidemark")
            let reader = try StoreReader(container: ContainerDirectory(openingAt: url))
            var status = stat()
            stat(url.appendingPathComponent("private.sqlite").path, &status)
            #expect(LockHolders(of: status)?.hasOthers == false)
            #expect(try search().candidates.count == 1)
            #expect(LockHolders(of: status)?.hasOthers == false)
            withExtendedLifetime(reader) {}
        }
    #endif
}

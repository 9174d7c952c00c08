import Foundation
import TestSupport
import Testing

@testable import TidemarkContainers
@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: a location gives the same path to every process, and never a folder that other users can write to. Method: real folders
/// below a data home of the test's own.
@Suite(.timeLimit(.minutes(30))) struct LocationTests {
    private let scratch: Scratch
    private let group = "group.com.example.journal"

    init() throws { scratch = try Scratch() }

    private func place(
        _ location: StoreLocation, _ name: String = "Journal", making: Bool = false, _ environment: [String: String]? = nil
    ) throws(StoreError) -> String {
        try location.containerURL(
            named: name, makingFolder: making, environment: environment ?? ["XDG_DATA_HOME": scratch["data"].path]
        ).path
    }

    private func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: scratch[path].path)[.posixPermissions] as? Int
    }

    private func refusal(_ location: StoreLocation, _ name: String = "Journal", making: Bool = false) -> StoreError? {
        do {
            _ = try place(location, name, making: making)
            return nil
        } catch {
            return error
        }
    }

    @Test func `the default location follows the rules of XDG`() throws {
        #expect(try place(.default) == scratch["data/tidemark/Journal.tidemark"].path)
        #expect(!FileManager.default.fileExists(atPath: scratch["data"].path))
        let atHome = "/home/x/.local/share/tidemark/Journal.tidemark"
        #expect(try place(.default, "Journal", ["HOME": "/home/x"]) == atHome)
        #expect(try place(.default, "Journal", ["HOME": "/home/x", "XDG_DATA_HOME": "relative"]) == atHome)
        #expect(try place(.default, "Journal", ["HOME": "/home/x", "XDG_DATA_HOME": ""]) == atHome)
        _ = try place(.default, making: true)
        #expect(try mode("data/tidemark") == 0o700)
        #expect(!FileManager.default.fileExists(atPath: scratch["data/tidemark/Journal.tidemark"].path))
    }

    @Test func `a container in a given directory is a folder with its name there`() throws {
        #expect(try place(.directory(scratch["new/place"])) == scratch["new/place/Journal.tidemark"].path)
        #expect(!FileManager.default.fileExists(atPath: scratch["new"].path))
        #expect(try place(.directory(scratch["new/place"]), making: true) == scratch["new/place/Journal.tidemark"].path)
        #expect(try place(.directory(scratch["new/place"]), "Other") == scratch["new/place/Other.tidemark"].path)
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch["new/place"].path).isEmpty)
    }

    @Test func `a group's folder is readable by its owner only, and containers in it open`() throws {
        let url = scratch["data/tidemark-groups/\(group)/Journal.tidemark"]
        #expect(try place(.group(group)) == url.path)
        #expect(!FileManager.default.fileExists(atPath: scratch["data"].path))
        #expect(try place(.group(group), making: true) == url.path)
        #expect(try place(.group(group), making: true) == url.path)
        #expect(try ["data", "data/tidemark-groups", "data/tidemark-groups/\(group)"].map(mode) == [0o700, 0o700, 0o700])
        _ = try ContainerDirectory(openingOrCreatingAt: url)
    }

    static let groups: [(String, Bool)] = [
        ("group.com.example.journal", true), ("a.b", true), ("A1-2.x", true), (String(repeating: "a.", count: 127) + "b", true),
        (String(repeating: "a.", count: 127) + "bc", false), ("group", false), ("", false), (".", false), ("..", false),
        ("a..b", false), (".a.b", false), ("a.b.", false), ("a/b.c", false), ("../a.b", false), ("a.b/../../c", false),
        ("a_b.c", false), ("a.b\0", false), ("a.b\n", false), ("ä.b", false), ("a. b", false), ("~.a", false),
    ]

    @Test(arguments: groups) func `a group is a reverse domain name`(identifier: String, isOne: Bool) throws {
        let error = refusal(.group(identifier))
        #expect((error == nil) == isOne)
        if let error {
            #expect(error.code == .invalidName)
            #expect(error.message.hasPrefix("'\(identifier.prefix(100))' can't identify a group: it "))
        }
    }

    static let names: [(String, Bool)] = [
        ("Journal", true), ("Mein Tagebuch", true), ("日記", true), ("a.b", true), (String(repeating: "n", count: 246), true),
        (String(repeating: "n", count: 247), false), ("", false), (".", false), ("..", false), (".hidden", false), ("a/b", false),
        ("../a", false), ("a\0b", false), ("a\nb", false), ("Journal.tidemark", false), ("Journal.TideMark", false),
    ]

    @Test(arguments: names) func `a container's name has to be a valid file name`(name: String, isOne: Bool) throws {
        for location in [StoreLocation.default, .directory(scratch["x"]), .group(group)] {
            #expect(refusal(location, name)?.code == (isOne ? nil : .invalidName))
        }
    }

    @Test(arguments: ["data/tidemark-groups", "data/tidemark-groups/group.com.example.journal"])
    func `a group's folder to which others may write is refused, with the remedy`(path: String) throws {
        _ = try place(.group(group), making: true)
        for mode: mode_t in [0o770, 0o707, 0o777, 0o1777] {
            chmod(scratch[path].path, mode)
            for making in [false, true] {
                let error = try #require(refusal(.group(group), making: making))
                #expect(error.code == .untrusted)
                let place = scratch[path].path
                #expect(error.message == "others may write to \(place). Look at what is in it, then run: chmod go-w '\(place)'")
            }
        }
        chmod(scratch[path].path, 0o755)
        #expect(refusal(.group(group)) == nil)
    }

    @Test(arguments: ["data/tidemark-groups", "data/tidemark-groups/group.com.example.journal"])
    func `a group's folder that is a symbolic link or a file is refused`(path: String) throws {
        _ = try place(.group(group), making: true)
        try FileManager.default.moveItem(at: scratch[path], to: scratch["elsewhere"])
        try FileManager.default.createSymbolicLink(at: scratch[path], withDestinationURL: scratch["elsewhere"])
        for making in [false, true] {
            let error = try #require(refusal(.group(group), making: making))
            #expect(error.code == .untrusted)
            #expect(error.message.hasPrefix("\(scratch[path].path) is a symbolic link"))
        }
        try FileManager.default.removeItem(at: scratch[path])
        try Data().write(to: scratch[path])
        #expect(refusal(.group(group))?.message == "\(scratch[path].path) is not a folder. Remove what is there")
    }

    // Only root may give files away.
    @Test(.enabled(if: geteuid() == 0)) func `a group's folder of another user is refused`() throws {
        _ = try place(.group(group), making: true)
        let path = scratch["data/tidemark-groups/\(group)"].path
        chown(path, 4711, 4711)
        let error = try #require(refusal(.group(group)))
        #expect(error.code == .untrusted)
        #expect(error.message.hasPrefix("\(path) belongs to the user 4711, and this program runs as 0. Remove it, or have "))
    }
}

import Foundation
import TestSupport
import Testing
import TidemarkServer

/// Goal: no other user reads or replaces a server's uploads, and leftovers of killed servers are removed. Method: folders made
/// beside others.
@Suite(.timeLimit(.minutes(30))) struct TemporaryFolderTests {
    private let scratch = try! Scratch()

    private func folder(_ name: String, hasLock: Bool, age: TimeInterval) throws -> URL {
        let url = scratch.url.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: url.appendingPathComponent("incoming"), withIntermediateDirectories: true)
        if hasLock { try Data().write(to: url.appendingPathComponent("in-use")) }
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSinceNow: -age)], ofItemAtPath: url.path)
        return url
    }

    private func isThere(_ url: URL) -> Bool { FileManager.default.fileExists(atPath: url.path) }

    @Test func `each folder is new, readable by its user only, and removed with its process`() throws {
        let (first, second) = (try TemporaryFolder("server", in: scratch.url), try TemporaryFolder("server", in: scratch.url))
        #expect(first.url != second.url)
        for folder in [first, second] {
            let attributes = try FileManager.default.attributesOfItem(atPath: folder.url.path)
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o700)
            try Data(count: 10).write(to: folder.url.appendingPathComponent("upload"))
            folder.remove()
            #expect(!isThere(folder.url))
        }
    }

    @Test func `folders of killed processes are removed; those in use, new, or of another purpose stay`() throws {
        let used = try TemporaryFolder("server", in: scratch.url)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -90_000)], ofItemAtPath: used.url.path)
        let left = try folder("server-left", hasLock: true, age: 90)
        let new = try folder("server-new", hasLock: true, age: 5)
        let old = try folder("server-4711", hasLock: false, age: 90_000)
        let beingMade = try folder("server-made", hasLock: false, age: 90)
        let other = try folder("admin-left", hasLock: true, age: 90)
        let outside = try folder("outside", hasLock: true, age: 90)
        let link = scratch.url.appendingPathComponent("server-link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: outside)
        let made = try TemporaryFolder("server", in: scratch.url)
        #expect(!isThere(left) && !isThere(old))
        for url in [used.url, new, beingMade, other, outside, outside.appendingPathComponent("incoming"), link, made.url] {
            #expect(isThere(url), "\(url.lastPathComponent)")
        }
    }

    @Test func `an error names the place where no folder can be made`() throws {
        let place = scratch.url.appendingPathComponent("missing")
        let error = #expect(throws: ServerError.self) { _ = try TemporaryFolder("server", in: place) }
        #expect(error?.message.contains(place.path) == true && error?.message.contains("TMPDIR") == true)
    }
}

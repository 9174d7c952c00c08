import Foundation
import TestSupport
import Testing
import TidemarkCloud

@testable import TidemarkEmbeddedCloud

@Suite("The contract of asset storages, in a directory", .timeLimit(.minutes(30)))
struct AssetDirectoryTests {
    @Test(arguments: AssetStorageContract.all)
    func `a directory keeps it, also where two storages use it`(_ check: AssetStorageContract) async throws {
        let scratch = try Scratch()
        try await check.run(
            AssetStorageContract.Subject {
                AssetDirectory(scratch["assets"])
            } file: {
                try scratch.write("", to: "file-\(UUID().uuidString)")
            })
    }

    @Test func `an upload that can't be put in its place begins again, and leaves what is there as it was`() async throws {
        let scratch = try Scratch()
        let storage = AssetDirectory(scratch["assets"])
        let content = AssetStorageContract.content(1000, 15)
        let asset = AssetDigest.asset(of: content)
        _ = try await storage.add(content[..<700], to: asset, at: 0, owner: "_owner", by: nil)
        // A folder has the name of the content.
        let place = "assets/_owner/\(asset.digest.prefix(2))/\(asset.digest)"
        let obstacle = try scratch.write("whole", to: "\(place)/other")
        await #expect(throws: CloudError(.internalError, "")) {
            try await storage.add(content[700...], to: asset, at: 700, owner: "_owner", by: nil)
        }
        #expect(try await storage.received(asset, owner: "_owner", by: nil) == 0)
        #expect(try Data(contentsOf: obstacle) == Data("whole".utf8))
        try FileManager.default.removeItem(at: scratch[place])
        let answer = try await storage.add(content, to: asset, at: 0, owner: "_owner", by: nil)
        #expect(answer.isWhole)
        #expect(try await storage.piece(of: asset, from: 0, count: 1000, owner: "_owner") == content)
    }

    /// Makes a device that takes no byte, as a full disk does. Returns whether it is there, and can be opened: that needs root's rights.
    private static func makeFull(_ file: URL) -> Bool {
        #if os(Linux)
            // The numbers of /dev/full.
            guard mknod(file.path, S_IFCHR | 0o600, 0x107) == 0 else { return false }
            let descriptor = open(file.path, O_WRONLY | O_CLOEXEC)
            return descriptor >= 0 && close(descriptor) == 0
        #else
            return false
        #endif
    }

    private static let makesDevices: Bool = {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("tidemark-test-\(UUID().uuidString)")
        defer { unlink(file.path) }
        return makeFull(file)
    }()

    @Test(.enabled(if: makesDevices)) func `a full disk is reported as such, and the content may come again`() async throws {
        let scratch = try Scratch()
        let storage = AssetDirectory(scratch["assets"])
        let content = AssetStorageContract.content(1000, 16)
        let asset = AssetDigest.asset(of: content)
        let part = scratch["assets/_owner/uploads/\(asset.digest)"]
        try FileManager.default.createDirectory(at: part.deletingLastPathComponent(), withIntermediateDirectories: true)
        try #require(Self.makeFull(part))
        let error = await #expect(throws: CloudError.self) {
            try await storage.add(content, to: asset, at: 0, owner: "_owner", by: nil)
        }
        #expect(error?.code == .quotaExceeded)
        #expect(error?.reasonForClients == "the server has no room for the content")
        // A device can't be cut off, so it is gone.
        #expect(try await storage.received(asset, owner: "_owner", by: nil) == 0)
        #expect(try await storage.add(content, to: asset, at: 0, owner: "_owner", by: nil).isWhole)
    }

    #if os(Linux)
        /// How many descriptors of this process are of a file.
        private static func descriptors(of file: URL) throws -> Int {
            var wanted = stat()
            guard lstat(file.path, &wanted) == 0 else { return 0 }
            let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }
            return descriptors.count { descriptor in
                var status = stat()
                return fstat(descriptor, &status) == 0 && status.st_ino == wanted.st_ino && status.st_dev == wanted.st_dev
            }
        }

        @Test func `a piece that has waited for an upload that is gone puts no other one in its place`() async throws {
            let scratch = try Scratch()
            let storage = AssetDirectory(scratch["assets"])
            let content = AssetStorageContract.content(1000, 17)
            let asset = AssetDigest.asset(of: content)
            _ = try await storage.add(content[..<700], to: asset, at: 0, owner: "_owner", by: nil)
            let part = scratch["assets/_owner/uploads/\(asset.digest)"]
            // As another process that adds a piece.
            let lock = try FileHandle(forReadingFrom: part)
            try #require(flock(lock.fileDescriptor, LOCK_EX) == 0)
            let waiting = Task { try await storage.add(content[700...], to: asset, at: 700, owner: "_owner", by: nil).isWhole }
            while try Self.descriptors(of: part) < 2 { try await Task.sleep(for: .milliseconds(1)) }
            try FileManager.default.removeItem(at: part)
            try content[..<300].write(to: part)
            try lock.close()
            let error = await #expect(throws: CloudError.self) { try await waiting.value }
            #expect(error?.code == .invalidArguments)
            #expect(try Data(contentsOf: part) == content[..<300])
            #expect(!storage.has(asset, owner: "_owner"))
        }
    #endif
}

import Foundation
import TestSupport
import Testing
import TidemarkCloud

@testable import TidemarkEmbeddedCloud

@Suite("The contract of asset storages, in a directory", .timeLimit(.minutes(30)))
struct AssetDirectoryTests {
    @Test(arguments: AssetStorageContract.all)
    func `a directory keeps the contract, also if two storages use it`(_ check: AssetStorageContract) async throws {
        let scratch = try Scratch()
        try await check.run(
            AssetStorageContract.Subject {
                AssetDirectory(scratch["assets"])
            } file: {
                try scratch.write("", to: "file-\(UUID().uuidString)")
            })
    }

    // A directory that servers share

    /// A directory that is tied to a database, and the storage of a container in it.
    private func shared(_ scratch: Scratch) throws -> (directory: SharedAssetDirectory, storage: AssetDirectory) {
        try FileManager.default.createDirectory(at: scratch["shared"], withIntermediateDirectories: true)
        let directory = SharedAssetDirectory(scratch["shared"])
        try directory.writeMarker("0123")
        directory.expect("0123")
        return (directory, AssetDirectory(scratch["shared/journal/production"], in: directory))
    }

    @Test(arguments: AssetStorageContract.all)
    func `a directory that servers share keeps the contract`(_ check: AssetStorageContract) async throws {
        let scratch = try Scratch()
        let directory = try shared(scratch).directory
        try await check.run(
            AssetStorageContract.Subject {
                AssetDirectory(scratch["shared/journal/production"], in: directory)
            } file: {
                try scratch.write("", to: "file-\(UUID().uuidString)")
            })
    }

    @Test(arguments: ["moved away", "empty", "another's"])
    func `a directory that is not the database's stores and returns no content, and is not made`(_ how: String) async throws {
        let scratch = try Scratch()
        let (directory, storage) = try shared(scratch)
        let (old, new) = (AssetStorageContract.content(1000, 1), AssetStorageContract.content(1000, 2))
        let (known, other) = (AssetDigest.asset(of: old), AssetDigest.asset(of: new))
        _ = try await storage.add(old, to: known, at: 0, owner: "_owner", by: nil)
        try FileManager.default.moveItem(at: scratch["shared"], to: scratch["away"])
        if how != "moved away" {
            try FileManager.default.createDirectory(at: scratch["shared"], withIntermediateDirectories: true)
        }
        if how == "another's" { try SharedAssetDirectory(scratch["shared"]).writeMarker("4567") }
        let before = try? FileManager.default.contentsOfDirectory(atPath: scratch["shared"].path)
        let file = try scratch.write(new, to: "file")
        let attempts: [@Sendable () async throws -> Void] = [
            { _ = try await storage.add(new, to: other, at: 0, owner: "_owner", by: nil) },
            { _ = try await storage.add(new.prefix(10), to: other, at: 0, owner: "_owner", by: nil) },
            { try await storage.adopt(file, as: other, owner: "_owner") },
            { _ = try await storage.piece(of: known, from: 0, count: 10, owner: "_owner") },
            { _ = try await storage.examine([known], owner: "_owner") },
            { _ = try await storage.owners() }, { _ = try await storage.digests(of: "_owner", from: nil) },
            { _ = try await storage.received(other, owner: "_owner", by: nil) },
            { _ = try await storage.unfinished(beside: nil, owner: "_owner", by: nil) }, { try directory.check() },
        ]
        for (number, attempt) in attempts.enumerated() {
            let error = await #expect(throws: CloudError(.serviceUnavailable, ""), "\(number)") { try await attempt() }
            #expect(error?.retryAfter != nil)
            #expect(error?.reasonForClients.contains(scratch.url.path) == false)
        }
        // A content that seems to be missing may not be removed.
        #expect(!storage.isOld(known, owner: "_owner", at: Date() + 1e6))
        #expect(await storage.old([known], owner: "_owner", at: Date() + 1e6) == [])
        #expect(FileManager.default.fileExists(atPath: file.path))
        #expect((try? FileManager.default.contentsOfDirectory(atPath: scratch["shared"].path)) == before)
        // With the right directory in its place the storage works again within a second.
        try? FileManager.default.removeItem(at: scratch["shared"])
        try FileManager.default.moveItem(at: scratch["away"], to: scratch["shared"])
        try directory.check()
        #expect(try await storage.piece(of: known, from: 0, count: 1000, owner: "_owner") == old)
    }

    @Test(.enabled(if: geteuid() != 0)) func `an error names the user for whom a directory is not writable`() async throws {
        let scratch = try Scratch()
        let directory = try shared(scratch).directory
        #expect(chmod(scratch["shared"].path, 0o500) == 0)
        let error = #expect(throws: CloudError(.serviceUnavailable, "")) { try directory.checkIsWritable() }
        #expect(error?.reason.contains("'chown \(NSUserName()) \(scratch["shared"].path)'") == true, "\(error?.reason ?? "")")
        #expect(chmod(scratch["shared"].path, 0o700) == 0)
    }

    /// Whether a folder is in another file system than the tests' files.
    private static let hasOtherFileSystem: Bool = {
        var (one, other) = (stat(), stat())
        let place = FileManager.default.temporaryDirectory.path
        return access("/dev/shm", W_OK) == 0 && stat("/dev/shm", &one) == 0 && stat(place, &other) == 0
            && one.st_dev != other.st_dev
    }()

    @Test(.enabled(if: hasOtherFileSystem)) func `a file of another file system is adopted as well`() async throws {
        let scratch = try Scratch()
        let storage = try shared(scratch).storage
        let content = AssetStorageContract.content(100_000, 3)
        let asset = AssetDigest.asset(of: content)
        let file = URL(fileURLWithPath: "/dev/shm/tidemark-test-\(UUID().uuidString)")
        defer { unlink(file.path) }
        try content.write(to: file)
        try await storage.adopt(file, as: asset, owner: "_owner")
        #expect(!FileManager.default.fileExists(atPath: file.path))
        #expect(try await storage.piece(of: asset, from: 0, count: 100_000, owner: "_owner") == content)
        #expect(try await storage.unfinished(beside: nil, owner: "_owner", by: nil) == 0)
    }

    // Failing uploads

    @Test func `an upload that can't be stored starts again, and leaves other files as they were`() async throws {
        let scratch = try Scratch()
        let storage = AssetDirectory(scratch["assets"])
        let content = AssetStorageContract.content(1000, 15)
        let asset = AssetDigest.asset(of: content)
        _ = try await storage.add(content[..<700], to: asset, at: 0, owner: "_owner", by: nil)
        // A folder has the path of the content.
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

    /// Makes a device that accepts no byte, like a full disk. Returns whether it exists and can be opened, which needs root's
    /// rights.
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

    @Test(.enabled(if: makesDevices))
    func `a full disk is reported as such, and the content can be uploaded again`() async throws {
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
        // A device can't be truncated, so it is removed.
        #expect(try await storage.received(asset, owner: "_owner", by: nil) == 0)
        #expect(try await storage.add(content, to: asset, at: 0, owner: "_owner", by: nil).isWhole)
    }

    #if os(Linux)
        /// The number of this process's descriptors of a file.
        private static func descriptors(of file: URL) throws -> Int {
            var wanted = stat()
            guard lstat(file.path, &wanted) == 0 else { return 0 }
            let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }
            return descriptors.count { descriptor in
                var status = stat()
                return fstat(descriptor, &status) == 0 && status.st_ino == wanted.st_ino && status.st_dev == wanted.st_dev
            }
        }

        @Test func `a piece that waited for an upload that is gone does not replace another upload`() async throws {
            let scratch = try Scratch()
            let storage = AssetDirectory(scratch["assets"])
            let content = AssetStorageContract.content(1000, 17)
            let asset = AssetDigest.asset(of: content)
            _ = try await storage.add(content[..<700], to: asset, at: 0, owner: "_owner", by: nil)
            let part = scratch["assets/_owner/uploads/\(asset.digest)"]
            // As another process does that adds a piece.
            let lock = try FileHandle(forReadingFrom: part)
            try #require(flock(lock.fileDescriptor, LOCK_EX) == 0)
            let waiting = Task { try await storage.add(content[700...], to: asset, at: 700, owner: "_owner", by: nil).isWhole }
            while try Self.descriptors(of: part) < 2 { try await Task.sleep(for: .milliseconds(1)) }
            try FileManager.default.removeItem(at: part)
            try content[..<300].write(to: part)
            try lock.close()
            let error = await #expect(throws: CloudError.self) { try await waiting.value }
            #expect(error?.code == .serviceUnavailable)
            #expect(try Data(contentsOf: part) == content[..<300])
            #expect(!storage.has(asset, owner: "_owner"))
        }
    #endif
}

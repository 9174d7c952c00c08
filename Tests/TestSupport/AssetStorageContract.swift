import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkHTTP

/// The checks of what every ``AssetStorage`` does. A check throws if the storage does something else.
package struct AssetStorageContract: Sendable, CustomStringConvertible {
    /// A place where contents are stored, and the storages of several servers over it.
    package struct Subject: Sendable {
        /// Makes another server's storage of the same place.
        let storage: @Sendable () throws -> any AssetStorage
        /// Makes an empty file on the file system from which contents can be adopted.
        let file: @Sendable () throws -> URL

        package init(
            storage: @escaping @Sendable () throws -> any AssetStorage, file: @escaping @Sendable () throws -> URL
        ) {
            (self.storage, self.file) = (storage, file)
        }
    }

    /// What a storage does wrong.
    package struct Broken: Error, CustomStringConvertible {
        package let description: String
    }

    package let description: String
    private let body: @Sendable (Subject) async throws -> Void

    private init(_ description: String, _ body: @escaping @Sendable (Subject) async throws -> Void) {
        (self.description, self.body) = (description, body)
    }

    /// Runs the check.
    ///
    /// - Throws: ``Broken``, or what the storage throws.
    package func run(_ subject: Subject) async throws { try await body(subject) }

    private static let owner = "_owner"

    private static func require(_ holds: Bool, _ what: @autoclosure () -> String) throws {
        if !holds { throw Broken(description: what()) }
    }

    private static func requireEqual<Value: Equatable>(_ value: Value, _ other: Value, _ what: String) throws {
        try require(value == other, "\(what): \(value), not \(other)")
    }

    /// The digests of all pages, sorted: a digest that comes twice is in the list twice.
    private static func digests(of owner: String, in storage: any AssetStorage) async throws -> [String] {
        var (all, place): ([String], String?) = ([], nil)
        repeat {
            let page = try await storage.digests(of: owner, from: place)
            all += page.digests
            place = page.next
        } while place != nil
        return all.sorted()
    }

    private static func requireError(
        _ code: CloudError.Code, _ what: String, _ body: () async throws -> Void
    ) async throws {
        do {
            try await body()
        } catch let error as CloudError {
            return try requireEqual(error.code.rawValue, code.rawValue, what)
        }
        throw Broken(description: "\(what): no error")
    }

    /// Bytes that differ from place to place.
    package static func content(_ count: Int, _ seed: UInt64) -> Data {
        var state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
        var bytes = [UInt8](repeating: 0, count: count)
        for index in 0..<count {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            bytes[index] = UInt8(truncatingIfNeeded: state >> 56)
        }
        return Data(bytes)
    }

    /// Reads an address as any client does that has it.
    private static func read(_ url: String?, _ headers: (String, String)...) async throws -> HTTPAnswer {
        guard let url else { throw Broken(description: "there is no address") }
        let transport = CurlTransport(trustRoots: .system, isSecure: url.hasPrefix("https:"))
        let times = HTTPTimes(
            connecting: .seconds(30), sendingSilence: .seconds(30), receivingSilence: .seconds(30), total: .seconds(60))
        return try await transport.send(
            HTTPRequest(lane: .downloads, method: .get, url: url, headers: headers, answerSizeMax: 1 << 20, times: times))
    }

    private static func send(
        _ content: Data, to storage: any AssetStorage, pieces: Int, by user: String? = nil, owner: String = owner
    ) async throws -> CloudAsset {
        let asset = AssetDigest.asset(of: content)
        var offset = 0
        repeat {
            let end = min(content.count, offset + pieces)
            let answer = try await storage.add(
                content[offset..<end], to: asset, at: Int64(offset), owner: owner, by: user)
            offset = end
            try requireEqual(answer.received, Int64(offset), "received")
            try requireEqual(answer.isWhole, offset == content.count, "whole at \(offset)")
        } while offset < content.count
        return asset
    }

    /// All checks.
    package static let all: [AssetStorageContract] = [
        AssetStorageContract("a content that comes at once is there as a whole, for all servers") { subject in
            let (first, second) = (try subject.storage(), try subject.storage())
            for (number, size) in [0, 1, 1000, 300_000].enumerated() {
                let content = content(size, UInt64(number))
                let asset = try await send(content, to: first, pieces: max(1, size))
                for storage in [first, second] {
                    try require(storage.has(asset, owner: owner), "it has \(size) bytes")
                    try requireEqual(
                        try await storage.piece(of: asset, from: 0, count: max(1, size), owner: owner), content, "the content")
                    try requireEqual(try await storage.received(asset, owner: owner), 0, "received of what is whole")
                    try require(!storage.has(asset, owner: "_other"), "another owner has it")
                }
            }
        },
        AssetStorageContract("pieces become a content, at any server") { subject in
            let storages = [try subject.storage(), try subject.storage()]
            let content = content(100_000, 7)
            let asset = AssetDigest.asset(of: content)
            for (number, offset) in stride(from: 0, to: content.count, by: 30_000).enumerated() {
                try requireEqual(try await storages[1].received(asset, owner: owner), Int64(offset), "received")
                try require(!storages[0].has(asset, owner: owner), "a part is no content")
                let end = min(content.count, offset + 30_000)
                let answer = try await storages[number % 2].add(
                    content[offset..<end], to: asset, at: Int64(offset), owner: owner, by: nil)
                try requireEqual(answer.received, Int64(end), "received")
                try requireEqual(answer.isWhole, end == content.count, "whole")
                let last = await storages[0].lastPiece(of: asset.digest, owner: owner, by: nil)
                try requireEqual(last != nil, end < content.count, "the last piece has a time")
                if let last { try require(abs(Double(last) / 1e6 - Date().timeIntervalSince1970) < 600, "the time is now") }
            }
            for storage in storages {
                try requireEqual(
                    try await storage.piece(of: asset, from: 0, count: 100_000, owner: owner), content, "the content")
                try requireEqual(try await storage.unfinished(beside: nil, owner: owner), 0, "unfinished")
            }
        },
        AssetStorageContract("a large content in pieces is the same") { subject in
            let content = content(17_000_001, 8)
            let asset = try await send(content, to: try subject.storage(), pieces: 4_000_000)
            let storage = try subject.storage()
            for offset in stride(from: 0, to: content.count, by: 3_000_000) {
                let end = min(content.count, offset + 3_000_000)
                let piece = try await storage.piece(of: asset, from: Int64(offset), count: 3_000_000, owner: owner)
                try require(piece == content[offset..<end], "the bytes from \(offset)")
            }
        },
        AssetStorageContract("bytes that a piece repeats are skipped, at any server") { subject in
            let storages = [try subject.storage(), try subject.storage()]
            let content = content(1000, 19)
            let asset = AssetDigest.asset(of: content)
            let steps: [(range: Range<Int>, received: Int64)] = [
                (0..<400, 400), (0..<400, 400), (100..<200, 400), (400..<400, 400), (300..<500, 500), (499..<500, 500),
                (0..<600, 600),
            ]
            for (number, (range, received)) in steps.enumerated() {
                let answer = try await storages[number % 2].add(
                    content[range], to: asset, at: Int64(range.lowerBound), owner: owner, by: nil)
                try requireEqual(answer.received, received, "after \(range)")
                try require(!answer.isWhole, "whole after \(range)")
                try requireEqual(try await storages[0].received(asset, owner: owner), received, "received after \(range)")
            }
            let answer = try await storages[0].add(content[200...], to: asset, at: 200, owner: owner, by: nil)
            try require(answer.isWhole && answer.received == 1000, "whole in the end")
            try requireEqual(try await storages[1].piece(of: asset, from: 0, count: 1000, owner: owner), content, "the content")
        },
        AssetStorageContract("a piece that leaves a hole, or goes beyond the size, changes nothing") { subject in
            let storage = try subject.storage()
            let content = content(1000, 9)
            let asset = AssetDigest.asset(of: content)
            _ = try await storage.add(content[0..<400], to: asset, at: 0, owner: owner, by: nil)
            for offset in [Int64(401), 1000, -1, .max, .min] {
                try await requireError(.invalidArguments, "at \(offset)") {
                    _ = try await storage.add(content[0..<10], to: asset, at: offset, owner: owner, by: nil)
                }
            }
            try await requireError(.invalidArguments, "beyond") {
                _ = try await storage.add(content[0..<601], to: asset, at: 400, owner: owner, by: nil)
            }
            for (digest, size) in [("../../x", Int64(1)), (asset.digest.uppercased(), 1), (asset.digest, -1), ("", 1)] {
                try await requireError(.invalidArguments, "a malformed asset") {
                    _ = try await storage.add(Data([1]), to: CloudAsset(digest: digest, size: size), at: 0, owner: owner, by: nil)
                }
                try await requireError(.invalidArguments, "a malformed asset") {
                    _ = try await storage.received(CloudAsset(digest: digest, size: size), owner: owner)
                }
            }
            try requireEqual(try await storage.received(asset, owner: owner), 400, "received")
            let answer = try await storage.add(content[400...], to: asset, at: 400, owner: owner, by: nil)
            try require(answer.isWhole, "it goes on")
        },
        AssetStorageContract("another content than that of the digest is refused, and its upload removed") { subject in
            let storage = try subject.storage()
            let (content, asset) = (content(1000, 10), AssetDigest.asset(of: content(1000, 11)))
            try await requireError(.assetNotAvailable, "at once") {
                _ = try await storage.add(content, to: asset, at: 0, owner: owner, by: nil)
            }
            _ = try await storage.add(content[0..<600], to: asset, at: 0, owner: owner, by: nil)
            try await requireError(.assetNotAvailable, "in pieces") {
                _ = try await storage.add(content[600...], to: asset, at: 600, owner: owner, by: nil)
            }
            try requireEqual(try await storage.received(asset, owner: owner), 0, "received")
            try require(!storage.has(asset, owner: owner), "it has no content")
            try requireEqual(try await digests(of: owner, in: storage), [], "digests")
        },
        AssetStorageContract("equal pieces that arrive together count once") { subject in
            let storage = try subject.storage()
            let content = content(50_000, 12)
            let asset = AssetDigest.asset(of: content)
            let answered = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<6 {
                    group.addTask {
                        (try? await storage.add(content[0..<20_000], to: asset, at: 0, owner: owner, by: nil)) != nil
                    }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            try requireEqual(answered, 6, "answered")
            try requireEqual(try await storage.received(asset, owner: owner), 20_000, "received")
            _ = try await storage.add(content[20_000...], to: asset, at: 20_000, owner: owner, by: nil)
            try requireEqual(try await storage.piece(of: asset, from: 0, count: 50_000, owner: owner), content, "the content")
        },
        AssetStorageContract("equal uploads to two servers at once become the content") { subject in
            let storages = [try subject.storage(), try subject.storage()]
            for number in 0..<8 {
                let content = content(90_000, UInt64(100 + number))
                let asset = AssetDigest.asset(of: content)
                let wrong = await withTaskGroup(of: String?.self) { group in
                    for sender in 0..<4 {
                        group.addTask {
                            // As a device does that starts again at the offset that the cloud has.
                            for _ in 0..<20 where !storages[0].has(asset, owner: owner) {
                                do throws(CloudError) {
                                    var offset = try await storages[sender % 2].received(asset, owner: owner)
                                    while offset < asset.size {
                                        let end = min(offset + 30_000, asset.size)
                                        let piece = content[Int(offset)..<Int(end)]
                                        let answer = try await storages[sender % 2].add(
                                            piece, to: asset, at: offset, owner: owner, by: nil)
                                        if answer.isWhole { break }
                                        if answer.received < end { return "\(answer.received) received of \(end)" }
                                        offset = answer.received
                                    }
                                } catch {
                                    // Another one was faster.
                                    guard [.serviceUnavailable, .invalidArguments].contains(error.code) else { return "\(error)" }
                                }
                            }
                            return nil
                        }
                    }
                    return await group.reduce(into: [String]()) { if let wrong = $1 { $0.append(wrong) } }
                }
                try requireEqual(wrong, [], "of four that send the same")
                for storage in storages {
                    try requireEqual(
                        try await storage.piece(of: asset, from: 0, count: 90_000, owner: owner), content, "the content")
                }
            }
        },
        AssetStorageContract("a whole content counts, whatever pieces came before") { subject in
            let storage = try subject.storage()
            let content = content(1000, 20)
            let asset = AssetDigest.asset(of: content)
            _ = try await storage.add(Data(count: 400), to: asset, at: 0, owner: owner, by: nil)
            let answer = try await storage.add(content, to: asset, at: 0, owner: owner, by: nil)
            try require(answer.isWhole && answer.received == 1000, "it is whole")
            try requireEqual(try await storage.piece(of: asset, from: 0, count: 1000, owner: owner), content, "the content")
        },
        AssetStorageContract("pieces of a larger asset of the same digest do not obstruct an upload") { subject in
            let storage = try subject.storage()
            let content = content(1000, 21)
            let asset = AssetDigest.asset(of: content)
            let larger = CloudAsset(digest: asset.digest, size: 5000)
            for (offset, count) in [(0, 500), (500, 500), (1000, 1), (1001, 999)] {
                _ = try await storage.add(Data(count: count), to: larger, at: Int64(offset), owner: owner, by: nil)
            }
            // The stored beginning is of the larger asset, so the first whole upload is refused, and the next one is accepted.
            for attempt in 0..<3 where !storage.has(asset, owner: owner) {
                try require(attempt < 2, "it is never whole")
                do throws(CloudError) {
                    let offset = try await storage.received(asset, owner: owner)
                    _ = try await storage.add(content[Int(offset)...], to: asset, at: offset, owner: owner, by: nil)
                } catch {
                    try requireEqual(error.code.rawValue, CloudError.Code.assetNotAvailable.rawValue, "the first attempt")
                }
            }
            try requireEqual(try await storage.piece(of: asset, from: 0, count: 1000, owner: owner), content, "the content")
        },
        AssetStorageContract("a user can't continue another user's upload") { subject in
            let storage = try subject.storage()
            let content = content(1000, 13)
            let asset = AssetDigest.asset(of: content)
            _ = try await storage.add(content[0..<400], to: asset, at: 0, owner: owner, by: "_one")
            try requireEqual(try await storage.received(asset, owner: owner, by: "_two"), 0, "received of another")
            try requireEqual(try await storage.received(asset, owner: owner, by: nil), 0, "received of the owner")
            try requireEqual(try await storage.received(asset, owner: owner, by: "_one"), 400, "received")
            try requireEqual(
                try await storage.unfinished(beside: asset, owner: owner, by: "_two"), 400, "unfinished beside another's")
            try requireEqual(try await storage.unfinished(beside: asset, owner: owner, by: "_one"), 0, "unfinished beside it")
            try requireEqual(try await storage.unfinished(beside: nil, owner: "_other"), 0, "unfinished of another owner")
            _ = try await storage.add(content[400...], to: asset, at: 400, owner: owner, by: "_one")
            try require(storage.has(asset, owner: owner), "it is the owner's")
        },
        AssetStorageContract("a file is adopted as a whole, or refused and left alone") { subject in
            let storage = try subject.storage()
            for size in [0, 1000, 9_000_000] {
                let content = content(size, 14)
                let asset = AssetDigest.asset(of: content)
                for _ in 0..<2 {
                    let file = try subject.file()
                    try content.write(to: file)
                    try await storage.adopt(file, as: asset, owner: owner)
                    try require(!FileManager.default.fileExists(atPath: file.path), "the file has moved")
                    try require(storage.has(asset, owner: owner), "the content of \(size) bytes")
                }
                let end = try await storage.piece(of: asset, from: Int64(max(0, size - 10)), count: 10, owner: owner)
                try requireEqual(end, content.suffix(10), "its end")
            }
            let file = try subject.file()
            try Data([1, 2, 3]).write(to: file)
            try await requireError(.assetNotAvailable, "another size") {
                try await storage.adopt(
                    file, as: CloudAsset(digest: AssetDigest.asset(of: Data([9])).digest, size: 2), owner: owner)
            }
            try require(FileManager.default.fileExists(atPath: file.path), "the file is there")
        },
        AssetStorageContract("ranges are those of the content, and empty behind its end") { subject in
            let storage = try subject.storage()
            let content = content(1000, 15)
            let asset = try await send(content, to: storage, pieces: 1000)
            for (offset, count) in [
                (0, 1), (0, 999), (1, 999), (999, 1), (999, 100), (500, 10_000), (1000, 1), (5000, 1), (0, 0),
            ] {
                let expected = content.dropFirst(min(offset, 1000)).prefix(count)
                let piece = try await storage.piece(of: asset, from: Int64(offset), count: count, owner: owner)
                try require(piece == expected, "\(count) bytes from \(offset): \(piece.count)")
            }
            let missing = CloudAsset(digest: AssetDigest.asset(of: Data([4])).digest, size: 1000)
            for offset in [Int64(0), 1000] {
                try await requireError(.assetNotAvailable, "a missing content from \(offset)") {
                    _ = try await storage.piece(of: missing, from: offset, count: 10, owner: owner)
                }
            }
        },
        AssetStorageContract("an address, if there is one, gives everybody one content") { subject in
            let storage = try subject.storage()
            let bytes = content(1000, 20)
            let asset = try await send(bytes, to: storage, pieces: 1000)
            let other = try await send(content(1000, 21), to: storage, pieces: 1000)
            guard storage.signsURLs else {
                return try requireEqual(try storage.signedURL(of: asset, owner: owner), nil, "the address")
            }
            let url = try storage.signedURL(of: asset, owner: owner)
            let whole = try await read(url)
            try requireEqual(whole.status.code, 200, "the status")
            try require(whole.body == Array(bytes), "the content")
            for (name, value) in [
                ("Content-Type", AssetHeaders.contentType), ("Content-Disposition", AssetHeaders.contentDisposition),
                ("Cache-Control", AssetHeaders.cacheControl),
            ] { try requireEqual(whole.headers.first(name: name), value, name) }
            let part = try await read(url, ("Range", "bytes=10-19"))
            try requireEqual(part.status.code, 206, "the status of a part")
            try requireEqual(part.headers.first(name: "Content-Range"), "bytes 10-19/1000", "the range")
            try require(part.body == Array(bytes[10..<20]), "the part")
            // The signature of one content does not open another.
            func path(_ asset: CloudAsset) -> String { "\(asset.digest.prefix(2))/\(asset.digest)" }
            let altered = url?.replacingOccurrences(of: path(asset), with: path(other))
            try requireEqual(try await read(altered).status.code, 403, "the status of another content")
            let missing = CloudAsset(digest: AssetDigest.asset(of: Data([4])).digest, size: 1000)
            try requireEqual(
                try await read(try storage.signedURL(of: missing, owner: owner)).status.code, 404, "the status of a missing one")
            try await requireError(.invalidArguments, "no digest") {
                _ = try storage.signedURL(of: CloudAsset(digest: "../x", size: 1), owner: owner)
            }
        },
        AssetStorageContract("a content of another size counts as missing") { subject in
            let storage = try subject.storage()
            let asset = try await send(content(1000, 22), to: storage, pieces: 1000)
            // To a client that looks for these sizes, the stored content was cut, or has grown.
            let others = [999, 1001, 0].map { CloudAsset(digest: asset.digest, size: $0) }
            for other in others { try require(!storage.has(other, owner: owner), "it has \(other.size) bytes") }
            try require(storage.has(asset, owner: owner), "it has its own size")
            let examined = try await storage.examine(others + [asset], owner: owner)
            try requireEqual(examined.missing, others, "missing")
            try requireEqual(examined.aging, [], "aging")
        },
        AssetStorageContract("a removed content is gone for all servers, and can be uploaded again") { subject in
            let (first, second) = (try subject.storage(), try subject.storage())
            let content = content(1000, 16)
            for _ in 0..<2 {
                let asset = try await send(content, to: first, pieces: 600)
                try require(second.has(asset, owner: owner), "it is there")
                second.remove(asset, owner: owner)
                try require(!first.has(asset, owner: owner), "it is gone")
                second.remove(asset, owner: owner)
                try await requireError(.assetNotAvailable, "a removed content") {
                    _ = try await first.piece(of: asset, from: 0, count: 10, owner: owner)
                }
            }
        },
        AssetStorageContract("owners and digests are listed, each owner's apart") { subject in
            let storage = try subject.storage()
            try requireEqual(try await storage.owners(), [], "owners of nothing")
            var expected: [String: Set<String>] = [:]
            for (number, owner) in ["", "_one", "_two"].enumerated() {
                for seed in 0..<6 {
                    let asset = try await send(
                        content(100, UInt64(number * 100 + seed)), to: storage, pieces: 100, owner: owner)
                    expected[owner, default: []].insert(asset.digest)
                }
            }
            let begun = AssetDigest.asset(of: content(10, 999))
            _ = try await storage.add(content(10, 999).prefix(5), to: begun, at: 0, owner: "_three", by: nil)
            try requireEqual(try await storage.owners().sorted(), ["", "_one", "_three", "_two"], "owners")
            // Of the third owner there is only a piece of an upload.
            for owner in ["", "_one", "_two", "_three", "_four"] {
                try requireEqual(
                    try await digests(of: owner, in: storage), (expected[owner] ?? []).sorted(), "digests of \(owner)")
            }
        },
        AssetStorageContract("the age of a content counts from its upload or last touch") { subject in
            let storage = try subject.storage()
            let asset = try await send(content(100, 17), to: storage, pieces: 100)
            let missing = CloudAsset(digest: AssetDigest.asset(of: Data([4])).digest, size: 1)
            let now = Date()
            let (soon, late) = (now + 24 * 3600, now + 26 * 3600)
            try require(!storage.isOld(asset, owner: owner, at: soon), "old after a day")
            try require(storage.isOld(asset, owner: owner, at: late), "not old after 26 hours")
            try require(storage.isOld(missing, owner: owner, at: now), "a missing one is not old")
            try requireEqual(await storage.old([asset, missing], owner: owner, at: soon), [missing], "old")
            try requireEqual(await storage.old([asset, missing], owner: owner, at: late), [asset, missing], "old")
            let began = now - 3600
            try require(storage.isStray(asset, owner: owner, at: late, since: began), "no stray")
            try require(!storage.isStray(asset, owner: owner, at: soon, since: began), "a stray after a day")
            try require(!storage.isStray(asset, owner: owner, at: late, since: now + 3600), "a stray from before")
            try require(!storage.isStray(missing, owner: owner, at: late, since: began), "a missing stray")
            try requireEqual(await storage.strays([asset, missing], owner: owner, at: late, since: began), [asset], "strays")
            let examined = try await storage.examine([asset, missing], owner: owner)
            try requireEqual(examined.aging, [], "aging")
            try requireEqual(examined.missing, [missing], "missing")
            storage.touch(asset, owner: owner)
            storage.touch(missing, owner: owner)
            try require(!storage.has(missing, owner: owner), "touching makes none")
            try requireEqual(
                try await storage.piece(of: asset, from: 0, count: 100, owner: owner), content(100, 17), "the touched content")
        },
    ]
}

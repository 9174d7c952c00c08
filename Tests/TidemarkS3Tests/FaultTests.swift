import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkS3

/// Runs a blocking body on a thread of its own, since tests share few threads.
func apart<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
}

@Suite("Buckets that fail", .timeLimit(.minutes(30)))
struct FaultTests {
    private let scratch = try! Scratch()
    private let bucket = try! StubBucket()

    private func storage(
        _ change: (inout S3Configuration) -> Void = { _ in }, now: @escaping @Sendable () -> Date = { Date() }
    ) throws -> S3AssetStorage {
        var configuration = try Buckets.configuration(bucket.endpoint, scratch)
        configuration.silence = .seconds(1)
        change(&configuration)
        return S3AssetStorage(configuration, prefix: "p", now: now)
    }

    private static let passing: [(String, StubBucket.Fault)] = [
        ("500", .status(500, code: "InternalError")), ("503", .status(503, code: "SlowDown")),
        ("429", .status(429, code: "TooManyRequests", retryAfter: 1)),
        ("400 RequestTimeout", .status(400, code: "RequestTimeout")),
        ("a lost answer", .lostAnswer), ("silence", .silence(3)), ("no HTTP", .noHTTP),
    ]

    @Test("A request is tried again after a failure that passes, in every step of an upload", arguments: 0..<passing.count)
    func triesAgain(_ number: Int) async throws {
        let (name, fault) = Self.passing[number]
        let storage = try storage()
        let content = AssetStorageContract.content(11_000_000, 1)
        let asset = AssetDigest.asset(of: content)
        // Each kind of request once.
        for fits: @Sendable (StubBucket.Arrival) -> Bool in [
            { $0.method == "PUT" && $0.path.contains("/uploads/") }, { $0.method == "GET" && $0.query.contains("list-type") },
            { $0.method == "POST" && $0.query == "uploads=" }, { $0.method == "PUT" && $0.query.contains("partNumber=2") },
            { $0.method == "GET" && $0.path.contains("/uploads/") }, { $0.method == "POST" && $0.query.hasPrefix("uploadId") },
            { $0.method == "DELETE" },
        ] { bucket.fail(fault, where: fits) }
        for offset in stride(from: 0, to: content.count, by: 4_000_000) {
            let end = min(content.count, offset + 4_000_000)
            let answer = try await storage.add(content[offset..<end], to: asset, at: Int64(offset), owner: "_a", by: nil)
            #expect(answer.received == Int64(end), "\(name)")
        }
        bucket.fail(fault) { $0.method == "GET" }
        #expect(try await storage.piece(of: asset, from: 0, count: content.count, owner: "_a") == content)
        bucket.fail(fault) { $0.method == "HEAD" }
        #expect(try await apart { storage.has(asset, owner: "_a") })
        #expect(bucket.problems == [])
        #expect(bucket.keys == ["p/_a/\(asset.digest.prefix(2))/\(asset.digest)"])
        bucket.end()
    }

    @Test("Half a body, another byte and another size are noticed, and the content is asked for again")
    func noticesBadBodies() async throws {
        let storage = try storage()
        let content = AssetStorageContract.content(100_000, 2)
        let asset = AssetDigest.asset(of: content)
        _ = try await storage.add(content, to: asset, at: 0, owner: "_a", by: nil)
        for fault in [StubBucket.Fault.halfBody, .otherByte, .otherSize] {
            bucket.fail(fault) { $0.method == "GET" }
            #expect(try await storage.piece(of: asset, from: 0, count: 100_000, owner: "_a") == content)
        }
        for fault in [StubBucket.Fault.halfBody, .otherSize] {
            bucket.fail(fault) { $0.method == "GET" }
            #expect(try await storage.piece(of: asset, from: 50_000, count: 1000, owner: "_a") == content[50_000..<51_000])
        }
        // On a busy machine, a late request may have been sent once more.
        let asked = bucket.arrivals.filter { $0.method == "GET" }.count
        #expect(asked >= 10, "\(asked)")
        bucket.end()
    }

    @Test("A wrong or cut content in the bucket is never handed out, and the error comes in time")
    func refusesDamage() async throws {
        let storage = try storage { $0.patience = .seconds(2) }
        let content = AssetStorageContract.content(1000, 3)
        let asset = AssetDigest.asset(of: content)
        _ = try await storage.add(content, to: asset, at: 0, owner: "_a", by: nil)
        let key = try #require(bucket.keys.first)
        for other in [AssetStorageContract.content(1000, 4), content.prefix(999), content + [0], Data()] {
            bucket.replace(key, Data(other))
            await #expect(throws: CloudError(.serviceUnavailable, "")) {
                try await storage.piece(of: asset, from: 0, count: 1000, owner: "_a")
            }
            if other.count != 1000 {
                #expect(try await apart { !storage.has(asset, owner: "_a") })
                await #expect(throws: CloudError(.serviceUnavailable, "")) {
                    try await storage.piece(of: asset, from: 100, count: 10, owner: "_a")
                }
            }
        }
        bucket.end()
    }

    @Test("A part is never one of another content of the same size, whichever server has stored or read the content before")
    func refusesOtherParts() async throws {
        for size in [1000, 9_000_000] {
            let content = AssetStorageContract.content(size, 10)
            let asset = AssetDigest.asset(of: content)
            let storage = try storage { $0.patience = .seconds(2) }
            _ = try await storage.adopt(try scratch.write(content, to: "file"), as: asset, owner: "_a")
            let key = try #require(bucket.keys.first { $0.hasSuffix(asset.digest) })
            func part(_ storage: S3AssetStorage) async throws(CloudError) -> Data {
                try await storage.piece(of: asset, from: 100, count: 10, owner: "_a")
            }
            #expect(try await part(storage) == content[100..<110])
            // By its tag the next part is read alone.
            let before = bucket.arrivals.count
            #expect(try await storage.piece(of: asset, from: 500, count: 300, owner: "_a") == content[500..<800])
            #expect(bucket.arrivals.count == before + 1)
            bucket.replace(key, AssetStorageContract.content(size, 11))
            let other = try self.storage { $0.patience = .seconds(2) }
            for storage in [storage, other] {
                let error = await #expect(throws: CloudError(.serviceUnavailable, "")) { try await part(storage) }
                #expect(error?.retryAfter != nil)
            }
            // The content is there again.
            bucket.replace(key, content)
            for storage in [storage, other] { #expect(try await part(storage) == content[100..<110]) }
        }
        bucket.end()
    }

    @Test("A content that is too large to be compared is read in parts alone")
    func readsLargeParts() async throws {
        let content = AssetStorageContract.content(2000, 12)
        let asset = AssetDigest.asset(of: content)
        let storage = try storage { $0.comparedSizeMax = 1999 }
        _ = try await storage.add(content, to: asset, at: 0, owner: "_a", by: nil)
        let before = bucket.arrivals.count
        #expect(try await storage.piece(of: asset, from: 100, count: 10, owner: "_a") == content[100..<110])
        #expect(bucket.arrivals.count == before + 1)
        #expect(bucket.arrivals.last?.headers["range"] == "bytes=100-109")
        bucket.end()
    }

    @Test("Missing keys make clients come again while the server runs, and are an error of its own at its start")
    func losesKeys() async throws {
        let storage = try storage { $0.credentials = .file(scratch["none"]) }
        let asset = AssetDigest.asset(of: Data([1, 2]))
        let error = await #expect(throws: CloudError(.serviceUnavailable, "")) {
            try await storage.piece(of: asset, from: 0, count: 1, owner: "_a")
        }
        #expect(error?.reason.contains(scratch["none"].path) == true)
        await #expect(throws: CloudError(.invalidArguments, "")) { try await storage.check() }
        bucket.end()
    }

    @Test("A bucket that fails for long, is full or refuses the keys has its own error, with its name and no key")
    func givesUp() async throws {
        let content = AssetStorageContract.content(1000, 5)
        let asset = AssetDigest.asset(of: content)
        for (fault, code, word) in [
            (StubBucket.Fault.status(503, code: "SlowDown", retryAfter: 7), CloudError.Code.serviceUnavailable, "SlowDown"),
            (.status(403, code: "AccessDenied"), .serviceUnavailable, "AccessDenied"),
            (.status(403, code: "RequestTimeTooSkewed"), .serviceUnavailable, "clock"),
            (.status(507, code: "InsufficientStorage"), .quotaExceeded, "full"),
            (.status(400, code: "XMinioStorageFull"), .quotaExceeded, "full"),
            (.status(404, code: "NoSuchBucket"), .serviceUnavailable, "not there"),
            (.status(400, code: "InvalidArgument"), .internalError, "InvalidArgument"),
        ] {
            let storage = try storage { $0.patience = .milliseconds(500) }
            bucket.fail(fault, times: 6)
            let error = await #expect(throws: CloudError(code, "")) {
                try await storage.add(content, to: asset, at: 0, owner: "_a", by: nil)
            }
            let reason = error?.reason ?? ""
            #expect(reason.contains(word) && reason.contains("bucket 'journal'"), "\(reason)")
            let told = error?.reasonForClients ?? ""
            #expect(!told.contains("journal") && !told.contains("127.0.0.1") && !told.contains("p/_a"), "\(told)")
            #expect(!reason.contains(SeaweedServer.secret) && !reason.contains(SeaweedServer.keyID))
            #expect((error?.retryAfter != nil) == (code == .serviceUnavailable))
            bucket.forgetFaults()
        }
        #expect(bucket.keys == [])
        bucket.end()
    }

    @Test("While the bucket can't be reached, no content counts as stored, old or stray, and a removal ends in time")
    func answersWithoutBucket() async throws {
        bucket.end()
        let storage = try storage {
            $0.patience = .milliseconds(300)
            $0.blockingPatience = .milliseconds(300)
        }
        let asset = AssetDigest.asset(of: Data([1]))
        let later = Date() + 30 * 3600
        let answers = try await apart {
            storage.remove(asset, owner: "_a")
            storage.touch(asset, owner: "_a")
            return [
                storage.has(asset, owner: "_a"), storage.isOld(asset, owner: "_a", at: later),
                storage.isStray(asset, owner: "_a", at: later, since: .distantPast),
            ]
        }
        #expect(answers == [false, false, false])
        #expect(await storage.old([asset], owner: "_a", at: later) == [])
        #expect(await storage.strays([asset], owner: "_a", at: later, since: .distantPast) == [])
        // A content that can't be looked for counts as stored, so that records can be saved.
        let examined = try await storage.examine([asset], owner: "_a")
        #expect(examined.aging == [asset] && examined.missing == [])
        #expect(await storage.lastPiece(of: asset.digest, owner: "_a", by: nil) == nil)
        let error = await #expect(throws: CloudError(.serviceUnavailable, "")) { try await storage.owners() }
        #expect(error?.reason.contains("Connection refused") == true)
    }

    @Test("A server that dies while it puts pieces together leaves them: the last piece comes again, to any server")
    func survivesDeath() async throws {
        let content = AssetStorageContract.content(12_000_000, 6)
        let asset = AssetDigest.asset(of: content)
        let dying = try storage { $0.attempts = 1 }
        for offset in stride(from: 0, to: 8_000_000, by: 4_000_000) {
            _ = try await dying.add(content[offset..<(offset + 4_000_000)], to: asset, at: Int64(offset), owner: "_a", by: nil)
        }
        for step in ["uploads=", "partNumber=1", "partNumber=3", "uploadId"] {
            // It can't end its multipart upload, either.
            bucket.fail(.status(500, code: "InternalError"), times: 2) { $0.method != "GET" && $0.query.contains(step) }
            await #expect(throws: CloudError.self) {
                _ = try await dying.add(content[8_000_000...], to: asset, at: 8_000_000, owner: "_a", by: nil)
            }
            bucket.forgetFaults()
            let other = try storage()
            #expect(try await other.received(asset, owner: "_a", by: nil) == 8_000_000)
            #expect(try await apart { !other.has(asset, owner: "_a") })
        }
        let other = try storage()
        #expect(try await other.add(content[8_000_000...], to: asset, at: 8_000_000, owner: "_a", by: nil).isWhole)
        #expect(try await other.piece(of: asset, from: 0, count: 12_000_000, owner: "_a") == content)
        // The multipart uploads of the dead servers are aborted after a day.
        let left = bucket.uploadCount
        _ = try await other.unfinished(beside: nil, owner: "_a")
        #expect(bucket.uploadCount == left)
        let tomorrow = try storage(now: { Date() + 25 * 3600 })
        _ = try await tomorrow.unfinished(beside: nil, owner: "_a")
        #expect(bucket.uploadCount == 0)
        bucket.end()
    }

    @Test("A completion that fails after a status of 200 is tried again, and one whose answer is lost counts as done")
    func completes() async throws {
        let content = AssetStorageContract.content(11_000_000, 7)
        let asset = AssetDigest.asset(of: content)
        for fault in [StubBucket.Fault.lateError, .lostAnswer] {
            let storage = try storage()
            bucket.fail(fault) { $0.method == "POST" && $0.query.hasPrefix("uploadId") }
            let file = try scratch.write(content, to: "file")
            try await storage.adopt(file, as: asset, owner: "_a")
            #expect(try await storage.piece(of: asset, from: 0, count: content.count, owner: "_a") == content)
            try await apart { storage.remove(asset, owner: "_a") }
        }
        #expect(bucket.keys == [])
        bucket.end()
    }

    @Test("Unfinished uploads are removed a week after their last piece, and count until then")
    func forgetsUploads() async throws {
        let storage = try storage()
        let content = AssetStorageContract.content(1000, 8)
        let asset = AssetDigest.asset(of: content)
        _ = try await storage.add(content[0..<300], to: asset, at: 0, owner: "_a", by: nil)
        bucket.age(by: 6.9 * 86_400)
        _ = try await storage.add(content[0..<400], to: asset, at: 0, owner: "_a", by: "_b")
        #expect(try await storage.unfinished(beside: nil, owner: "_a") == 700)
        // A new piece keeps the old ones.
        _ = try await storage.add(content[300..<500], to: asset, at: 300, owner: "_a", by: nil)
        bucket.age(by: 86_400)
        #expect(try await storage.unfinished(beside: nil, owner: "_a") == 900)
        bucket.age(by: 6.9 * 86_400)
        #expect(try await storage.unfinished(beside: nil, owner: "_a") == 0)
        #expect(bucket.keys == [])
        bucket.end()
    }

    @Test("Requests that are sent again, and those that are given up, are counted")
    func counts() async throws {
        let factory = RecordingFactory(prefix: "tidemark_bucket_")
        let storage = try storage {
            $0.metrics = S3Metrics(factory)
            $0.attempts = 2
        }
        let content = AssetStorageContract.content(100, 30)
        let asset = AssetDigest.asset(of: content)
        bucket.fail(.status(503, code: "SlowDown"))
        _ = try await storage.add(content, to: asset, at: 0, owner: "_a", by: nil)
        #expect(factory.value("retries_total") == 1 && factory.value("failures_total") == 0)
        #expect(factory.value("request_seconds") > 0)
        bucket.fail(.status(500, code: "InternalError"), times: 2)
        await #expect(throws: CloudError(.serviceUnavailable, "")) { try await storage.owners() }
        #expect(factory.value("retries_total") == 2 && factory.value("failures_total") == 1)
        // A failure that is not tried again, of a request from within a transaction.
        bucket.fail(.status(403, code: "AccessDenied"))
        #expect(try await apart { !storage.has(asset, owner: "_a") })
        #expect(factory.value("retries_total") == 2 && factory.value("failures_total") == 2)
        // A missing content is an answer.
        #expect(try await apart { !storage.has(AssetDigest.asset(of: Data([1])), owner: "_a") })
        // A request that this side ends is no failure of the bucket.
        await storage.close()
        await #expect(throws: CloudError(.serviceUnavailable, "")) { try await storage.owners() }
        #expect(factory.value("failures_total") == 2 && factory.value("retries_total") == 2)
        bucket.end()
    }

    @Test("Frequent checks of the bucket store an object every ten minutes only, and again after a failure")
    func checksOften() async throws {
        let time = Shared(Date())
        let storage = try storage({ $0.attempts = 1 }, now: { time.value })
        func stored() -> Int { bucket.arrivals.filter { $0.method == "PUT" }.count }
        for _ in 0..<5 { try await storage.checkOften() }
        #expect(stored() == 1)
        #expect(bucket.arrivals.filter { $0.query.contains("list-type") }.count == 5)
        time.change { $0 += 601 }
        for _ in 0..<5 { try await storage.checkOften() }
        #expect(stored() == 2)
        bucket.fail(.status(500, code: "InternalError"))
        await #expect(throws: CloudError(.serviceUnavailable, "")) { try await storage.checkOften() }
        try await storage.checkOften()
        #expect(stored() == 3)
        #expect(bucket.keys == [] && bucket.problems == [])
        bucket.end()
    }

    @Test("The digests of an owner with few contents take one request")
    func listsDigests() async throws {
        let storage = try storage()
        var digests: Set<String> = []
        for seed in 0..<3 as Range<UInt64> {
            let content = AssetStorageContract.content(100, 20 + seed)
            let asset = AssetDigest.asset(of: content)
            _ = try await storage.add(content, to: asset, at: 0, owner: "_a", by: nil)
            digests.insert(asset.digest)
        }
        let before = bucket.arrivals.count
        let page = try await storage.digests(of: "_a", from: nil)
        #expect(page.digests == digests && page.next == nil)
        #expect(bucket.arrivals.count == before + 1)
        bucket.end()
    }

    @Test("A touched content is young again")
    func touches() async throws {
        let storage = try storage()
        let content = AssetStorageContract.content(1000, 9)
        let asset = AssetDigest.asset(of: content)
        _ = try await storage.add(content, to: asset, at: 0, owner: "_a", by: nil)
        bucket.age(by: 26 * 3600)
        #expect(try await apart { storage.isOld(asset, owner: "_a", at: Date()) })
        #expect(try await storage.examine([asset], owner: "_a").aging == [asset])
        try await apart { storage.touch(asset, owner: "_a") }
        #expect(try await apart { !storage.isOld(asset, owner: "_a", at: Date()) })
        #expect(try await storage.examine([asset], owner: "_a").aging == [])
        #expect(bucket.problems == [])
        bucket.end()
    }
}

package import Foundation
package import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Stores the contents of assets in a bucket of a server that speaks S3. Any number of servers may use it at once, and each can
/// continue an upload that another has begun.
///
/// - A content is an object, `owner/first byte/digest`. It is there as a whole or not at all, and never changes.
/// - A piece of an upload is an object, `owner/uploads/digest/offset`, since clients send pieces that are smaller than S3's parts
///   may be. After the last piece, all pieces are hashed, put together as one object, and removed.
/// - A content that a transaction removes is gone when the transaction goes on, as with files. So the functions that are not
///   asynchronous block their thread for a request; see decision 069.
///
/// The bucket has to be strongly consistent, as Amazon's are since 2020: it shows at once what was stored and removed.
package final class S3AssetStorage: AssetStorage {
    let client: S3Client
    let configuration: S3Configuration
    /// Ends with a slash, unless it is empty.
    private let prefix: String
    let now: @Sendable () -> Date
    private let uploads = KeyedLock()
    let comparisons = KeyedLock()
    let compared = ComparedTags()
    /// When ``check()`` was passed last, unless the bucket has failed since.
    private let checked = LockedValue<Date?>(nil)

    /// How many seconds an unfinished upload is kept after its last piece.
    private static let partAge: TimeInterval = 7 * 86_400
    /// After so many seconds a multipart upload counts as one of a server that has died.
    private static let assemblyAge: TimeInterval = 86_400
    private static let checkAge: TimeInterval = 600
    /// How many requests are sent at once for one caller.
    private static let requestsAtOnce = 8

    /// Makes a storage. It asks the bucket for nothing until it is used.
    ///
    /// - Parameters:
    ///   - prefix: What all keys begin with, such as `iCloud.org.example.journal/production`.
    ///   - now: The clock by which ages are counted.
    package init(_ configuration: S3Configuration, prefix: String, now: @escaping @Sendable () -> Date = { Date() }) {
        (self.configuration, self.now) = (configuration, now)
        self.prefix = prefix.isEmpty || prefix.hasSuffix("/") ? prefix : prefix + "/"
        client = S3Client(configuration)
    }

    /// Checks that the bucket is there and that the keys may list, store, read and remove objects in it.
    ///
    /// - Throws: `CloudError`, whose sentence says what is missing; `invalidArguments` where there are no keys.
    package func check() async throws(CloudError) {
        _ = try configuration.credentials.keys()
        let key = "\(prefix)check-\(UUID().uuidString)"
        _ = try await client.folders(prefix)
        try await client.put(Array("tidemark".utf8), as: key)
        let read = try await client.get(key, 0..<8, of: 8)
        try await client.delete(key)
        guard read == Array("tidemark".utf8) else {
            throw CloudError(
                .serviceUnavailable, "the \(configuration.name) does not show what was just stored", retryAfter: .seconds(60))
        }
    }

    /// As ``check()``, for a server that starts: records are served without the bucket.
    ///
    /// - Returns: Why the bucket can't be used for the moment: it can't be reached, fails, or is full. `nil` where it can be used.
    /// - Throws: `CloudError` of a bucket that refuses the keys, or is not there under its name; `invalidArguments` where there are no keys.
    package func checkAtStart() async throws(CloudError) -> CloudError? {
        do throws(CloudError) {
            try await check()
            return nil
        } catch {
            guard error.isOutOfReach || error.code == .quotaExceeded else { throw error }
            return error
        }
    }

    /// Checks the bucket for a caller that asks each second whether it can be used. While it can, this requests a list alone, and
    /// makes the whole ``check()`` every ten minutes. In a bucket that keeps versions, each object that is stored and removed
    /// leaves two.
    package func checkOften() async throws(CloudError) {
        let now = now()
        let isFresh = checked.withLock { $0.map { now.timeIntervalSince($0) < Self.checkAge } ?? false }
        do throws(CloudError) {
            guard !isFresh else {
                _ = try await client.folders(prefix)
                return
            }
            try await check()
            checked.withLock { $0 = now }
        } catch {
            checked.withLock { $0 = nil }
            throw error
        }
    }

    /// Ends all requests.
    package func close() async { await client.shutdown() }

    // Keys

    private func folder(of owner: String) -> String { "\(prefix)\(owner.isEmpty ? "public" : owner)/" }

    func key(_ asset: CloudAsset, owner: String) -> String {
        "\(folder(of: owner))\(asset.digest.prefix(2))/\(asset.digest)"
    }

    private func key(ofUpload digest: String, owner: String, by user: String?) -> String {
        "\(folder(of: owner))uploads/\(digest)\(user.map { "-\($0)" } ?? "")/"
    }

    // Uploads

    /// The pieces of an upload that follow one another from 0 on, up to the asset's size.
    private func pieces(_ upload: String, of asset: CloudAsset) async throws(CloudError) -> [(offset: Int64, object: S3Object)] {
        var (pieces, end): ([(offset: Int64, object: S3Object)], Int64) = ([], 0)
        for object in try await client.list(upload) {
            // A piece that another one has replaced lies before the end; one beyond the size belongs to an asset that was said to be larger.
            guard let offset = Int64(object.key.dropFirst(upload.count), radix: 16), offset == end, object.size > 0,
                object.size <= asset.size - end
            else { continue }
            pieces.append((offset, object))
            end += object.size
        }
        return pieces
    }

    private static func count(_ pieces: [(offset: Int64, object: S3Object)], of asset: CloudAsset) -> Int64 {
        guard let last = pieces.last else { return 0 }
        let count = last.offset + last.object.size
        // The server with the last piece has ended before it put all together. The client has to send that piece again.
        return asset.size > 0 && count >= asset.size ? last.offset : count
    }

    package func received(_ asset: CloudAsset, owner: String, by user: String?) async throws(CloudError) -> Int64 {
        try asset.check()
        return Self.count(try await pieces(key(ofUpload: asset.digest, owner: owner, by: user), of: asset), of: asset)
    }

    package func add(
        _ piece: Data, to asset: CloudAsset, at offset: Int64, owner: String, by user: String?
    ) async throws(CloudError) -> (received: Int64, isWhole: Bool) {
        try asset.check()
        let upload = key(ofUpload: asset.digest, owner: owner, by: user)
        await uploads.lock(upload)
        defer { uploads.unlock(upload) }
        let isWhole = offset == 0 && Int64(piece.count) == asset.size
        let before = isWhole ? [] : try await pieces(upload, of: asset)
        let there = Self.count(before, of: asset)
        let piece = try UploadPiece.rest(of: piece, at: offset, behind: there, of: asset)
        if isWhole {
            guard AssetDigest.asset(of: piece) == asset else { throw Self.otherContent(asset) }
            try await client.put(Array(piece), as: key(asset, owner: owner))
            return (asset.size, true)
        }
        let number = String(there, radix: 16)
        if !piece.isEmpty {
            try await client.put(Array(piece), as: upload + String(repeating: "0", count: 16 - number.count) + number)
        }
        let received = there + Int64(piece.count)
        guard received == asset.size else { return (received, false) }
        try await assemble(asset, owner, upload)
        return (received, true)
    }

    private static func otherContent(_ asset: CloudAsset) -> CloudError {
        CloudError(.assetNotAvailable, "what was uploaded is not the content of the digest \(asset.digest)")
    }

    /// Puts the pieces of an upload together.
    private func assemble(_ asset: CloudAsset, _ owner: String, _ upload: String) async throws(CloudError) {
        let pieces = try await pieces(upload, of: asset)
        guard pieces.reduce(0, { $0 + $1.object.size }) == asset.size else {
            throw UploadPiece.overtaken
        }
        let source = PieceSource(pieces.map(\.object), client)
        if try await store(asset, key(asset, owner: owner), { bytes throws(CloudError) in try await source.next(bytes) }) {
            await remove(pieces.map(\.object.key))
        } else {
            await remove(pieces.map(\.object.key))
            throw Self.otherContent(asset)
        }
    }

    /// Stores a content, and hashes it on its way.
    ///
    /// - Parameter next: Returns the next bytes, as many as asked for. It returns fewer at the end only, and then none.
    /// - Returns: Whether the bytes are the asset's content; otherwise nothing is stored.
    private func store(
        _ asset: CloudAsset, _ key: String, _ next: (Int) async throws(CloudError) -> [UInt8]
    ) async throws(CloudError) -> Bool {
        // S3 has 10,000 parts at the most.
        let partSize = max(configuration.partSize, 5 << 20, Int(asset.size / 9_000))
        if asset.size <= Int64(partSize) {
            let content = try await next(partSize)
            guard AssetDigest.asset(of: content) == asset else { return false }
            try await client.put(content, as: key)
            return true
        }
        let digest = Hashing()
        return try await client.putParts(as: key) { () async throws(CloudError) in
            let part = try await next(partSize)
            guard !part.isEmpty else { return nil }
            digest.update(part)
            return part
        } isWhole: {
            digest.finish() == asset
        }
    }

    /// Removes objects. One that stays is removed by a later sweep.
    private func remove(_ keys: [String]) async {
        _ = await each(keys) { [client] key in (try? await client.delete(key)) != nil }
    }

    package func adopt(_ file: URL, as asset: CloudAsset, owner: String) async throws(CloudError) {
        try asset.check()
        let key = key(asset, owner: owner)
        let source: FileSource
        do {
            source = try FileSource(file, size: asset.size)
        } catch {
            throw error as? CloudError ?? CloudError(.internalError, "cannot read \(file.path): \(error)")
        }
        guard try await store(asset, key, { bytes throws(CloudError) in try source.next(bytes) }) else {
            throw CloudError(.assetNotAvailable, "what has come is not the \(asset.size) bytes of the digest \(asset.digest)")
        }
        // The content is stored. A file that can't be removed now is removed later, by its age.
        try? FileManager.default.removeItem(at: file)
    }

    package func unfinished(beside asset: CloudAsset?, owner: String, by user: String?) async throws(CloudError) -> Int64 {
        let folder = folder(of: owner)
        let own = try asset.map { asset throws(CloudError) in
            try asset.check()
            return key(ofUpload: asset.digest, owner: owner, by: user)
        }
        var uploads: [Substring: [S3Object]] = [:]
        for object in try await client.list("\(folder)uploads/") where own.map({ !object.key.hasPrefix($0) }) ?? true {
            uploads[object.key.dropLast(16), default: []].append(object)
        }
        var sum: Int64 = 0
        for objects in uploads.values {
            let last = Timestamp.date(microseconds: objects.map(\.modified).max() ?? 0)
            if last < now() - Self.partAge { await remove(objects.map(\.key)) } else { sum += objects.reduce(0) { $0 + $1.size } }
        }
        // Servers that died while they put pieces together have left multipart uploads.
        for upload in try await client.uploads(folder) where Timestamp.date(microseconds: upload.begun) < now() - Self.assemblyAge
        {
            await client.abort(upload.key, upload.id)
        }
        return sum
    }

    package func lastPiece(of digest: String, owner: String, by user: String?) async -> Int64? {
        // An upload that can't be looked for counts as not begun. Its pieces stay. If its reservation is released, the next piece
        // reserves the room again.
        (try? await client.list(key(ofUpload: digest, owner: owner, by: user)))?.map(\.modified).max()
    }

    // Contents

    package func piece(of asset: CloudAsset, from offset: Int64, count: Int, owner: String) async throws(CloudError) -> Data {
        try asset.check()
        let key = key(asset, owner: owner)
        let range = min(max(0, offset), asset.size)..<min(max(0, offset) + Int64(max(0, count)), asset.size)
        guard range.lowerBound < range.upperBound else {
            guard try await client.head(key) != nil else { throw Self.missing(asset) }
            return Data()
        }
        // A content that is read as a whole is compared with its digest, since a server may have an older or a damaged version.
        guard range == 0..<asset.size else {
            guard let part = try await part(range, of: asset, key) else { throw Self.missing(asset) }
            return Data(part)
        }
        let whole = try await client.read(key, range, of: asset.size) { AssetDigest.asset(of: $0) == asset }
        guard let whole else { throw Self.missing(asset) }
        if let tag = whole.tag { compared.remember(tag, of: key) }
        return Data(whole.bytes)
    }

    private static func missing(_ asset: CloudAsset) -> CloudError {
        CloudError(.assetNotAvailable, "the asset \(asset.digest) is not there")
    }

    /// Blocks the thread for a request. Where the bucket can't be asked, the content counts as missing.
    package func has(_ asset: CloudAsset, owner: String) -> Bool {
        guard (try? asset.check()) != nil else { return false }
        return (try? client.headBlocking(key(asset, owner: owner)))?.map { $0.size == asset.size } ?? false
    }

    /// Blocks the thread for a request. A content that can't be removed stays until a later sweep.
    package func remove(_ asset: CloudAsset, owner: String) {
        guard (try? asset.check()) != nil else { return }
        try? client.deleteBlocking(key(asset, owner: owner))
    }

    // All contents

    package func owners() async throws(CloudError) -> [String] {
        try await client.folders(prefix).filter { $0 == "public" || $0.hasPrefix("_") }.map { $0 == "public" ? "" : $0 }
    }

    /// A page is a page of the bucket's list, which has a thousand objects: an owner with few contents costs one request.
    package func digests(
        of owner: String, from place: String?
    ) async throws(CloudError) -> (digests: Set<String>, next: String?) {
        let folder = folder(of: owner)
        let page = try await client.page(folder, delimiter: nil, from: place)
        // Pieces of uploads lie in the same folder.
        let digests = page.objects.map { $0.key.dropFirst(folder.count) }.filter { $0.dropFirst(2).first == "/" }.map {
            String($0.dropFirst(3))
        }
        return (Set(digests.filter { (try? CloudAsset(digest: $0, size: 0).check()) != nil }), page.next)
    }

    /// Returns the elements for which `holds` is true, in their order. Several are tested at once.
    func each<Element: Sendable>(
        _ elements: [Element], _ holds: @escaping @Sendable (Element) async -> Bool
    ) async -> [Element] {
        await withTaskGroup(of: (Int, Bool).self) { group in
            var (next, kept) = (0, [Bool](repeating: false, count: elements.count))
            func begin() {
                guard next < elements.count else { return }
                let (index, element) = (next, elements[next])
                group.addTask { (index, await holds(element)) }
                next += 1
            }
            for _ in 0..<Self.requestsAtOnce { begin() }
            while let (index, isKept) = await group.next() {
                kept[index] = isKept
                begin()
            }
            return zip(elements, kept).filter(\.1).map(\.0)
        }
    }
}

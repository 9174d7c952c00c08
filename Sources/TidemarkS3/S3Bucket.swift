import Foundation
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel

/// The operations on a bucket that assets need.
extension S3Client {
    /// The size and the time of an object.
    struct Head: Hashable, Sendable {
        let size: Int64
        /// Microseconds since 1970 UTC.
        let modified: Int64
    }

    // Objects

    /// Stores an object. The server compares it with its digest.
    func put(_ body: [UInt8], as key: String) async throws(CloudError) {
        _ = try await send(Request(method: .put, key: key, headers: [Self.checksum(body)], body: body), isLong: true)
    }

    private static func checksum(_ body: [UInt8]) -> (String, String) {
        ("x-amz-checksum-sha256", Data(rawDigest(body)).base64EncodedString())
    }

    /// Reads a range of an object, which is not empty.
    ///
    /// - Parameter size: The size of the whole object in bytes, as the caller knows it. Parts of an object of another size are
    ///   refused.
    /// - Returns: `nil` where there is no object.
    func get(
        _ key: String, _ range: Range<Int64>, of size: Int64, isContent: @escaping @Sendable ([UInt8]) -> Bool = { _ in true }
    ) async throws(CloudError) -> [UInt8]? {
        try await read(key, range, of: size, isContent: isContent)?.bytes
    }

    /// As ``get(_:_:of:isContent:)``, with the tag that the bucket has given. Another content has another tag.
    func read(
        _ key: String, _ range: Range<Int64>, of size: Int64, isContent: @escaping @Sendable ([UInt8]) -> Bool = { _ in true }
    ) async throws(CloudError) -> (bytes: [UInt8], tag: String?)? {
        var request = Request(method: .get, key: key, expected: [404, 416])
        request.headers = [("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")]
        request.limit = range.count + 1024
        let answer = try await send(request, isLong: true) { answer in
            // A server may send the whole object.
            let isAll = answer.status.code == 200 && range == 0..<size
            let isRange =
                answer.status.code == 206
                && answer.headers.first(name: "Content-Range") == "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"
            return (isAll || isRange) && answer.body.count == range.count && isContent(answer.body)
        }
        switch answer.status.code {
        case 404 where S3Answer(answer.body)?.errorCode != "NoSuchBucket": return nil
        case 404, 416:
            var error = CloudError(
                .serviceUnavailable, "the \(configuration.name) is not there, or an object in it is cut off",
                retryAfter: .seconds(60))
            error.isOtherContent = answer.status.code == 416
            throw error
        default: return (answer.body, answer.headers.first(name: "ETag"))
        }
    }

    /// - Returns: `nil` where there is no object.
    func head(_ key: String) async throws(CloudError) -> Head? {
        Self.head(try await send(Request(method: .head, key: key, expected: [404])))
    }

    /// As ``head(_:)``, and blocks the thread.
    func headBlocking(_ key: String) throws(CloudError) -> Head? {
        Self.head(try sendBlocking(Request(method: .head, key: key, expected: [404])))
    }

    private static func head(_ answer: HTTPAnswer) -> Head? {
        guard answer.status.code == 200, let size = answer.headers.first(name: "Content-Length").flatMap({ Int64($0) }),
            let modified = answer.headers.first(name: "Last-Modified").flatMap({ S3Time.microseconds(header: $0) })
        else { return nil }
        return Head(size: size, modified: modified)
    }

    /// Removes an object. A missing one is no error.
    func delete(_ key: String) async throws(CloudError) {
        _ = try await send(Request(method: .delete, key: key, expected: [404]))
    }

    /// As ``delete(_:)``, and blocks the thread.
    func deleteBlocking(_ key: String) throws(CloudError) {
        _ = try sendBlocking(Request(method: .delete, key: key, expected: [404]))
    }

    /// Copies an object onto itself, so that its time is now; blocks the thread.
    func touchBlocking(_ key: String) throws(CloudError) {
        let source = "/\(configuration.bucket)/\(PercentCoding.encoded(key, keepsSlashes: true))"
        let headers = [
            ("x-amz-copy-source", source), ("x-amz-meta-tidemark-touched", "\(Timestamp.now())"),
            ("x-amz-metadata-directive", "REPLACE"),
        ]
        _ = try sendBlocking(Request(method: .put, key: key, headers: headers, body: [], expected: [404]))
    }

    // Lists

    /// Returns all objects whose keys begin with a text, in the order of the keys.
    func list(_ prefix: String) async throws(CloudError) -> [S3Object] {
        var objects: [S3Object] = []
        try await pages(prefix, nil) { objects += $0.objects }
        return objects.filter { $0.key.hasPrefix(prefix) }.sorted { $0.key < $1.key }
    }

    /// Returns the parts of keys between a prefix and the next slash, each once.
    func folders(_ prefix: String) async throws(CloudError) -> [String] {
        var names: [String] = []
        try await pages(prefix, "/") { names += $0.prefixes }
        return names.filter { $0.hasPrefix(prefix) && $0.hasSuffix("/") }.map { String($0.dropFirst(prefix.count).dropLast()) }
    }

    private func pages(_ prefix: String, _ delimiter: String?, _ take: (S3Page) -> Void) async throws(CloudError) {
        var token: String?
        repeat {
            let page = try await page(prefix, delimiter: delimiter, from: token)
            take(page)
            token = page.next
        } while token != nil
    }

    /// Returns a page of a list.
    ///
    /// - Parameter token: The token from the page before; `nil` for the first page.
    func page(_ prefix: String, delimiter: String?, from token: String?) async throws(CloudError) -> S3Page {
        var query = [("list-type", "2"), ("prefix", prefix)]
        if let delimiter { query.append(("delimiter", delimiter)) }
        if let token { query.append(("continuation-token", token)) }
        let answer = try await send(Request(method: .get, key: "", query: query)) { S3Answer($0.body)?.page != nil }
        // The same token again would lead to the same page, without an end.
        guard let page = S3Answer(answer.body)?.page, page.next == nil || page.next != token else {
            throw CloudError(
                .serviceUnavailable, "the \(configuration.name) lists the same page again", retryAfter: .seconds(60))
        }
        return page
    }

    // Multipart uploads

    /// Stores a large object in parts.
    ///
    /// - Parameters:
    ///   - part: Returns the next part; `nil` after the last. Each part but the last has 5 MiB at the least.
    ///   - isWhole: Is called after the last part. If it returns `false`, nothing is stored.
    /// - Returns: Whether the object is stored.
    func putParts(
        as key: String, _ part: () async throws(CloudError) -> [UInt8]?, isWhole: () -> Bool
    ) async throws(CloudError) -> Bool {
        let begun = try await send(Request(method: .post, key: key, query: [("uploads", "")], body: [])) {
            S3Answer($0.body)?.text("UploadId")?.isEmpty == false
        }
        let id = S3Answer(begun.body)?.text("UploadId") ?? ""
        do throws(CloudError) {
            var tags: [String] = []
            while let body = try await part() {
                let answer = try await send(
                    Request(
                        method: .put, key: key, query: [("partNumber", "\(tags.count + 1)"), ("uploadId", id)], body: body),
                    isLong: true
                ) { $0.headers.first(name: "ETag") != nil }
                tags.append(answer.headers.first(name: "ETag") ?? "")
            }
            guard isWhole() else {
                await abort(key, id)
                return false
            }
            try await complete(key, id, tags)
            return true
        } catch {
            await abort(key, id)
            throw error
        }
    }

    private func complete(_ key: String, _ id: String, _ tags: [String]) async throws(CloudError) {
        let parts = tags.enumerated().map { number, tag in
            let tag = tag.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
            return "<Part><PartNumber>\(number + 1)</PartNumber><ETag>\(tag)</ETag></Part>"
        }
        let text =
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\(parts.joined())</CompleteMultipartUpload>"
        // If a completion was done and its answer lost, the repeated request gets 404: the upload is gone.
        let answer = try await send(
            Request(
                method: .post, key: key, query: [("uploadId", id)], headers: [("Content-Type", "application/xml")],
                body: Array(text.utf8), expected: [404]), isLong: true)
        guard answer.status.code == 404 else { return }
        guard try await head(key) != nil else {
            throw CloudError(
                .serviceUnavailable, "the \(configuration.name) has lost an upload on its way", retryAfter: .seconds(1))
        }
    }

    /// Aborts a multipart upload. One that can't be aborted now is aborted by a later sweep.
    func abort(_ key: String, _ id: String) async {
        _ = try? await send(Request(method: .delete, key: key, query: [("uploadId", id)], expected: [404]))
    }

    /// Returns the unfinished multipart uploads whose keys begin with a text; the first thousand.
    func uploads(_ prefix: String) async throws(CloudError) -> [S3Upload] {
        let answer = try await send(Request(method: .get, key: "", query: [("prefix", prefix), ("uploads", "")])) {
            S3Answer($0.body)?.uploads != nil
        }
        return (S3Answer(answer.body)?.uploads ?? []).filter { $0.key.hasPrefix(prefix) }
    }
}

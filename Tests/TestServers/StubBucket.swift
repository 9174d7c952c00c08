import Foundation
import TidemarkModel

/// A server that speaks the part of S3 that the storage uses. It keeps objects in memory, and fails on request.
///
/// It has the bucket `journal` and the keys of ``SeaweedServer``. Other processes can reach it while the process of the tests
/// runs.
public final class StubBucket: Sendable {
    /// How a request fails.
    public enum Fault: Sendable {
        /// The request is answered with a status, and is not done.
        case status(Int, code: String, retryAfter: Int? = nil)
        /// The request is done, and the connection is closed before the answer.
        case lostAnswer
        /// Half of the answer's body comes, then the connection is closed.
        case halfBody
        /// One byte of the answer's body is wrong.
        case otherByte
        /// The answer's range has a wrong total size.
        case otherSize
        /// No answer comes for so many seconds.
        case silence(Double)
        /// The answer is not HTTP.
        case noHTTP
        /// The status is 200, and the body an error.
        case lateError
    }

    /// A request that has come.
    public struct Arrival: Sendable {
        public let method, path, query: String
        public let headers: [String: String]
        public let bodyCount: Int
    }

    private struct Object {
        let content: Data
        var modified: Date
    }

    private struct State {
        var objects: [String: Object] = [:]
        var uploads: [String: (key: String, parts: [Int: Data], begun: Date)] = [:]
        var lastUpload = 0
        var arrivals: [Arrival] = []
        /// The faults of the next requests. Each applies to the first request that `fits` accepts.
        var faults: [(fits: @Sendable (Arrival) -> Bool, fault: Fault)] = []
        var age: TimeInterval = 0
        var problems: [String] = []
    }

    public let port: Int
    private let listening: Int32
    private let state = LockedValue(State())
    /// Keys on a page of a list: few, so that tests get several pages.
    private static let pageSize = 3

    public init() throws {
        #if canImport(Glibc)
            listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            listening = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        _ = fcntl(listening, F_SETFD, FD_CLOEXEC)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listening
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 100) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isBound else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { [self] in
            while true {
                let client = accept(listening, nil, nil)
                guard client >= 0 else { return }
                _ = fcntl(client, F_SETFD, FD_CLOEXEC)
                Thread.detachNewThread { [self] in serve(client) }
            }
        }
    }

    public func end() {
        shutdown(listening, Int32(SHUT_RDWR))
        close(listening)
    }

    /// The address for requests.
    public var endpoint: String { "http://127.0.0.1:\(port)" }
    public var arrivals: [Arrival] { state.withLock { $0.arrivals } }
    /// What was wrong with requests.
    public var problems: [String] { state.withLock { $0.problems } }
    public var keys: [String] { state.withLock { $0.objects.keys.sorted() } }
    public var uploadCount: Int { state.withLock { $0.uploads.count } }

    /// Makes the next requests fail for which `fits` is true.
    public func fail(_ fault: Fault, times: Int = 1, where fits: @escaping @Sendable (Arrival) -> Bool = { _ in true }) {
        state.withLock { state in for _ in 0..<times { state.faults.append((fits, fault)) } }
    }

    /// Removes all faults.
    public func forgetFaults() { state.withLock { $0.faults = [] } }

    /// Makes all objects and uploads older.
    public func age(by time: TimeInterval) {
        state.withLock { state in
            for key in state.objects.keys { state.objects[key]?.modified -= time }
            for id in state.uploads.keys { state.uploads[id]?.begun -= time }
        }
    }

    /// Returns an object; `nil` where there is none.
    public func content(_ key: String) -> Data? { state.withLock { $0.objects[key]?.content } }

    public func replace(_ key: String, _ content: Data) {
        state.withLock { $0.objects[key] = Object(content: content, modified: Date()) }
    }

    public func remove(_ key: String) { state.withLock { $0.objects[key] = nil } }

    // Serving

    private func serve(_ client: Int32) {
        defer { close(client) }
        var buffer: [UInt8] = []
        while let (arrival, body) = receive(client, &buffer) {
            let fault: Fault? = state.withLock { state in
                state.arrivals.append(arrival)
                guard let index = state.faults.firstIndex(where: { $0.fits(arrival) }) else { return nil }
                return state.faults.remove(at: index).fault
            }
            check(arrival, body)
            var answer: Answer
            switch fault {
            case .status(let status, let code, let retryAfter):
                answer = Self.error(status, code)
                if let retryAfter { answer.headers.append(("Retry-After", "\(retryAfter)")) }
            case .lateError: answer = Answer(status: 200, body: Self.error(500, "InternalError").body)
            default: answer = self.answer(arrival, body)
            }
            if case .silence(let seconds) = fault { Thread.sleep(forTimeInterval: seconds) }
            if case .lostAnswer = fault { return }
            if case .noHTTP = fault {
                _ = send(client, Array("SSH-2.0-OpenSSH_9.2\r\n".utf8))
                return
            }
            if case .otherByte = fault, !answer.body.isEmpty { answer.body[answer.body.count / 2] ^= 1 }
            if case .otherSize = fault {
                answer.headers = answer.headers.map { $0.0 == "Content-Range" ? ($0.0, $0.1 + "0") : $0 }
            }
            var text = "HTTP/1.1 \(answer.status) Status\r\n"
            for (name, value) in answer.headers { text += "\(name): \(value)\r\n" }
            if !answer.headers.contains(where: { $0.0 == "Content-Length" }) {
                text += "Content-Length: \(answer.body.count)\r\n"
            }
            text += "\r\n"
            var bytes = Array(text.utf8)
            let isHead = arrival.method == "HEAD"
            if case .halfBody = fault {
                bytes += answer.body.prefix(answer.body.count / 2)
                _ = send(client, bytes)
                return
            }
            if !isHead { bytes += answer.body }
            guard send(client, bytes) else { return }
        }
    }

    private func receive(_ client: Int32, _ buffer: inout [UInt8]) -> (Arrival, [UInt8])? {
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        func more() -> Bool {
            let count = recv(client, &chunk, chunk.count, 0)
            guard count > 0 else { return false }
            buffer += chunk[0..<count]
            return true
        }
        let end = Array("\r\n\r\n".utf8)
        var head: Int?
        while head == nil {
            head = buffer.indices.first { buffer[$0...].starts(with: end) }
            if head == nil, !more() { return nil }
        }
        let lines = String(decoding: buffer[0..<head!], as: UTF8.self).components(separatedBy: "\r\n")
        buffer.removeFirst(head! + 4)
        let words = lines[0].split(separator: " ").map(String.init)
        guard words.count == 3 else { return nil }
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        }
        if headers["expect"] == "100-continue" {
            guard send(client, Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) else { return nil }
        }
        let count = Int(headers["content-length"] ?? "0") ?? 0
        while buffer.count < count { guard more() else { return nil } }
        let body = Array(buffer[0..<count])
        buffer.removeFirst(count)
        let target = words[1].split(separator: "?", maxSplits: 1).map(String.init)
        return (
            Arrival(
                method: words[0], path: target[0].removingPercentEncoding ?? "", query: target.count > 1 ? target[1] : "",
                headers: headers, bodyCount: count), body
        )
    }

    private func send(_ client: Int32, _ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Foundation.send(client, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Checks what every request must have.
    private func check(_ arrival: Arrival, _ body: [UInt8]) {
        guard arrival.signature == nil else { return }
        func note(_ problem: String) { state.withLock { $0.problems.append("\(arrival.method) \(arrival.path): \(problem)") } }
        if arrival.headers["authorization"]?.hasPrefix("AWS4-HMAC-SHA256 Credential=AKTEST/") != true { note("no signature") }
        if arrival.headers["x-amz-content-sha256"] != Self.digest(body) { note("another digest of the body") }
        if arrival.headers["authorization"]?.contains("x-amz-content-sha256") != true { note("the digest is not signed") }
        let names = arrival.query.split(separator: "&").map { $0.prefix { $0 != "=" } }
        if names != names.sorted() { note("the query is not in order") }
        if let sum = arrival.headers["x-amz-checksum-sha256"],
            Data(base64Encoded: sum).map({ Hexadecimal.text($0) }) != Self.digest(body)
        {
            note("another checksum")
        }
    }

    private struct Answer {
        var status: Int
        var headers: [(String, String)] = []
        var body: [UInt8] = []
    }

    private static func error(_ status: Int, _ code: String) -> Answer {
        Answer(
            status: status,
            body: Array("<?xml version=\"1.0\"?><Error><Code>\(code)</Code><Message>a &lt; b</Message></Error>".utf8))
    }

    private static func text(_ body: String) -> Answer { Answer(status: 200, body: Array("<?xml version=\"1.0\"?>\(body)".utf8)) }

    private static func time(_ date: Date) -> String {
        Timestamp.text(microseconds: Int64(date.timeIntervalSince1970) * 1_000_000)
    }

    private func answer(_ arrival: Arrival, _ body: [UInt8]) -> Answer {
        var query: [String: String] = [:]
        for pair in arrival.query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1)
            query[String(parts[0])] = parts.count > 1 ? String(parts[1]).removingPercentEncoding ?? "" : ""
        }
        if let code = arrival.refusal(at: Date()) { return Self.error(403, code) }
        guard arrival.path == "/journal" || arrival.path.hasPrefix("/journal/") else { return Self.error(404, "NoSuchBucket") }
        let key = String(arrival.path.dropFirst("/journal/".count))
        return state.withLock { state in
            switch arrival.method {
            case "PUT" where query["partNumber"] != nil:
                guard let id = query["uploadId"], state.uploads[id] != nil, let number = query["partNumber"].flatMap({ Int($0) })
                else { return Self.error(404, "NoSuchUpload") }
                state.uploads[id]?.parts[number] = Data(body)
                return Answer(status: 200, headers: [("ETag", "\"part-\(number)\"")])
            case "PUT":
                if let source = arrival.headers["x-amz-copy-source"]?.removingPercentEncoding {
                    guard let object = state.objects[String(source.dropFirst("/journal/".count))] else {
                        return Self.error(404, "NoSuchKey")
                    }
                    state.objects[key] = Object(content: object.content, modified: Date())
                    return Self.text("<CopyObjectResult><ETag>x</ETag></CopyObjectResult>")
                }
                state.objects[key] = Object(content: Data(body), modified: Date())
                return Answer(status: 200, headers: [("ETag", "\"x\"")])
            case "POST" where query["uploads"] != nil:
                state.lastUpload += 1
                state.uploads["id \(state.lastUpload)+/="] = (key, [:], Date())
                return Self.text(
                    "<InitiateMultipartUploadResult xmlns=\"x\"><UploadId>id \(state.lastUpload)+/=</UploadId></InitiateMultipartUploadResult>"
                )
            case "POST":
                guard let upload = query["uploadId"].flatMap({ state.uploads[$0] }) else {
                    return Self.error(404, "NoSuchUpload")
                }
                let parts = upload.parts.sorted { $0.key < $1.key }
                guard parts.dropLast().allSatisfy({ $0.value.count >= 5 << 20 }) else { return Self.error(400, "EntityTooSmall") }
                guard parts.allSatisfy({ String(decoding: body, as: UTF8.self).contains("<ETag>\"part-\($0.key)\"</ETag>") })
                else {
                    return Self.error(400, "InvalidPart")
                }
                state.objects[key] = Object(content: parts.reduce(into: Data()) { $0 += $1.value }, modified: Date())
                state.uploads[query["uploadId"]!] = nil
                return Self.text("<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")
            case "DELETE" where query["uploadId"] != nil:
                state.uploads[query["uploadId"]!] = nil
                return Answer(status: 204)
            case "DELETE":
                state.objects[key] = nil
                return Answer(status: 204)
            case "GET" where key.isEmpty && query["uploads"] != nil:
                let uploads = state.uploads.filter { $0.value.key.hasPrefix(query["prefix"] ?? "") }.map {
                    "<Upload><Key>\($0.value.key)</Key><UploadId>\($0.key)</UploadId><Initiated>\(Self.time($0.value.begun))</Initiated></Upload>"
                }
                return Self.text("<ListMultipartUploadsResult>\(uploads.joined())</ListMultipartUploadsResult>")
            case "GET" where key.isEmpty: return Self.list(state.objects, query)
            case "GET", "HEAD":
                guard let object = state.objects[key] else { return Self.error(404, "NoSuchKey") }
                let date = HTTPDate.text(second: Int64(object.modified.timeIntervalSince1970))
                let tag = "\"\(Self.digest(object.content).prefix(32))\""
                var answer = Answer(
                    status: 200, headers: [("Last-Modified", date), ("ETag", tag)], body: Array(object.content))
                for (name, value) in query where name.hasPrefix("response-") {
                    answer.headers.append((String(name.dropFirst("response-".count)), value))
                }
                if arrival.method == "HEAD" { answer.headers.append(("Content-Length", "\(object.content.count)")) }
                if let range = arrival.headers["range"]?.dropFirst("bytes=".count).split(separator: "-").compactMap({ Int($0) }),
                    range.count == 2
                {
                    guard range[0] < object.content.count else { return Self.error(416, "InvalidRange") }
                    let end = min(range[1], object.content.count - 1)
                    answer.status = 206
                    answer.headers.append(("Content-Range", "bytes \(range[0])-\(end)/\(object.content.count)"))
                    answer.body = Array(object.content[range[0]...end])
                }
                return answer
            default: return Self.error(405, "MethodNotAllowed")
            }
        }
    }

    private static func list(_ objects: [String: Object], _ query: [String: String]) -> Answer {
        let prefix = query["prefix"] ?? ""
        var entries: [(name: String, text: String)] = []
        for (key, object) in objects.sorted(by: { $0.key < $1.key }) where key.hasPrefix(prefix) {
            if query["delimiter"] == "/", let slash = key.dropFirst(prefix.count).firstIndex(of: "/") {
                let folder = String(key[...slash])
                guard entries.last?.name != folder else { continue }
                entries.append((folder, "<CommonPrefixes><Prefix>\(folder)</Prefix></CommonPrefixes>"))
            } else {
                entries.append(
                    (
                        key,
                        "<Contents><Key>\(key)</Key><ETag>&quot;x&quot;</ETag><Size>\(object.content.count)</Size><LastModified>\(time(object.modified))</LastModified><Owner><ID>o</ID></Owner></Contents>"
                    ))
            }
        }
        let rest = entries.filter { $0.name > query["continuation-token"] ?? "" }
        let page = rest.prefix(pageSize)
        let isCut = page.count < rest.count
        let next = isCut ? "<NextContinuationToken>\(page.last!.name)</NextContinuationToken>" : ""
        return text(
            "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>journal</Name><IsTruncated>\(isCut)</IsTruncated>\(next)\(page.map(\.text).joined())</ListBucketResult>"
        )
    }
}

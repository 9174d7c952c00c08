import Foundation
import TidemarkModel

/// Addresses with a signature, as servers of S3 check them.
extension StubBucket.Arrival {
    private static let name = "X-Amz-Signature="
    private static let algorithm = "AWS4-HMAC-SHA256"

    /// The signature in the query; `nil` where the headers have it.
    var signature: String? {
        query.split(separator: "&").first { $0.hasPrefix(Self.name) }.map { String($0.dropFirst(Self.name.count)) }
    }

    /// Why the server refuses an address; `nil` for a valid one, and for a request without a signature in the query.
    func refusal(at now: Date) -> String? {
        guard let signature else { return nil }
        let pairs = query.split(separator: "&").filter { !$0.hasPrefix(Self.name) }.sorted()
        func value(_ name: String) -> String {
            let pair = pairs.first { $0.hasPrefix("\(name)=") }
            return pair.flatMap { PercentCoding.decoded($0.dropFirst(name.count + 1)) } ?? ""
        }
        let (time, scope) = (value("X-Amz-Date"), value("X-Amz-Credential").split(separator: "/").dropFirst().map(String.init))
        let canonical = [
            method, PercentCoding.encoded(path, keepsSlashes: true), pairs.joined(separator: "&"),
            "host:\(headers["host"] ?? "")", "", "host", "UNSIGNED-PAYLOAD",
        ]
        let digest = StubBucket.digest(Data(canonical.joined(separator: "\n").utf8))
        let text = [Self.algorithm, time, scope.joined(separator: "/"), digest]
        var key = Array("AWS4\(SeaweedServer.secret)".utf8)
        for part in scope + [text.joined(separator: "\n")] { key = HMACSHA256.code(of: Array(part.utf8), key: key) }
        guard Hexadecimal.text(key) == signature else { return "SignatureDoesNotMatch" }
        // Times as text: their order is that of the times, because all have one form.
        let earliest = Self.text(now - (Double(value("X-Amz-Expires")) ?? 0))
        return time < earliest ? "AccessDenied" : nil
    }

    private static func text(_ time: Date) -> String {
        Timestamp.text(microseconds: Int64(time.timeIntervalSince1970) * 1_000_000).filter { $0 != "-" && $0 != ":" }
    }
}

extension StubBucket {
    /// SHA-256 in hexadecimal digits.
    static func digest(_ bytes: some ContiguousBytes) -> String {
        var hash = SHA256Context()
        bytes.withUnsafeBytes { hash.update($0) }
        return Hexadecimal.text(hash.finish())
    }
}

import Foundation
package import TidemarkCloud
package import TidemarkModel

/// What a request says of an asset that a field is to name.
package struct AssetClaim: Hashable, Sendable {
    /// SHA-256 in hexadecimal digits, from clients of ours.
    package var digest: String?
    package var fileChecksum: String?
    package var size: Int64?
    /// From the server that has taken in the content.
    package var receipt: String?
}

extension CloudAsset {
    /// The same for the same content: base 64 of 0x01 and the first 20 bytes of the digest.
    package var fileChecksum: String { Self.checksum(bytes.prefix(20)) }
    /// Base 64 of 0x01 and the last 20 bytes of the digest.
    package var referenceChecksum: String { Self.checksum(bytes.suffix(20)) }
    /// Clients want one, of 16 bytes. Contents are not encrypted with it.
    package var wrappingKey: String { Data(bytes.suffix(16)).base64EncodedString() }

    private static func checksum(_ bytes: some Sequence<UInt8>) -> String { Data([1] + bytes).base64EncodedString() }

    private var bytes: [UInt8] { Hexadecimal.bytes(digest) ?? [] }

    /// The members that every mention of an asset has.
    package func write(_ json: inout JSONWriter, _ dialect: WireDialect) {
        json.member("fileChecksum", fileChecksum)
        json.member("size", size)
        json.member("wrappingKey", wrappingKey)
        json.member("referenceChecksum", referenceChecksum)
        if dialect.isExtended { json.member("tidemark") { $0.member("digest", digest) } }
    }

    /// - Throws: `CloudError` `invalidArguments`.
    package init(answered node: JSONNode) throws(CloudError) {
        guard let digest = try node["tidemark"]?.string("digest") else { throw node.refusal("names no digest") }
        let size = try node.required("size").asInteger()
        guard size >= 0 else { throw node.refusal("has a size below 0") }
        self.init(digest: digest, size: size)
    }
}

extension AssetClaim {
    package init(_ node: JSONNode) throws(CloudError) {
        guard node.isObject else { throw node.refusal("is no asset") }
        digest = try node["tidemark"]?.string("digest")
        fileChecksum = try node.string("fileChecksum")
        size = try node.integer("size")
        receipt = try node.string("receipt")
        if let size, size < 0 { throw node.refusal("has a size below 0") }
        guard digest != nil || fileChecksum != nil || receipt != nil else {
            throw node.refusal("is no asset: it has no fileChecksum")
        }
    }
}

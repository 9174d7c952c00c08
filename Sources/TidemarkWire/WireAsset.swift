import Foundation
package import TidemarkCloud
package import TidemarkModel

/// The description of an asset in a request that saves it in a field.
package struct AssetClaim: Hashable, Sendable {
    /// The SHA-256 in hexadecimal digits. Only Tidemark's clients send it.
    package var digest: String?
    package var fileChecksum: String?
    package var size: Int64?
    /// The receipt from the server that has stored the content.
    package var receipt: String?
}

extension CloudAsset {
    /// The checksum of the content: base64 of 0x01 and the first 20 bytes of the digest.
    package var fileChecksum: String { Self.checksum(bytes.prefix(20)) }
    /// A second checksum: base64 of 0x01 and the last 20 bytes of the digest.
    package var referenceChecksum: String { Self.checksum(bytes.suffix(20)) }
    /// A key of 16 bytes, which clients of the protocol expect. Contents are not encrypted with it.
    package var wrappingKey: String { Data(bytes.suffix(16)).base64EncodedString() }

    private static func checksum(_ bytes: some Sequence<UInt8>) -> String { Data([1] + bytes).base64EncodedString() }

    private var bytes: [UInt8] { Hexadecimal.bytes(digest) ?? [] }

    /// Writes the members that describe an asset.
    package func write(_ json: inout JSONWriter, _ dialect: WireDialect) {
        json.member("fileChecksum", fileChecksum)
        json.member("size", size)
        json.member("wrappingKey", wrappingKey)
        json.member("referenceChecksum", referenceChecksum)
        if dialect.isExtended { json.member("tidemark") { $0.member("digest", digest) } }
    }

    /// Reads an asset of an answer.
    ///
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

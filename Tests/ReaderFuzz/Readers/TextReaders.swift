import Foundation
import TidemarkCloud
import TidemarkHTTP
import TidemarkIdentity
import TidemarkModel
import TidemarkPostgres

/// Readers of short texts. The first byte says of what kind the rest is.
enum TextReaders {
    static func read(_ bytes: [UInt8]) {
        guard let kind = bytes.first else { return }
        let rest = Array(bytes.dropFirst())
        let text = String(decoding: rest, as: UTF8.self)
        switch kind % 8 {
        case 0:
            let encoded = PercentCoding.encoded(text)
            demand(PercentCoding.decoded(encoded) == text, "'\(text)' is another text when it is encoded and decoded")
            _ = PercentCoding.decoded(text, plusIsSpace: true)
        case 1:
            if let bytes = Base64URL.bytes(text) {
                // Plain base 64 is read as well, and a space for a plus sign.
                let own = text.replacing("+", with: "-").replacing(" ", with: "-").replacing("/", with: "_")
                demand(Base64URL.text(bytes) == own.replacing(/=+$/, with: ""), "'\(text)' is no base 64 as it is written")
            }
            demand(Base64URL.bytes(Base64URL.text(rest)) == rest, "bytes are others in base 64")
        case 2:
            if let bytes = Hexadecimal.bytes(text) {
                demand(Hexadecimal.text(bytes) == text.lowercased(), "'\(text)' is other digits")
            }
            demand(Hexadecimal.bytes(Hexadecimal.text(rest)) == rest, "bytes are others in hexadecimal digits")
        case 3:
            if let address = NetworkAddress(text) {
                demand(NetworkAddress(address.text) == address, "'\(text)' is another address when it is written")
            }
        case 4:
            if let address = try? ServerAddress(text, allowsInsecure: true) {
                demand(
                    (try? ServerAddress("\(address)", allowsInsecure: true)) == address,
                    "'\(text)' is another server when it is written")
            }
        case 5: _ = try? PostgresAddress(text)
        case 6: _ = CloudZoneID(text) == CloudZoneID(text, owner: text)
        default:
            let time = rest.prefix(8).reduce(Int64(0)) { $0 << 8 | Int64($1) }
            _ = Timestamp.text(microseconds: time)
        }
    }
}

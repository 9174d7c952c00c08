import Foundation

/// An address of a client, with the names under which limits count it.
///
/// An IPv4 address that is written as one of IPv6 (`::ffff:192.0.2.7`) is the same address. A zone (`fe80::1%eth0`) is left out.
public struct NetworkAddress: Hashable, Sendable {
    /// The address; for IPv6 its first half (/64), because one subscriber has all of the other half.
    public let host: String
    /// The network: /24 of IPv4, /48 of IPv6. A customer of a provider has up to that much.
    public let network: String
    /// The whole address, in its usual form.
    public let text: String

    /// Parses an address without a port.
    ///
    /// - Returns: `nil` for text that is no address.
    public init?(_ text: some StringProtocol) {
        guard (2...64).contains(text.utf8.count) else { return nil }
        let address = String(text.prefix { $0 != "%" })
        var four = in_addr()
        if inet_pton(AF_INET, address, &four) == 1 {
            self.init(four: withUnsafeBytes(of: four, Array.init))
            return
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, address, &six) == 1 else { return nil }
        let bytes = withUnsafeBytes(of: six, Array.init)
        if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xff, bytes[11] == 0xff {
            self.init(four: Array(bytes[12...]))
        } else {
            self.init(six: bytes)
        }
    }

    private init(four bytes: [UInt8]) {
        let parts = bytes.map { String($0) }
        text = parts.joined(separator: ".")
        host = text
        network = parts[..<3].joined(separator: ".") + ".0/24"
    }

    private init(six bytes: [UInt8]) {
        let words = stride(from: 0, to: 16, by: 2).map { String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16) }
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        inet_ntop(AF_INET6, bytes, &buffer, socklen_t(buffer.count))
        text = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // Addresses of the machine itself, such as ::1, are one network.
        guard bytes[..<8].contains(where: { $0 != 0 }) else {
            (host, network) = (text, "::/64")
            return
        }
        host = words[..<4].joined(separator: ":") + "::"
        network = words[..<3].joined(separator: ":") + "::/48"
    }

    /// Parses an address as a proxy names it in `X-Forwarded-For`: alone, as `192.0.2.7:4711`, or as `[2001:db8::7]:4711`.
    ///
    /// - Returns: `nil` for text that is no address, such as `unknown` or an obfuscated name.
    public init?(forwarded text: some StringProtocol) {
        guard let first = text.first else { return nil }
        if first == "[" {
            guard let end = text.firstIndex(of: "]"), Self.isPort(text[text.index(after: end)...]) else { return nil }
            let inside = text[text.index(after: text.startIndex)..<end]
            guard inside.contains(":") else { return nil }
            self.init(inside)
        } else if let colon = text.firstIndex(of: ":"), colon == text.lastIndex(of: ":") {
            guard Self.isPort(text[colon...]) else { return nil }
            self.init(text[..<colon])
        } else {
            self.init(text)
        }
    }

    /// Whether text is empty or a colon and a port.
    private static func isPort(_ text: some StringProtocol) -> Bool {
        guard !text.isEmpty else { return true }
        let digits = text.dropFirst()
        return text.first == ":" && (1...5).contains(digits.utf8.count) && digits.utf8.allSatisfy { (0x30...0x39).contains($0) }
            && Int(digits).map { $0 <= 65_535 } ?? false
    }
}

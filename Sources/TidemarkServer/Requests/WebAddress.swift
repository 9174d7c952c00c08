import Foundation
import TidemarkIdentity

/// Hosts and origins, as requests and configurations name them.
enum WebAddress {
    /// The origin of an address as browsers write it: in lower case, without the port that its scheme has anyway.
    static func origin(of address: String) -> String? {
        guard let parts = URLComponents(string: address), let scheme = parts.scheme?.lowercased(),
            let host = parts.host?.lowercased()
        else { return nil }
        let usual = scheme == "https" ? 443 : 80
        guard let port = parts.port, port != usual else { return "\(scheme)://\(host)" }
        return "\(scheme)://\(host):\(port)"
    }

    /// Whether text can stand in a `Host` header: a name, an address of IPv4, or one of IPv6 in brackets, and a port.
    static func isHost(_ text: String) -> Bool {
        guard (1...255).contains(text.utf8.count) else { return false }
        var name = text[...]
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return false }
            let inside = text[text.index(after: text.startIndex)..<end]
            // A zone would be text of any kind, and an address of IPv4 has no brackets.
            guard inside.contains(":"), !inside.contains("%"), NetworkAddress(inside) != nil else { return false }
            name = text[text.index(after: end)...]
            return name.isEmpty || isPort(name)
        }
        if let colon = name.firstIndex(of: ":") {
            guard isPort(name[colon...]) else { return false }
            name = name[..<colon]
        }
        return !name.isEmpty
            && name.utf8.allSatisfy { byte in
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-")
                    || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
            }
    }

    /// A colon and a port; a colon alone stands for the usual one.
    private static func isPort(_ text: Substring) -> Bool {
        let digits = text.dropFirst()
        return text.first == ":" && digits.utf8.count <= 5 && digits.utf8.allSatisfy { (0x30...0x39).contains($0) }
            && (digits.isEmpty || Int(digits)! <= 65_535)
    }

    /// Whether a `Host` header names the server that a public URL does.
    static func host(_ host: String, isOf publicURL: String) -> Bool {
        guard let scheme = publicURL.firstIndex(of: ":").map({ publicURL[..<$0] }) else { return false }
        return origin(of: "\(scheme)://\(host)") == origin(of: publicURL)
    }
}

import Foundation
import TidemarkIdentity

/// Hosts and origins, in the forms of requests and configurations.
enum WebAddress {
    /// Returns the origin of an address as browsers write it: in lower case, and without the default port of its scheme.
    static func origin(of address: String) -> String? {
        guard let parts = URLComponents(string: address), let scheme = parts.scheme?.lowercased(),
            let host = parts.host?.lowercased()
        else { return nil }
        let usual = scheme == "https" ? 443 : 80
        guard let port = parts.port, port != usual else { return "\(scheme)://\(host)" }
        return "\(scheme)://\(host):\(port)"
    }

    /// Returns whether a text can be a `Host` header: a name, an IPv4 address, or an IPv6 address in brackets, with or without a
    /// port.
    static func isHost(_ text: String) -> Bool {
        guard (1...255).contains(text.utf8.count) else { return false }
        var name = text[...]
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return false }
            let inside = text[text.index(after: text.startIndex)..<end]
            // A zone could be any text, and an IPv4 address has no brackets.
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

    /// Returns whether a text is a colon and a port. A colon alone stands for the default port.
    private static func isPort(_ text: Substring) -> Bool {
        let digits = text.dropFirst()
        return text.first == ":" && digits.utf8.count <= 5 && digits.utf8.allSatisfy { (0x30...0x39).contains($0) }
            && (digits.isEmpty || Int(digits)! <= 65_535)
    }

    /// Returns whether a `Host` header names the server of a public URL.
    static func host(_ host: String, isOf publicURL: String) -> Bool {
        guard let scheme = publicURL.firstIndex(of: ":").map({ publicURL[..<$0] }) else { return false }
        return origin(of: "\(scheme)://\(host)") == origin(of: publicURL)
    }
}

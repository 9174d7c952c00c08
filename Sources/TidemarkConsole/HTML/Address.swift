import TidemarkModel

/// The address of a page of the server: a path and a query, whose parts are encoded.
package struct Address: Hashable, Sendable {
    /// The address, for an attribute or a header.
    package private(set) var text: String
    private var hasQuery = false

    /// The path at which a server has the console.
    package static let root = "/console"

    /// The path at which a server has the pages of people's own accounts.
    package static let peopleRoot = "/account"
    /// The path at which a server has the pages of links into shares.
    package static let shareRoot = "/share"

    /// - Parameters:
    ///   - parts: The path below the root.
    ///   - root: One of the three roots.
    package init(_ parts: [String] = [], under root: String = root, query: [(name: String, value: String?)] = []) {
        text = root + parts.map { "/" + Self.encoded($0) }.joined()
        for (name, value) in query { if let value { add(name, value) } }
    }

    /// Adds a name with its value to the query.
    package mutating func add(_ name: String, _ value: String) {
        text += (hasQuery ? "&" : "?") + Self.encoded(name) + "=" + Self.encoded(value)
        hasQuery = true
    }

    /// The address with another value of a name in its query.
    package func with(_ name: String, _ value: String?) -> Address {
        guard let value else { return self }
        var address = self
        address.add(name, value)
        return address
    }

    /// The address of an element of the page, by the element's identifier.
    func at(_ id: String) -> Address {
        var address = self
        address.text += "#" + Self.encoded(id)
        return address
    }

    /// Encodes all characters except letters, digits and those without a meaning in any part of an address.
    static func encoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            // A part of dots alone would name another folder.
            case UInt8(ascii: ".") where text.contains(where: { $0 != "." }): result += "."
            default: result += "%" + Hexadecimal.text([byte]).uppercased()
            }
        }
        return result
    }
}

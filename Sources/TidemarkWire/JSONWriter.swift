import TidemarkModel

/// Writes a JSON text, without spaces.
///
/// It is ours since answers are made of many small members that are known one by one: an encoder of `Codable` values needs all of them in
/// memory at once, in types made for it.
package struct JSONWriter {
    package private(set) var bytes: [UInt8] = []
    /// Whether a comma comes first.
    private var isBehindValue = false

    package init(reserving count: Int = 256) { bytes.reserveCapacity(count) }

    private mutating func separate() {
        if isBehindValue { bytes.append(0x2c) }
        isBehindValue = true
    }

    package mutating func object(_ members: (inout JSONWriter) -> Void) {
        beginObject()
        members(&self)
        endObject()
    }

    package mutating func array(_ elements: (inout JSONWriter) -> Void) {
        beginArray()
        elements(&self)
        endArray()
    }

    package mutating func beginObject() {
        separate()
        bytes.append(0x7b)
        isBehindValue = false
    }

    package mutating func endObject() {
        bytes.append(0x7d)
        isBehindValue = true
    }

    package mutating func beginArray() {
        separate()
        bytes.append(0x5b)
        isBehindValue = false
    }

    package mutating func endArray() {
        bytes.append(0x5d)
        isBehindValue = true
    }

    /// The name of the member that comes next: one that needs no escapes.
    package mutating func name(_ name: StaticString) {
        separate()
        bytes.append(0x22)
        name.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(0x22)
        bytes.append(0x3a)
        isBehindValue = false
    }

    package mutating func name(_ name: String) {
        separate()
        quote(name)
        bytes.append(0x3a)
        isBehindValue = false
    }

    package mutating func string(_ text: String) {
        separate()
        quote(text)
    }

    package mutating func integer(_ number: some BinaryInteger & CustomStringConvertible) {
        separate()
        bytes.append(contentsOf: number.description.utf8)
    }

    /// A finite number, as short as tells it from all others. One that is whole has a fraction: so it stays one that is not.
    package mutating func number(_ number: Double) {
        separate()
        bytes.append(contentsOf: number.description.utf8)
    }

    package mutating func bool(_ value: Bool) {
        separate()
        bytes.append(contentsOf: value ? "true".utf8 : "false".utf8)
    }

    package mutating func null() {
        separate()
        bytes.append(contentsOf: "null".utf8)
    }

    /// A JSON text as it is.
    package mutating func raw(_ text: String) {
        separate()
        bytes.append(contentsOf: text.utf8)
    }

    /// A text as a JSON string.
    package static func quoted(_ text: String) -> String {
        var json = JSONWriter()
        json.string(text)
        return String(decoding: json.bytes, as: UTF8.self)
    }

    private mutating func quote(_ text: String) { JSONString.append(text, to: &bytes) }
}

extension JSONWriter {
    package mutating func member(_ name: StaticString, _ text: String?) {
        guard let text else { return }
        self.name(name)
        string(text)
    }

    package mutating func member(_ name: StaticString, _ number: Int64?) {
        guard let number else { return }
        self.name(name)
        integer(number)
    }

    package mutating func member(_ name: StaticString, number: Double?) {
        guard let number else { return }
        self.name(name)
        self.number(number)
    }

    package mutating func member(_ name: StaticString, _ value: Bool?) {
        guard let value else { return }
        self.name(name)
        bool(value)
    }

    package mutating func member(_ name: StaticString, _ members: (inout JSONWriter) -> Void) {
        self.name(name)
        object(members)
    }

    package mutating func list(_ name: StaticString, _ elements: (inout JSONWriter) -> Void) {
        self.name(name)
        array(elements)
    }
}

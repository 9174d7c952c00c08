/// Writes a JSON text, without spaces.
///
/// `JSONEncoder` would need all values in memory at once, in types made for it. Answers and exports have many small members that
/// become known one after the other, so this writer appends them one at a time.
///
/// It closes no bracket by itself and does not check the nesting: the caller opens and closes, or uses the functions with
/// closures.
package struct JSONWriter {
    @usableFromInline package internal(set) var bytes: [UInt8]
    /// Whether the next value needs a comma before it.
    @usableFromInline var isBehindValue = false

    @inlinable
    package init(reserving count: Int = 256) {
        bytes = []
        bytes.reserveCapacity(count)
    }

    /// Makes a writer that appends to other bytes.
    @usableFromInline
    init(behind bytes: consuming [UInt8]) { self.bytes = bytes }

    /// Appends a JSON text to other bytes, without copying them.
    @inlinable
    package static func append(to bytes: inout [UInt8], _ body: (inout JSONWriter) throws -> Void) rethrows {
        var json = JSONWriter(behind: bytes)
        // The array has one owner again, so it grows in its place.
        bytes = []
        defer { bytes = json.bytes }
        try body(&json)
    }

    @inlinable
    mutating func separate() {
        if isBehindValue { bytes.append(0x2c) }
        isBehindValue = true
    }

    @inlinable
    package mutating func object(_ members: (inout JSONWriter) throws -> Void) rethrows {
        beginObject()
        try members(&self)
        endObject()
    }

    @inlinable
    package mutating func array(_ elements: (inout JSONWriter) throws -> Void) rethrows {
        beginArray()
        try elements(&self)
        endArray()
    }

    @inlinable
    package mutating func beginObject() {
        separate()
        bytes.append(0x7b)
        isBehindValue = false
    }

    @inlinable
    package mutating func endObject() {
        bytes.append(0x7d)
        isBehindValue = true
    }

    @inlinable
    package mutating func beginArray() {
        separate()
        bytes.append(0x5b)
        isBehindValue = false
    }

    @inlinable
    package mutating func endArray() {
        bytes.append(0x5d)
        isBehindValue = true
    }

    /// Appends the name of the next member. The name must need no escapes.
    @inlinable
    package mutating func name(_ name: StaticString) {
        separate()
        bytes.append(0x22)
        name.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(0x22)
        bytes.append(0x3a)
        isBehindValue = false
    }

    @inlinable
    package mutating func name(_ name: String) {
        separate()
        JSONString.append(name, to: &bytes)
        bytes.append(0x3a)
        isBehindValue = false
    }

    @inlinable
    package mutating func string(_ text: String) {
        separate()
        JSONString.append(text, to: &bytes)
    }

    @inlinable
    package mutating func integer(_ number: some BinaryInteger & CustomStringConvertible) {
        separate()
        bytes.append(contentsOf: number.description.utf8)
    }

    /// Appends a finite number with the fewest digits that distinguish it from other numbers. A whole number gets a fraction or
    /// an exponent, as `3.0`, so that a reader takes it for a double again.
    @inlinable
    package mutating func number(_ number: Double) {
        separate()
        bytes.append(contentsOf: number.description.utf8)
    }

    @inlinable
    package mutating func bool(_ value: Bool) {
        separate()
        bytes.append(contentsOf: value ? "true".utf8 : "false".utf8)
    }

    @inlinable
    package mutating func null() {
        separate()
        bytes.append(contentsOf: "null".utf8)
    }

    /// Appends a JSON text as it is.
    @inlinable
    package mutating func raw(_ text: String) {
        separate()
        bytes.append(contentsOf: text.utf8)
    }

    /// Returns a text as a JSON string.
    package static func quoted(_ text: String) -> String {
        var json = JSONWriter()
        json.string(text)
        return String(decoding: json.bytes, as: UTF8.self)
    }
}

extension JSONWriter {
    @inlinable
    package mutating func member(_ name: StaticString, _ text: String?) {
        guard let text else { return }
        self.name(name)
        string(text)
    }

    @inlinable
    package mutating func member(_ name: StaticString, _ number: Int64?) {
        guard let number else { return }
        self.name(name)
        integer(number)
    }

    @inlinable
    package mutating func member(_ name: StaticString, number: Double?) {
        guard let number else { return }
        self.name(name)
        self.number(number)
    }

    @inlinable
    package mutating func member(_ name: StaticString, _ value: Bool?) {
        guard let value else { return }
        self.name(name)
        bool(value)
    }

    @inlinable
    package mutating func member(_ name: StaticString, _ members: (inout JSONWriter) throws -> Void) rethrows {
        self.name(name)
        try object(members)
    }

    @inlinable
    package mutating func list(_ name: StaticString, _ elements: (inout JSONWriter) throws -> Void) rethrows {
        self.name(name)
        try array(elements)
    }
}

// Names and members that are written many times can be encoded once.

extension JSONWriter {
    /// Returns a name as ``name(encoded:)`` writes it.
    package static func encoded(name: String) -> [UInt8] {
        var json = JSONWriter(reserving: name.utf8.count + 4)
        json.name(name)
        return json.bytes
    }

    /// Appends the encoded name of the next member.
    @inlinable
    package mutating func name(encoded name: [UInt8]) {
        separate()
        bytes.append(contentsOf: name)
        isBehindValue = false
    }

    /// Returns members as ``members(encoded:)`` writes them.
    package static func encoded(members: (inout JSONWriter) throws -> Void) rethrows -> [UInt8] {
        var json = JSONWriter()
        try members(&json)
        return json.bytes
    }

    /// Appends encoded members of an object; at least one.
    @inlinable
    package mutating func members(encoded members: [UInt8]) {
        separate()
        bytes.append(contentsOf: members)
    }
}

// Long texts, line by line.

extension JSONWriter {
    /// Begins a line for the next value, or for the closing bracket.
    ///
    /// - Parameter isLast: Whether the closing bracket comes next, and no value.
    package mutating func beginLine(isLast: Bool = false) {
        if isBehindValue, !isLast { bytes.append(0x2c) }
        bytes.append(0x0a)
        isBehindValue = false
    }

    /// Passes the text written so far to `output`, and continues with an empty buffer.
    package mutating func flush(to output: ([UInt8]) throws -> Void) rethrows {
        try output(bytes)
        bytes.removeAll(keepingCapacity: true)
    }
}

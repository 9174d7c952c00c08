import CTideJSON
package import Foundation
package import TidemarkCloud
import TidemarkModel

/// A value of a JSON text. It is valid only during the call of ``JSONText/read(_:values:_:)`` that has passed it.
package struct JSONNode {
    fileprivate let root: UnsafePointer<tide_json_node>
    fileprivate let index: Int

    fileprivate var node: tide_json_node { root[index] }
    fileprivate var kind: tide_json_kind { tide_json_kind(rawValue: node.kind) }
    fileprivate var ownText: String {
        let node = node
        guard let start = node.text else { return "" }
        return String(decoding: UnsafeRawBufferPointer(start: start, count: Int(node.length)), as: UTF8.self)
    }
    fileprivate var textBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: node.text, count: Int(node.length)) }
}

/// Reads JSON texts from untrusted sources.
package enum JSONText {
    /// The deepest nesting of arrays and objects.
    package static let depth = 32
    /// The most values in the text of a request.
    package static let values = 600_000

    /// Reads a text, and passes its value to `body`.
    ///
    /// - Parameter most: The most values that the text may have.
    /// - Throws: `CloudError` `invalidArguments` for a text that is not JSON, is too deep or too large, or has an object with the
    ///   same name twice; the errors of `body`.
    package static func read<Result>(
        _ bytes: some ContiguousBytes, values most: Int = values, _ body: (JSONNode) throws(CloudError) -> Result
    ) throws(CloudError) -> Result {
        var tape: OpaquePointer?
        let fault = bytes.withUnsafeBytes { bytes in
            tide_json_tape_create(
                bytes.baseAddress?.assumingMemoryBound(to: CChar.self) ?? empty, bytes.count, UInt32(depth),
                UInt32(clamping: most),
                &tape)
        }
        defer { tide_json_tape_destroy(tape) }
        guard fault == TIDE_JSON_SOUND, let made = tape else {
            let name = tape.map { JSONNode(root: tide_json_tape_root($0), index: 0).ownText }
            throw CloudError(.invalidArguments, reason(fault, name, most))
        }
        return try body(JSONNode(root: tide_json_tape_root(made), index: 0))
    }

    private static func reason(_ fault: tide_json_fault, _ name: String?, _ most: Int) -> String {
        switch fault {
        case TIDE_JSON_TOO_DEEP: "the JSON is nested deeper than \(depth) levels"
        case TIDE_JSON_TOO_MANY: "the JSON has more than \(most) values; make several requests of it"
        case TIDE_JSON_DUPLICATE: "the JSON has an object with the member '\((name ?? "").prefix(100))' twice"
        case TIDE_JSON_BAD_NUMBER: "the JSON has a number that is written wrongly or is beyond 64 bits"
        case TIDE_JSON_NOT_UTF8: "the JSON is not valid UTF-8"
        case TIDE_JSON_NO_MEMORY: "there is no memory to read the JSON with"
        default: "the body is not valid JSON"
        }
    }

    nonisolated(unsafe) private static let empty: UnsafePointer<CChar> = {
        let bytes = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
        bytes.pointee = 0
        return UnsafePointer(bytes)
    }()
}

// The kind and the value of a node.
extension JSONNode {
    package var isNull: Bool { kind == TIDE_JSON_NULL }
    package var isObject: Bool { kind == TIDE_JSON_OBJECT }
    package var isArray: Bool { kind == TIDE_JSON_ARRAY }

    package var string: String? { kind == TIDE_JSON_STRING ? ownText : nil }
    package var integer: Int64? { kind == TIDE_JSON_INTEGER ? node.integer : nil }
    package var bool: Bool? { kind == TIDE_JSON_TRUE ? true : kind == TIDE_JSON_FALSE ? false : nil }
    package var number: Double? {
        switch kind {
        case TIDE_JSON_INTEGER: Double(node.integer)
        case TIDE_JSON_NUMBER: node.number
        default: nil
        }
    }
    /// The value of a whole number, also if it is written with a fraction or an exponent; `nil` for any other value.
    package var wholeNumber: Int64? {
        kind == TIDE_JSON_INTEGER ? node.integer : kind == TIDE_JSON_NUMBER ? Int64(exactly: node.number) : nil
    }
    /// Whether the node is a string with these bytes.
    package func isString(_ wanted: StaticString) -> Bool {
        kind == TIDE_JSON_STRING && Self.equal(textBytes, wanted)
    }

    private static func equal(_ bytes: UnsafeRawBufferPointer, _ wanted: StaticString) -> Bool {
        bytes.count == wanted.utf8CodeUnitCount
            && (bytes.isEmpty || memcmp(bytes.baseAddress!, wanted.utf8Start, bytes.count) == 0)
    }

    /// The member of a name; `nil` if the object lacks it, or if it is `null`.
    package subscript(_ name: StaticString) -> JSONNode? {
        guard kind == TIDE_JSON_OBJECT else { return nil }
        var at = index + 1
        for _ in 0..<node.length {
            let value = JSONNode(root: root, index: at + 1)
            if Self.equal(JSONNode(root: root, index: at).textBytes, name) { return value.isNull ? nil : value }
            at = Int(value.node.next)
        }
        return nil
    }

    /// The members of an object, including those that are `null`.
    package var members: some Sequence<(name: String, value: JSONNode)> {
        var at = index + 1
        var left = kind == TIDE_JSON_OBJECT ? node.length : 0
        let root = root
        return AnyIterator {
            guard left > 0 else { return nil }
            left -= 1
            let (name, value) = (JSONNode(root: root, index: at), JSONNode(root: root, index: at + 1))
            at = Int(value.node.next)
            return (name.ownText, value)
        }
    }

    package var memberCount: Int { kind == TIDE_JSON_OBJECT ? Int(node.length) : 0 }

    /// The elements of an array; empty for any other value.
    package var elements: some Sequence<JSONNode> {
        var at = index + 1
        var left = kind == TIDE_JSON_ARRAY ? node.length : 0
        let root = root
        return AnyIterator {
            guard left > 0 else { return nil }
            left -= 1
            let element = JSONNode(root: root, index: at)
            at = Int(element.node.next)
            return element
        }
    }

    /// The value as a JSON text.
    package var text: String {
        var json = JSONWriter()
        write(&json)
        return String(decoding: json.bytes, as: UTF8.self)
    }

    private func write(_ json: inout JSONWriter) {
        switch kind {
        case TIDE_JSON_NULL: json.null()
        case TIDE_JSON_INTEGER: json.integer(node.integer)
        case TIDE_JSON_NUMBER: json.number(node.number)
        case TIDE_JSON_FALSE, TIDE_JSON_TRUE: json.bool(kind == TIDE_JSON_TRUE)
        case TIDE_JSON_ARRAY:
            json.beginArray()
            for element in elements { element.write(&json) }
            json.endArray()
        case TIDE_JSON_OBJECT:
            json.beginObject()
            for (name, value) in members {
                json.name(name)
                value.write(&json)
            }
            json.endObject()
        default: json.string(ownText)
        }
    }

    package var elementCount: Int { kind == TIDE_JSON_ARRAY ? Int(node.length) : 0 }
}

// Reading with errors: a value of another kind is refused with its place. A member that is `null` counts as missing.
extension JSONNode {
    /// The place of the value in the text: `operations[3].record.fields.title`; empty for the whole text.
    package var place: String {
        var path = ""
        var container = JSONNode(root: root, index: 0)
        descending: while container.index != index {
            if container.kind == TIDE_JSON_OBJECT {
                for (name, value) in container.members where value.index <= index && index < Int(value.node.next) {
                    path += path.isEmpty ? name : ".\(name)"
                    container = value
                    continue descending
                }
            } else {
                for (number, value) in container.elements.enumerated() where value.index <= index && index < Int(value.node.next)
                {
                    path += "[\(number)]"
                    container = value
                    continue descending
                }
            }
            break
        }
        return path
    }

    /// Returns the error for a wrong value, with its place.
    package func refusal(_ what: String) -> CloudError {
        let place = place
        return CloudError(.invalidArguments, place.isEmpty ? "the body \(what)" : "\(place.prefix(200)) \(what)")
    }

    /// Returns a required member.
    package func required(_ name: StaticString) throws(CloudError) -> JSONNode {
        guard kind == TIDE_JSON_OBJECT else { throw refusal("is not an object") }
        guard let member = self[name] else { throw refusal("lacks the member '\(name)'") }
        return member
    }

    package func asString() throws(CloudError) -> String {
        guard let string else { throw refusal("is not a string") }
        return string
    }

    package func asInteger() throws(CloudError) -> Int64 {
        guard let wholeNumber else { throw refusal("is not a whole number of 64 bits") }
        return wholeNumber
    }

    package func asNumber() throws(CloudError) -> Double {
        guard let number else { throw refusal("is not a number") }
        return number
    }

    package func asBool() throws(CloudError) -> Bool {
        if let bool { return bool }
        // Some clients write 0 and 1.
        guard let integer, integer == 0 || integer == 1 else { throw refusal("is neither true nor false") }
        return integer == 1
    }

    /// Returns the elements of an array, which may have at most `most` of them.
    package func asArray(most: Int = .max) throws(CloudError) -> [JSONNode] {
        guard isArray else { throw refusal("is not an array") }
        guard elementCount <= most else {
            let place = place
            throw CloudError(.limitExceeded, "\(place) has \(elementCount) elements, and \(most) is the most")
        }
        return Array(elements)
    }

    package func string(_ name: StaticString) throws(CloudError) -> String? {
        guard let member = self[name] else { return nil }
        return try member.asString()
    }

    package func integer(_ name: StaticString) throws(CloudError) -> Int64? {
        guard let member = self[name] else { return nil }
        return try member.asInteger()
    }

    package func number(_ name: StaticString) throws(CloudError) -> Double? {
        guard let member = self[name] else { return nil }
        return try member.asNumber()
    }

    package func bool(_ name: StaticString) throws(CloudError) -> Bool? {
        guard let member = self[name] else { return nil }
        return try member.asBool()
    }
}

import TidemarkModel

/// Prints records as a JSON array in the form of an export, each on a line.
struct RecordArray {
    private var json = JSONWriter(reserving: Self.bufferSize + 4096)
    private static let bufferSize = 1 << 18

    init() { json.beginArray() }

    /// - Parameter write: Writes the record's object.
    mutating func add(_ write: (inout JSONWriter) throws -> Void) throws {
        json.beginLine()
        try write(&json)
        if json.bytes.count > Self.bufferSize { try json.flush(to: Output.write) }
    }

    mutating func finish() throws {
        json.beginLine(isLast: true)
        json.endArray()
        try Output.write(json.bytes + [0x0a])
    }
}

package import Foundation
import TidemarkSQLite

/// A folder as one file in the format of `tar` (POSIX.1-2001), made while it is read. The folder is removed with this object.
package actor ArchiveFile {
    /// Reading waits for the disk, which no thread of the cooperative pool may.
    private nonisolated let executor = StoreExecutor(label: "tidemark.archive-file")
    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private enum Content: Sendable {
        case bytes(Data)
        case file(URL)
    }

    private struct Piece: Sendable {
        let start, count: Int64
        let content: Content
    }

    /// The file's name, without an ending. Unpacking makes a folder of that name.
    package nonisolated let name: String
    private let folder: URL
    private let pieces: [Piece]
    /// The size of the whole file.
    package nonisolated let count: Int64

    private static let block: Int64 = 512

    /// - Parameters:
    ///   - folder: The folder, with all files below it.
    ///   - name: The folder that unpacking makes.
    ///   - time: When the files were made: seconds since 1970 UTC.
    package init(of folder: URL, named name: String, at time: Int64) throws {
        let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted()
        var (pieces, end) = ([Piece](), 0 as Int64)
        func add(_ content: Content, _ count: Int64) {
            pieces.append(Piece(start: end, count: count, content: content))
            end += count
        }
        for path in paths {
            let url = folder.appendingPathComponent(path)
            let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
            guard attributes[.type] as? FileAttributeType == .typeRegular, let size = attributes[.size] as? Int64 else {
                continue
            }
            let header = Self.header("\(name)/\(path)", size: size, at: time)
            add(.bytes(header), Int64(header.count))
            add(.file(url), size)
            let rest = (Self.block - size % Self.block) % Self.block
            if rest > 0 { add(.bytes(Data(count: Int(rest))), rest) }
        }
        add(.bytes(Data(count: Int(2 * Self.block))), 2 * Self.block)
        (self.name, self.folder, self.pieces, count) = (name, folder, pieces, end)
    }

    deinit {
        // A folder that can't be removed stays among the system's temporary files. Nobody else can read it.
        try? FileManager.default.removeItem(at: folder)
    }

    /// Reads a part; empty at the end.
    ///
    /// - Parameter most: How many bytes at the most.
    package func read(at offset: Int64, most: Int) throws -> Data {
        var low = 0
        var high = pieces.count
        while low < high {
            let middle = (low + high) / 2
            if pieces[middle].start + pieces[middle].count <= offset { low = middle + 1 } else { high = middle }
        }
        guard low < pieces.count else { return Data() }
        let piece = pieces[low]
        let (from, wanted) = (offset - piece.start, min(Int64(most), piece.start + piece.count - offset))
        switch piece.content {
        case .bytes(let bytes): return bytes.dropFirst(Int(from)).prefix(Int(wanted))
        case .file(let url):
            let file = try FileHandle(forReadingFrom: url)
            defer { try? file.close() }
            try file.seek(toOffset: UInt64(from))
            return try file.read(upToCount: Int(wanted)) ?? Data()
        }
    }

    /// The header of a file. Values that don't fit into its fields are in an extended header before it, as POSIX defines.
    private static func header(_ path: String, size: Int64, at time: Int64) -> Data {
        let largest: Int64 = 0o77_777_777_777
        guard path.utf8.count > 99 || size > largest else { return block(path, size: size, at: time, kind: "0") }
        var records = record("path", path)
        if size > largest { records += record("size", "\(size)") }
        let rest = (Int(Self.block) - records.count % Int(Self.block)) % Int(Self.block)
        return block("paxheader", size: Int64(records.count), at: time, kind: "x") + records + Data(count: rest)
            + block(String(decoding: path.utf8.suffix(99), as: UTF8.self), size: min(size, largest), at: time, kind: "0")
    }

    private static func record(_ name: String, _ value: String) -> Data {
        let rest = " \(name)=\(value)\n"
        var count = rest.utf8.count + 1
        while "\(count)".utf8.count + rest.utf8.count > count { count += 1 }
        return Data("\(count)\(rest)".utf8)
    }

    private static func block(_ path: String, size: Int64, at time: Int64, kind: Character) -> Data {
        var bytes = [UInt8](repeating: 0, count: Int(Self.block))
        func put(_ text: String, _ start: Int) {
            for (index, byte) in text.utf8.prefix(100).enumerated() { bytes[start + index] = byte }
        }
        func octal(_ number: Int64, _ digits: Int) -> String {
            let text = String(number, radix: 8)
            return String(repeating: "0", count: max(0, digits - text.count)) + text
        }
        put(path, 0)
        put("0000600", 100)
        put("0000000", 108)
        put("0000000", 116)
        put(octal(size, 11), 124)
        put(octal(time, 11), 136)
        put("        ", 148)
        put(String(kind), 156)
        put("ustar", 257)
        put("00", 263)
        let sum = bytes.reduce(0 as Int64) { $0 + Int64($1) }
        put(octal(sum, 6), 148)
        bytes[154] = 0
        return Data(bytes)
    }
}

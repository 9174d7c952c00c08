import Foundation
import TidemarkModel
import TidemarkSQLite

/// The records of one type as a CSV file (RFC 4180), for spreadsheets.
///
/// The columns are known only once all records are there. Until then the rows wait in a file beside the table, each with the
/// number of its cells.
struct ArchiveTable {
    /// A cell of a row.
    enum Cell {
        /// What a person has written: a spreadsheet must not take it for a formula.
        case text(String)
        /// A number, a time, or a path of the archive.
        case plain(String)

        func append(to bytes: inout [UInt8]) {
            switch self {
            case .text(let text): CSVText.appendCell(text, to: &bytes)
            case .plain(let text): if !text.isEmpty { CSVText.appendQuoted(text, to: &bytes) }
            }
        }
    }

    private let file, waiting: URL
    private var columns: [String]
    private var numbers: [String: Int] = [:]
    /// Rows that are not written yet.
    private var rows: [UInt8] = []

    /// The most bytes of rows that wait in memory, and of the table that are written at once.
    private static let (room, piece) = (16 << 10, 256 << 10)
    /// The byte order mark of UTF-8. Without it spreadsheets take the file for one of another encoding.
    private static let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]

    /// - Parameters:
    ///   - file: Where the table is written to, in a folder that is there.
    ///   - columns: The first columns, which every row has.
    init(at file: URL, columns: [String]) {
        (self.file, self.columns) = (file, columns)
        waiting = file.appendingPathExtension("rows")
    }

    /// A line of a CSV file.
    static func line(_ cells: [Cell]) -> [UInt8] {
        var bytes: [UInt8] = []
        append(cells, to: &bytes)
        return bytes + [0x0d, 0x0a]
    }

    /// The first line of a CSV file.
    static func head(_ columns: [String]) -> [UInt8] { byteOrderMark + line(columns.map { .text($0) }) }

    private static func append(_ cells: [Cell?], to bytes: inout [UInt8]) {
        for (number, cell) in cells.enumerated() {
            if number > 0 { bytes.append(UInt8(ascii: ",")) }
            cell?.append(to: &bytes)
        }
    }

    /// Adds a row.
    ///
    /// - Parameters:
    ///   - first: The cells of the first columns.
    ///   - fields: The others, by the names of their columns.
    mutating func append(_ first: [Cell], _ fields: [String: Cell]) throws {
        for name in fields.keys.sorted() where numbers[name] == nil {
            numbers[name] = columns.count
            columns.append(name)
        }
        var cells: [Cell?] = first + [Cell?](repeating: nil, count: columns.count - first.count)
        for (name, cell) in fields { if let number = numbers[name] { cells[number] = cell } }
        var row: [UInt8] = []
        Self.append(cells, to: &row)
        for number in [row.count, cells.count] { withUnsafeBytes(of: UInt64(number).littleEndian) { rows += $0 } }
        rows += row
        if rows.count >= Self.room { try write() }
    }

    private mutating func write() throws {
        if !FileManager.default.fileExists(atPath: waiting.path) { try ArchiveFolder.make(waiting).close() }
        let handle = try FileHandle(forWritingTo: waiting)
        try handle.seekToEnd()
        try handle.write(contentsOf: rows)
        // Some file systems say only then that what was written is lost.
        try handle.close()
        rows.removeAll()
    }

    /// Writes the table, and removes the file of waiting rows.
    ///
    /// - Parameter isDurable: Whether it has to survive a power cut.
    /// - Returns: The bytes of the table.
    mutating func finish(isDurable: Bool) throws -> Int64 {
        try write()
        let (reader, table) = (try FileHandle(forReadingFrom: waiting), try ArchiveFolder.make(file))
        defer { try? reader.close() }
        var (count, bytes) = (0 as Int64, Self.head(columns))
        while let head = try reader.read(upToCount: 16), !head.isEmpty {
            let (size, cells) = head.withUnsafeBytes {
                (
                    Int($0.loadUnaligned(as: UInt64.self).littleEndian),
                    Int($0.loadUnaligned(fromByteOffset: 8, as: UInt64.self).littleEndian)
                )
            }
            if size > 0 { bytes += try reader.read(upToCount: size) ?? Data() }
            bytes += [UInt8](repeating: UInt8(ascii: ","), count: columns.count - cells) + [0x0d, 0x0a]
            guard bytes.count >= Self.piece else { continue }
            count += Int64(bytes.count)
            try table.write(contentsOf: bytes)
            bytes.removeAll()
        }
        try table.write(contentsOf: bytes)
        if isDurable { try DurableFile.synchronize(table, path: file.path) }
        try table.close()
        try FileManager.default.removeItem(at: waiting)
        return count + Int64(bytes.count)
    }
}

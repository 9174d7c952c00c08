import Foundation
import TidemarkSQLite
import TidemarkStore

/// Damages a container's files behind the store's back.
public enum Damage {
    /// Moves the log into the database file, so that flips of the file's bits are what a reader sees.
    public static func checkpoint(_ container: URL) async throws {
        let store = try RecordStore(container: ContainerDirectory(openingAt: container))
        try await store.checkpoint()
    }

    /// Flips one bit of a file, so many bytes behind the beginning of a text that the file contains once.
    public static func flip(_ file: URL, after text: String, byte: Int, bit: Int) throws {
        var data = try Data(contentsOf: file)
        guard let place = data.range(of: Data(text.utf8)) else { throw CocoaError(.fileReadCorruptFile) }
        data[place.upperBound + byte] ^= 1 << UInt8(bit)
        let handle = try FileHandle(forWritingTo: file)
        defer { try? handle.close() }
        try handle.seek(toOffset: UInt64(place.upperBound + byte))
        try handle.write(contentsOf: data[(place.upperBound + byte)...(place.upperBound + byte)])
    }
}

import CArchive
import Foundation

/// Compressed data and archives, as other programs write them.
enum PackedFile {
    struct Failure: Error {}

    static func gzip(_ data: Data) throws -> Data { try raw(data, archive_write_add_filter_gzip) }
    static func zstd(_ data: Data) throws -> Data { try raw(data, archive_write_add_filter_zstd) }

    /// - Parameter link: The name of a symbolic link that comes first, and its target.
    static func zip(_ files: [(name: String, data: Data)], link: (name: String, target: String)? = nil) throws -> Data {
        try write(size: files.reduce(65_536) { $0 + $1.data.count + 1024 }) { archive in
            archive_write_set_format_zip(archive)
        } body: { archive in
            if let link { try entry(archive, link.name, Data(), link: link.target) }
            for file in files { try entry(archive, file.name, file.data) }
        }
    }

    private static func raw(_ data: Data, _ filter: (OpaquePointer) -> Int32) throws -> Data {
        try write(size: data.count + 65_536) { archive in
            archive_write_set_format_raw(archive)
            _ = filter(archive)
        } body: { archive in
            try entry(archive, "data", data)
        }
    }

    private static func write(size: Int, setting: (OpaquePointer) -> Void, body: (OpaquePointer) throws -> Void) throws -> Data {
        guard let archive = archive_write_new() else { throw Failure() }
        setting(archive)
        var (buffer, used) = ([UInt8](repeating: 0, count: size), 0)
        try buffer.withUnsafeMutableBytes { buffer in
            guard archive_write_open_memory(archive, buffer.baseAddress, buffer.count, &used) == ARCHIVE_OK else {
                throw Failure()
            }
            try body(archive)
            guard archive_write_free(archive) == ARCHIVE_OK else { throw Failure() }
        }
        return Data(buffer.prefix(used))
    }

    private static func entry(_ archive: OpaquePointer, _ name: String, _ data: Data, link: String? = nil) throws {
        let entry = archive_entry_new()
        defer { archive_entry_free(entry) }
        archive_entry_set_pathname(entry, name)
        archive_entry_set_filetype(entry, link == nil ? 0o100000 : 0o120000)
        archive_entry_set_perm(entry, 0o644)
        archive_entry_set_mtime(entry, 1_700_000_000, 0)
        if let link { archive_entry_set_symlink(entry, link) } else { archive_entry_set_size(entry, Int64(data.count)) }
        guard archive_write_header(archive, entry) == ARCHIVE_OK else { throw Failure() }
        guard data.isEmpty || data.withUnsafeBytes({ archive_write_data(archive, $0.baseAddress, $0.count) }) == data.count else {
            throw Failure()
        }
    }
}

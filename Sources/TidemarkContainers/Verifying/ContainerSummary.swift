import Foundation
import GRDB
public import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore

/// What a container holds, in numbers.
///
/// ```swift
/// let summary = try ContainerSummary(of: ContainerDirectory(openingAt: journal))
/// print(summary.stores.map(\.records).reduce(0, +))
/// ```
public struct ContainerSummary: Sendable {
    /// One store of the container, all of one state.
    public struct Store: Sendable {
        /// How many records there are of a type.
        public struct TypeCount: Hashable, Sendable {
            /// The name of the record type.
            public let name: String
            /// How many records of the type the store holds.
            public let records: Int
        }

        /// Which of the container's stores it is.
        public let scope: StoreScope
        /// Bytes of the database file, without its write-ahead log.
        public let bytes: Int64
        /// Committed pages in the write-ahead log, those included that a checkpoint has already copied into the database.
        public let pagesInLog: Int
        /// The store's record types, in the order of their creation.
        public let types: [TypeCount]
        /// The newest transaction of the history; `nil` when nothing was ever written.
        public let lastTransaction: HistoryTransaction?
        /// How many assets the store's records name, or named in their history.
        public let assets: Int
        /// Bytes of these assets.
        public let assetBytes: Int64
        /// Whether another process has the store open; `nil` where the system does not tell.
        public let isOpenElsewhere: Bool?

        /// How many records of all types the store holds.
        public var records: Int { types.reduce(0) { $0 + $1.records } }
    }

    /// The container that was summed up.
    public let container: ContainerDirectory
    /// One for each scope that has a store.
    public let stores: [Store]

    /// - Throws: ``StoreError`` as ``StoreReader`` does. That a scope has no store yet is no error.
    /// - Complexity: Goes through an index of each type.
    public init(of container: ContainerDirectory) throws(StoreError) {
        self.container = container
        var stores: [Store] = []
        for scope in ContainerDirectory.scopes {
            if !container.hasStore(scope) {
                try container.checkStoreMayBeMade(scope)
                continue
            }
            stores.append(try Store(StoreReader(container: container, scope: scope)))
        }
        self.stores = stores
    }
}

extension ContainerSummary.Store {
    fileprivate init(_ reader: StoreReader) throws(StoreError) {
        let url = reader.container.store(reader.scope)
        self = try reader.read("sum up \(url.path)") { db in
            let types = try StoredType.fetchAll(db).map { type in
                TypeCount(name: type.name, records: try Int.fetchOne(db, sql: "SELECT count(*) FROM \"\(type.table)\"") ?? 0)
            }
            let last = try Row.fetchOne(db, sql: "SELECT * FROM tide_transactions ORDER BY id DESC LIMIT 1")
            let assets = try Row.fetchOne(db, sql: "SELECT count(*) AS count, total(size) AS bytes FROM tide_assets")
            let bytes: Double = try assets?.stored("bytes", of: "tide_assets") ?? 0
            guard (0..<9e18).contains(bytes) else { throw StoreError(.corrupt, "tide_assets has sizes that cannot be") }
            var status = stat()
            guard stat(url.path, &status) == 0 else { throw Folder.failure("look at", url.path) }
            return Self(
                scope: reader.scope, bytes: Int64(status.st_size), pagesInLog: try WriteAheadLog.pages(at: url.path + "-wal"),
                types: types, lastTransaction: try last.map { try HistoryTransaction($0) },
                assets: try assets?.stored("count", of: "tide_assets") ?? 0, assetBytes: Int64(bytes),
                // While the connection has it open, this process is among those that do.
                isOpenElsewhere: LockHolders(of: status)?.hasOthers)
        }
    }
}

/// The length of a write-ahead log; see "WAL File Format" in SQLite's documentation.
enum WriteAheadLog {
    private static let headerLength = 32
    private static let frameHeaderLength = 24

    /// Pages up to the last commit. Only the frames' marks are looked at, not their checksums.
    ///
    /// SQLite has no POSIX locks on this file, so it may be opened beside SQLite.
    static func pages(at path: String) throws(StoreError) -> Int {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return 0 }
            throw Folder.failure("read", path)
        }
        defer { close(descriptor) }
        guard let header = bytes(headerLength, at: 0, of: descriptor), [0x377f_0682, 0x377f_0683].contains(number(header[0..<4]))
        else {
            return 0
        }
        // A log that has been begun anew has frames of its former life behind it, with another salt.
        let salt = header[16..<24]
        let frameLength = frameHeaderLength + Int(number(header[8..<12]))
        var (frames, committed) = (0, 0)
        while let frame = bytes(frameHeaderLength, at: headerLength + frames * frameLength, of: descriptor), frame[8..<16] == salt
        {
            frames += 1
            if number(frame[4..<8]) != 0 { committed = frames }
        }
        return committed
    }

    private static func bytes(_ count: Int, at offset: Int, of descriptor: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return pread(descriptor, &bytes, count, off_t(offset)) == count ? bytes : nil
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }
}

/// The processes that have a POSIX lock on a file, as SQLite has on a database that is open.
///
/// It is read from the kernel's list of locks: no lock is tried, and the file is not opened, for closing it would drop the locks that
/// this process has.
struct LockHolders {
    /// Besides this process.
    let hasOthers: Bool

    /// `nil` where the list is not to be had, or does not even have this process's own lock.
    init?(of file: stat) {
        var lists: [String] = []
        // A long list comes in pieces, and what is locked or released between two of them can make others fall out.
        for _ in 0..<16 {
            guard let (list, pieces) = Self.read("/proc/locks") else { return nil }
            lists.append(list)
            if pieces < 2 { break }
        }
        self.init(of: file, lists: lists, process: getpid())
    }

    init?(of file: stat, lists: [String], process: Int32) {
        let holders = lists.reduce(into: Set<Int32>()) { $0.formUnion(Self.holders(of: file, in: $1)) }
        guard holders.contains(process) else { return nil }
        hasOthers = holders.count > 1
    }

    private static func holders(of file: stat, in list: String) -> [Int32] {
        let device = UInt64(truncatingIfNeeded: file.st_dev)
        let major = device >> 8 & 0xfff | device >> 32 & ~0xfff
        let minor = device & 0xff | device >> 12 & ~0xff
        // As in "12: POSIX  ADVISORY  READ  4711 fe:01:131074 1073741826 1073742335"; with "->" after the number, one that waits.
        return list.split(separator: "\n").compactMap { line -> Int32? in
            let words = line.split(separator: " ")
            guard words.count >= 6, words[1] == "POSIX" else { return nil }
            let place = words[5].split(separator: ":")
            guard place.count == 3, UInt64(place[0], radix: 16) == major, UInt64(place[1], radix: 16) == minor,
                UInt64(place[2]) == UInt64(file.st_ino)
            else { return nil }
            return Int32(words[4])
        }
    }

    /// The text of a file, and in how many pieces the kernel gave it.
    private static func read(_ path: String) -> (text: String, pieces: Int)? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var (bytes, pieces) = ([UInt8](), 0)
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = Foundation.read(descriptor, &buffer, buffer.count)
            guard count >= 0 else { return nil }
            if count == 0 { return (String(decoding: bytes, as: UTF8.self), pieces) }
            bytes += buffer[..<count]
            pieces += 1
        }
    }
}

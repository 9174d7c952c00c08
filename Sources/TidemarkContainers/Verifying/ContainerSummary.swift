import Foundation
import GRDB
public import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore

/// The contents of a container in numbers.
///
/// ```swift
/// let summary = try ContainerSummary(of: ContainerDirectory(openingAt: journal))
/// print(summary.stores.map(\.records).reduce(0, +))
/// ```
public struct ContainerSummary: Sendable {
    /// The numbers of one store. All are of one state of the store.
    public struct Store: Sendable {
        /// The number of records of a type.
        public struct TypeCount: Hashable, Sendable {
            /// The name of the record type.
            public let name: String
            /// The number of records of the type in the store.
            public let records: Int
        }

        /// The scope of the store.
        public let scope: StoreScope
        /// Bytes of the database file, without its write-ahead log.
        public let bytes: Int64
        /// The committed pages in the write-ahead log, including pages that a checkpoint has already copied into the database.
        public let pagesInLog: Int
        /// The store's record types, in the order of their creation.
        public let types: [TypeCount]
        /// The newest transaction of the history; `nil` when nothing was ever written.
        public let lastTransaction: HistoryTransaction?
        /// The number of assets that the store's records or their history name.
        public let assets: Int
        /// Bytes of these assets.
        public let assetBytes: Int64
        /// Whether another process has the store open; `nil` if the system does not provide this.
        public let isOpenElsewhere: Bool?

        /// The number of records of all types in the store.
        public var records: Int { types.reduce(0) { $0 + $1.records } }
    }

    /// The container.
    public let container: ContainerDirectory
    /// The summaries of the stores, one for each scope that has a store.
    public let stores: [Store]

    /// Reads the numbers of a container.
    ///
    /// - Throws: ``StoreError`` as ``StoreReader`` does. A scope without a store is no error.
    /// - Complexity: Reads an index of each type.
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
                // The connection is open, so this process is among the holders.
                isOpenElsewhere: LockHolders(of: status)?.hasOthers)
        }
    }
}

/// The length of a write-ahead log; see "WAL File Format" in SQLite's documentation.
enum WriteAheadLog {
    private static let headerLength = 32
    private static let frameHeaderLength = 24

    /// Returns the number of pages up to the last commit. It reads the frames' headers, and does not check their checksums.
    ///
    /// SQLite has no POSIX locks on this file, so opening and closing it here drops none.
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
        // After SQLite has restarted the log, older frames with another salt may follow the new ones.
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
/// They are read from the kernel's list of locks. The file itself is not opened, because closing it would drop the locks of this
/// process.
struct LockHolders {
    /// Whether processes other than this one have a lock.
    let hasOthers: Bool

    /// Reads the holders; `nil` if the list can't be read, or does not have this process's own lock.
    init?(of file: stat) {
        var lists: [String] = []
        // The kernel returns a long list in pieces. Locks that are taken or released between two pieces can hide other entries,
        // so the list is read several times.
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
        // A line is such as "12: POSIX  ADVISORY  READ  4711 fe:01:131074 1073741826 1073742335". A waiting lock has "->" after
        // the number.
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

    /// Returns the text of a file, and the number of pieces in which the kernel returned it.
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

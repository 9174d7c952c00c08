import Foundation

/// What the file system says of a database file and its log: a commit changes it.
struct StoreStamp: Equatable {
    private let files: [File]

    private struct File: Equatable {
        let inode: UInt64
        let size: Int64
        let seconds: Int
        let nanoseconds: Int
    }

    init(_ database: URL) {
        files = [database.path, database.path + "-wal"].map { path in
            var status = stat()
            guard stat(path, &status) == 0 else { return File(inode: 0, size: -1, seconds: 0, nanoseconds: 0) }
            #if canImport(Darwin)
                let time = status.st_mtimespec
            #else
                let time = status.st_mtim
            #endif
            return File(
                inode: UInt64(status.st_ino), size: Int64(status.st_size), seconds: time.tv_sec, nanoseconds: Int(time.tv_nsec))
        }
    }

    /// Whether the files have been at rest for so long that a change since would show in their times, which are coarse.
    var isSettled: Bool {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return files.allSatisfy { $0.seconds < now.tv_sec - 1 }
    }
}

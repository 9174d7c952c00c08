import Foundation

/// The files and connections that this process may have open at once.
enum OpenFiles {
    /// The number of files that databases and assets need besides connections.
    private static let others = 500

    /// Raises the system's limit of open files, for a number of connections.
    ///
    /// - Returns: The number of connections for which there is room.
    static func raise(for connections: Int) -> Int {
        var limit = rlimit()
        #if os(Linux)
            let files = __rlimit_resource_t(UInt32(RLIMIT_NOFILE.rawValue))
        #else
            let files = RLIMIT_NOFILE
        #endif
        guard getrlimit(files, &limit) == 0 else { return connections }
        let wanted = rlim_t(connections + others)
        if limit.rlim_cur < wanted {
            let before = limit.rlim_cur
            limit.rlim_cur = min(wanted, limit.rlim_max)
            if setrlimit(files, &limit) != 0 { limit.rlim_cur = before }
        }
        return min(connections, max(16, Int(clamping: limit.rlim_cur) - others))
    }
}

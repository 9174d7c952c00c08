import Foundation

/// Files with a lock that shows that the process which made them is alive. The locks are those of flock(2), which the kernel
/// releases when the process ends.
extension Folder {
    /// Makes a file and locks it. The caller closes the descriptor, which releases the lock.
    ///
    /// - Returns: The descriptor; `nil` when the name exists, or when another process that removes unlocked files has locked or
    ///   removed the new file first.
    package borrowing func makeLockedFile(_ name: String, mode: UInt32 = 0o600) throws(StoreError) -> Int32? {
        let made = openat(descriptor, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_t(mode))
        guard made >= 0 else {
            if errno == EEXIST { return nil }
            throw Self.failure("make the file", "\(path)/\(name)")
        }
        guard flock(made, LOCK_EX | LOCK_NB) == 0 else {
            defer { close(made) }
            if errno == EWOULDBLOCK { return nil }
            let failure = Self.failure("lock", "\(path)/\(name)")
            try remove(name)
            throw failure
        }
        // A process that removes the file holds its lock. So a file that has a name now, under this lock, keeps it.
        var status = stat()
        if fstat(made, &status) == 0, status.st_nlink > 0 { return made }
        close(made)
        return nil
    }

    /// Makes and locks a hidden file that gets its final name later. The temporary name contains the final one.
    ///
    /// - Returns: The temporary name, and the descriptor, which the caller closes once the file has its final name.
    /// - Throws: ``StoreError``.
    package borrowing func makeTemporaryFile(
        for name: String, mode: UInt32
    ) throws(StoreError) -> (name: String, descriptor: Int32) {
        while true {
            let temporary = Self.temporaryName(for: name)
            if let made = try makeLockedFile(temporary, mode: mode) { return (temporary, made) }
        }
    }

    /// Removes the temporary files of processes that died while they wrote a file. A file that can't be removed stays.
    ///
    /// - Parameter isOwn: Returns whether a final name is one of the caller's files.
    /// - Throws: ``StoreError`` when the folder can't be listed.
    /// - Complexity: Lists the folder.
    package borrowing func removeTemporaryFiles(where isOwn: (String) -> Bool) throws(StoreError) {
        for entry in try entries() where entry.kind == .file {
            if let final = Self.finalName(of: entry.name), isOwn(final) { try? removeIfUnlocked(entry.name) }
        }
    }

    private static let temporarySuffix = ".tmp"

    private static func temporaryName(for name: String) -> String { ".\(name).\(UUID().uuidString)\(temporarySuffix)" }

    /// The final name of a temporary file; `nil` for other files.
    private static func finalName(of temporary: String) -> String? {
        guard temporary.hasPrefix("."), temporary.hasSuffix(temporarySuffix) else { return nil }
        let middle = temporary.dropFirst().dropLast(temporarySuffix.count)
        guard let dot = middle.lastIndex(of: "."), UUID(uuidString: String(middle[middle.index(after: dot)...])) != nil else {
            return nil
        }
        return String(middle[..<dot])
    }

    /// Removes a file that no process has locked.
    borrowing func removeIfUnlocked(_ name: String) throws(StoreError) {
        let opened = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        // The file is gone already, or may not be opened.
        guard opened >= 0 else { return }
        defer { close(opened) }
        if flock(opened, LOCK_EX | LOCK_NB) == 0 { try remove(name) }
    }
}

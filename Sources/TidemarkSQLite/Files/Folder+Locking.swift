import Foundation

/// Files that say by their lock that whoever made them is alive. The locks are flock(2)'s, which the kernel drops with the process.
extension Folder {
    /// Makes a file and locks it; the caller closes the descriptor, and lets go with that. `nil` when somebody who was clearing up
    /// has seen it unlocked and removed it.
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
        // Whoever removes it holds the lock meanwhile: what has a name now keeps it.
        var status = stat()
        if fstat(made, &status) == 0, status.st_nlink > 0 { return made }
        close(made)
        return nil
    }

    /// Makes a hidden file that gets its name later, and locks it: its name shows what it is to become, its lock that its process lives.
    ///
    /// - Returns: The name that it has meanwhile, and its descriptor, which the caller closes once the file has its name.
    /// - Throws: ``StoreError``.
    package borrowing func makeTemporaryFile(
        for name: String, mode: UInt32
    ) throws(StoreError) -> (name: String, descriptor: Int32) {
        while true {
            let temporary = Self.temporaryName(for: name)
            if let made = try makeLockedFile(temporary, mode: mode) { return (temporary, made) }
        }
    }

    /// Removes the hidden files that processes have left that died while they wrote a file. One that can't be removed stays.
    ///
    /// - Parameter isOwn: Tells by the name of a file whether it is the caller's.
    /// - Throws: ``StoreError`` when the folder can't be listed.
    /// - Complexity: Lists the folder.
    package borrowing func removeTemporaryFiles(where isOwn: (String) -> Bool) throws(StoreError) {
        for entry in try entries() where entry.kind == .file {
            if let final = Self.finalName(of: entry.name), isOwn(final) { try? removeIfUnlocked(entry.name) }
        }
    }

    private static let temporarySuffix = ".tmp"

    private static func temporaryName(for name: String) -> String { ".\(name).\(UUID().uuidString)\(temporarySuffix)" }

    /// The name that a temporary file is to get; `nil` for other files.
    private static func finalName(of temporary: String) -> String? {
        guard temporary.hasPrefix("."), temporary.hasSuffix(temporarySuffix) else { return nil }
        let middle = temporary.dropFirst().dropLast(temporarySuffix.count)
        guard let dot = middle.lastIndex(of: "."), UUID(uuidString: String(middle[middle.index(after: dot)...])) != nil else {
            return nil
        }
        return String(middle[..<dot])
    }

    /// Removes a file that nobody has locked.
    borrowing func removeIfUnlocked(_ name: String) throws(StoreError) {
        let opened = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        // Gone already, or somebody else's.
        guard opened >= 0 else { return }
        defer { close(opened) }
        if flock(opened, LOCK_EX | LOCK_NB) == 0 { try remove(name) }
    }
}

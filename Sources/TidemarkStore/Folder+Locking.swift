import Foundation

/// Files that say by their lock that whoever made them is alive. The locks are flock(2)'s, which the kernel drops with the process.
extension Folder {
    /// Makes a file and locks it; the caller closes the descriptor, and lets go with that. `nil` when somebody who was clearing up
    /// has seen it unlocked and removed it.
    borrowing func makeLockedFile(_ name: String) throws(StoreError) -> Int32? {
        let made = openat(descriptor, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
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

    /// Removes a file that nobody has locked.
    borrowing func removeIfUnlocked(_ name: String) throws(StoreError) {
        let opened = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        // Gone already, or somebody else's.
        guard opened >= 0 else { return }
        defer { close(opened) }
        if flock(opened, LOCK_EX | LOCK_NB) == 0 { try remove(name) }
    }
}

package import Foundation

/// A directory that is held open. Operations work in that directory even if another one is at its path by then.
///
/// Symbolic links in the directory are not followed: another user may have put them into a container.
package struct Folder: ~Copyable {
    package enum Kind: Sendable {
        case file, folder
        /// Anything else, such as a symbolic link.
        case other
    }

    package struct Entry: Sendable {
        package let name: String
        package let kind: Kind
    }

    package let path: String
    package let descriptor: Int32

    /// Opens a directory.
    ///
    /// - Parameter followsLink: Whether `url` may be a symbolic link to the directory.
    /// - Throws: ``StoreError`` `notFound` or `io`.
    package init(at url: URL, followsLink: Bool = false) throws(StoreError) {
        try self.init(in: AT_FDCWD, name: url.path, path: url.path, flags: followsLink ? 0 : O_NOFOLLOW)
    }

    private init(in parent: Int32, name: String, path: String, flags: Int32) throws(StoreError) {
        let opened = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags)
        guard opened >= 0 else { throw Self.failure("open the folder", path) }
        descriptor = opened
        self.path = path
    }

    deinit { close(descriptor) }

    /// Opens the folder of a name in this folder.
    package borrowing func folder(_ name: String) throws(StoreError) -> Folder {
        try Folder(in: descriptor, name: name, path: "\(path)/\(name)", flags: O_NOFOLLOW)
    }

    /// Returns the entries of the folder, in the order of their names. If there are more than `limit`, it returns those that the
    /// file system lists first.
    package borrowing func entries(limit: Int = .max) throws(StoreError) -> [Entry] {
        let listed = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard listed >= 0, let stream = fdopendir(listed) else { throw Self.failure("list", path) }
        defer { closedir(stream) }
        var entries: [Entry] = []
        while entries.count < limit {
            errno = 0
            guard let entry = readdir(stream) else {
                guard errno == 0 else { throw Self.failure("list", path) }
                break
            }
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 1) { String(cString: $0) }
            }
            guard name != ".", name != ".." else { continue }
            entries.append(Entry(name: name, kind: kind(of: name, listedAs: Int(entry.pointee.d_type))))
        }
        return entries.sorted { $0.name < $1.name }
    }

    /// Returns the entries of a folder, in the order of their names; an empty list if the folder is missing.
    package static func entriesIfPresent(at url: URL, followsLink: Bool = false) throws(StoreError) -> [Entry] {
        do throws(StoreError) {
            return try Folder(at: url, followsLink: followsLink).entries()
        } catch let error where error.code == .notFound {
            return []
        }
    }

    private borrowing func kind(of name: String, listedAs listed: Int) -> Kind {
        switch listed {
        case Int(DT_REG): return .file
        case Int(DT_DIR): return .folder
        case Int(DT_UNKNOWN):
            // Some file systems do not list the kind.
            var status = stat()
            guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return .other }
            return Self.isFile(status) ? .file : status.st_mode & S_IFMT == S_IFDIR ? .folder : .other
        default: return .other
        }
    }

    /// Opens a regular file for reading.
    package borrowing func openFile(_ name: String) throws(StoreError) -> FileHandle {
        // Non-blocking, because opening a FIFO would wait.
        let opened = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard opened >= 0 else { throw Self.failure("open the file", "\(path)/\(name)") }
        let file = FileHandle(fileDescriptor: opened, closeOnDealloc: true)
        var status = stat()
        guard fstat(opened, &status) == 0, Self.isFile(status) else {
            throw StoreError(.io, "\(path)/\(name) is not a file")
        }
        return file
    }

    /// Makes a new file. A file that has the name is removed first.
    package borrowing func makeFile(_ name: String, mode: mode_t) throws(StoreError) -> FileHandle {
        unlinkat(descriptor, name, 0)
        let opened = openat(descriptor, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
        guard opened >= 0 else { throw Self.failure("make the file", "\(path)/\(name)") }
        return FileHandle(fileDescriptor: opened, closeOnDealloc: true)
    }

    /// Whether the folder has an entry of that name, including a symbolic link.
    package borrowing func has(_ name: String) -> Bool {
        var status = stat()
        return fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0
    }

    /// Removes an entry that is not a folder. A missing entry is no error.
    package borrowing func remove(_ name: String) throws(StoreError) {
        guard unlinkat(descriptor, name, 0) == 0 || errno == ENOENT else { throw Self.failure("remove", "\(path)/\(name)") }
    }

    /// Renames a file within this folder. It replaces a file that has the new name.
    package borrowing func rename(_ name: String, to other: String) throws(StoreError) {
        guard renameat(descriptor, name, descriptor, other) == 0 else { throw Self.failure("make the file", "\(path)/\(other)") }
    }

    /// Makes the names in the folder durable.
    package borrowing func synchronize() throws(StoreError) {
        guard DurableFile.flush(descriptor) else { throw Self.failure("make durable", path) }
        DurableFile.onSynchronized?(path)
    }

    /// Makes a directory, and the missing directories above it. Their names are durable.
    ///
    /// - Parameters:
    ///   - mode: The permissions of the directory. Those of the directories above it follow from the umask.
    ///   - top: A directory above, which is not made if it is missing; `nil` makes all of them.
    package static func make(_ url: URL, mode: mode_t, below top: URL? = nil) throws(StoreError) {
        if mkdir(url.path, mode) != 0 {
            if errno == EEXIST { return }
            guard errno == ENOENT else { throw failure("make the folder", url.path) }
            let parent = url.deletingLastPathComponent()
            guard parent.path != url.path, parent.path != top?.path else {
                throw StoreError(.notFound, "cannot make the folder \(url.path): the one above it is not there")
            }
            try make(parent, mode: 0o777, below: top)
            guard mkdir(url.path, mode) == 0 || errno == EEXIST else { throw failure("make the folder", url.path) }
        }
        try Folder(at: url.deletingLastPathComponent(), followsLink: true).synchronize()
    }

    private static func isFile(_ status: stat) -> Bool { status.st_mode & S_IFMT == S_IFREG }

    /// Returns the error of a system call that has just failed, by `errno`.
    package static func failure(_ what: String, _ path: String) -> StoreError {
        let code: StoreError.Code =
            switch errno {
            case ENOENT: .notFound
            case ENOSPC, EDQUOT: .diskFull
            default: .io
            }
        return StoreError(code, "cannot \(what) \(path): \(String(cString: strerror(errno)))")
    }
}

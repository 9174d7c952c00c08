package import Foundation

/// A directory that is held open: what is done in it is done there, whatever its path has come to mean since.
///
/// No name in it is followed when it is a symbolic link: what lies in a container may have been put there by others.
package struct Folder: ~Copyable {
    package enum Kind: Sendable {
        case file, folder
        /// Symbolic links among them.
        case other
    }

    package struct Entry: Sendable {
        package let name: String
        package let kind: Kind
    }

    package let path: String
    package let descriptor: Int32

    /// - Parameter followsLink: Whether a symbolic link may stand for the directory itself.
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

    /// The folder of that name in it.
    package borrowing func folder(_ name: String) throws(StoreError) -> Folder {
        try Folder(in: descriptor, name: name, path: "\(path)/\(name)", flags: O_NOFOLLOW)
    }

    /// What lies in it, in the order of names; at most `limit` of it, then whatever the file system lists first.
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

    /// Returns what lies in a folder, in the order of names, and nothing if the folder is missing.
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
            // Some file systems keep it from the listing.
            var status = stat()
            guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return .other }
            return Self.isFile(status) ? .file : status.st_mode & S_IFMT == S_IFDIR ? .folder : .other
        default: return .other
        }
    }

    /// Opens a regular file for reading.
    package borrowing func openFile(_ name: String) throws(StoreError) -> FileHandle {
        // Non-blocking, should it be a FIFO.
        let opened = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard opened >= 0 else { throw Self.failure("open the file", "\(path)/\(name)") }
        let file = FileHandle(fileDescriptor: opened, closeOnDealloc: true)
        var status = stat()
        guard fstat(opened, &status) == 0, Self.isFile(status) else {
            throw StoreError(.io, "\(path)/\(name) is not a file")
        }
        return file
    }

    /// Makes a new file; what stands under the name is removed.
    package borrowing func makeFile(_ name: String, mode: mode_t) throws(StoreError) -> FileHandle {
        unlinkat(descriptor, name, 0)
        let opened = openat(descriptor, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
        guard opened >= 0 else { throw Self.failure("make the file", "\(path)/\(name)") }
        return FileHandle(fileDescriptor: opened, closeOnDealloc: true)
    }

    /// Whether the folder has anything of that name, a link too.
    package borrowing func has(_ name: String) -> Bool {
        var status = stat()
        return fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0
    }

    /// Removes what is no folder; that it is gone already is no error.
    package borrowing func remove(_ name: String) throws(StoreError) {
        guard unlinkat(descriptor, name, 0) == 0 || errno == ENOENT else { throw Self.failure("remove", "\(path)/\(name)") }
    }

    /// Gives a file of this folder another name in it, in the place of what has it.
    package borrowing func rename(_ name: String, to other: String) throws(StoreError) {
        guard renameat(descriptor, name, descriptor, other) == 0 else { throw Self.failure("make the file", "\(path)/\(other)") }
    }

    /// Makes durable which names are in it.
    package borrowing func synchronize() throws(StoreError) {
        guard DurableFile.flush(descriptor) else { throw Self.failure("make durable", path) }
        DurableFile.onSynchronized?(path)
    }

    /// Makes a directory and those above it as far as they are missing, with their names durable.
    ///
    /// - Parameter top: A directory above, which is not made; `nil` makes all of them.
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

    /// The error of a system call that has just failed.
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

package import Foundation

/// Small files that are there whole or not at all, also after a power cut.
package enum DurableFile {
    /// Called with the path of a file or folder that this type or ``Folder`` has made durable, for tests of the order.
    @TaskLocal package static var onSynchronized: (@Sendable (_ path: String) -> Void)?

    /// Writes a value as JSON.
    ///
    /// - Parameter replaces: Whether what stands there may go.
    /// - Throws: ``StoreError`` `diskFull`, `io`, `notFound`, or `cannotMove` when something is there that may not go.
    package static func write(_ value: some Encodable, to url: URL, replaces: Bool = true) throws(StoreError) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let data: Data
        do {
            data = try encoder.encode(value)
        } catch {
            throw StoreError(error, doing: "write \(url.path)")
        }
        try write(data, to: url, replaces: replaces)
    }

    /// Writes a value as JSON to a file that is not there.
    ///
    /// - Returns: `false` when another process has just made the file.
    /// - Throws: ``StoreError`` `diskFull`, `io`, `notFound`.
    package static func create(_ value: some Encodable, at url: URL) throws(StoreError) -> Bool {
        do throws(StoreError) {
            try write(value, to: url, replaces: false)
            return true
        } catch {
            guard error.code == .cannotMove else { throw error }
            return false
        }
    }

    /// Writes bytes as they are.
    package static func write(_ data: Data, to url: URL, replaces: Bool = true) throws(StoreError) {
        let folder = try Folder(at: url.deletingLastPathComponent(), followsLink: true)
        // Its lock says that this process lives: what a process has left that was killed can be told from it, and goes.
        let (temporary, descriptor) = try folder.makeTemporaryFile(for: url.lastPathComponent, mode: 0o600)
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try write(data, to: file, path: url.path)
            try synchronize(file, path: url.path)
            if replaces {
                try folder.rename(temporary, to: url.lastPathComponent)
            } else {
                try name(temporary, url.lastPathComponent, in: folder)
            }
        } catch {
            // The caller gets the first error; a temporary file that stays has a name of its own.
            try? folder.remove(temporary)
            throw error
        }
        // Locked until it has its name.
        withExtendedLifetime(file) {}
        try folder.synchronize()
    }

    /// Removes a file; that it is gone already is no error.
    package static func remove(_ name: String, in url: URL) throws(StoreError) {
        let folder = try Folder(at: url, followsLink: true)
        try folder.remove(name)
        try folder.synchronize()
    }

    /// Reads and decodes a file; `nil` when there is none.
    ///
    /// - Throws: ``StoreError`` `io`, `unreadable`, or `corrupt` when it is no JSON of that form.
    package static func read<Value: Decodable>(_ type: Value.Type, from url: URL) throws(StoreError) -> Value? {
        guard let data = try data(of: url) else { return nil }
        do {
            return try JSONDecoder().decode(type, from: data)
        } catch {
            throw StoreError(.corrupt, "\(url.path) has a wrong form: \(error)")
        }
    }

    /// More than any of these files has.
    static let sizeLimit = 1 << 16

    /// - Throws: ``StoreError`` `io`, `unreadable`, or `corrupt` when it is no file, or a longer one than these are.
    ///
    /// - Parameters:
    ///   - limit: Bytes that the file has at the most.
    ///   - followsLink: Whether a symbolic link may stand for it.
    package static func data(
        of url: URL, limit: Int = sizeLimit, followsLink: Bool = false
    ) throws(StoreError) -> Data? {
        let opened = open(url.path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (followsLink ? 0 : O_NOFOLLOW))
        guard opened >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            if errno == ELOOP { throw StoreError(.corrupt, "\(url.path) is a symbolic link") }
            let isForbidden = errno == EACCES || errno == EPERM
            let failure = Folder.failure("read", url.path)
            throw isForbidden ? StoreError(.unreadable, failure.message) : failure
        }
        let file = FileHandle(fileDescriptor: opened, closeOnDealloc: true)
        do {
            var status = stat()
            guard fstat(opened, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
                throw StoreError(.corrupt, "\(url.path) is no file")
            }
            // A file of that size need not be read to be refused.
            let data = status.st_size <= limit ? try file.read(upToCount: limit + 1) ?? Data() : nil
            guard let data, data.count <= limit else {
                throw StoreError(.corrupt, "\(url.path) is longer than \(limit) bytes, which is more than it can have")
            }
            return data
        } catch {
            throw StoreError(error, doing: "read \(url.path)")
        }
    }

    /// Writes all of some bytes to an open file. They are not durable yet.
    ///
    /// - Parameter path: The file's, for the message.
    /// - Throws: ``StoreError`` `diskFull`, `io`.
    package static func write(_ data: Data, to file: FileHandle, path: String) throws(StoreError) {
        var done = 0
        while done < data.count {
            let count = data.withUnsafeBytes { Foundation.write(file.fileDescriptor, $0.baseAddress! + done, data.count - done) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Folder.failure("write", path) }
            done += count
        }
    }

    /// Makes the bytes of an open file durable.
    ///
    /// - Parameter path: The file's, for the message.
    /// - Throws: ``StoreError`` `diskFull`, `io`.
    package static func synchronize(_ file: FileHandle, path: String) throws(StoreError) {
        // A handle that is used no more may close its descriptor before the call.
        guard withExtendedLifetime(file, { flush(file.fileDescriptor) }) else { throw Folder.failure("make durable", path) }
        onSynchronized?(path)
    }

    /// `fsync`; on Darwin, where that leaves what the disk has in its own memory, `F_FULLFSYNC`, as far as the file system has it.
    static func flush(_ descriptor: Int32) -> Bool {
        #if canImport(Darwin)
            if fcntl(descriptor, F_FULLFSYNC) == 0 { return true }
        #endif
        return fsync(descriptor) == 0
    }

    /// Gives a file a name that nothing may have.
    private static func name(_ temporary: String, _ name: String, in folder: borrowing Folder) throws(StoreError) {
        if link("\(folder.path)/\(temporary)", "\(folder.path)/\(name)") == 0 { return try folder.remove(temporary) }
        switch errno {
        case EEXIST: throw StoreError(.cannotMove, "\(folder.path)/\(name) has just been made by another process")
        // A file system without second names.
        case EPERM, ENOTSUP, ENOSYS: try folder.rename(temporary, to: name)
        default: throw Folder.failure("make the file", "\(folder.path)/\(name)")
        }
    }
}

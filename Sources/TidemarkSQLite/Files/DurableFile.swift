package import Foundation

/// Writes and reads small files. After a power cut, too, a file is complete or absent.
package enum DurableFile {
    /// Is called with the path of a file or folder that this type or ``Folder`` has made durable. For tests of the order.
    @TaskLocal package static var onSynchronized: SynchronizationHandler?

    /// A function in a struct: with a plain function as the task-local value, an optimised build by Swift 6.3 crashes in
    /// `withValue`.
    package struct SynchronizationHandler: Sendable {
        private let body: @Sendable (_ path: String) -> Void

        package init(_ body: @escaping @Sendable (_ path: String) -> Void) { self.body = body }

        func callAsFunction(_ path: String) { body(path) }
    }

    /// Writes a value as JSON.
    ///
    /// - Parameter replaces: Whether an existing file is replaced.
    /// - Throws: ``StoreError`` `diskFull`, `io`, `notFound`; `cannotMove` when a file exists and may not be replaced.
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

    /// Writes a value as JSON to a new file.
    ///
    /// - Returns: `false` when the file exists, because another process has just made it.
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
        // The lock shows that this process is alive. Temporary files without a lock are from killed processes, and can be
        // removed.
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
            // The caller gets the first error. A temporary file that stays is in nobody's way.
            try? folder.remove(temporary)
            throw error
        }
        // The open file holds the lock until it has its name.
        withExtendedLifetime(file) {}
        try folder.synchronize()
    }

    /// Removes a file. A missing file is no error.
    package static func remove(_ name: String, in url: URL) throws(StoreError) {
        let folder = try Folder(at: url, followsLink: true)
        try folder.remove(name)
        try folder.synchronize()
    }

    /// Reads and decodes a file; `nil` when there is none.
    ///
    /// - Throws: ``StoreError`` `io`, `unreadable`; `corrupt` when the file is not JSON of this type.
    package static func read<Value: Decodable>(_ type: Value.Type, from url: URL) throws(StoreError) -> Value? {
        guard let data = try data(of: url) else { return nil }
        do {
            return try JSONDecoder().decode(type, from: data)
        } catch {
            throw StoreError(.corrupt, "\(url.path) has a wrong form: \(error)")
        }
    }

    /// The most bytes that are read. Every file of this kind is smaller.
    static let sizeLimit = 1 << 16

    /// Reads the bytes of a file; `nil` when there is none.
    ///
    /// - Parameters:
    ///   - limit: The most bytes that the file may have.
    ///   - followsLink: Whether the file may be a symbolic link.
    /// - Throws: ``StoreError`` `io`, `unreadable`; `corrupt` when it is not a regular file, or is longer than `limit`.
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
            // A longer file is refused without reading it.
            let data = status.st_size <= limit ? try file.read(upToCount: limit + 1) ?? Data() : nil
            guard let data, data.count <= limit else {
                throw StoreError(.corrupt, "\(url.path) is longer than \(limit) bytes, which is more than it can have")
            }
            return data
        } catch {
            throw StoreError(error, doing: "read \(url.path)")
        }
    }

    /// Writes bytes to an open file. They are not durable yet.
    ///
    /// - Parameter path: The file's path, for the message.
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
    /// - Parameter path: The file's path, for the message.
    /// - Throws: ``StoreError`` `diskFull`, `io`.
    package static func synchronize(_ file: FileHandle, path: String) throws(StoreError) {
        // Without this, the handle could be released, and its descriptor closed, before the call.
        guard withExtendedLifetime(file, { flush(file.fileDescriptor) }) else { throw Folder.failure("make durable", path) }
        onSynchronized?(path)
    }

    /// Calls `fsync`. On Darwin, where `fsync` leaves data in the disk's own cache, it calls `F_FULLFSYNC` if the file system
    /// supports that.
    package static func flush(_ descriptor: Int32) -> Bool {
        #if canImport(Darwin)
            if fcntl(descriptor, F_FULLFSYNC) == 0 { return true }
        #endif
        return fsync(descriptor) == 0
    }

    /// Gives a temporary file its name. Fails if the name exists.
    private static func name(_ temporary: String, _ name: String, in folder: borrowing Folder) throws(StoreError) {
        if link("\(folder.path)/\(temporary)", "\(folder.path)/\(name)") == 0 { return try folder.remove(temporary) }
        switch errno {
        case EEXIST: throw StoreError(.cannotMove, "\(folder.path)/\(name) has just been made by another process")
        // The file system has no hard links.
        case EPERM, ENOTSUP, ENOSYS: try folder.rename(temporary, to: name)
        default: throw Folder.failure("make the file", "\(folder.path)/\(name)")
        }
    }
}

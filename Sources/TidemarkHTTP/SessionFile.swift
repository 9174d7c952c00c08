public import Foundation
public import TidemarkCloud
import TidemarkModel
import TidemarkWire

/// Keeps a session in a file that only its owner can read.
///
/// A file that others can read, or that belongs to another user, is refused: anyone who has the token can act for the account.
/// The file is replaced as a whole, so processes that share it read the old or the new session. A lock serialises changes. The
/// proof of earlier sign-ins is in a file beside it, which stays when the session is removed.
public struct SessionFile: SessionStore {
    /// The file of the session.
    public let url: URL
    private static let format: Int64 = 1
    private static let deviceFormat: Int64 = 1
    /// The most bytes of the file.
    private static let sizeLimit = 1 << 14

    /// Makes a store with a file. Nothing is read or written yet.
    ///
    /// - Parameter url: The file. A container's is `ContainerDirectory.session`.
    public init(at url: URL) { self.url = url }

    /// The file with the proofs of earlier sign-ins.
    private var deviceURL: URL {
        url.deletingLastPathComponent().appendingPathComponent("\(url.lastPathComponent)-device")
    }

    /// Reads the session; returns `nil` without a file.
    ///
    /// - Throws: `notAuthenticated` if the content of the file is not a session.
    public func session() throws(CloudError) -> CloudSession? {
        guard let data = try data(of: url) else { return nil }
        do throws(CloudError) {
            return try JSONText.read(data) { node throws(CloudError) in
                guard try node.required("format").asInteger() <= Self.format else { throw node.refusal("is of a newer version") }
                return try CloudSession(
                    cloud: try node.required("cloud").asString(), userRecordName: try node.required("userRecordName").asString(),
                    token: try node.required("token").asString())
            }
        } catch {
            throw CloudError(
                .notAuthenticated, "\(url.path) can't be read as a session (\(error.reason)); sign in again", remedy: .signIn)
        }
    }

    /// Writes a session in place of the present one.
    public func keep(_ session: CloudSession) throws(CloudError) {
        try alone { () throws(CloudError) in
            removeAbandoned()
            try write(session)
        }
    }

    /// Reads the device's proof of an earlier sign-in; returns `nil` without one.
    public func device(for cloud: String, email: String) -> CloudDevice? { devices().first { $0.isFor(cloud, email) } }

    /// Writes the device's proof of a sign-in to a file beside the session's.
    public func keep(_ device: CloudDevice) throws(CloudError) {
        try alone { () throws(CloudError) in
            let kept = CloudDevice.kept(device, before: devices())
            var json = JSONWriter()
            json.object {
                $0.member("format", Self.deviceFormat)
                $0.name("devices")
                $0.array {
                    for device in kept {
                        $0.object {
                            $0.member("cloud", device.cloud)
                            $0.member("email", device.email)
                            $0.member("token", device.token)
                            $0.member("name", device.name)
                        }
                    }
                }
            }
            try write(json.bytes, to: deviceURL)
        }
    }

    /// The stored proofs. A file that can't be trusted or read counts as empty: a sign-in does not need it.
    private func devices() -> [CloudDevice] {
        guard let data = try? data(of: deviceURL) else { return [] }
        let read = try? JSONText.read(data) { node throws(CloudError) in
            guard try node.required("format").asInteger() <= Self.deviceFormat else {
                throw node.refusal("is of a newer version")
            }
            var devices: [CloudDevice] = []
            for device in try node.required("devices").asArray() {
                let (cloud, email) = (try device.required("cloud").asString(), try device.required("email").asString())
                let (token, name) = (try device.required("token").asString(), try device.string("name"))
                guard let kept = CloudDevice(cloud: cloud, email: email, token: token, name: name) else { continue }
                devices.append(kept)
            }
            return devices
        }
        return read ?? []
    }

    private func write(_ session: CloudSession) throws(CloudError) {
        var json = JSONWriter()
        json.object {
            $0.member("format", Self.format)
            $0.member("cloud", session.cloud)
            $0.member("userRecordName", session.userRecordName)
            $0.member("token", session.token)
        }
        try write(json.bytes, to: url)
    }

    private func write(_ bytes: [UInt8], to url: URL) throws(CloudError) {
        let (temporary, opened) = try makeTemporaryFile(for: url)
        defer { close(opened) }
        var isWhole = fchmod(opened, 0o600) == 0
        var status = stat()
        if isWhole, fstat(opened, &status) == 0, status.st_mode & 0o077 != 0 {
            unlink(temporary)
            throw CloudError(
                .internalError,
                """
                the file system of \(url.deletingLastPathComponent().path) keeps no modes of files, so others could read the session; \
                have the container on one that does
                """)
        }
        var done = 0
        while isWhole, done < bytes.count {
            let count = bytes.withUnsafeBytes { Foundation.write(opened, $0.baseAddress! + done, $0.count - done) }
            if count < 0, errno == EINTR { continue }
            isWhole = count > 0
            done += count
        }
        guard isWhole, fsync(opened) == 0, rename(temporary, url.path) == 0 else {
            let failure = failure("write", url.path)
            unlink(temporary)
            throw failure
        }
        synchronizeFolder()
    }

    /// Makes and locks a temporary file, which gets its final name later. The lock shows other processes that this process is
    /// alive.
    private func makeTemporaryFile(for url: URL) throws(CloudError) -> (path: String, descriptor: Int32) {
        while true {
            let path = url.deletingLastPathComponent()
                .appendingPathComponent(".\(url.lastPathComponent).\(UUID().uuidString)\(Self.temporarySuffix)").path
            let opened = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
            guard opened >= 0 else { throw failure("make", path) }
            var status = stat()
            // A process that removes unlocked files may have found it before it was locked. On a file system without locks, no
            // process does.
            let isLocked = flock(opened, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK
            if isLocked, fstat(opened, &status) != 0 || status.st_nlink > 0 { return (path, opened) }
            close(opened)
        }
    }

    private static let temporarySuffix = ".tmp"

    /// Removes the temporary files of killed processes: those without a lock. Files that can't be removed stay.
    private func removeAbandoned() {
        let folder = url.deletingLastPathComponent()
        let prefixes = [url, deviceURL].map { ".\($0.lastPathComponent)." }
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [] {
            guard let prefix = prefixes.first(where: { name.hasPrefix($0) }) else { continue }
            var middle = name.dropFirst(prefix.count)
            if middle.hasSuffix(Self.temporarySuffix) { middle = middle.dropLast(Self.temporarySuffix.count) }
            guard UUID(uuidString: String(middle)) != nil else { continue }
            let path = folder.appendingPathComponent(name).path
            let opened = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
            guard opened >= 0 else { continue }
            var status = stat()
            if fstat(opened, &status) == 0, status.st_mode & S_IFMT == S_IFREG, flock(opened, LOCK_EX | LOCK_NB) == 0 {
                unlink(path)
            }
            close(opened)
        }
    }

    /// Replaces a session if the file still holds it.
    public func replace(_ old: CloudSession, by new: CloudSession) throws(CloudError) {
        try alone { () throws(CloudError) in
            guard try session() == old else { return }
            try write(new)
        }
    }

    /// Removes the file of the session.
    public func remove() throws(CloudError) {
        try alone { () throws(CloudError) in try unlinked() }
    }

    /// Removes the file of the session if it still holds this session.
    public func remove(_ session: CloudSession) throws(CloudError) {
        try alone { () throws(CloudError) in
            guard try self.session() == session else { return }
            try unlinked()
        }
    }

    /// Runs `body` while no other process changes the file. It locks a file beside it, which is removed afterwards.
    private func alone(_ body: () throws(CloudError) -> Void) throws(CloudError) {
        let path = url.deletingLastPathComponent().appendingPathComponent(".\(url.lastPathComponent).lock").path
        var tries = 0
        while true {
            let opened = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
            guard opened >= 0 else {
                // If the folder is missing, there is no file to protect.
                if errno == ENOENT || errno == ENOTDIR { return try body() }
                throw failure("lock", path)
            }
            defer { close(opened) }
            if flock(opened, LOCK_EX | LOCK_NB) == 0 {
                var (locked, named) = (stat(), stat())
                // Another process may have removed the lock file meanwhile.
                if fstat(opened, &locked) == 0, lstat(path, &named) == 0, locked.st_ino == named.st_ino,
                    locked.st_dev == named.st_dev
                {
                    defer { unlink(path) }
                    return try body()
                }
            } else if errno != EWOULDBLOCK, errno != EINTR {
                // The file system has no locks. The file is still replaced as a whole.
                defer { unlink(path) }
                return try body()
            }
            tries += 1
            guard tries < 1000 else {
                throw CloudError(.internalError, "another process has had \(path) locked for seconds; end it, and try again")
            }
            usleep(5000)
        }
    }

    private func unlinked() throws(CloudError) {
        guard unlink(url.path) == 0 || errno == ENOENT else { throw failure("remove", url.path) }
        synchronizeFolder()
    }

    private func data(of url: URL) throws(CloudError) -> Data? {
        // Non-blocking, because opening a FIFO would wait.
        let opened = open(url.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard opened >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            if errno == ELOOP { throw distrust(url, "is a symbolic link") }
            if errno == EACCES || errno == EPERM { throw distrust(url, "is another user's") }
            throw failure("read", url.path)
        }
        let file = FileHandle(fileDescriptor: opened, closeOnDealloc: true)
        var status = stat()
        guard fstat(opened, &status) == 0 else { throw failure("read", url.path) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw distrust(url, "is no file") }
        guard status.st_uid == geteuid() else { throw distrust(url, "is another user's") }
        guard status.st_mode & 0o077 == 0 else {
            throw distrust(url, "can be read or written by others (mode \(String(status.st_mode & 0o777, radix: 8)))")
        }
        do {
            let data = try file.read(upToCount: Self.sizeLimit + 1) ?? Data()
            guard data.count <= Self.sizeLimit else { throw distrust(url, "is longer than it can be") }
            return data
        } catch let error as CloudError {
            throw error
        } catch {
            throw failure("read", url.path)
        }
    }

    private func distrust(_ url: URL, _ what: String) -> CloudError {
        CloudError(.notAuthenticated, "\(url.path) \(what), so its session is not used; sign in again", remedy: .signIn)
    }

    private func failure(_ what: String, _ path: String) -> CloudError {
        CloudError(.internalError, "cannot \(what) \(path): \(String(cString: strerror(errno)))")
    }

    /// Makes the names in the folder durable.
    private func synchronizeFolder() {
        let opened = open(url.deletingLastPathComponent().path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard opened >= 0 else { return }
        fsync(opened)
        close(opened)
    }
}

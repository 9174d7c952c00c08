package import Foundation

extension FileHandle {
    /// Writes all bytes.
    ///
    /// - Parameter what: The operation, as words after "cannot" in the message: "write …".
    /// - Throws: ``ImportError`` `writing`; `closed` when the file is a pipe without a reader.
    package func write(all bytes: [UInt8], _ what: String) throws(ImportError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(fileDescriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw ImportError(errno == EPIPE ? .closed : .writing, "cannot \(what): \(String(cString: strerror(errno)))")
            }
            rest = rest.dropFirst(count)
        }
    }
}

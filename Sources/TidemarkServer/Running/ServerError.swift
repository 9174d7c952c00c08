/// Why a server can't start.
public struct ServerError: Error, Sendable, CustomStringConvertible {
    /// The kind of error.
    public enum Code: Sendable, Hashable {
        /// The directory holds no cloud that can be served.
        case noData
        /// Something else uses the port, or the address isn't this machine's.
        case address
        /// The certificate or the key can't be used.
        case certificate
        /// What was asked for can't be.
        case options
        /// A file can't be read or written.
        case io
        /// The database, or what has the assets, can't be reached or used.
        case storage
        /// Others use the place, or have changed it meanwhile.
        case busy
        /// The place has something else.
        case occupied
        /// What was copied is not what it was copied from.
        case different
    }

    /// The kind of error.
    public let code: Code
    /// What is wrong and what helps, for people.
    public let message: String

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - code: The kind of error.
    ///   - message: What is wrong and what helps, for people.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }
}

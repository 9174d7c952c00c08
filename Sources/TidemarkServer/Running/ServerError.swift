/// The reason why a server can't start.
public struct ServerError: Error, Sendable, CustomStringConvertible {
    /// The kind of error.
    public enum Code: Sendable, Hashable {
        /// The directory holds no cloud that can be served.
        case noData
        /// Another program uses the port, or the address is not this machine's.
        case address
        /// The certificate or the key can't be used.
        case certificate
        /// An option is invalid.
        case options
        /// A file can't be read or written.
        case io
        /// The database, or the place of the assets, can't be reached or used.
        case storage
        /// Another process uses the place, or has changed it meanwhile.
        case busy
        /// The place has other content.
        case occupied
        /// The copy differs from its source.
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

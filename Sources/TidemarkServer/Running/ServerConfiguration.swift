public import Foundation
public import Logging
import TidemarkConsole
public import TidemarkEmbeddedCloud
package import TidemarkMail
package import TidemarkOpenID

/// The configuration of a server of a cloud.
public struct ServerConfiguration: Sendable {
    /// Files of a certificate and its key, in PEM.
    public struct TLS: Sendable {
        /// The server's certificate, followed by the certificates of its authorities.
        public var certificateChain: String
        /// The path of the certificate's private key.
        public var privateKey: String

        /// Makes a description of the files.
        ///
        /// - Parameters:
        ///   - certificateChain: The path of the certificate and its authorities.
        ///   - privateKey: The path of the private key.
        public init(certificateChain: String, privateKey: String) {
            self.certificateChain = certificateChain
            self.privateKey = privateKey
        }
    }

    /// A database and a place of assets, for a cloud that several servers serve.
    public struct Database: Sendable {
        /// The reason why a server behind a pooler needs `listenAddress`.
        package static let needsListenAddress =
            "a server behind a pooler needs the database's own address as well, because notifications between servers don't pass a pooler"
        /// A connection string of libpq, as a URI or `key=value` pairs, without a password.
        public var address: String
        /// The database's own address, past a pooler that gives each transaction another connection. A server behind such a
        /// pooler needs it, since notifications don't pass the pooler. An administrator's program does not.
        public var listenAddress: String?
        /// The place of assets' contents.
        public var assets: Assets
        /// How clients read the contents of assets.
        public var assetReads = AssetReads.server
        /// The most connections at once.
        public var connections = 16
        /// Whether ``address`` is that of a pooler that gives each transaction another connection, such as PgBouncer in the mode
        /// `transaction`.
        public var isBehindPooler = false

        /// Makes a description of the places.
        public init(address: String, assets: Assets) { (self.address, self.assets) = (address, assets) }
    }

    /// The place where several servers keep contents of assets.
    public enum Assets: Sendable {
        /// A bucket of a server that speaks S3. The prefix is empty or ends with a slash. Without an endpoint it is Amazon's in
        /// the region. With `usesPaths` the bucket is in the path of addresses; `nil` decides by the endpoint. The keys come from
        /// the environment or from the shared file, as for AWS's tools.
        case bucket(name: String, prefix: String, endpoint: String?, region: String, usesPaths: Bool?)
        /// A directory that all servers share.
        case directory(URL)
    }

    /// How clients read the contents of assets.
    public enum AssetReads: Hashable, Sendable {
        /// Through a server, which passes the bytes on.
        case server
        /// From the bucket, by addresses that a server signs and that are valid for two minutes. The endpoint is the bucket's
        /// address for clients; `nil` where it is the servers' address.
        case signed(endpoint: String?)
    }

    /// The directory of the embedded cloud that is served; with a ``database``, a folder of this server for uploads on their way.
    public var directory: URL
    /// The storage of a cloud that is not in the directory.
    public var database: Database?
    /// The name or address at which the server listens.
    public var host: String
    /// The port; 0 for any free one.
    public var port: Int
    /// The certificate for TLS; `nil` to serve without TLS.
    public var tls: TLS?
    /// A file that the port is written to, once the server listens.
    public var portFile: String?
    /// The address by which clients reach the server, such as `https://cloud.example.org`; `nil` takes it from each request.
    public var publicURL: String?
    /// Whether a proxy in front names the client: by the last entry of `X-Forwarded-For`, and by `X-Forwarded-Proto`.
    public var trustsProxy: Bool
    /// The token that a client has to send for `/metrics`, as `Authorization: Bearer`; `nil` serves no metrics there.
    public var metricsToken: String?
    /// A port of ``metricsHost`` where `/metrics` needs no token; 0 for any free one.
    public var metricsPort: Int?
    /// The address of ``metricsPort``.
    public var metricsHost = "127.0.0.1"
    /// The server that sends e-mail to people; `nil` to send none. It needs ``publicURL``.
    package var mail: MailServer?
    /// The identity provider with which people sign in to pages; `nil` for passwords alone. It needs ``publicURL``.
    package var identityProvider: OpenIDProvider?
    /// The server's limits.
    public var limits: ServerLimits
    /// The lowest level of the log's lines.
    public var logLevel: Logger.Level

    /// Whether only this machine can reach the server.
    var isPrivate: Bool { host == "localhost" || host == "::1" || host.hasPrefix("127.") }

    /// The pages' way to send e-mail.
    var peopleMail: PeopleMail? {
        guard let mail, let publicURL else { return nil }
        let sender = MailSender(mail)
        let isTemporary: @Sendable (any Error) -> Bool = { ($0 as? MailSender.Failure)?.isTemporary ?? false }
        return PeopleMail(serverURL: publicURL, isTemporary: isTemporary) { recipient, subject, text in
            try await sender.send(MailMessage(to: recipient, subject: subject, text: text))
        }
    }

    /// The pages' way to ask the identity provider.
    var peopleProvider: PeopleProvider? {
        guard let identityProvider, let publicURL else { return nil }
        return PeopleProvider(OpenIDClient(identityProvider), serverURL: publicURL)
    }

    /// The address to which the identity provider sends browsers back, and with which this server is registered there; `nil`
    /// without a provider.
    package var identityRedirectURI: String? {
        identityProvider == nil ? nil : publicURL.map { PeopleProvider.redirectURI($0) }
    }

    /// Makes a configuration; see the properties for the meaning of each parameter.
    public init(
        directory: URL, host: String = "127.0.0.1", port: Int = 8080, tls: TLS? = nil, portFile: String? = nil,
        publicURL: String? = nil, trustsProxy: Bool = false, limits: ServerLimits = ServerLimits(),
        logLevel: Logger.Level = .info
    ) {
        self.directory = directory
        (self.host, self.port, self.tls, self.portFile) = (host, port, tls, portFile)
        (self.publicURL, self.trustsProxy, self.limits, self.logLevel) = (publicURL, trustsProxy, limits, logLevel)
    }
}

/// The limits of a server's sizes, rates and waiting times.
public struct ServerLimits: Sendable {
    /// The most bytes of a request's decompressed JSON.
    public var bodySize = 8 << 20
    /// The most bytes of bodies in memory, of all requests.
    public var bodiesSize = 64 << 20
    /// The most bytes of bodies in memory, of all requests from one address.
    public var bodiesSizeOfAddress = 32 << 20
    /// The most connections at once. Before there are more, the longest resting ones are closed.
    public var connections = 10_000
    /// The most connections at once from one address; further ones are closed. 0 is no limit, and there is none behind a proxy.
    public var connectionsOfAddress = 5_000
    /// The requests a second that an account or an address may send continuously; 0 is no limit.
    public var requestsPerSecond = 500.0
    /// The requests that may come at once before that rate applies.
    public var burst = 5_000
    /// The limits of a query's cost.
    public var queries = QueryLimits()
    /// The attempts to sign in a minute to an account from one address; five times as many may come from an address to all
    /// accounts. 0 is no limit.
    public var signInAttempts = 10
    /// The passwords that are hashed at once, each in 128 MB of memory. Others wait.
    public var hashesAtOnce = 1
    /// How long a connection may stay without a request.
    public var idleTime = Duration.seconds(600)
    /// How long a request's head may take from its first byte, and the negotiation of TLS.
    public var headTime = Duration.seconds(10)
    /// The time in which a body must arrive at ``bodyRate``; otherwise it is given up.
    public var bodyTime = Duration.seconds(20)
    /// The least bytes of a body a second.
    public var bodyRate = 1_024
    /// How long a client may read nothing of its answer.
    public var answerTime = Duration.seconds(60)
    /// The most bytes of a request's head.
    public var headSize = 32 << 10
    /// How long running requests may take after a shutdown has begun.
    public var shutdownTime = Duration.seconds(30)

    /// Makes the default limits.
    public init() {}
}

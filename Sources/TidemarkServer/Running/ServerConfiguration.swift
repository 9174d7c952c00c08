public import Foundation
public import Logging
import TidemarkConsole
public import TidemarkEmbeddedCloud
package import TidemarkMail
package import TidemarkOpenID

/// What a server of a cloud is told when it starts.
public struct ServerConfiguration: Sendable {
    /// Files of a certificate and its key, in PEM.
    public struct TLS: Sendable {
        /// The server's certificate, then those that vouch for it.
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

    /// A database and what has the assets, for a cloud that several servers serve.
    public struct Database: Sendable {
        /// Why a server behind a pooler is refused that has no `listenAddress`.
        package static let needsListenAddress =
            "a server behind a pooler needs the database's own address as well, because notifications between servers don't pass a pooler"
        /// A connection string of libpq, as a URI or `key=value` pairs, without a password.
        public var address: String
        /// The same, past a pooler that gives each transaction another connection: notifications don't pass it. A server behind one needs it, and
        /// a program that administers does not.
        public var listenAddress: String?
        /// Where the contents of assets are.
        public var assets: Assets
        /// How clients read the contents of assets.
        public var assetReads = AssetReads.server
        /// Connections at once.
        public var connections = 16
        /// Whether ``address`` is that of a pooler that gives each transaction another connection, such as PgBouncer in the mode
        /// `transaction`.
        public var isBehindPooler = false

        /// Makes a description of the places.
        public init(address: String, assets: Assets) { (self.address, self.assets) = (address, assets) }
    }

    /// Where several servers have the contents of assets.
    public enum Assets: Sendable {
        /// A bucket of a server that speaks S3. The prefix is empty or ends with a slash. Without an endpoint it is Amazon's in the region; with
        /// `usesPaths` the bucket stands in the path of addresses, `nil` goes by the endpoint. The keys come from the environment or the
        /// shared file, as AWS's tools have them.
        case bucket(name: String, prefix: String, endpoint: String?, region: String, usesPaths: Bool?)
        /// A directory that all servers share.
        case directory(URL)
    }

    /// How clients read the contents of assets.
    public enum AssetReads: Hashable, Sendable {
        /// Through a server, which passes the bytes on.
        case server
        /// From the bucket, by addresses that a server signs and that are good for two minutes. The endpoint is where clients reach the bucket;
        /// `nil` where they reach it as servers do.
        case signed(endpoint: String?)
    }

    /// The directory of the embedded cloud that is served; with a ``database`` a folder of this server alone, for uploads on their way.
    public var directory: URL
    /// What the cloud is stored in, if not in the directory.
    public var database: Database?
    /// The name or address that the server listens at.
    public var host: String
    /// 0 takes any that is free.
    public var port: Int
    /// The certificate for TLS; `nil` to serve without TLS.
    public var tls: TLS?
    /// A file that the port is written to, once the server listens.
    public var portFile: String?
    /// What clients reach the server by, as `https://cloud.example.org`; `nil` goes by what each request says.
    public var publicURL: String?
    /// Whether a proxy in front says who asks: the last entry of `X-Forwarded-For`, and `X-Forwarded-Proto`.
    public var trustsProxy: Bool
    /// What a client has to show for `/metrics`, as `Authorization: Bearer`; with `nil` nobody is shown them there.
    public var metricsToken: String?
    /// A port of 127.0.0.1, or of ``metricsHost``, where `/metrics` needs no token; 0 takes any that is free.
    public var metricsPort: Int?
    /// The address of ``metricsPort``.
    public var metricsHost = "127.0.0.1"
    /// What letters to people are handed to; `nil` where none are sent. It needs ``publicURL``.
    package var mail: MailServer?
    /// The identity provider with which people sign in to pages; `nil` for passwords alone. It needs ``publicURL``.
    package var identityProvider: OpenIDProvider?
    /// The server's limits.
    public var limits: ServerLimits
    /// The lowest level of the log's lines.
    public var logLevel: Logger.Level

    /// Whether only this machine can reach it.
    var isPrivate: Bool { host == "localhost" || host == "::1" || host.hasPrefix("127.") }

    /// How the pages of people send letters.
    var peopleMail: PeopleMail? {
        guard let mail, let publicURL else { return nil }
        let sender = MailSender(mail)
        let isTemporary: @Sendable (any Error) -> Bool = { ($0 as? MailSender.Failure)?.isTemporary ?? false }
        return PeopleMail(serverURL: publicURL, isTemporary: isTemporary) { recipient, subject, text in
            try await sender.send(MailMessage(to: recipient, subject: subject, text: text))
        }
    }

    /// Makes how the pages of people ask the identity provider.
    var peopleProvider: PeopleProvider? {
        guard let identityProvider, let publicURL else { return nil }
        return PeopleProvider(OpenIDClient(identityProvider), serverURL: publicURL)
    }

    /// Where the identity provider sends browsers, as this server has to be registered there; `nil` without one.
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

/// How much a server takes, and for how long it waits.
public struct ServerLimits: Sendable {
    /// Bytes of a request's JSON, unpacked.
    public var bodySize = 8 << 20
    /// Bytes of bodies that are held at once, of all requests.
    public var bodiesSize = 64 << 20
    /// Bytes of bodies that are held at once, of all requests from one address.
    public var bodiesSizeOfAddress = 32 << 20
    /// Connections at once. The last of them make room: those that rest longest are closed for others that come.
    public var connections = 10_000
    /// Connections at once from one address; those that come besides are closed. 0 is no limit, and there is none behind a proxy.
    public var connectionsOfAddress = 5_000
    /// Requests a second that an account or an address may go on with; 0 is no limit.
    public var requestsPerSecond = 500.0
    /// Requests that may come at once before that rate counts.
    public var burst = 5_000
    /// What a query may cost.
    public var queries = QueryLimits()
    /// Attempts to sign in a minute to an account from one address, and five times as many from an address in all; 0 is no limit.
    public var signInAttempts = 10
    /// Passwords that are hashed at once, each in 128 MB; others wait.
    public var hashesAtOnce = 1
    /// How long a connection may stay without a request.
    public var idleTime = Duration.seconds(600)
    /// How long a request's head may take from its first byte on, and TLS until it is agreed on.
    public var headTime = Duration.seconds(10)
    /// A body of which less than ``bodyRate`` came in such a time is given up.
    public var bodyTime = Duration.seconds(20)
    /// Bytes a second.
    public var bodyRate = 1_024
    /// How long a client may take none of what it asked for.
    public var answerTime = Duration.seconds(60)
    /// Bytes of a request's head.
    public var headSize = 32 << 10
    /// How long requests that run may go on when the server is told to end.
    public var shutdownTime = Duration.seconds(30)

    /// Makes the default limits.
    public init() {}
}

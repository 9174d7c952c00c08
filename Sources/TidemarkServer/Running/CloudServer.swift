import Foundation
import HTTPTypes
import HummingbirdCore
import HummingbirdTLS
public import Logging
import NIOCore
import NIOPosix
import NIOSSL
public import ServiceLifecycle
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkOpenID
import UnixSignals

/// Serves an embedded cloud over HTTP.
///
/// ```swift
/// let server = try CloudServer(ServerConfiguration(directory: directory), logger: logger)
/// try await server.runUntilSignalled()
/// ```
public final class CloudServer: Service {
    private let configuration: ServerConfiguration
    private let logger: Logger
    private let builder: HTTPServerBuilder
    private let responder: CloudResponder
    private let syncFailures: SyncFailureWriter
    private let addresses: AddressConnections
    let idle: IdleConnections
    /// Called with the port of the metrics, for tests.
    let onMetrics: @Sendable (Int) -> Void
    private let sweeper: Sweeper?
    private let storages: ServedStorages?
    /// Empties the logs of the databases, once nothing is served any more.
    private let emptyLogs: @Sendable () async -> Void
    private let onListening: @Sendable (Int) -> Void

    var operations: [Operation] { responder.operations }
    var metrics: ServerMetrics { responder.metrics }
    var bodies: BodyBudget { responder.bodies }

    /// Opens the cloud.
    ///
    /// - Parameter onListening: Called with the port as soon as the server can be reached.
    /// - Throws: ``ServerError``.
    public convenience init(
        _ configuration: ServerConfiguration, logger: Logger, onListening: @escaping @Sendable (Int) -> Void = { _ in }
    ) throws(ServerError) {
        guard CredentialStore.exists(at: configuration.directory) else {
            guard !SQLiteMoveTarget.isUnfinished(to: configuration.directory.standardizedFileURL) else {
                throw ServerError(
                    .noData,
                    "a cloud is being moved to \(configuration.directory.path), and is not there as a whole; run the same "
                        + "'tidemark admin move' to its end")
            }
            throw ServerError(
                .noData,
                "\(configuration.directory.path) has no cloud that can be served. Make one by "
                    + "'tidemark admin container add NAME --data \(configuration.directory.path)'")
        }
        do {
            let access = try CredentialStore(at: configuration.directory, hashesAtOnce: configuration.limits.hashesAtOnce)
            let metrics = ServerMetrics()
            let storages = try ServedStorages(
                at: configuration.directory, access: access, metrics: metrics, queries: configuration.limits.queries)
            let served = try ServedCloud(storages, metrics: metrics)
            served.subscriptions.unreadable.warn(logger)
            try self.init(
                configuration, cloud: served.cloud, access: access, operations: served.operations, metrics: metrics,
                sweeper: Sweeper(served.cloud, access, served.subscriptions, metrics, logger), storages: storages,
                dispatcher: served.dispatcher, logger: logger, onListening: onListening)
        } catch let error as ServerError {
            throw error
        } catch {
            throw ServerError(.io, "the cloud in \(configuration.directory.path) can't be opened: \(error)")
        }
    }

    /// Opens the cloud of a configuration's database, and brings its tables to their newest version.
    ///
    /// - Parameter onListening: Called with the port as soon as the server can be reached.
    /// - Throws: ``ServerError``, `storage` where the database can't be reached or used, or the place of the assets is not the database's. A
    ///   bucket that can't be reached is logged: records are served without it.
    public static func open(
        _ configuration: ServerConfiguration, _ database: ServerConfiguration.Database, logger: Logger,
        onListening: @escaping @Sendable (Int) -> Void = { _ in }
    ) async throws(ServerError) -> CloudServer {
        let metrics = ServerMetrics(hasDatabase: true)
        let storages = try await ServedStorages(
            in: database, folder: configuration.directory, metrics: metrics, limits: configuration.limits)
        for warning in storages.warnings { logger.warning("\(warning)") }
        let served: ServedCloud
        do {
            served = try ServedCloud(storages, metrics: metrics)
        } catch {
            throw ServerError(.io, "\(configuration.directory.path) can't be used for uploads: \(error.localizedDescription)")
        }
        return try CloudServer(
            configuration, cloud: served.cloud, access: served.access, operations: served.operations, metrics: metrics,
            sweeper: Sweeper(served.cloud, served.access, served.subscriptions, metrics, logger), storages: storages,
            dispatcher: served.dispatcher, logger: logger, onListening: onListening)
    }

    /// - Parameters:
    ///   - operations: The operations, without those for signing in and for the server itself.
    ///   - sweeper: Begins when the server listens.
    ///   - dispatcher: Notifies devices of what operators change.
    ///   - signInTime: A monotonic clock in seconds, for the count of attempts to sign in; a parameter for tests.
    init(
        _ configuration: ServerConfiguration, cloud: EmbeddedCloud, access: CredentialStore, operations: [Operation],
        metrics: ServerMetrics = ServerMetrics(), sweeper: Sweeper? = nil, storages: ServedStorages? = nil,
        dispatcher: NotificationDispatcher? = nil,
        signInTime: @escaping @Sendable () -> Double = ServerTime.seconds, logger: Logger,
        onMetrics: @escaping @Sendable (Int) -> Void = { _ in }, onListening: @escaping @Sendable (Int) -> Void = { _ in }
    ) throws(ServerError) {
        emptyLogs = {
            await cloud.emptyLogs()
            await access.emptyLog()
        }
        let limits = configuration.limits
        let bodies = BodyBudget(limit: limits.bodiesSize, share: limits.bodiesSizeOfAddress)
        let signIn = SignIn(
            cloud: cloud, access: access, metrics: metrics,
            limits: SignInLimits(perMinute: limits.signInAttempts, rates: storages?.signInRates ?? ProcessSignInRates()),
            now: signInTime)
        func reporting(_ all: String) -> @Sendable (Missing?) -> Void {
            { missing in
                guard let missing else { return logger.notice("\(all) can be reached again") }
                logger.warning("\(missing.part)", metadata: ["reason": "\(missing.reason)"])
            }
        }
        let readiness = Readiness(
            check: { () async throws(Missing) in
                if let storages { return try await storages.check() }
                try await ServedStorages.check(cloud, access)
            }, onChange: reporting("all that is needed"))
        let recordsReadiness = Readiness(
            check: { () async throws(Missing) in
                if let storages { return try await storages.checkRecords() }
                try await ServedStorages.check(cloud, access)
            }, onChange: reporting("all that records need"))
        let hasNoRoom: @Sendable () -> Bool = { storages?.hasNoRoom() ?? false }
        let pages = ServerPages(
            metrics: metrics, bodies: bodies, readiness: readiness, recordsReadiness: recordsReadiness,
            hasNoRoom: hasNoRoom, metricsToken: configuration.metricsToken)
        let history = RequestHistory()
        syncFailures = SyncFailureWriter(logger, write: { failures in try await access.record(failures) })
        responder = CloudResponder(
            operations: operations + signIn.operations
                + SignInPage(signIn: signIn, providerName: configuration.identityProvider?.name).operations
                + ServedConsole(signIn: signIn, history: history, dispatcher: dispatcher, logger: logger).operations
                + ServedPeople(
                    signIn: signIn, mail: configuration.peopleMail, provider: configuration.peopleProvider, logger: logger
                ).operations + pages.operations,
            signIn: signIn,
            bodies: bodies, configuration: configuration, history: history, syncFailures: syncFailures, logger: logger)
        // Behind a proxy, all connections come from the proxy.
        let addresses = AddressConnections(most: configuration.trustsProxy ? 0 : limits.connectionsOfAddress)
        idle = IdleConnections(limit: limits.connections)
        builder = try Self.builder(configuration, metrics, addresses, idle)
        (self.addresses, self.sweeper, self.storages, self.onMetrics) = (addresses, sweeper, storages, onMetrics)
        self.configuration = configuration
        self.logger = logger
        self.onListening = onListening
    }

    private static func builder(
        _ configuration: ServerConfiguration, _ metrics: ServerMetrics, _ addresses: AddressConnections,
        _ idle: IdleConnections
    ) throws(ServerError) -> HTTPServerBuilder {
        let (limits, hasTLS) = (configuration.limits, configuration.tls != nil)
        let plain = HTTPServerBuilder { responder in
            ServedChannel(
                responder: responder, limits: limits, hasTLS: hasTLS, metrics: metrics, addresses: addresses, idle: idle)
        }
        guard let tls = configuration.tls else { return plain }
        do {
            return try .tls(plain, tlsConfiguration: try tls.checked())
        } catch let error as ServerError {
            throw error
        } catch {
            throw ServerError(.certificate, "TLS can't be set up with \(tls.certificateChain) and \(tls.privateKey): \(error)")
        }
    }

    /// Serves until the server is shut down, and then finishes the running requests.
    ///
    /// - Throws: ``ServerError`` `address`, when it can't listen.
    public func run() async throws {
        do {
            try await serve()
        } catch {
            await syncFailures.finish()
            throw error
        }
        await syncFailures.finish()
    }

    private func serve() async throws {
        let limits = configuration.limits
        let connections = OpenFiles.raise(for: limits.connections)
        if connections < limits.connections {
            addresses.lower(to: connections / 2)
            idle.lower(to: connections)
            logger.notice(
                "fewer connections than wished for: the system allows fewer open files (see 'ulimit -n')",
                metadata: [
                    "connections": .stringConvertible(connections)
                ])
        }
        // The framework's messages about each connection are needed only to look for a fault.
        var quiet = logger
        quiet.logLevel = max(logger.logLevel, logger.logLevel <= .debug ? .debug : .warning)
        try checkPortFile()
        if let exposure = CredentialStore.exposure(of: configuration.directory) { logger.warning("\(exposure)") }
        if !configuration.isPrivate, configuration.tls == nil, !configuration.trustsProxy {
            logger.warning("other machines are listened to without TLS: passwords and records can be read on the way")
        }
        let requests = RequestTask(responder: responder)
        defer { sweeper?.end() }
        guard try await keysAreTaken() else { return }
        do {
            let server = try builder.buildServer(
                configuration: HummingbirdCore.ServerConfiguration(
                    address: .hostname(configuration.host, port: configuration.port), backlog: 1_024,
                    availableConnectionsDelegate: ConnectionLimit(connections)),
                eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: quiet,
                responder: { request, writer, channel in try await requests.respond(to: request, writer, channel) },
                onServerRunning: { [self] channel in listening(channel.localAddress?.port ?? configuration.port) })
            try await run(server, quiet)
        } catch let error as NIOSSLError {
            throw ServerError(.certificate, "the certificate and the key don't go together, or can't be used: \(error)")
        } catch let error as SocketAddressError.UnknownHost {
            throw ServerError(.address, "there is no machine called '\(error.host)' to listen on: take another --host")
        } catch let error as IOError {
            throw ServerError(.address, Self.reason(error, configuration))
        } catch let error as SocketAddressError {
            throw ServerError(.address, "there is no address '\(configuration.host)' to listen on: \(error)")
        }
    }

    /// Runs the server, and beside it the server of the metrics if these have a port of their own.
    private func run(_ server: any Service, _ logger: Logger) async throws {
        guard let port = configuration.metricsPort else { return try await server.run() }
        let figures = MetricsServer(
            host: configuration.metricsHost, port: port, metrics: metrics, bodies: bodies, logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await server.run() }
            group.addTask { [onMetrics, log = self.logger] in
                do {
                    try await figures.run { port in
                        log.notice("figures are served", metadata: ["port": .stringConvertible(port)])
                        onMetrics(port)
                    }
                } catch let error as IOError {
                    throw ServerError(
                        .address,
                        "cannot listen on \(figures.host):\(figures.port) for the figures: \(error). Take another --metrics-port")
                }
            }
            defer { group.cancelAll() }
            // Both end with a shutdown, and each ends with the other.
            try await group.next()
            if Task.isShuttingDownGracefully { try await group.waitForAll() }
        }
    }

    /// Serves until SIGTERM or SIGINT. Running requests then have ``ServerLimits/shutdownTime`` to end.
    ///
    /// - Throws: ``ServerError`` `address`, when it can't listen.
    public func runUntilSignalled() async throws {
        var group = ServiceGroupConfiguration(
            services: [.init(service: self)], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        group.maximumGracefulShutdownDuration = configuration.limits.shutdownTime
        do {
            try await ServiceGroup(configuration: group).run()
        } catch {
            await storages?.close()
            throw error
        }
        await emptyLogs()
        await storages?.close()
        logger.notice("ended")
    }

    /// Waits until signatures of keys are accepted. Otherwise a client that connects at once with a fresh signature would be
    /// refused.
    ///
    /// - Returns: `false` when the server ends before that.
    private func keysAreTaken() async throws(ServerError) -> Bool {
        let wait: Duration?
        do throws(CredentialError) {
            wait = try responder.admission.access.waitForKeys()
        } catch {
            throw ServerError(.io, "the keys in \(configuration.directory.path) can't be read: \(error)")
        }
        guard let wait else { return true }
        // A shutdown ends the wait early.
        _ = try? await cancelWhenGracefulShutdown { try await Task.sleep(for: wait) }
        return !Task.isShuttingDownGracefully && !Task.isCancelled
    }

    /// Checks that the port file can be written: a program that waits for it must not wait forever.
    private func checkPortFile() throws(ServerError) {
        guard let file = configuration.portFile else { return }
        let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
        guard access(folder, W_OK) == 0 else {
            throw ServerError(.io, "the port can't be written to \(file): \(String(cString: strerror(errno)))")
        }
    }

    private func listening(_ port: Int) {
        if let file = configuration.portFile {
            do {
                try Data("\(port)\n".utf8).write(to: URL(fileURLWithPath: file), options: .atomic)
            } catch {
                logger.error("the port can't be written to \(file): \(error)")
            }
        }
        sweeper?.begin()
        onListening(port)
    }

    private static func reason(_ error: IOError, _ configuration: ServerConfiguration) -> String {
        let place = "\(configuration.host):\(configuration.port)"
        switch error.errnoCode {
        case EADDRINUSE: return "\(place) is in use: end what listens there, or take another --port"
        case EADDRNOTAVAIL: return "\(configuration.host) is no address of this machine: take another --host"
        case EACCES: return "this user may not listen on \(place): take a --port from 1024 on"
        default: return "cannot listen on \(place): \(error)"
        }
    }
}

extension ServerConfiguration.TLS {
    /// Returns the content of the files, if it can be used.
    func checked() throws(ServerError) -> TLSConfiguration {
        for file in [certificateChain, privateKey] where !FileManager.default.isReadableFile(atPath: file) {
            throw ServerError(.certificate, "\(file) can't be read")
        }
        let certificates: [NIOSSLCertificate]
        do {
            certificates = try NIOSSLCertificate.fromPEMFile(certificateChain)
        } catch {
            throw ServerError(.certificate, "\(certificateChain) has no certificate in PEM")
        }
        let key: NIOSSLPrivateKey
        do {
            key = try NIOSSLPrivateKey(file: privateKey, format: .pem)
        } catch {
            throw ServerError(.certificate, "\(privateKey) has no private key in PEM, or one with a password")
        }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: certificates.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        // In TLS 1.2 only suites with forward secrecy and authenticated encryption. All suites of TLS 1.3 have both.
        configuration.cipherSuiteValues = [
            .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ]
        return configuration
    }
}

import Foundation
import Logging
import Testing
import TidemarkEmbeddedCloud
import TidemarkHTTP
import TidemarkIdentity

@testable import TidemarkServer

/// The real server over a cloud's directory or a database, in this process, on any free port. It ends with the last reference to
/// it.
final class ListeningServer: Sendable {
    let address: ServerAddress
    private let running: Task<Void, Never>

    private init(_ address: ServerAddress, _ running: Task<Void, Never>) { (self.address, self.running) = (address, running) }

    /// - Parameter cloud: The cloud of the directory, if a test has opened it.
    static func started(
        over directory: URL, limits: ServerLimits? = nil, tls: ServerConfiguration.TLS? = nil, cloud: EmbeddedCloud? = nil
    ) async throws -> ListeningServer {
        var configuration = ServerConfiguration(directory: directory, port: 0, tls: tls)
        if let limits { configuration.limits = limits }
        return try await started(withTLS: tls != nil) { logger, listening in
            if let cloud { return try CloudServer(configuration, over: cloud, logger: logger, onListening: listening) }
            return try CloudServer(configuration, logger: logger, onListening: listening)
        }
    }

    /// Starts the server over open storages. The caller closes them.
    ///
    /// - Parameter directory: A folder of this server alone.
    static func started(
        over storages: ServedStorages, in directory: URL, metrics: ServerMetrics
    ) async throws -> ListeningServer {
        let configuration = ServerConfiguration(directory: directory, port: 0)
        let served = try ServedCloud(storages, metrics: metrics)
        return try await started { logger, listening in
            try CloudServer(
                configuration, cloud: served.cloud, access: storages.access, operations: served.operations, metrics: metrics,
                storages: storages, dispatcher: served.dispatcher, logger: logger, onListening: listening)
        }
    }

    /// - Parameter make: Makes the server; the closure that it gets must be called with the port.
    private static func started(
        withTLS hasTLS: Bool = false, _ make: (Logger, @escaping @Sendable (Int) -> Void) throws -> CloudServer
    ) async throws -> ListeningServer {
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let server = try make(Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() }) { port.yield($0) }
        let running = Task {
            do { try await server.run() } catch { Issue.record("the server has ended: \(error)") }
            port.finish()
        }
        var listening: Int?
        for await port in ports {
            listening = port
            break
        }
        let place = hasTLS ? "https://localhost" : "http://127.0.0.1"
        return ListeningServer(try ServerAddress("\(place):\(try #require(listening))"), running)
    }

    /// Ends the server, without waiting for it.
    func stop() { running.cancel() }

    deinit { running.cancel() }
}

extension CloudServer {
    /// Serves a cloud that is open, with the credentials of its directory.
    fileprivate convenience init(
        _ configuration: ServerConfiguration, over cloud: EmbeddedCloud, logger: Logger,
        onListening: @escaping @Sendable (Int) -> Void
    ) throws {
        let (access, metrics) = (try CredentialStore(at: configuration.directory), ServerMetrics())
        let storages = try ServedStorages(at: configuration.directory, cloud, access: access, metrics: metrics)
        let served = try ServedCloud(storages, metrics: metrics)
        try self.init(
            configuration, cloud: cloud, access: access, operations: served.operations, metrics: metrics, storages: storages,
            dispatcher: served.dispatcher, logger: logger, onListening: onListening)
    }
}

import Foundation
import Logging
import Testing
import TidemarkEmbeddedCloud
import TidemarkHTTP
import TidemarkIdentity

@testable import TidemarkServer

/// The real server over a cloud's directory, in this process, on any port that is free, until nobody has it any more.
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
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let logger = Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() }
        let server =
            if let cloud {
                try CloudServer(configuration, over: cloud, logger: logger) { port.yield($0) }
            } else {
                try CloudServer(configuration, logger: logger) { port.yield($0) }
            }
        let running = Task {
            do { try await server.run() } catch { Issue.record("the server has ended: \(error)") }
            port.finish()
        }
        var listening: Int?
        for await port in ports {
            listening = port
            break
        }
        let place = tls == nil ? "http://127.0.0.1" : "https://localhost"
        return ListeningServer(try ServerAddress("\(place):\(try #require(listening))"), running)
    }

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

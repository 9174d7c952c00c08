import Foundation
import Logging
import Testing
import TidemarkHTTP
import TidemarkServer

/// The real server over a cloud's directory, in this process, on any port that is free, until nobody has it any more.
final class ListeningServer: Sendable {
    let address: ServerAddress
    private let running: Task<Void, Never>

    private init(_ address: ServerAddress, _ running: Task<Void, Never>) { (self.address, self.running) = (address, running) }

    static func started(
        over directory: URL, limits: ServerLimits? = nil, tls: ServerConfiguration.TLS? = nil
    ) async throws -> ListeningServer {
        var configuration = ServerConfiguration(directory: directory, port: 0, tls: tls)
        if let limits { configuration.limits = limits }
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let server = try CloudServer(configuration, logger: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() }) {
            port.yield($0)
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

import Logging
import TidemarkEmbeddedCloud

/// Takes away what lies in a cloud and nobody needs: when it begins, and each hour. It ends with whoever holds it.
final class Sweeper: Sendable {
    private static let pause = Duration.seconds(3_600)
    private let task: Task<Void, Never>

    init(_ cloud: EmbeddedCloud, _ metrics: ServerMetrics, _ logger: Logger?) {
        task = Task {
            while !Task.isCancelled {
                do {
                    metrics.count(.assetsRemoved, try await cloud.removeLeftovers())
                } catch {
                    guard !Task.isCancelled else { return }
                    metrics.count(.sweepsFailed)
                    logger?.error("what nobody needs could not be removed", metadata: ["error": .string("\(error)")])
                }
                try? await Task.sleep(for: Self.pause)
            }
        }
    }

    deinit { task.cancel() }
}

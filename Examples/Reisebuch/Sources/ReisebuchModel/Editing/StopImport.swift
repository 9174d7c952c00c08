import Foundation
import Observation
import Tidemark

/// Takes in the stops of a long journey, such as those of a GPS logger, while the app goes on.
@MainActor @Observable public final class StopImport {
    /// From 0 to 1.
    public private(set) var progress = 0.0
    public private(set) var isRunning = false
    @ObservationIgnored private var task: Task<Int, any Error>?

    public init() {}

    /// Saves stops in batches.
    ///
    /// - Returns: The number of stops that are saved now. If it is cancelled, those of the batches before stay, and the next run goes on.
    @discardableResult
    public func run(_ stops: [Stop], in book: TravelBook, batchSize: Int = 500) async throws -> Int {
        isRunning = true
        defer { isRunning = false }
        let task = Task {
            try await book.container.saveInBatches(stops, batchSize: batchSize) { saved in
                let share = Double(saved) / Double(stops.count)
                Task { @MainActor [weak self] in self?.progress = max(self?.progress ?? 0, share) }
            }
            return stops.count
        }
        self.task = task
        do {
            return try await task.value
        } catch is CancellationError {
            return try await book.container.fetchAll(stops.map { Reference($0) }).count
        }
    }

    /// For the button “Abbrechen”.
    public func cancel() { task?.cancel() }
}

import Foundation
import TidemarkModel

/// Kills a device at one of the counted moments. The container's files are copied as they are at that moment, and no later
/// request of the old process reaches the cloud.
///
/// What the old process still writes goes to files that are never opened again.
final class KillSwitch: Sendable {
    private struct State {
        /// The moments that are left; `nil` while no kill is planned.
        var countdown: Int?
        var image: URL?
        var error: (any Error)?
    }

    private let folder: URL
    private let state = LockedValue(State())
    private let makeImage: @Sendable (URL) throws -> URL

    /// - Parameter makeImage: Copies a container in its present state.
    init(_ folder: URL, makeImage: @escaping @Sendable (URL) throws -> URL) {
        self.folder = folder
        self.makeImage = makeImage
    }

    /// Plans a kill after so many more moments.
    func arm(_ moments: Int) { state.withLock { if $0.image == nil { $0.countdown = moments } } }

    func disarm() { state.withLock { $0.countdown = nil } }

    /// Counts a moment.
    func tick() {
        state.withLock { state in
            guard state.image == nil, let left = state.countdown else { return }
            state.countdown = left - 1
            if left <= 1 { strike(&state) }
        }
    }

    func strike() { state.withLock { if $0.image == nil { strike(&$0) } } }

    private func strike(_ state: inout State) {
        do {
            state.image = try makeImage(folder)
        } catch {
            state.error = error
        }
    }

    var isDead: Bool { state.withLock { $0.image != nil } }

    /// Returns the copy of the container from the moment of the kill.
    func image() throws -> URL? {
        try state.withLock { state in
            if let error = state.error { throw error }
            return state.image
        }
    }
}

import NIOCore
import TidemarkModel

/// The connections that rest between requests. They are closed when new connections come and no more may be open.
///
/// When as many are open as may be, the longest resting ones are closed, those of the address with the most resting connections
/// first. So a client with thousands of connections keeps nobody out.
final class IdleConnections: Sendable {
    /// The event that asks a connection to close if it still rests.
    struct GiveWay: Sendable {}

    private struct Resting {
        let address: String
        /// A number that grows with each connection that begins to rest.
        let turn: UInt64
        let channel: any Channel
    }

    private struct State {
        var limit: Int
        var open = 0
        var turn: UInt64 = 0
        var resting: [ObjectIdentifier: Resting] = [:]
    }

    private let state: LockedValue<State>

    /// - Parameter limit: The most open connections.
    init(limit: Int) { state = LockedValue(State(limit: limit)) }

    /// Lowers the most open connections.
    func lower(to limit: Int) { state.withLock { $0.limit = min($0.limit, max(1, limit)) } }

    /// Counts a connection, and makes room for the next one.
    ///
    /// - Returns: The number of connections that are asked to close.
    @discardableResult
    func opened() -> Int {
        let leaving = state.withLock { state -> [any Channel] in
            state.open += 1
            // Several are closed at once, so that not every new connection compares all of them.
            return state.open < state.limit ? [] : Self.take(max(1, state.limit / 100), from: &state)
        }
        for channel in leaving { channel.pipeline.fireUserInboundEventTriggered(GiveWay()) }
        return leaving.count
    }

    func closed(_ channel: any Channel) {
        state.withLock { state in
            state.open -= 1
            state.resting[ObjectIdentifier(channel)] = nil
        }
    }

    /// Adds a connection that has answered all of its requests.
    func rest(_ channel: any Channel, of address: String) {
        state.withLock { state in
            state.turn += 1
            state.resting[ObjectIdentifier(channel)] = Resting(address: address, turn: state.turn, channel: channel)
        }
    }

    /// The number of resting connections. A client can't tell: it has its answer before the connection rests.
    var restingCount: Int { state.withLock { $0.resting.count } }

    /// Removes a connection that is used again.
    func wake(_ channel: any Channel) { state.withLock { state in state.resting[ObjectIdentifier(channel)] = nil } }

    private static func take(_ count: Int, from state: inout State) -> [any Channel] {
        var byAddress: [String: [Resting]] = [:]
        for resting in state.resting.values { byAddress[resting.address, default: []].append(resting) }
        for address in byAddress.keys { byAddress[address]!.sort { $0.turn > $1.turn } }
        var leaving: [any Channel] = []
        while leaving.count < count {
            // Of addresses with equally many, the one whose connection has rested longest.
            let largest = byAddress.max { left, right in
                (left.value.count, right.value.last!.turn) < (right.value.count, left.value.last!.turn)
            }
            guard let largest, var rest = byAddress[largest.key], let last = rest.popLast() else { break }
            byAddress[largest.key] = rest.isEmpty ? nil : rest
            state.resting[ObjectIdentifier(last.channel)] = nil
            leaving.append(last.channel)
        }
        return leaving
    }
}

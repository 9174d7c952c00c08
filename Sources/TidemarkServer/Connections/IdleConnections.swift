import NIOCore
import TidemarkModel

/// The connections that rest between requests, so that they give way when others want to connect and there is room for no more.
///
/// When as many are open as may be, those that rest longest are closed, of the address that has most of them resting: a client that keeps
/// thousands keeps nobody out.
final class IdleConnections: Sendable {
    /// Asks a connection to close if it still rests.
    struct GiveWay: Sendable {}

    private struct Resting {
        let address: String
        /// Grows with each connection that begins to rest.
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

    /// - Parameter limit: Connections that may be open.
    init(limit: Int) { state = LockedValue(State(limit: limit)) }

    /// Sets the number of connections that may be open.
    func lower(to limit: Int) { state.withLock { $0.limit = min($0.limit, max(1, limit)) } }

    /// Counts a connection, and makes room for the next one.
    ///
    /// - Returns: How many are asked to close.
    @discardableResult
    func opened() -> Int {
        let leaving = state.withLock { state -> [any Channel] in
            state.open += 1
            // Some at once, so that not each connection that comes has all of them compared.
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

    /// A connection has answered all that it was asked.
    func rest(_ channel: any Channel, of address: String) {
        state.withLock { state in
            state.turn += 1
            state.resting[ObjectIdentifier(channel)] = Resting(address: address, turn: state.turn, channel: channel)
        }
    }

    /// How many connections rest. A client can't tell: it has its answer before the connection rests.
    var restingCount: Int { state.withLock { $0.resting.count } }

    /// A connection is used again.
    func wake(_ channel: any Channel) { state.withLock { state in state.resting[ObjectIdentifier(channel)] = nil } }

    private static func take(_ count: Int, from state: inout State) -> [any Channel] {
        var byAddress: [String: [Resting]] = [:]
        for resting in state.resting.values { byAddress[resting.address, default: []].append(resting) }
        for address in byAddress.keys { byAddress[address]!.sort { $0.turn > $1.turn } }
        var leaving: [any Channel] = []
        while leaving.count < count {
            // Of those that have as many, the one whose connection rests longest.
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

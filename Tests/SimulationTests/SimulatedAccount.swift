import TidemarkCloud
import TidemarkModel

/// Who is signed in on a device, and what the switches say; somebody changes it in the middle of anything.
final class SimulatedAccount: Sendable {
    private struct State {
        var account = 0
        var status = CloudAccount.Status.available
        var switches = AccountState(isSignedIn: true)
    }

    private let state = LockedValue(State())

    /// The number of the account whose cloud a process that begins gets.
    var number: Int {
        get { state.withLock(\.account) }
        set { state.withLock { $0.account = newValue } }
    }

    /// What the cloud says of it.
    var status: CloudAccount.Status {
        get { state.withLock(\.status) }
        set { state.withLock { $0.status = newValue } }
    }

    var switches: AccountState {
        get { state.withLock(\.switches) }
        set { state.withLock { $0.switches = newValue } }
    }

    /// - Throws: What a cloud answers to an account that it does not serve.
    func admit() throws(CloudError) {
        switch status {
        case .available: return
        case .temporarilyUnavailable:
            throw CloudError(.accountTemporarilyUnavailable, "simulated: not for the moment", retryAfter: .seconds(30))
        default: throw CloudError(.notAuthenticated, "simulated: no account is signed in")
        }
    }
}

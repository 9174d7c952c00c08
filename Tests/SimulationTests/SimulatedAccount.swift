import TidemarkCloud
import TidemarkModel

/// The account and the switches of a device. The simulation changes them at any moment.
final class SimulatedAccount: Sendable {
    private struct State {
        var account = 0
        var status = CloudAccount.Status.available
        var switches = AccountState(isSignedIn: true)
    }

    private let state = LockedValue(State())

    /// The number of the account whose cloud a new process gets.
    var number: Int {
        get { state.withLock(\.account) }
        set { state.withLock { $0.account = newValue } }
    }

    /// The status that the cloud reports.
    var status: CloudAccount.Status {
        get { state.withLock(\.status) }
        set { state.withLock { $0.status = newValue } }
    }

    var switches: AccountState {
        get { state.withLock(\.switches) }
        set { state.withLock { $0.switches = newValue } }
    }

    /// - Throws: The error with which a cloud refuses an account.
    func admit() throws(CloudError) {
        switch status {
        case .available: return
        case .temporarilyUnavailable:
            throw CloudError(.accountTemporarilyUnavailable, "simulated: not for the moment", retryAfter: .seconds(30))
        default: throw CloudError(.notAuthenticated, "simulated: no account is signed in")
        }
    }
}

/// The state that decides whether a container can be synchronised: whether an account is signed in, and the account's two
/// switches.
///
/// The switches work as on Apple's systems. While the app's switch is off, the app has no account. The drive's switch then only
/// decides which errors report this.
public struct AccountState: Hashable, Codable, Sendable {
    /// Whether an account is signed in on the device.
    public var isSignedIn: Bool
    /// The account's switch for all of its files.
    public var driveIsOn: Bool
    /// The switch for this app, or container.
    public var appIsOn: Bool

    /// Makes a state. Both switches are on by default.
    public init(isSignedIn: Bool, driveIsOn: Bool = true, appIsOn: Bool = true) {
        self.isSignedIn = isSignedIn
        self.driveIsOn = driveIsOn
        self.appIsOn = appIsOn
    }

    /// Whether the account can be used; as `CKAccountStatus`.
    public var isAvailable: Bool { isSignedIn && appIsOn }

    /// Whether the system has a token for the signed-in account. As `FileManager.ubiquityIdentityToken`, which is `nil` while the
    /// drive is off.
    public var hasIdentityToken: Bool { isSignedIn && driveIsOn && appIsOn }

    /// The failures of a setup in this state, in the order in which they are reported; empty if the setup succeeds.
    public var setupFailures: [ContainerEvent.Failure] {
        if isAvailable { return [] }
        guard isSignedIn else {
            return [.init(code: SyncErrorCode.noAccount, reason: "no account is signed in", cause: .signedOut)]
        }
        let noAccount = ContainerEvent.Failure(
            code: SyncErrorCode.noAccount, reason: "the account is switched off for this container", cause: .switchedOff)
        guard !driveIsOn else { return [noAccount] }
        return [
            .init(
                code: SyncErrorCode.accountSwitchedOff, reason: "the account is switched off, as a whole and for this container",
                cause: .switchedOff),
            noAccount,
        ]
    }
}

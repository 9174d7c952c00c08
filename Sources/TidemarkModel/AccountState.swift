/// What decides whether a container can be synchronised: the account of the device, and two switches of its owner's.
///
/// As on Apple's systems: with the app's switch off there is no account for it, and the drive's only says which error tells so.
public struct AccountState: Hashable, Codable, Sendable {
    /// Whether an account is signed in on the device.
    public var isSignedIn: Bool
    /// The account's switch for all of its files.
    public var driveIsOn: Bool
    /// The switch for this app, or container.
    public var appIsOn: Bool

    /// Makes a state; both switches are on where nothing else is said.
    public init(isSignedIn: Bool, driveIsOn: Bool = true, appIsOn: Bool = true) {
        self.isSignedIn = isSignedIn
        self.driveIsOn = driveIsOn
        self.appIsOn = appIsOn
    }

    /// Whether the account can be used; as `CKAccountStatus`.
    public var isAvailable: Bool { isSignedIn && appIsOn }

    /// Whether the system tells who is signed in; as `FileManager.ubiquityIdentityToken`, which is absent while the drive is off.
    public var hasIdentityToken: Bool { isSignedIn && driveIsOn && appIsOn }

    /// Why setting up fails, in the order in which it does; none when it succeeds.
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

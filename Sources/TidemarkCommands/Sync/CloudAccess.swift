public import ArgumentParser
import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkHTTP
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
public import TidemarkSync

extension SignInChoice: ExpressibleByArgument {}
extension SignOutChoice: ExpressibleByArgument {}

/// A merge policy by its name.
struct NamedPolicy: ExpressibleByArgument {
    let policy: MergePolicy

    init?(argument: String) {
        guard let policy = MergePolicy(name: argument) else { return nil }
        self.policy = policy
    }

    var defaultValueDescription: String { policy.name }

    static let allValueStrings = MergePolicy.named.map(\.name)
}

/// The cloud of a container's account.
struct CloudAccess {
    let directory: ContainerDirectory
    let settings: AccountSettings
    let databases: CloudDatabases
    /// Reads the present settings, which may have changed since ``settings``.
    private let reader: StoreReader

    /// - Parameters:
    ///   - opened: The cloud, if it is open already.
    ///   - silence: Seconds after which a connection on which nothing moves is given up; `nil` for the usual limits.
    /// - Throws: `ContainerEvent.Failure` when no cloud was ever named.
    init(_ directory: ContainerDirectory, _ opened: EmbeddedCloud? = nil, silence: Duration? = nil) async throws {
        let reader = try StoreReader(container: directory)
        let settings = try reader.accountSettings()
        guard let cloud = settings.cloud else {
            throw ContainerEvent.Failure(
                code: SyncErrorCode.noAccount,
                reason: "\(directory.url.path) has no account: sign in with 'tidemark account sign-in'")
        }
        self.directory = directory
        self.settings = settings
        self.reader = reader
        databases =
            if ServerAddress.isAddress(cloud) {
                try Self.served(cloud, directory, settings, silence).databases
            } else {
                try await Self.embedded(cloud, directory, settings, opened)
            }
    }

    private static func embedded(
        _ cloud: String, _ directory: ContainerDirectory, _ settings: AccountSettings, _ opened: EmbeddedCloud?
    ) async throws -> CloudDatabases {
        // If a drive is missing, no empty cloud must be made in its place.
        guard FileManager.default.fileExists(atPath: cloud) else {
            throw ContainerEvent.Failure(
                code: SyncErrorCode.noAccount,
                reason: "the cloud \(cloud) is not there; if it has moved, name its place with 'tidemark account sign-in --cloud'"
            )
        }
        try checkMayWrite(cloud)
        let embedded = try opened ?? EmbeddedCloud(at: URL(fileURLWithPath: cloud, isDirectory: true))
        var account: StoredAccount?
        if let email = settings.email { account = try await embedded.account(email) }
        return try embedded.databases(
            of: settings.cloudContainer, environment: directory.description.environment, account: account?.id)
    }

    /// A cloud behind HTTP, with the container's session.
    private static func served(
        _ cloud: String, _ directory: ContainerDirectory, _ settings: AccountSettings, _ silence: Duration?
    ) throws -> HTTPCloud {
        let served = try HTTPCloud(named: cloud, for: directory, settings, silence: silence)
        guard settings.email != nil else { return served }
        let remedy = signInAgain(directory, cloud, settings)
        let user: String?
        do throws(CloudError) {
            user = try served.userRecordName
        } catch {
            guard error.code == .notAuthenticated else { throw error }
            // The reason says already that a new sign-in is needed.
            throw ContainerEvent.Failure(code: SyncErrorCode.noAccount, reason: "\(error.reason) \(remedy)")
        }
        guard let user else {
            throw ContainerEvent.Failure(
                code: SyncErrorCode.noAccount,
                reason: "\(directory.url.path) has no session with \(cloud), as copies have none; sign in again \(remedy)")
        }
        // A sign-in that was killed midway leaves one account's session with another account's records.
        guard user == settings.userRecordName else {
            throw ContainerEvent.Failure(
                code: SyncErrorCode.noAccount,
                reason: "the session of \(directory.url.path) with \(cloud) is another account's; sign in again \(remedy)")
        }
        return served
    }

    /// The command that signs in again with a server.
    static func signInAgain(_ directory: ContainerDirectory, _ cloud: String, _ settings: AccountSettings) -> String {
        "with 'tidemark account sign-in \(directory.url.path) --server \(cloud) --email \(settings.email ?? "ADDRESS")'"
    }

    /// Adds the command that helps to a failure: for a session that has ended, or a certificate that is not trusted.
    func addingRemedy(_ failure: ContainerEvent.Failure) -> ContainerEvent.Failure {
        guard let cloud = settings.cloud, ServerAddress.isAddress(cloud) else { return failure }
        let command = Self.signInAgain(directory, cloud, settings)
        let reason: String
        switch failure.remedy {
        case .signIn: reason = "\(failure.reason) \(command)"
        case .trustAuthority: reason = "\(failure.reason) \(command) and --ca FILE"
        case .checkAddress, nil: return failure
        }
        return ContainerEvent.Failure(
            code: failure.code, reason: reason, isPassing: failure.isPassing, retryAfter: failure.retryAfter)
    }

    func addingRemedy(_ report: SyncReport) -> SyncReport {
        var report = report
        if let failure = report.failure { report.failure = addingRemedy(failure) }
        return report
    }

    /// - Throws: `ContainerEvent.Failure` when no account is signed in, or the account is switched off.
    func demandAccount() throws {
        if let failure = settings.state.setupFailures.first { throw failure }
    }

    /// Checks that a cloud's directory may be written to. A device that only fetches writes to it, too.
    static func checkMayWrite(_ cloud: String) throws {
        for path in [cloud, cloud + "/accounts.sqlite"] where access(path, W_OK) != 0 && errno != ENOENT {
            let (number, reason) = (errno, String(cString: strerror(errno)))
            let remedy = number == EROFS ? "have its file system mounted for writing" : "have its owner let you write to it"
            throw ending(
                "the cloud \(cloud) can't be written to (\(path): \(reason)); \(remedy)",
                number == EROFS ? .ioError : .noPermission)
        }
    }

    /// - Parameters:
    ///   - policy: The merge policy; `nil` for the account's.
    ///   - assets: The contents that are fetched along with their records.
    ///   - assetLimit: The most bytes of contents that stay here; `nil` for no limit.
    func configuration(
        policy: MergePolicy? = nil, assets: AssetDownloads = .all, assetLimit: Int64? = nil
    ) -> SyncConfiguration {
        var configuration = SyncConfiguration()
        (configuration.assets, configuration.assetLimit) = (assets, assetLimit)
        let chosen = policy ?? settings.mergePolicy.flatMap { MergePolicy(name: $0) } ?? .mergeByPropertyObjectTrump
        configuration.mergePolicy = { _ in chosen }
        let (reader, opened) = (reader, settings)
        // A synchronisation stops when the account is switched off or changed while it runs. It also stops if the settings can't
        // be read, because the records may be another account's by then.
        configuration.accountState = {
            guard let now = try? reader.accountSettings(), now.email == opened.email, now.cloud == opened.cloud,
                now.cloudContainer == opened.cloudContainer, now.userRecordName == opened.userRecordName
            else { return AccountState(isSignedIn: false) }
            return now.state
        }
        if let choice = settings.signIn.flatMap(SignInChoice.init(rawValue:)) { configuration.signIn = choice }
        return configuration
    }

    /// Makes the object that synchronises both stores.
    func sync(
        policy: MergePolicy? = nil, assets: AssetDownloads = .all, assetLimit: Int64? = nil
    ) throws -> ContainerSync {
        try ContainerSync(
            container: directory, databases: databases,
            configuration: configuration(policy: policy, assets: assets, assetLimit: assetLimit))
    }
}

extension HTTPCloud {
    /// The cloud that a container's settings name.
    ///
    /// - Parameters:
    ///   - session: The storage of the session; by default in the container.
    ///   - silence: The time after which a silent connection is given up; `nil` for the usual limits.
    convenience init(
        named cloud: String, for directory: ContainerDirectory, _ settings: AccountSettings, session: (any SessionStore)? = nil,
        silence: Duration? = nil
    ) throws(CloudError) {
        var timeouts = HTTPTimeouts()
        if let silence { timeouts.limitSilence(to: silence) }
        var trustRoots = TrustRoots.system
        if let pem = settings.authority { trustRoots = try TrustRoots(pem: pem) }
        self.init(
            // The sign-in has allowed an unencrypted connection already.
            try ServerAddress(cloud, allowsInsecure: true), container: settings.cloudContainer,
            environment: directory.description.environment, session: session ?? SessionFile(at: directory.session),
            trustRoots: trustRoots, timeouts: timeouts)
    }
}

extension ContainerEvent.Failure {
    /// The tool's exit code. A failure that may pass by itself is temporary, whatever its kind.
    var exitStatus: ExitStatus {
        if isPassing { return .temporaryFailure }
        return switch code {
        case SyncErrorCode.anotherSyncer: .temporaryFailure
        case SyncErrorCode.noAccount, SyncErrorCode.accountSwitchedOff, SyncErrorCode.notInitialized: .unavailable
        default: .temporaryFailure
        }
    }
}

extension CloudError {
    /// The tool's exit code.
    var exitStatus: ExitStatus {
        switch code {
        case .invalidArguments, .limitExceeded: .usage
        case .unknownItem, .zoneNotFound: .noInput
        case .alreadyShared: .cannotCreate
        case .notAuthenticated, .secondFactorRequired, .permissionFailure: .noPermission
        case .internalError: .ioError
        default: .temporaryFailure
        }
    }
}

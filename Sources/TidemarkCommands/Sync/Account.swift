import ArgumentParser
import Foundation
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkHTTP
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

struct Account: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows and changes the account that a container is synchronised with.",
        discussion: """
            Examples:
              tidemark account sign-in MyJournal.tidemark --cloud ~/cloud \\
                  --email anna@example.org --create
              tidemark account status MyJournal.tidemark
              tidemark account set MyJournal.tidemark --app off
              tidemark account sign-out MyJournal.tidemark
            """,
        subcommands: [AccountStatus.self, AccountSignIn.self, AccountSignOut.self, AccountSet.self])
}

/// On or off.
enum Switch: String, ExpressibleByArgument, CaseIterable { case on, off }

struct AccountStatus: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Shows the account that is signed in, and whether the container can be synchronised.",
        discussion: """
            Exit code 69: the container can't be synchronised. Exit code 75: the cause is temporary, for instance a server that does not \
            reply.

            'session' names the session of this device with a server by its first characters, as the account's page and the console do. \
            --json has the whole identifier, as 'tidemark admin session list' has.

            Examples:
              tidemark account status MyJournal.tidemark
              tidemark account status MyJournal.tidemark --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Flag(help: "Prints one JSON object.")
    var json = false

    private struct Report: Encodable {
        let status: String
        var cloud, cloudContainer, email, userRecordName, mergePolicy: String?
        /// The identifier of the session with a server.
        var session: String?
        let isSignedIn, driveIsOn, appIsOn, hasIdentityToken, canSynchronize: Bool
        var failures: [Failure] = []
        var quota, used: Int64?

        struct Failure: Encodable { let code: Int, reason: String }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let (report, obstacle) = try await look(directory)
            if json {
                try Output.json(report)
            } else {
                try Output.line("account:  \(report.email ?? "no account is signed in")")
                if let cloud = report.cloud { try Output.line("cloud:    \(cloud), container \(report.cloudContainer ?? "")") }
                if let session = report.session { try Output.line("session:  \(session.prefix(4)), as the server lists it") }
                try Output.line("identity: \(report.hasIdentityToken ? "present" : "absent")")
                try Output.line("switches: drive \(report.driveIsOn ? "on" : "off"), app \(report.appIsOn ? "on" : "off")")
                try Output.line("status:   \(report.status)")
                if let used = report.used {
                    let left = report.quota.map { "of \(Wording.bytes(Int($0)))" } ?? "no limit"
                    try Output.line("storage:  \(Wording.bytes(Int(used))) used, \(left)")
                }
                for failure in report.failures { try Output.line("no sync:  \(failure.code): \(failure.reason)") }
            }
            if let obstacle { throw ExitCode(obstacle.rawValue) }
        }
    }

    /// Asks the cloud for the account. An error of a server is a result; an error of a cloud in a directory is thrown.
    private func found(with access: CloudAccess) async throws -> Result<CloudAccount, CloudError> {
        do throws(CloudError) {
            return .success(try await access.databases.private.account())
        } catch {
            guard let cloud = access.settings.cloud, ServerAddress.isAddress(cloud) else { throw error }
            return .failure(error)
        }
    }

    /// The identifier of the container's session with a server; `nil` if its cloud is no server, nobody is signed in, or the
    /// session can't be read.
    private func session(of directory: ContainerDirectory, _ settings: AccountSettings) -> String? {
        guard settings.email != nil, let cloud = settings.cloud, ServerAddress.isAddress(cloud) else { return nil }
        return try? HTTPCloud(named: cloud, for: directory, settings).sessionIdentifier
    }

    /// - Returns: The report, and the exit code if the container can't be synchronised.
    private func look(_ directory: ContainerDirectory) async throws -> (Report, ExitStatus?) {
        let settings = try StoreReader(container: directory).accountSettings()
        var (status, failures) = (CloudAccount.Status.noAccount, settings.state.setupFailures)
        var account: CloudAccount?
        if failures.isEmpty {
            do {
                let access = try await CloudAccess(directory)
                switch try await found(with: access) {
                case .success(let found):
                    (account, status) = (found, found.status)
                    if found.status != .available {
                        let isPassing = found.status == .temporarilyUnavailable || found.status == .couldNotDetermine
                        failures = [
                            .init(code: SyncErrorCode.noAccount, reason: "\(found.status.rawValue)", isPassing: isPassing)
                        ]
                    }
                case .failure(let error):
                    status = error.code == .notAuthenticated ? .noAccount : .couldNotDetermine
                    failures = [access.addingRemedy(ContainerEvent.Failure(error, code: SyncErrorCode.noAccount))]
                }
            } catch let failure as ContainerEvent.Failure {
                failures = [failure]
            }
        }
        let report = Report(
            status: status.rawValue, cloud: settings.cloud, cloudContainer: settings.cloud == nil ? nil : settings.cloudContainer,
            email: settings.email, userRecordName: account?.userRecordName, mergePolicy: settings.mergePolicy,
            session: session(of: directory, settings), isSignedIn: settings.email != nil, driveIsOn: settings.driveIsOn,
            appIsOn: settings.appIsOn,
            // An account that the cloud does not know has no identity token, whatever the switches say.
            hasIdentityToken: settings.state.hasIdentityToken && status != .noAccount, canSynchronize: failures.isEmpty,
            failures: failures.map { .init(code: $0.code, reason: $0.reason) },
            // The greatest number stands for no limit.
            quota: account?.quota.flatMap { $0 == .max ? nil : $0 }, used: account?.used)
        return (report, failures.first?.exitStatus)
    }
}

struct AccountSet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Changes an account's switches and merge policy.",
        discussion: """
            If the app's switch is off, nothing is synchronised; the drive's switch selects the error code. Saves wait, and are exported \
            when the switch is on again.

            Examples:
              tidemark account set MyJournal.tidemark --app off
              tidemark account set MyJournal.tidemark --merge-policy latestEdit
              tidemark account set MyJournal.tidemark --discoverable on
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "The account's switch for all its files: on or off.")
    var drive: Switch?

    @Option(help: "The app's switch for this container: on or off.")
    var app: Switch?

    @Option(
        help: ArgumentHelp(
            "How conflicts with the cloud are resolved: \(NamedPolicy.allValueStrings.joined(separator: ", ")).",
            valueName: "policy"))
    var mergePolicy: NamedPolicy?

    @Option(help: "Whether others can find you by your address or phone number, to share with you: on or off; at first off.")
    var discoverable: Switch?

    @OptionGroup var outcome: Outcome

    func validate() throws {
        guard drive != nil || app != nil || mergePolicy != nil || discoverable != nil else {
            throw ValidationError("say what to change: --drive, --app, --merge-policy or --discoverable")
        }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try containerToWrite(container)
            if let discoverable {
                let access = try await CloudAccess(directory)
                try access.demandAccount()
                try await access.databases.private.setDiscoverable(discoverable == .on)
            }
            if drive != nil || app != nil || mergePolicy != nil { try await changeSettings(of: directory) }
            // For people, 'account status' shows the session.
            try outcome.tell(
                "account set",
                [
                    "drive": drive?.rawValue, "app": app?.rawValue, "mergePolicy": mergePolicy?.policy.name,
                    "discoverable": discoverable.map { $0 == .on },
                ])
        }
    }

    private func changeSettings(of directory: ContainerDirectory) async throws {
        let store = try RecordStore(container: directory, notifier: StoreChangeNotifier(container: directory, role: .tool))
        let (drive, app, policy) = (drive, app, mergePolicy?.policy.name)
        try await store.updateAccountSettings { settings in
            if let drive { settings.driveIsOn = drive == .on }
            if let app { settings.appIsOn = app == .on }
            if let policy { settings.mergePolicy = policy }
        }
    }
}

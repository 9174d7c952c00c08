import ArgumentParser
import Foundation
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkStore
import TidemarkSync

struct Account: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows and changes the account that a container is synchronised with.",
        discussion: """
            Examples:
              tidemark account sign-in MyJournal.tidemark --cloud ~/cloud \\
                  --email anna@example.org
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
        commandName: "status", abstract: "Shows who is signed in, and whether the container can be synchronised.",
        discussion: """
            Exit code 69 when it can't.

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
        let isSignedIn, driveIsOn, appIsOn, hasIdentityToken, canSynchronize: Bool
        var failures: [Failure] = []
        var quota, used: Int64?

        struct Failure: Encodable { let code: Int, reason: String }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let report = try await look(directory)
            if json {
                try Output.json(report)
            } else {
                try Output.line("account:  \(report.email ?? "nobody is signed in")")
                if let cloud = report.cloud { try Output.line("cloud:    \(cloud), container \(report.cloudContainer ?? "")") }
                try Output.line("identity: \(report.hasIdentityToken ? "present" : "absent")")
                try Output.line("switches: drive \(report.driveIsOn ? "on" : "off"), app \(report.appIsOn ? "on" : "off")")
                try Output.line("status:   \(report.status)")
                if let quota = report.quota, let used = report.used {
                    let left = quota == .max ? "no limit" : "of \(Wording.bytes(Int(quota)))"
                    try Output.line("storage:  \(Wording.bytes(Int(used))) used, \(left)")
                }
                for failure in report.failures { try Output.line("no sync:  \(failure.code): \(failure.reason)") }
            }
            if !report.canSynchronize { throw ExitCode(ExitStatus.unavailable.rawValue) }
        }
    }

    private func look(_ directory: ContainerDirectory) async throws -> Report {
        let settings = try StoreReader(container: directory).accountSettings()
        var (status, failures) = (CloudAccount.Status.noAccount, settings.state.setupFailures)
        var account: CloudAccount?
        if failures.isEmpty {
            do {
                let found = try await CloudAccess(directory).database.account()
                (account, status) = (found, found.status)
                if found.status != .available {
                    failures = [.init(code: SyncErrorCode.noAccount, reason: "\(found.status.rawValue)")]
                }
            } catch let failure as ContainerEvent.Failure {
                failures = [failure]
            }
        }
        return Report(
            status: status.rawValue, cloud: settings.cloud, cloudContainer: settings.cloud == nil ? nil : settings.cloudContainer,
            email: settings.email, userRecordName: account?.userRecordName, mergePolicy: settings.mergePolicy,
            isSignedIn: settings.email != nil, driveIsOn: settings.driveIsOn, appIsOn: settings.appIsOn,
            hasIdentityToken: settings.state.hasIdentityToken, canSynchronize: failures.isEmpty,
            failures: failures.map { .init(code: $0.code, reason: $0.reason) },
            quota: account?.quota, used: account?.used)
    }
}

struct AccountSignIn: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-in", abstract: "Has a container be synchronised with an account's cloud.",
        discussion: """
            The cloud is a directory; it is made if it is not there, and so is the account in it. All devices of a person name the same \
            directory, address and container.

            Examples:
              tidemark account sign-in MyJournal.tidemark --cloud ~/cloud \\
                  --email anna@example.org
              tidemark account sign-in MyJournal.tidemark --cloud ~/cloud \\
                  --email anna@example.org --records apart
            """)

    @Argument(help: "The container; made if it is not there.")
    var container: String

    @Option(help: ArgumentHelp("The directory of the cloud. (default: the one of the last time)", valueName: "dir"))
    var cloud: String?

    @Option(help: ArgumentHelp("The account's address.", valueName: "address"))
    var email: String

    @Option(
        name: .customLong("container"),
        help: ArgumentHelp("The container in the cloud. (default: that of the last time, or 'default')", valueName: "name"))
    var cloudContainer: String?

    @Option(help: "What becomes of records that are here already: merge, apart, delete or ask.")
    var records: SignInChoice = .merge

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingOrCreatingAt: fileURL(container, "the container"))
            let store = try RecordStore(container: directory)
            let known = try StoreReader(store).accountSettings()
            guard let place = try cloud.map({ try fileURL($0, "the cloud").path }) ?? known.cloud else {
                throw ending("name the directory of the cloud: --cloud DIR", .usage)
            }
            let embedded = try EmbeddedCloud(at: URL(fileURLWithPath: place, isDirectory: true))
            let name = cloudContainer ?? known.cloudContainer
            let account = try await embedded.addAccount(email)
            // So that a name that can't be is told now.
            _ = try embedded.database(.private, of: name, environment: directory.description.environment, account: account.id)
            let choice = records
            let lock = try SyncLock(directory)
            try await store.updateAccountSettings { settings in
                settings.cloud = place
                settings.cloudContainer = name
                settings.email = account.email
                settings.signIn = choice.rawValue
            }
            try await store.updateSyncState { $0.isPurged = false }
            lock.release()
            let before = Set(try directory.quarantines())
            do {
                try await CloudAccess(directory).engine().adoptAccount()
            } catch let failure as ContainerEvent.Failure where failure.code == SyncErrorCode.notInitialized {
                Output.error("note: \(failure.reason)")
            }
            try Output.line("signed in as \(account.email); synchronise with 'tidemark sync \(container)'")
            for it in try directory.quarantines() where !before.contains(it) {
                try Output.line(
                    "\(Wording.count(it.records, "record")) set aside, with \(Wording.count(it.pending, "change")) that no cloud has: \(it.reason)"
                )
            }
        }
    }
}

struct AccountSignOut: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-out", abstract: "Ends the synchronisation with an account's cloud.",
        discussion: """
            By default the account's records are set aside whole, edits that the cloud does not have among them; 'tidemark quarantine' \
            shows and restores them.

            Examples:
              tidemark account sign-out MyJournal.tidemark
              tidemark account sign-out MyJournal.tidemark --records keep
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "What becomes of the account's records here: quarantine, keep or delete.")
    var records: SignOutChoice = .quarantine

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let store = try RecordStore(
                container: directory, doorbell: Doorbell(container: directory, role: .tool))
            let settings = try StoreReader(store).accountSettings()
            guard let email = settings.email else { return try Output.line("nobody is signed in") }
            // A synchronisation that is under way is not to go on with what is set aside.
            let lock = try SyncLock(directory)
            defer { lock.release() }
            switch records {
            case .quarantine:
                let quarantine = try await store.setAside(reason: "\(email) has signed out")
                try await store.updateAccountSettings { $0.email = nil }
                let text = quarantine.map {
                    "; \(Wording.count($0.records, "record")) set aside, with \(Wording.count($0.pending, "change")) that the cloud does not have: \($0.id.uuidString.lowercased())"
                }
                try Output.line("signed out\(text ?? "")")
            case .keep:
                // What the cloud has of them stays known: the same account goes on where it was, another one gets none of them.
                try await store.updateAccountSettings { $0.email = nil }
                try Output.line("signed out; the records stay")
            case .delete:
                try await store.wipe()
                try await store.updateAccountSettings { $0.email = nil }
                try Output.line("signed out; the records are deleted here")
            }
        }
    }
}

struct AccountSet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Changes the switches of an account, and how conflicts are settled.",
        discussion: """
            With the app's switch off nothing is synchronised, and the drive's decides which error says so; what is saved waits, and goes out when it is on again.

            Examples:
              tidemark account set MyJournal.tidemark --app off
              tidemark account set MyJournal.tidemark --merge-policy latestEdit
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "The account's switch for all its files: on or off.")
    var drive: Switch?

    @Option(help: "Its switch for this container: on or off.")
    var app: Switch?

    @Option(
        help: ArgumentHelp(
            "How conflicts with the cloud are settled: \(NamedPolicy.allValueStrings.joined(separator: ", ")).",
            valueName: "policy"))
    var mergePolicy: NamedPolicy?

    func validate() throws {
        guard drive != nil || app != nil || mergePolicy != nil else {
            throw ValidationError("say what to change: --drive, --app or --merge-policy")
        }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let store = try RecordStore(container: directory, doorbell: Doorbell(container: directory, role: .tool))
            let (drive, app, policy) = (drive, app, mergePolicy?.policy.name)
            try await store.updateAccountSettings { settings in
                if let drive { settings.driveIsOn = drive == .on }
                if let app { settings.appIsOn = app == .on }
                if let policy { settings.mergePolicy = policy }
            }
        }
    }
}

import ArgumentParser
import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkContainers
import TidemarkEmbeddedCloud
import TidemarkHTTP
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

struct AccountSignIn: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-in", abstract: "Signs a container in to an account's cloud, for 'tidemark sync'.",
        discussion: """
            The cloud is a directory or a server, and all devices of a person name the same cloud, address and container. --create \
            creates the directory and its account if they do not exist; without it both have to exist. A server's administrator creates \
            its accounts ('tidemark admin'). The command asks for the password, or reads it from the first line of standard input. If \
            the account has a second factor, it asks for its code, unless the password comes from standard input; then the code comes \
            from --code-stdin, --code-file or TIDEMARK_CODE. It stores only a session, in the container, readable by its owner, which \
            needs no code. A failed sign-in leaves nothing behind.

            Examples:
              tidemark account sign-in MyJournal.tidemark --cloud ~/cloud \\
                  --email anna@example.org --name "Anna Berg" --create
              tidemark account sign-in MyPhone.tidemark --cloud ~/cloud \\
                  --email anna@example.org --records apart
              tidemark account sign-in MyJournal.tidemark \\
                  --server https://sync.example.org --email anna@example.org
              tidemark account sign-in MyJournal.tidemark --device-name "Anna's laptop" \\
                  --server https://sync.example.org --email anna@example.org
              tidemark account sign-in MyJournal.tidemark --ca authority.pem \\
                  --server https://sync.example.org --email anna@example.org
            """)

    @Argument(help: "The container; created if it does not exist.")
    var container: String

    @Option(help: ArgumentHelp("The directory of the cloud. (default: the last one used)", valueName: "dir"))
    var cloud: String?

    @Option(help: ArgumentHelp("The server of the cloud, instead of a directory.", valueName: "url"))
    var server: String?

    @Option(help: ArgumentHelp("The account's address.", valueName: "address"))
    var email: String

    @Flag(help: "Reads the password of a server's account from the first line of standard input.")
    var passwordStdin = false

    @OptionGroup var codeEntry: CodeEntry

    @Flag(
        name: .customLong("insecure-http"), help: "Allows http:// to other machines, without encryption.")
    var insecureHTTP = false

    @Option(
        name: .customLong("ca"),
        help: ArgumentHelp(
            "The authority that the server's certificate is from, in PEM, and no other; 'system': those that this machine trusts. (default: as the last time)",
            valueName: "file"))
    var authority: String?

    @OptionGroup var device: DeviceName

    @Option(help: ArgumentHelp("The person's name, as participants of their shares see it.", valueName: "name"))
    var name: String?

    @Option(help: ArgumentHelp("The person's phone number, for invitations, with + and the country code."))
    var phone: String?

    @Option(
        name: .customLong("container"),
        help: ArgumentHelp("The container in the cloud. (default: the last one used, or 'default')", valueName: "name"))
    var cloudContainer: String?

    @Option(help: "How to treat records that are in the container already: merge, apart, delete or ask.")
    var records: SignInChoice = .merge

    @Flag(help: "Creates the cloud and the account if they do not exist.")
    var create = false

    @OptionGroup var outcome: Outcome

    /// Whether another command goes on after the sign-in, and prints its own output.
    @Flag(help: .hidden)
    var beforeLink = false

    func validate() throws {
        if cloud != nil, server != nil { throw ValidationError("name one cloud: --cloud or --server") }
        if let cloud, ServerAddress.isAddress(cloud) { throw ValidationError("a server is named with --server") }
        if cloud != nil, device.isNamed { throw ValidationError("--device-name is for a server; name it with --server") }
        if cloud != nil, authority != nil { throw ValidationError("--ca is for a server; name it with --server") }
    }

    func run() async throws {
        try await reportingErrors {
            var made = SignInRollback()
            do {
                try await signIn(&made)
            } catch {
                await made.remove()
                throw error
            }
        }
    }

    /// The objects that a sign-in has made, which are removed when it fails.
    private struct SignInRollback {
        var container: (url: URL, store: RecordStore)?
        var cloud: (url: URL, cloud: EmbeddedCloud?)?
        var account: (cloud: EmbeddedCloud, account: StoredAccount)?
        var settings: (store: RecordStore, before: AccountSettings)?
        /// The account before its change.
        var changed: (cloud: EmbeddedCloud, before: StoredAccount)?
        /// A session with a server; and its file, with the session that was there before and the one that is there now.
        var session: HTTPCloud?
        var kept: (file: SessionFile, before: CloudSession?, now: CloudSession)?

        /// Removes the objects. An object stays if it can't be removed, because only the first error is reported; or if others
        /// have used it since.
        func remove() async {
            if let kept {
                // A session that somebody else has put there since stays.
                if let before = kept.before {
                    try? kept.file.replace(kept.now, by: before)
                } else {
                    try? kept.file.remove(kept.now)
                }
            }
            try? await session?.signOut()
            if let settings {
                _ = try? await settings.store.updateAccountSettings { [before = settings.before] in $0 = before }
            }
            if let container, (try? await container.store.isUnused()) == true {
                try? FileManager.default.removeItem(at: container.url)
            }
            if let changed { try? await changed.cloud.update(changed.before) }
            if let account { try? await account.cloud.removeIfUnused(account.account) }
            if let (url, cloud) = cloud, await isUnused(cloud) { try? FileManager.default.removeItem(at: url) }
        }

        private func isUnused(_ cloud: EmbeddedCloud?) async -> Bool {
            guard let cloud else { return true }
            // A cloud that can't be read stays.
            return (try? await cloud.isUnused()) == true
        }
    }

    private func signIn(_ made: inout SignInRollback) async throws {
        let url = try fileURL(container, "the container")
        let isNew = !FileManager.default.fileExists(atPath: url.appendingPathComponent("container.json").path)
        let known = isNew ? AccountSettings() : try StoreReader(container: containerToWrite(container)).accountSettings()
        let directoryPlace = try cloud.map { try fileURL($0, "the cloud").path }
        let named = try server.map { try ServerAddress($0, allowsInsecure: insecureHTTP).description }
        guard let place = named ?? directoryPlace ?? known.cloud else {
            throw ending("name the cloud: --cloud DIR, or --server URL", .usage)
        }
        let name = cloudContainer ?? known.cloudContainer
        try EmbeddedCloud.check(email: email, container: name)
        if let before = known.cloud, before != place, cloudContainer == nil {
            Output.error("note: the container in \(place) is '\(name)', as it was in \(before); --container names another")
        }
        if ServerAddress.isAddress(place) { return try await signIn(to: place, name, url, isNew: isNew, known, &made) }
        guard !passwordStdin, !codeEntry.isNamed, !insecureHTTP, authority == nil, !device.isNamed else {
            throw ending(
                """
                --password-stdin, --code-stdin, --code-file, --insecure-http, --ca and --device-name are for a server; name it with \
                --server
                """,
                .usage)
        }
        let cloudURL = URL(fileURLWithPath: place, isDirectory: true)
        try checkCloud(cloudURL)

        // The cloud and the account are looked up before anything is made here.
        let (embedded, account) = try await open(cloudURL, &made)
        try await connect(place, name, account.email, url, isNew: isNew, &made) { try await CloudAccess($0, embedded) }
    }

    /// Signs in with a server.
    private func signIn(
        to place: String, _ name: String, _ url: URL, isNew: Bool, _ known: AccountSettings, _ made: inout SignInRollback
    ) async throws {
        guard !create, self.name == nil, phone == nil else {
            throw ending(
                "--create, --name and --phone are for a cloud in a directory; a server's administrator creates its accounts, with 'tidemark admin'",
                .usage)
        }
        let environment = isNew ? StoreEnvironment.development : try ContainerDirectory(openingAt: url).description.environment
        let memory = SessionMemory()
        let file = SessionFile(at: url.appendingPathComponent(ContainerContents.session))
        // `--insecure-http` is needed for a known server, too: a password goes over an unencrypted connection only with that
        // option.
        let address = try ServerAddress(place, allowsInsecure: insecureHTTP)
        let trustRoots = try self.trustRoots(of: address, known)
        let served = HTTPCloud(
            address, container: name, environment: environment, session: memory, trustRoots: trustRoots)
        if let device = file.device(for: served.name, email: email) { memory.keep(device) }
        let password = try Password.read(isOnStandardInput: passwordStdin, for: "\(email) at \(place)")
        try await codeEntry.signIn(mayAsk: !passwordStdin, for: "\(email) at \(place)") { code in
            do throws(CloudError) {
                try await served.signIn(email: email, password: password, code: code, device: device.deviceName)
            } catch {
                if error.remedy == .trustAuthority { throw ending("\(error) (--ca FILE)", error.exitStatus) }
                guard error.code == .notAuthenticated else { throw error }
                guard error.containerIsServed else { throw ending("\(error); --container names another", error.exitStatus) }
                throw ending(
                    "\(error); check the address and the password, whether the account was deleted, and whether the server has the container "
                        + "\(name) (--container)",
                    error.exitStatus)
            }
        }
        made.session = served
        guard let session = memory.session() else { return }
        let before = try await connect(
            place, name, email, url, isNew: isNew, &made, keeping: (file, session, memory.device(for: served.name, email: email)),
            authority: trustRoots.pem
        ) {
            try await CloudAccess($0)
        }
        // The earlier session is of no more use.
        guard let old = before.session, old != session, let cloud = before.settings.cloud, ServerAddress.isAddress(cloud) else {
            return
        }
        // If the server can't be reached, the session expires there.
        try? await HTTPCloud(
            named: cloud, for: ContainerDirectory(openingAt: url), before.settings, session: SessionMemory(old)
        ).signOut()
    }

    /// The authorities from which the server's certificate may be: the named ones, or else those of the last sign-in with this
    /// server.
    private func trustRoots(of server: ServerAddress, _ known: AccountSettings) throws -> TrustRoots {
        guard let authority else {
            guard known.cloud == server.description, let pem = known.authority else { return .system }
            return try TrustRoots(pem: pem)
        }
        guard server.isSecure else {
            throw ending("--ca is for a server that speaks https, and \(server) has no certificate", .usage)
        }
        return authority == "system" ? .system : try TrustRoots(contentsOf: fileURL(authority, "the authority's certificate"))
    }

    /// Connects the container with the cloud to which the sign-in has succeeded.
    ///
    /// - Parameters:
    ///   - session: The session file of the container, the new session for it, and the device: a later sign-in shows it to the
    ///     server.
    ///   - authority: The authorities from which the server's certificate may be.
    /// - Returns: The settings and the session before. Somebody else may have signed in while the password was typed.
    @discardableResult
    private func connect(
        _ place: String, _ name: String, _ email: String, _ url: URL, isNew: Bool, _ made: inout SignInRollback,
        keeping session: (file: SessionFile, now: CloudSession, device: CloudDevice?)? = nil, authority: String? = nil,
        access: (ContainerDirectory) async throws -> CloudAccess
    ) async throws -> (settings: AccountSettings, session: CloudSession?) {
        let isThere = FileManager.default.fileExists(atPath: url.path)
        let directory = try ContainerDirectory(openingOrCreatingAt: url)
        let store = try RecordStore(container: directory)
        if isNew, !isThere { made.container = (url, store) }
        let lock: SyncLock
        do {
            lock = try SyncLock(directory)
        } catch let failure as ContainerEvent.Failure where failure.code == SyncErrorCode.anotherSyncer {
            let known = try StoreReader(container: directory).accountSettings()
            // A running synchronisation goes on with a new session of the same account. For any other change it has to end.
            guard let session, known.cloud == place, known.cloudContainer == name, known.authority == authority,
                known.userRecordName == session.now.userRecordName, known.email?.lowercased() == email.lowercased()
            else {
                throw ContainerEvent.Failure(
                    code: failure.code,
                    reason: "\(failure.reason); end that before another account, another cloud or another authority comes")
            }
            // A session that can't be read can't be restored.
            let before = try? session.file.session()
            made.kept = (session.file, before, session.now)
            try session.file.keep(session.now)
            // A new sign-in begins with the records that are here, as below. The running synchronisation reads this each time.
            try await store.updateSyncState { $0.isPurged = false }
            made = SignInRollback()
            // If the device can't be stored, the next sign-in may only have to wait longer.
            if let device = session.device { try? session.file.keep(device) }
            try outcome.tell(
                "account sign-in", ["email": email, "cloud": place, "container": name, "setAside": [SetAside]()],
                text:
                    "signed in again as \(email); the process that synchronises \(container) goes on by itself within half a minute"
            )
            return (known, before)
        }
        let known = try StoreReader(container: directory).accountSettings()
        // A session that can't be read can't be restored.
        let earlier = session.flatMap { try? $0.file.session() }
        made.settings = (store, known)
        if let session {
            made.kept = (session.file, earlier, session.now)
            try session.file.keep(session.now)
        }
        let (choice, user) = (records, session?.now.userRecordName)
        try await store.updateAccountSettings { settings in
            settings.cloud = place
            settings.cloudContainer = name
            settings.email = email
            settings.userRecordName = user
            settings.authority = authority
            settings.signIn = choice.rawValue
        }
        lock.release()
        let before = Set(try directory.quarantines())
        do {
            let sync = try await access(directory).sync()
            try await sync.privateEngine.adoptAccount()
            try await sync.sharedEngine.adoptAccount()
        } catch let failure as ContainerEvent.Failure where isNoObstacle(failure, known) {
            Output.error("note: \(failure.code): \(failure.reason)")
        }
        // From here on the account is signed in, and stays so whatever else fails.
        made = SignInRollback()
        // If the device can't be stored, the next sign-in may only have to wait longer.
        if let session, let device = session.device { try? session.file.keep(device) }
        // A new sign-in begins with the records that are here, even if the cloud's copy was deleted for good.
        try await store.updateSyncState { $0.isPurged = false }
        let setAside = try directory.quarantines().filter { !before.contains($0) && !$0.isEmpty }
        if outcome.json {
            try outcome.tell(
                "account sign-in",
                ["email": email, "cloud": place, "container": name, "setAside": setAside.map(SetAside.init)])
        } else {
            if beforeLink {
                Output.error("signed in as \(email)")
            } else {
                try Output.line("signed in as \(email); synchronise with 'tidemark sync \(container)'")
            }
            for it in setAside { try Output.line("\(it.counts("the cloud")): \(it.reason)") }
        }
        return (known, earlier)
    }

    /// Whether the sign-in has succeeded despite a failure, and only the synchronisation has to wait: for an answer, or for a
    /// switch.
    private func isNoObstacle(_ failure: ContainerEvent.Failure, _ settings: AccountSettings) -> Bool {
        var settings = settings
        settings.email = email
        return failure.code == SyncErrorCode.notInitialized || !settings.state.setupFailures.isEmpty
    }

    /// Checks that there is a cloud, or that one may be made.
    private func checkCloud(_ url: URL) throws {
        guard !EmbeddedCloud.exists(at: url) else { return try CloudAccess.checkMayWrite(url.path) }
        guard create else {
            throw ending(
                "there is no cloud at \(url.path); name the directory of the one that you mean, or make one there with --create",
                .noInput)
        }
        // If the folder is missing or can't be read, making the cloud there reports it.
        let entries = try? FileManager.default.contentsOfDirectory(atPath: url.path)
        guard entries?.isEmpty ?? true else {
            throw ending(
                "cannot make a cloud in \(url.path): it holds other files. Name an empty or a new directory", .cannotCreate)
        }
    }

    /// Opens the cloud and the account in it. Makes them if the options ask for that.
    private func open(_ url: URL, _ made: inout SignInRollback) async throws -> (EmbeddedCloud, StoredAccount) {
        let isNew = !EmbeddedCloud.exists(at: url)
        let embedded: EmbeddedCloud
        do {
            if isNew, !FileManager.default.fileExists(atPath: url.path) { made.cloud = (url, nil) }
            embedded = try EmbeddedCloud(at: url)
            made.cloud?.cloud = embedded
        } catch {
            guard isNew else { throw error }
            throw ending(
                "cannot make a cloud at \(url.path): \(error.reason). Name a directory that you may write to", .cannotCreate)
        }
        if let account = try await embedded.account(email) {
            return (embedded, try await described(account, embedded, &made))
        }
        guard create else {
            throw ending(
                "the cloud \(url.path) has no account \(email); check the address, or make the account with --create", .noInput)
        }
        let account = try await embedded.addAccount(email, phone: phone, name: name.map(PersonName.init(text:)))
        made.account = (embedded, account)
        return (embedded, account)
    }

    /// An existing account, with the given name and phone number.
    private func described(
        _ account: StoredAccount, _ embedded: EmbeddedCloud, _ made: inout SignInRollback
    ) async throws -> StoredAccount {
        guard name != nil || phone != nil else { return account }
        var described = account
        if let name { described.name = PersonName(text: name) }
        if let phone { described.phone = phone }
        try await embedded.update(described)
        made.changed = (embedded, account)
        return described
    }
}

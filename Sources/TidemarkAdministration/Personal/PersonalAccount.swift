import Foundation
import TidemarkCloud
package import TidemarkCloudEngine
package import TidemarkEmbeddedCloud
package import TidemarkIdentity
package import TidemarkModel

/// The functions of people for their own accounts, each with its entry in the audit log. The caller has made sure who the person
/// is.
package struct PersonalAccount: Sendable {
    let cloud: EmbeddedCloud
    let credentials: CredentialStore
    package let account: StoredAccount
    /// From where the person asks, for the audit log.
    private let address: String
    /// Is called for each container that can't be read, for the server's log.
    let onUnread: @Sendable (UnreadContainer) -> Void

    package init(
        _ cloud: EmbeddedCloud, _ credentials: CredentialStore, _ account: StoredAccount, from address: String,
        onUnread: @escaping @Sendable (UnreadContainer) -> Void = { _ in }
    ) {
        (self.cloud, self.credentials, self.account, self.address) = (cloud, credentials, account, address)
        self.onUnread = onUnread
    }

    // Name, address and password

    /// Gives the account another name, which participants of shares see, and another address: that to sign in with, and by which others
    /// invite the person.
    ///
    /// - Parameter text: The name; an empty one takes it away.
    package func set(name text: String, address email: String) async throws(AdministrationError) {
        guard text.utf8.count <= 255, text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
            throw AdministrationError(.invalid, "a name has 255 bytes at the most, in one line")
        }
        if UserLookUp.spelled(email) != account.email { try await set(address: email) }
        let name = PersonName(text: text)
        // Only the name is changed: what operators change meanwhile, such as the account's status, stays.
        let changed = try await wrapped {
            try await cloud.update(id: account.id) { $0.name = name.title.isEmpty ? nil : name }
        }
        guard let (before, after) = changed, before.name != after.name else { return }
        try await audit("name", before: before.name?.title ?? "", after: after.name?.title ?? "")
    }

    /// Gives the account another address.
    package func set(address email: String) async throws(AdministrationError) {
        let after = try await wrapped { try await cloud.setAddress(email, of: account) }
        try await audit("address", before: account.email, after: after)
    }

    /// Makes a link that gives the account another address: it is for a letter to that address.
    ///
    /// - Returns: The key of the link.
    package func addressLink(to email: String) async throws(AdministrationError) -> String {
        let link = CredentialStore.AddressLink(account: account.id, before: account.email, after: UserLookUp.spelled(email))
        let key = try await wrapped { try await credentials.addressLinkKey(link) }
        try await audit("address-link", before: account.email, after: link.after)
        return key
    }

    /// Makes a link with which the person sets a password: it is for a letter to the account's address.
    ///
    /// - Returns: The link's path below the server's address.
    package func passwordLink() async throws(AdministrationError) -> String {
        let key = try await wrapped { try await credentials.passwordLinkKey(of: account.id) }
        try await audit("password-link", isSignedIn: false)
        return Self.passwordLinkPath(key)
    }

    /// The path of a link below the server's address.
    static func passwordLinkPath(_ key: String) -> String { "/account/password?key=\(key)" }

    /// Gives the account another password. All its sessions end, those of devices among them.
    package func setPassword(_ password: String) async throws(AdministrationError) {
        try await wrapped { try await credentials.setPassword(password, of: account.id) }
        try await audit("password")
    }

    /// Gives the account another password. A link proves who the person is, in place of the old password. All the account's
    /// sessions end, those of devices among them.
    ///
    /// - Returns: `false` for a link that has expired, was used, or is not valid. Nothing is changed then.
    package func setPassword(_ password: String, byLink key: String) async throws(AdministrationError) -> Bool {
        guard try await wrapped({ try await credentials.setPassword(password, byLink: key) }) != nil else { return false }
        try await audit("password", subject: "by a link", isSignedIn: false)
        return true
    }

    // Devices and sessions

    /// Returns the sessions of devices and browsers, and those of pages, the oldest first.
    package func sessions() async throws(AdministrationError) -> (devices: [Session], pages: [PageSession]) {
        try await wrapped {
            (try await credentials.sessions(of: account.id), try await credentials.pageSessions(of: account.id))
        }
    }

    /// Describes when a session was used last, for people.
    package func text(of use: LastUse) -> String { use.text(at: credentials.time) }

    /// Renames the device or the browser of a session.
    ///
    /// - Throws: ``AdministrationError`` `invalid` for a name that shows nothing or is too long, and where devices of the account were renamed too
    ///   often; `notFound`.
    package func renameSession(_ id: String, to name: String) async throws(AdministrationError) {
        try await checkRenames()
        let (before, after) = try await wrapped { try await credentials.renameSession(id: id, of: account.id, to: name) }
        guard before != after else { return }
        try await audit("session.rename", subject: "session \(id)", before: before, after: after)
    }

    /// How often devices of an account are renamed within an hour at the most: each time is written to the disk, and stays in the audit log.
    private static let renamesPerHour = 20
    /// The entries of the account in the audit log that are searched for renames, the newest first.
    private static let searchedEntries = 200

    private func checkRenames() async throws(AdministrationError) {
        let hour: Int64 = 3_600_000_000
        let now = credentials.time
        let entries = try await wrapped { try await credentials.auditLog(account: account.id, limit: Self.searchedEntries) }
        let times = entries.filter { $0.event.action == .own("session.rename") && $0.at > now - hour }.map(\.at).sorted(by: >)
        guard times.count >= Self.renamesPerHour else { return }
        // The next one is free when the oldest that counts is an hour old.
        let wait = times[Self.renamesPerHour - 1] + hour - now
        let minutes = max(1, (wait + 59_999_999) / 60_000_000)
        throw AdministrationError(
            .invalid,
            "your devices were renamed \(Self.renamesPerHour) times within an hour: try again in \(minutes) \(minutes == 1 ? "minute" : "minutes")"
        )
    }

    /// Ends a session of the account: of a device, a browser, or pages.
    package func endSession(_ id: String) async throws(AdministrationError) {
        let (devices, pages) = try await sessions()
        if let device = devices.first(where: { $0.id == id }) {
            try await wrapped { try await credentials.endSession(id: id) }
            return try await audit("session.end", subject: "session \(id)", before: device.device)
        }
        guard let page = pages.first(where: { $0.id == id }) else {
            throw AdministrationError(.notFound, "there is no such session; it may have ended")
        }
        try await wrapped { try await credentials.endPageSession(id) }
        try await audit("session.end", subject: "pages", before: page.device)
    }

    /// Ends all sessions of the account, the one that asks among them.
    package func signOutEverywhere() async throws(AdministrationError) {
        let count = try await wrapped { try await credentials.endSessions(of: account.id) }
        try await audit("session.end", subject: "all of the account", before: "\(count) sessions")
    }

    // The second factor

    /// Notes that the second factor was set or removed.
    package func auditSecondFactor(isSet: Bool) async throws(AdministrationError) {
        try await audit("second-factor.\(isSet ? "set" : "remove")")
    }

    /// Notes that the second factor has other recovery codes.
    package func auditRecoveryCodes() async throws(AdministrationError) { try await audit("second-factor.codes") }

    // Shares

    /// Accepts a link to a share: the person takes part in the share.
    ///
    /// - Throws: ``AdministrationError`` `notFound` for a link that leads nowhere for the account.
    package func acceptLink(
        _ token: String, in container: String, _ environment: StoreEnvironment
    ) async throws(AdministrationError) {
        var event = AuditEvent(
            .linkAccept, actor: account.id, account: account.id, address: address,
            container: "\(container)/\(environment.rawValue)")
        do {
            try await cloud.open(container, environment: environment)
            let database = try cloud.database(.shared, of: container, environment: environment, account: account.id)
            let share = try await database.acceptLink(token).share.id
            event.subject = "\(share.zone.ownerName)/\(share.zone.zoneName)/\(share.recordName)"
        } catch {
            event.outcome = error.code.rawValue
            let failed = event
            try await wrapped { try await credentials.audit(failed) }
            throw AdministrationError(error)
        }
        let done = event
        try await wrapped { try await credentials.audit(done) }
    }

    // Consent

    /// Returns the person's consents in production that are valid now, by containers.
    package func consents() async throws(AdministrationError) -> [Consent] {
        try await wrapped { try await Consent.all(of: account.id, credentials) }
    }

    /// The served containers in which a person has something, or is signed in.
    package struct UsedContainers: Sendable {
        package let production, development: [String]
        /// The containers for which it can't be found out now, with their environments.
        package let unread: [UnreadContainer]
    }

    /// Returns the served containers in which the person has something, or is signed in.
    package func containers() async throws(AdministrationError) -> UsedContainers {
        try await wrapped {
            try await credentials.refresh()
            let served = Set(try credentials.containers())
            var used: [StoreEnvironment: Set<String>] = [:]
            for session in try await credentials.sessions(of: account.id) where served.contains(session.container) {
                used[session.environment, default: []].insert(session.container)
            }
            var unread: [UnreadContainer] = []
            for (name, environment) in try await cloud.containers() where served.contains(name) {
                if used[environment]?.contains(name) == true { continue }
                do throws(CloudError) {
                    guard try await cloud.usage(of: account, in: name, environment) != nil else { continue }
                    used[environment, default: []].insert(name)
                } catch {
                    unread.append(UnreadContainer(container: name, environment: environment, part: .usage, error: error))
                    onUnread(unread[unread.count - 1])
                }
            }
            return UsedContainers(
                production: used[.production, default: []].sorted(), development: used[.development, default: []].sorted(),
                unread: unread)
        }
    }

    /// Lets the developers of a container see and change the person's records there, in production, for some days.
    ///
    /// - Parameter days: One of ``Consent/days``.
    /// - Throws: ``AdministrationError`` `invalid`; `notFound` for a container in which the person has nothing.
    package func consent(to container: String, days: Int) async throws(AdministrationError) {
        guard Consent.days.contains(days) else {
            throw AdministrationError(.invalid, "consent is given for 1, 7 or 30 days")
        }
        let used = try await containers()
        guard used.production.contains(container) else {
            guard !used.unread.contains(where: { $0.container == container }) else {
                throw AdministrationError(.busy, "what you have in \(container) can't be read now; try again in a minute")
            }
            throw AdministrationError(.notFound, "you have nothing in such a container")
        }
        let before = try await consents().first { $0.container == container }
        let until = (credentials.time / 1_000_000 + Int64(days) * 86_400) * 1_000_000
        try await auditConsent(container, before, after: Timestamp.text(microseconds: until))
    }

    /// Takes consent back.
    package func endConsent(to container: String) async throws(AdministrationError) {
        guard let before = try await consents().first(where: { $0.container == container }) else {
            throw AdministrationError(.notFound, "there is no such consent; it may have ended")
        }
        try await auditConsent(container, before, after: "")
    }

    private func auditConsent(_ container: String, _ before: Consent?, after: String) async throws(AdministrationError) {
        let event = AuditEvent(
            .own(Consent.action), actor: account.id, account: account.id, address: address,
            container: Consent.place(container), before: before.map { Timestamp.text(microseconds: $0.until) } ?? "",
            after: after)
        try await wrapped { try await credentials.audit(event) }
    }

    // All of it

    /// Writes all that the cloud has of the person to a file.
    ///
    /// - Returns: The file, and what it has.
    package func export() async throws(AdministrationError) -> (file: ArchiveFile, summary: PersonArchive.Summary) {
        let made = try await wrapped { try await PersonArchive.file(all: account, of: cloud, credentials) }
        try await audit("export", subject: counted(made.summary.records, "record"))
        return made
    }

    /// Counts the data that are removed together with the account.
    package func holdings() async throws(AdministrationError) -> EmbeddedCloud.Holdings {
        try await wrapped { try await cloud.holdings(of: account) }
    }

    /// Removes the account with all that is stored for it. After a failure midway, another call continues the removal.
    ///
    /// - Throws: ``AdministrationError`` `forbidden` for an account that administers the cloud.
    package func remove() async throws(AdministrationError) {
        let role = try await wrapped { try await credentials.operatorRole(of: account.id) }
        guard role == nil else {
            throw AdministrationError(
                .forbidden, "your account administers this cloud: have an operator take the role away first")
        }
        let removed = try await wrapped { try await Self.remove(account, cloud, credentials) }
        try await audit("remove", subject: removed.auditSubject)
        await Self.emptyLogs(cloud, credentials)
    }

    /// Removes an account with its records, shares, assets, password, sessions and role.
    static func remove(
        _ account: StoredAccount, _ cloud: EmbeddedCloud, _ credentials: CredentialStore
    ) async throws -> EmbeddedCloud.Removed {
        // The credentials go first, so that nobody signs in, or goes on with a session, during the removal.
        try await credentials.removeAccount(account.id)
        let removed = try await cloud.removeWithData(account)
        // Sessions may have begun meanwhile.
        try await credentials.removeAccount(account.id)
        return removed
    }

    /// Empties the logs of the cloud's files, which may contain what was removed. This may take a second, so the entry in the
    /// audit log is written before.
    static func emptyLogs(_ cloud: EmbeddedCloud, _ credentials: CredentialStore) async {
        await cloud.emptyLogs()
        await credentials.emptyLog()
    }

    // The audit log

    /// - Parameter isSignedIn: Whether it is known that the person does it; otherwise a link is all that the client has shown, or nothing.
    func audit(
        _ action: String, container: String = "", subject: String = "", before: String = "", after: String = "",
        isSignedIn: Bool = true
    ) async throws(AdministrationError) {
        try await wrapped {
            try await credentials.audit(
                AuditEvent(
                    .own(action), actor: isSignedIn ? account.id : "", account: account.id, address: address,
                    container: container, subject: subject, before: before, after: after))
        }
    }

    func wrapped<Result>(_ body: () async throws -> Result) async throws(AdministrationError) -> Result {
        do {
            return try await body()
        } catch {
            throw AdministrationError(error)
        }
    }
}

import Foundation
import HTTPTypes
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkEmbeddedCloud
@testable import TidemarkServer

/// Goal: a sign-in looks the account up once, whether or not there is one, so that the amount of work does not show which
/// addresses have an account. Method: accounts that record look-ups, and the operation by which devices sign in.
@Suite(.timeLimit(.minutes(30))) struct SignInLookUpTests {
    /// Accounts in memory, and the look-ups of them.
    private final class NotingAccounts: AccountStorage {
        private let base: any AccountStorage
        private let notes = LockedValue<[String]>([])

        init() throws { base = try AccountStore() }

        /// The look-ups since the last call.
        func lookUps() -> [String] {
            notes.withLock { notes in
                defer { notes = [] }
                return notes
            }
        }

        private func note(_ lookUp: String) { notes.withLock { $0.append(lookUp) } }

        func account(id: String) async throws(CloudError) -> StoredAccount? {
            note("id")
            return try await base.account(id: id)
        }

        func account(email: String) async throws(CloudError) -> StoredAccount? {
            note("email")
            return try await base.account(email: email)
        }

        func account(phone: String) async throws(CloudError) -> StoredAccount? {
            note("phone")
            return try await base.account(phone: phone)
        }

        func account(userRecordName: String, in container: String) async throws(CloudError) -> StoredAccount? {
            note("user record name")
            return try await base.account(userRecordName: userRecordName, in: container)
        }

        func accounts() async throws(CloudError) -> [StoredAccount] {
            note("all")
            return try await base.accounts()
        }

        func add(_ account: StoredAccount) async throws(CloudError) -> StoredAccount { try await base.add(account) }

        func update(_ account: StoredAccount, from before: StoredAccount?) async throws(CloudError) -> Bool {
            try await base.update(account, from: before)
        }

        func setAddress(_ email: String, of id: String) async throws(CloudError) -> Bool {
            try await base.setAddress(email, of: id)
        }

        func remove(_ id: String) async throws(CloudError) { try await base.remove(id) }

        func isEmpty() async throws(CloudError) -> Bool { try await base.isEmpty() }
    }

    /// A cloud with accounts and without containers.
    private struct Backend: CloudBackend {
        let name = "accounts alone"
        let accounts: any AccountStorage

        func containers() async throws(CloudError) -> [(name: String, environment: StoreEnvironment)] { [] }

        func open(_ container: String, _ environment: StoreEnvironment) async throws(CloudError) -> ContainerStorages {
            throw CloudError(.internalError, "no container can be opened")
        }
    }

    @Test func `a sign-in looks the account up once, and a refused one names it to operators`() async throws {
        let scratch = try Scratch()
        defer { withExtendedLifetime(scratch) {} }
        let accounts = try NotingAccounts()
        let cloud = EmbeddedCloud(in: Backend(accounts: accounts), folder: scratch["cloud"])
        let access = try CredentialStore(at: scratch.url, now: Timestamp.now, passwordLogN: 4)
        try await access.addContainer("journal")
        let anna = try await cloud.addAccount("anna@example.org")
        try await access.setPassword("correct horse", of: anna.id)
        let signIn = SignIn(cloud: cloud, access: access, metrics: ServerMetrics(), limits: SignInLimits(perMinute: 0))
        let operation = try #require(signIn.operations.first { $0.id == SyncFailure.signInOperation })
        func begin(_ email: String, _ password: String) async throws -> Reply {
            try await operation.answer(
                Call(
                    operation: operation, uuid: "u", caller: Caller(), address: "192.0.2.1", container: "journal",
                    environment: .development, scope: nil, parameters: [:], query: [:],
                    body: Array(#"{"email":"\#(email)","password":"\#(password)","device":"pocket\u202e\u0007phone"}"#.utf8),
                    stream: nil, headers: [:],
                    isExtended: true, baseURL: "http://localhost"))
        }
        _ = accounts.lookUps()
        for (email, tried) in [("Anna@example.org", anna.id), ("nobody@example.org", "")] {
            let thrown = await #expect(throws: Refusal.self) { try await begin(email, "wrong horse") }
            let refusal = try #require(thrown)
            #expect(accounts.lookUps() == ["email"], "\(email)")
            #expect(refusal.status == .unauthorized && refusal.triedAccount == tried)
            // Invisible characters are removed.
            #expect(refusal.triedDevice == "pocket phone")
            #expect(refusal.reasonForOperators == (tried.isEmpty ? "no such account" : nil))
        }
        let reply = try await begin("anna@example.org", "correct horse")
        #expect(reply.status == .ok && accounts.lookUps() == ["email"])
    }
}

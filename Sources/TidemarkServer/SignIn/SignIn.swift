import Foundation
import HTTPTypes
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkWire

/// Signs people in, in a browser or on a device.
struct SignIn: Sendable {
    /// The purpose of a sign-in page. The page's address has it, signed.
    struct Purpose {
        let container: String
        let environment: StoreEnvironment
        /// The identifier of the API token.
        let apiToken: String

        init(_ apiToken: APIToken) {
            (container, environment, self.apiToken) = (apiToken.container, apiToken.environment, apiToken.id)
        }

        init?(_ payload: Data?) {
            guard let payload, let text = String(validating: payload, as: UTF8.self) else { return nil }
            let parts = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 3, let environment = StoreEnvironment(rawValue: parts[1]) else { return nil }
            (container, self.environment, apiToken) = (parts[0], environment, parts[2])
        }

        var payload: Data { Data("\(container)\n\(environment.rawValue)\n\(apiToken)".utf8) }
    }

    /// An attempt to sign in that was counted.
    struct Attempt {
        /// The typed name, in the form in which it is counted.
        let name: String
        /// The account of the attempt; `nil` where there is none.
        let account: StoredAccount?
        /// The client's address, in the form that limits use.
        let address: String
        /// Whether a person has signed in to the account from there, or on the device, before.
        let isKnown: Bool
    }

    let cloud: EmbeddedCloud
    let access: CredentialStore
    let metrics: ServerMetrics
    let limits: SignInLimits
    /// A monotonic clock in seconds; a parameter for tests.
    var now: @Sendable () -> Double = { ServerTime.seconds() }
    /// Waits; a parameter for tests.
    var pause: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    private static let minute: Int64 = 60_000_000

    /// Returns the address of the page where a person can sign in for a program. It is valid for a day.
    func address(for apiToken: APIToken, baseURL: String) -> String {
        let sealed = access.signedText(
            Purpose(apiToken).payload, for: "signin", until: Timestamp.now() + 24 * 60 * Self.minute)
        return "\(baseURL)/signin?for=\(sealed)"
    }

    /// Signs in with an e-mail address and a password, and a code where the account has a second factor.
    ///
    /// - Parameters:
    ///   - device: The device's name, as the device reports it.
    ///   - system: The device's operating system, as the device reports it.
    ///   - address: The client's address, in the form that limits use.
    ///   - deviceToken: The token that the device or browser got when a person signed in on it before.
    /// - Returns: `refused` for a wrong password, and for a missing account: the answer does not tell which.
    /// - Throws: ``Refusal`` for too many attempts, and for a container that is not served. Only a caller with the password
    ///   learns the latter.
    func token(
        email: String, password: String, code: String = "", container: String, environment: StoreEnvironment, kind: Session.Kind,
        device: String, system: String = "", address: String, deviceToken: String? = nil
    ) async throws -> SignInResult<SessionToken> {
        let attempt = try await attempt(email: email, address: address, deviceToken: deviceToken)
        return try await token(
            for: attempt, password: password, code: code, container: container, environment: environment, kind: kind,
            device: device, system: system)
    }

    /// Signs in as ``token(email:password:code:container:environment:kind:device:system:address:deviceToken:)`` does, after the
    /// attempt was counted.
    /// counted.
    private func token(
        for attempt: Attempt, password: String, code: String, container: String, environment: StoreEnvironment,
        kind: Session.Kind, device: String, system: String
    ) async throws -> SignInResult<SessionToken> {
        let result: SignInResult<SessionToken>
        do throws(CredentialError) {
            result = try await access.signIn(
                password, account: attempt.account?.id, code: code, container: container, environment: environment, kind: kind,
                device: device, system: system, address: attempt.address, isKnown: attempt.isKnown, as: attempt.name)
        } catch {
            guard error.code == .notFound else { throw error }
            throw Refusal.notServed(container)
        }
        switch result {
        case .signedIn: metrics.signedIn()
        // This is a client's usual first step, by which it learns that a code is needed.
        case .needsCode where code.isEmpty: break
        case .needsCode, .tooManyCodes, .refused: metrics.signInRefused()
        }
        return result
    }

    /// Counts an attempt to sign in, without letting it wait.
    ///
    /// - Returns: Seconds to wait before the next try; `nil` where it may go on.
    func limitedWait(email: String, address: String) async throws -> Double? {
        let network = NetworkAddress(address)?.network ?? address
        let name = String(decoding: email.lowercased().utf8.prefix(255), as: UTF8.self)
        let wait = try await limits.wait(for: name, from: address, network: network, at: now())
        if wait != nil { metrics.signInRefused() }
        return wait
    }

    /// Counts an attempt to sign in, and lets it wait where too many come.
    ///
    /// - Throws: ``Refusal``, for too many attempts.
    func attempt(email: String, address: String, deviceToken: String?) async throws -> Attempt {
        let now = self.now()
        let network = NetworkAddress(address)?.network ?? address
        // It is counted whether or not the account exists.
        let name = String(decoding: email.lowercased().utf8.prefix(255), as: UTF8.self)
        if let wait = try await limits.wait(for: name, from: address, network: network, at: now) { throw tooMany(wait) }
        let account = try await cloud.account(email)
        let isKnown = try await isKnown(account?.id, address, deviceToken, at: now)
        // An attempt from a known address or device does not wait.
        if try await limits.isCrowded(name, at: now), !isKnown { try await slowDown(name, network) }
        return Attempt(name: name, account: account, address: address, isKnown: isKnown)
    }

    /// Returns whether a person has signed in to the account from the address, or on the device, before.
    private func isKnown(_ account: String?, _ address: String, _ deviceToken: String?, at now: Double) async throws -> Bool {
        guard let account else { return false }
        try await access.refresh()
        // The token may have been copied to many machines.
        if let deviceToken, let device = try access.device(deviceToken, of: account),
            try await limits.admits(device: device, at: now)
        {
            return true
        }
        return try await access.isKnown(address, to: account)
    }

    /// Lets an attempt wait, to an account with many attempts.
    private func slowDown(_ name: String, _ network: String) async throws {
        let place = limits.hold(name, from: network, at: now())
        defer { limits.release(place, of: name) }
        guard try await waitForTurn(of: place) else { throw tooMany(SignInLimits.pause) }
    }

    /// Waits until it is the turn of a place, or another attempt has taken the place.
    ///
    /// - Returns: Whether it is the place's turn.
    private func waitForTurn(of place: SignInLimits.Place) async throws -> Bool {
        try await withThrowingTaskGroup(of: Bool.self) { tasks in
            tasks.addTask { [pause] in
                try await pause(.seconds(place.wait))
                return true
            }
            tasks.addTask {
                await place.untilTaken()
                // The stream also ends when the task is cancelled.
                try Task.checkCancellation()
                return false
            }
            defer { tasks.cancelAll() }
            return try await tasks.next() ?? false
        }
    }

    private func tooMany(_ wait: Double) -> Refusal {
        metrics.signInRefused()
        let seconds = max(1, Int(wait.rounded(.up)))
        var refusal = Refusal.throttled(Double(seconds), "too many attempts to sign in")
        refusal.headers[.retryAfter] = String(seconds)
        return refusal
    }

    // Devices

    /// The operation by which a device ends its session.
    static let endOperation = "session.end"

    /// Begins and ends the sessions of devices.
    var operations: [Operation] {
        [
            Operation(
                SyncFailure.signInOperation, .post, "/tidemark/1/{container}/{environment}/session", body: .bytes(most: 16 << 10),
                isOpen: true,
                isChanging: true
            ) { try await begin($0) },
            Operation(
                Self.endOperation, .post, "/tidemark/1/{container}/{environment}/session/end", body: .json, needsUser: true,
                isChanging: true
            ) { call in
                if let session = call.caller.session {
                    do throws(CredentialError) {
                        try await access.endSession(id: session)
                        try await access.audit(
                            AuditEvent(
                                .signOut, actor: call.caller.account ?? "", account: call.caller.account ?? "",
                                address: call.address, container: call.container, subject: "session \(session)"))
                    } catch {
                        // Another call may have ended it meanwhile.
                        guard error.code == .notFound else { throw error }
                    }
                }
                return .json(Array("{}".utf8))
            },
        ]
    }

    /// - Parameter result: Any result except `signedIn`.
    private static func refusal(of result: SignInResult<SessionToken>, isCodeGiven: Bool) -> Refusal {
        switch result {
        case .needsCode: .secondFactorRequired(isGiven: isCodeGiven)
        case .tooManyCodes(let wait): .tooManyCodes(wait)
        case .refused, .signedIn: .authenticationFailed("the e-mail address or the password is wrong")
        }
    }

    private func begin(_ call: Call) async throws -> Reply {
        let (email, password, code, device, system, deviceToken) = try call.read { node throws(CloudError) in
            (
                try node.required("email").asString(), try node.required("password").asString(), try node.string("code") ?? "",
                try node.string("device"), try node.string("system") ?? "", try node.string("deviceToken")
            )
        }
        let named = device ?? call.headers[.userAgent] ?? ""
        // The account is looked up once. Where there is none, the password is checked against nothing for as long.
        let attempt = try await self.attempt(email: email, address: call.address, deviceToken: deviceToken)
        let result = try await self.token(
            for: attempt, password: password, code: code, container: call.container, environment: call.environment, kind: .device,
            device: named, system: system)
        guard case .signedIn(let token) = result else {
            throw Self.refusal(of: result, isCodeGiven: !code.isEmpty).ofSignIn(to: attempt.account?.id, on: named)
        }
        let name = EmbeddedCloud.userRecordName(token.session.account, in: call.container)
        return .object {
            $0.member("token", token.text)
            $0.member("expires", token.expires / 1_000)
            $0.member("userRecordName", name)
            $0.member("deviceToken", access.deviceToken(of: token.session.account))
        }
    }
}

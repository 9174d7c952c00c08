import Foundation
import Tidemark

/// Random texts that nobody guesses.
enum Secret {
    /// 192 random bits, as 32 characters of addresses and cookies.
    static func make() -> String {
        var random = SystemRandomNumberGenerator()
        let bytes = (0..<24).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        return Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
    }

    /// Compares without telling by its time how much is right.
    static func areEqual(_ left: String, _ right: String) -> Bool {
        let (left, right) = (Array(left.utf8), Array(right.utf8))
        return left.count == right.count && zip(left, right).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}

/// A browser in which somebody is signed in.
struct Session: Sendable {
    let id: String
    /// What forms prove with that they are from a page of ours.
    let formToken: String
    let journal: Journal
    var lastUse: ContinuousClock.Instant
    /// What the next page tells, once.
    var notice: Notice?

    struct Notice: Sendable {
        enum Tone: String, Sendable { case good, info, error }
        var tone = Tone.good
        let text: String
        /// The address of an invitation that was made, which is told once.
        var link: String?
    }
}

/// The browsers that are signed in, and the journals that are open for them. All of it is forgotten when the program ends; the journals'
/// stores stay on disk.
actor Sessions {
    private let folder: URL
    private let idleLimit: Duration
    private var sessions: [String: Session] = [:]
    private var journals: [String: (journal: Journal, end: @Sendable () async throws -> Void)] = [:]
    private let clock = ContinuousClock()

    private static let limit = 10_000

    init(in folder: URL, idleLimit: Duration = .seconds(12 * 3600)) {
        self.folder = folder
        self.idleLimit = idleLimit
    }

    /// Begins a session. The first one of a person opens the person's journal.
    func begin(_ member: Member) async throws -> Session {
        await removeExpired()
        guard sessions.count < Self.limit else { throw PageError(503, "Busy", "Too many people are signed in. Try again later.") }
        let journal: Journal
        if let open = journals[member.person.id]?.journal {
            journal = open
            // The journal has a session with the cloud already.
            await Log.failure(of: "ending a session with the cloud") { try await member.end() }
        } else {
            journal = try open(member)
        }
        let session = Session(id: Secret.make(), formToken: Secret.make(), journal: journal, lastUse: clock.now)
        sessions[session.id] = session
        return session
    }

    /// Without a session: for the program itself.
    func open(_ member: Member) throws -> Journal {
        if let open = journals[member.person.id]?.journal { return open }
        let folder = folder.appendingPathComponent(member.person.id, isDirectory: true)
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let journal = try Journal(of: member.person, in: folder, with: member.databases)
        journals[member.person.id] = (journal, member.end)
        return journal
    }

    func find(_ id: String) async -> Session? {
        guard var session = sessions[id] else { return nil }
        guard clock.now - session.lastUse < idleLimit else {
            await end(id)
            return nil
        }
        session.lastUse = clock.now
        sessions[id] = session
        return session
    }

    /// Has the next page of a session tell something.
    func setNotice(_ notice: Session.Notice, for id: String) { sessions[id]?.notice = notice }

    /// What the page that is made now is to tell.
    func takeNotice(for id: String) -> Session.Notice? {
        defer { sessions[id]?.notice = nil }
        return sessions[id]?.notice
    }

    /// Ends a session. The last one of a person closes the person's journal; its store stays.
    func end(_ id: String) async {
        guard let person = sessions.removeValue(forKey: id)?.journal.person.id else { return }
        guard !sessions.values.contains(where: { $0.journal.person.id == person }) else { return }
        await close(person)
    }

    func endAll() async {
        sessions = [:]
        for person in journals.keys { await close(person) }
    }

    private func close(_ person: String) async {
        guard let (journal, end) = journals.removeValue(forKey: person) else { return }
        await Log.failure(of: "closing a journal") { try await journal.close() }
        await Log.failure(of: "ending a session with the cloud") { try await end() }
    }

    private func removeExpired() async {
        for (id, session) in sessions where clock.now - session.lastUse >= idleLimit { await end(id) }
    }
}

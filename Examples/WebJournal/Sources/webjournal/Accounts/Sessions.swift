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
    /// The session with the cloud that this one depends on.
    fileprivate(set) var member: UUID
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
///
/// The browsers of a person share a journal, and its session with the cloud. When the cloud ends that one, the browsers are signed out.
actor Sessions {
    private let folder: URL
    private let idleLimit: Duration
    private var sessions: [String: Session] = [:]
    private var journals: [String: (journal: Journal, member: Member)] = [:]
    private let clock = ContinuousClock()

    private static let limit = 10_000

    init(in folder: URL, idleLimit: Duration = .seconds(12 * 3600)) {
        self.folder = folder
        self.idleLimit = idleLimit
    }

    /// Begins a session. The first one of a person opens the person's journal.
    func begin(_ member: Member) async throws -> Session {
        await removeExpired()
        let session: Session
        do {
            guard sessions.count < Self.limit else {
                throw PageError(503, "Busy", "Too many people are signed in. Try again later.")
            }
            session = Session(
                id: Secret.make(), formToken: Secret.make(), journal: try open(member), member: member.id, lastUse: clock.now)
        } catch {
            await Self.end(member)
            throw error
        }
        // The session is entered before anything is waited for: the end of the person's other sessions would close the journal.
        sessions[session.id] = session
        await connect(session, member)
        return session
    }

    /// Gives the person's journal the new session with the cloud, unless the cloud still accepts the one that the journal has.
    private func connect(_ session: Session, _ member: Member) async {
        let person = member.person.id
        while let former = journals[person]?.member, former.id != member.id {
            let isAccepted = await former.isAccepted()
            // Meanwhile another sign-in of the person may have done the same.
            guard journals[person]?.member.id == former.id else { continue }
            if isAccepted == true {
                sessions[session.id]?.member = former.id
                return await Self.end(member)
            }
            journals[person]?.member = member
            session.journal.connect(member.databases)
            removeSessions(of: former)
            await Self.end(former)
        }
    }

    /// Opens a person's journal without a session of a browser: for the program itself.
    func open(_ member: Member) throws -> Journal {
        let person = member.person.id
        if let open = journals[person]?.journal { return open }
        let folder = folder.appendingPathComponent(person, isDirectory: true)
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let journal = try Journal(of: member.person, in: folder, with: member.databases)
        journals[person] = (journal, member)
        journal.onRefusal { [weak self] in await self?.check(person) }
        return journal
    }

    /// Ends the sessions of a person if the cloud has ended its own, as after a change of the password: otherwise a browser that the person
    /// has lost would go on reading the store.
    func check(_ person: String) async {
        guard let member = journals[person]?.member, await member.isAccepted() == false,
            // What has refused the session before may have been slow: meanwhile there may be another one.
            journals[person]?.member.id == member.id
        else { return }
        removeSessions(of: member)
        await closeIfUnused(person)
    }

    private func removeSessions(of member: Member) { sessions = sessions.filter { $0.value.member != member.id } }

    /// Whether a session goes on. This is no use of it.
    func has(_ id: String) -> Bool { sessions[id].map { clock.now - $0.lastUse < idleLimit } ?? false }

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
        await closeIfUnused(person)
    }

    func endAll() async {
        sessions = [:]
        for person in journals.keys { await closeIfUnused(person) }
    }

    private func closeIfUnused(_ person: String) async {
        guard !sessions.values.contains(where: { $0.journal.person.id == person }),
            let (journal, member) = journals.removeValue(forKey: person)
        else { return }
        await Log.failure(of: "closing a journal") { try await journal.close() }
        await Self.end(member)
    }

    private static func end(_ member: Member) async {
        await Log.failure(of: "ending a session with the cloud") { try await member.end() }
    }

    private func removeExpired() async {
        for (id, session) in sessions where clock.now - session.lastUse >= idleLimit { await end(id) }
    }
}

import Foundation
import TidemarkCloudEngine
import TidemarkModel

/// Uses of sessions that are to be written. What comes while a write is under way goes with the next one.
struct SessionUses {
    fileprivate var waiting: [[UInt8]: SessionUse] = [:]
    fileprivate var writing: Task<Void, Never>?
    /// When uses were noted last, by session: the row that a request has may be older.
    fileprivate var noted = BoundedCache<[UInt8], Int64>(capacity: 50_000)
}

extension CredentialStore {
    /// Takes note that a session is used, for lists of sessions.
    ///
    /// It costs a comparison, but where an hour is over since a use was noted (a quarter of one for a browser that does not stay signed in).
    /// Then it is written, along with others; nobody waits for that, and what a process had not yet written when it was killed is lost.
    ///
    /// - Parameters:
    ///   - session: As ``session(_:)`` has returned it.
    ///   - address: From where it is used, by which ``addresses(of:)`` knows it again.
    public func noteUse(of session: Session, from address: String) {
        let now = now()
        guard now - session.used >= session.kind.noting, let id = Hexadecimal.bytes(session.id) else { return }
        uses.withLock { uses in
            guard now - (uses.noted[id] ?? session.used) >= session.kind.noting else { return }
            uses.noted[id] = now
            uses.waiting[id] = SessionUse(session: id, at: now, address: String(address.prefix(100)))
            if uses.writing == nil { uses.writing = Task { await self.writeUses() } }
        }
    }

    private func writeUses() async {
        while let uses = nextUses() {
            // What can't be written now is told with the next use, in an hour.
            try? await storage.note(uses)
        }
    }

    private func nextUses() -> [SessionUse]? {
        uses.withLock { uses in
            guard !uses.waiting.isEmpty else {
                uses.writing = nil
                return nil
            }
            defer { uses.waiting = [:] }
            return Array(uses.waiting.values)
        }
    }

    /// Returns when all that was noted is written. For tests.
    func usesAreWritten() async { await uses.withLock { $0.writing }?.value }

    /// The addresses from which an account's sessions were used last.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func addresses(of account: String) async throws(CredentialError) -> Set<String> {
        let now = now()
        return try await stored { try await storage.addresses(of: account, keptFrom: now) }
    }
}

import Foundation
import GRDB
import TidemarkModel

/// Uses of sessions that are to be written. What comes while a write is under way goes with the next one.
struct SessionUses {
    struct Use: Sendable {
        let at: Int64
        let address: String
    }

    fileprivate var waiting: [[UInt8]: Use] = [:]
    fileprivate var writing: Task<Void, Never>?
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
        guard now - session.used >= session.kind.noting, let id = Hexadecimal.bytes(session.id),
            cache.use(id, at: now, from: address)
        else { return }
        uses.withLock { uses in
            uses.waiting[id] = SessionUses.Use(at: now, address: String(address.prefix(100)))
            if uses.writing == nil { uses.writing = Task { await self.writeUses() } }
        }
    }

    private func writeUses() async {
        while let uses = nextUses() {
            // What can't be written now is told with the next use, in an hour.
            try? await writer.write { db in
                for (id, use) in uses {
                    try db.execute(
                        sql: "UPDATE sessions SET used = ?, address = ? WHERE id = ? AND used < ?",
                        arguments: [use.at, use.address, Data(id), use.at])
                    if let account = try String.fetchOne(
                        db, sql: "SELECT account FROM sessions WHERE id = ?", arguments: [Data(id)])
                    {
                        try Self.keepKnown(use.address, to: account, at: use.at, db)
                    }
                }
            }
        }
    }

    private func nextUses() -> [[UInt8]: SessionUses.Use]? {
        uses.withLock { uses in
            guard !uses.waiting.isEmpty else {
                uses.writing = nil
                return nil
            }
            let next = uses.waiting
            uses.waiting = [:]
            return next
        }
    }

    /// Returns when all that was noted is written. For tests.
    func usesAreWritten() async { await uses.withLock { $0.writing }?.value }

    /// The addresses from which an account's sessions were used last.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func addresses(of account: String) async throws(CredentialError) -> Set<String> {
        let now = now()
        return try await writer.read { db in
            try String.fetchSet(
                db, sql: "SELECT address FROM sessions WHERE account = ? AND kept >= ? AND address <> ''",
                arguments: [account, now])
        }
    }
}

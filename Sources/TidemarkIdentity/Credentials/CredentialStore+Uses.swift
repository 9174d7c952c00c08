import Foundation
import TidemarkCloudEngine
import TidemarkModel

/// Uses of sessions that wait to be written. Uses that come during a write go with the next one.
struct SessionUses {
    fileprivate var waiting: [[UInt8]: SessionUse] = [:]
    fileprivate var writing: Task<Void, Never>?
    /// The time of each session's last noted use. The row that a request holds may be older.
    fileprivate var noted = BoundedCache<[UInt8], Int64>(capacity: 50_000)
}

extension CredentialStore {
    /// Notes that a session is used, for lists of sessions.
    ///
    /// A use is written if none was noted in the last hour (a quarter of an hour for a browser that does not stay signed in).
    /// Otherwise the call costs a comparison. No request waits for the write. A process that is killed loses the uses that it has
    /// not written yet.
    ///
    /// - Parameters:
    ///   - session: As ``session(_:)`` has returned it.
    ///   - address: The client's address, as ``addresses(of:)`` returns it.
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
            // A use that can't be written is lost. The next one is noted in an hour.
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

    /// Returns when all noted uses are written. For tests.
    func usesAreWritten() async { await uses.withLock { $0.writing }?.value }

    /// The addresses from which an account's sessions were used last.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func addresses(of account: String) async throws(CredentialError) -> Set<String> {
        let now = now()
        return try await stored { try await storage.addresses(of: account, keptFrom: now) }
    }
}

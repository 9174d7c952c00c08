import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkModel

/// Goal: SQLite and PostgreSQL are the same cloud. Method: two clouds with the same accounts, clock and chance, one over each storage, are asked
/// for the same at random: records in private, shared and public databases, zones, queries, feeds of changes, shares, participants, links,
/// assets, indexes. Their answers and the numbers of changes are equal after each request, and all feeds from the beginning in the end.
///
/// The seed of a history is printed when it fails; `TIDEMARK_STORAGE_RUNS` is the number of histories, `TIDEMARK_SEED` the seed of the first.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(600)))
struct StorageHistoryTests {
    @Test func `both storages answer the same to random histories`() async throws {
        let runs = ProcessInfo.processInfo.environment["TIDEMARK_STORAGE_RUNS"].flatMap { UInt64($0) } ?? 20
        let seed = Randomness("histories over two storages").seed
        let workers = UInt64(ProcessInfo.processInfo.activeProcessorCount)
        let (postgres, ended, answered) = (try await RecordsFixture(), Shared(0), Shared<[String: Int]>([:]))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<workers {
                group.addTask {
                    for run in stride(from: worker, to: runs, by: UInt64.Stride(workers)) {
                        let history = try await StorageHistory(seed: seed &+ run) {
                            try await postgres.storage(of: "history\(run)")
                        }
                        if let difference = try await history.run(steps: 80) {
                            Issue.record(
                                "TIDEMARK_SEED=\(seed &+ run) TIDEMARK_STORAGE_RUNS=1: the storages differ in \(difference)")
                        }
                        let kinds = history.answered
                        answered.change { $0.merge(kinds) { $0 + $1 } }
                        ended.change { $0 += 1 }
                        if ended.value % 100 == 0 {
                            FileHandle.standardError.write(Data("histories over two storages: \(ended.value) of \(runs)\n".utf8))
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let kinds = answered.value.sorted { $0.key < $1.key }
        print("histories: \(ended.value), answers: \(kinds.map { "\($0.key) \($0.value)" }.joined(separator: ", "))")
        // Each kind of request was answered with something, and not refused alone.
        guard runs >= 20 else { return }
        for kind in [
            "changes private", "changes public", "changes theirs", "fetches", "asks", "zones", "shares", "changes a share",
            "links",
            "revokes", "ends", "leaves", "sees shares", "audits", "uploads", "removes", "usage", "indexes", "looks up",
            "database changes",
        ] { #expect(answered.value[kind] ?? 0 > 0, "no answer to a request of the kind '\(kind)'") }
    }
}

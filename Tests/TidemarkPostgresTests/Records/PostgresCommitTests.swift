import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel
import TidemarkPostgres
import TidemarkTesting

@testable import TidemarkCloudEngine

/// Goal: a write whose COMMIT is not answered is done once, and its caller learns its outcome. Method: a proxy that swallows the
/// answer of COMMIT, or COMMIT itself, and then cuts the connection.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct PostgresCommitTests {
    private let proxy: TCPProxy
    private let records: RecordsFixture
    /// A server behind the proxy, and one that is not.
    private let storage, direct: PostgresCloudStorage

    init() async throws {
        proxy = try TCPProxy(to: try await apart { try PostgresServer.shared() }.port)
        records = try await RecordsFixture()
        storage = try await records.storage(
            on: try records.fixture.other(port: proxy.port) {
                $0.connections = 8
                $0.patience = .seconds(5)
            })
        direct = try await records.storage()
    }

    /// Adds to the bytes of a user, and stores the answer under a token, as a request does. A repeated request finds the answer,
    /// and adds nothing.
    private static func add(
        _ bytes: Int64, _ token: String, on storage: PostgresCloudStorage, owners: WrittenOwners = ["anna"],
        _ then: @escaping @Sendable () -> Void = {}
    ) async throws {
        try await storage.write(owners: owners) { rows throws(CloudError) in
            if try rows.answer(to: token, of: "anna") != nil { return }
            try rows.addUsed(bytes, by: "anna")
            try rows.keep(Data(token.utf8), to: token, of: "anna", at: 1)
            then()
        }
    }

    private var used: Int64 {
        get async throws { try await direct.read { rows throws(CloudError) in try rows.used(by: "anna") } }
    }

    /// Sets what the proxy does, and waits until it does so.
    private static func set(_ mode: TCPProxy.Mode, _ proxy: TCPProxy) {
        proxy.set(mode)
        usleep(100_000)
    }

    /// Makes the proxy swallow the next answer, and then cut the connections and pass bytes on again. This takes a thread of its
    /// own, since the task of a test waits for those of other tests.
    ///
    /// - Parameter mode: What the client gets in place of the answer.
    private static func cutAfterCommit(_ proxy: TCPProxy, _ mode: TCPProxy.Mode = .swallowAnswers) {
        let before = proxy.swallowed
        set(mode, proxy)
        Thread.detachNewThread {
            for _ in 0..<3000 where proxy.swallowed == before { usleep(10_000) }
            set(.pass, proxy)
            proxy.cut()
        }
    }

    @Test(arguments: [["anna"], ["", "anna"], ["anna", "ben"], .all] as [WrittenOwners])
    func `a committed write whose COMMIT is not answered returns the answer that it has stored`(
        owners: WrittenOwners
    ) async throws {
        let runs = Shared(0)
        async let answer: Void = Self.add(5, "token", on: storage, owners: owners) { [proxy] in
            runs.change { $0 += 1 }
            Self.cutAfterCommit(proxy)
        }
        try await answer
        #expect(runs.value == 1)
        #expect(try await used == 5)
        proxy.end()
    }

    /// A server whose log has no room for what follows a COMMIT dies. It says why, and not whether the transaction is committed.
    @Test func `a committed write whose session ends with an error returns the answer that it has stored`()
        async throws
    {
        let word = Array("SPANIC\0VPANIC\0C53100\0Mcould not write to the log: No space left on device\0\0".utf8)
        let message = [UInt8(ascii: "E"), 0, 0, 0, UInt8(4 + word.count)] + word
        let runs = Shared(0)
        async let answer: Void = Self.add(5, "token", on: storage) { [proxy] in
            runs.change { $0 += 1 }
            if runs.value == 1 { Self.cutAfterCommit(proxy, .garbage(message)) }
        }
        try await answer
        #expect(runs.value == 1)
        #expect(try await used == 5)
        proxy.end()
    }

    @Test(arguments: [["anna"], ["", "anna"], .all] as [WrittenOwners])
    func `a write whose COMMIT does not arrive runs again, and is done once`(owners: WrittenOwners) async throws {
        let runs = Shared(0)
        async let answer: Void = Self.add(5, "token", on: storage, owners: owners) { [proxy] in
            runs.change { $0 += 1 }
            guard runs.value == 1 else { return }
            Self.set(.stall, proxy)
            Thread.detachNewThread {
                usleep(300_000)
                // The proxy cuts first, since it would pass on the bytes that wait.
                proxy.cut()
                Self.set(.pass, proxy)
            }
        }
        try await answer
        #expect(runs.value == 2)
        #expect(try await used == 5)
        proxy.end()
    }

    @Test(arguments: [true, false])
    func `without the database, the same request learns its outcome at another server`(isCommitted: Bool) async throws {
        let runs = Shared(0)
        await #expect(throws: CloudError(.networkFailure, "")) {
            try await Self.add(5, "token", on: storage) { [proxy] in
                runs.change { $0 += 1 }
                Self.set(isCommitted ? .swallowAnswers : .stall, proxy)
                Thread.detachNewThread {
                    for turn in 0..<3000 where isCommitted ? proxy.swallowed == 0 : turn < 30 { usleep(10_000) }
                    proxy.cut()
                    proxy.set(.refuse)
                }
            }
        }
        #expect(runs.value == 1)
        #expect(try await used == (isCommitted ? 5 : 0))
        try await Self.add(5, "token", on: direct)
        #expect(try await used == 5)
        proxy.set(.pass)
        try await Self.add(5, "token", on: storage)
        #expect(try await used == 5)
        proxy.end()
    }

    @Test func `a write without a token has an unknown outcome, and one that has written nothing runs again`() async throws {
        let runs = Shared(0)
        @Sendable func cutAfterAnswer() {
            runs.change { $0 += 1 }
            guard runs.value == 1 else { return }
            Self.cutAfterCommit(proxy)
        }
        do {
            try await storage.write(owners: ["anna"]) { rows throws(CloudError) in
                try rows.addUsed(5, by: "anna")
                cutAfterAnswer()
            }
            Issue.record("nobody could know")
        } catch {
            #expect(error.code == .networkFailure)
            #expect(error.retryAfter != nil)
        }
        #expect(runs.value == 1)
        #expect(try await used == 5)
        runs.change { $0 = 0 }
        let found = try await storage.write(owners: ["anna"]) { rows throws(CloudError) in
            let found = try rows.used(by: "anna")
            cutAfterAnswer()
            return found
        }
        #expect(found == 5)
        #expect(runs.value == 2)
        proxy.end()
    }

    /// The network breaks at any moment, in either direction. A request without an answer is sent again with its token.
    @Test func `whenever the network breaks, each request is done once`() async throws {
        var random = Randomness("cuts of a database's network")
        let isOver = Shared(false)
        let pauses = (0..<10_000).map { _ in
            (UInt32.random(in: 0..<40_000, using: &random), Int.random(in: 0..<3, using: &random))
        }
        let network = Task.detached { [proxy] in
            for (pause, kind) in pauses where !isOver.value {
                try await Task.sleep(for: .microseconds(Int(pause)))
                if kind > 0 { proxy.set(kind == 1 ? .swallowAnswers : .stall) }
                try await Task.sleep(for: .milliseconds(25))
                proxy.cut()
                proxy.set(.pass)
            }
        }
        let lost = Shared(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                group.addTask { [storage] in
                    for turn in 0..<40 {
                        while true {
                            do {
                                try await Self.add(1, "\(writer) \(turn)", on: storage)
                                break
                            } catch let error as CloudError where error.retryAfter != nil {
                                lost.change { $0 += 1 }
                            }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        isOver.change { $0 = true }
        try await network.value
        #expect(try await used == 160)
        print("requests that had to be sent again: \(lost.value)")
        proxy.end()
    }
}

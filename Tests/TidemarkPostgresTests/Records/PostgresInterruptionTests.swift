import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkIdentity
import TidemarkPostgres

/// Goal: wherever in a request its connection breaks, or its database restarts, the request is answered as without that, and done
/// once. Method: a proxy counts the pieces that a server sends to its database, and disturbs each of them. Another cloud, which
/// nothing disturbs, gets the same requests.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(20)))
struct PostgresInterruptionTests {
    /// Sends a request to both clouds, and compares the answers.
    ///
    /// - Returns: Whether its client had to send it again.
    private static func compare(
        _ request: HostileRequest, _ number: Int, _ disturbed: HostileSide, _ calm: HostileSide
    ) async throws -> Bool {
        let (answer, isSentAgain) = try await request.run(number, on: disturbed)
        let expected = try await request.run(number, on: calm).answer
        #expect(answer == expected, "\(request.name), \(number)")
        #expect(!isSentAgain || !request.isSettledByServer, "\(request.name), \(number): its client had to send it again")
        return isSentAgain
    }

    /// Checks that sign-ins, and nothing else, have made sessions, each with an entry in the audit log. A sign-in that was tried
    /// again may have made two.
    private static func checkSessions(_ side: HostileSide, signIns: Int, tried again: Int) async throws {
        let rows = try await side.direct.read { transaction in
            try transaction.query(
                """
                SELECT (SELECT count(*) FROM sessions WHERE account = $1),
                    (SELECT count(*) FROM audit_log WHERE account = $1 AND outcome = 'done'),
                    (SELECT count(*) FROM audit_log WHERE account = $1 AND outcome <> 'done')
                """, side.account.id)
        }
        let (sessions, done, other): (Int64, Int64, Int64) = (
            try rows[0].value(0), try rows[0].value(1), try rows[0].value(2)
        )
        #expect(sessions == done)
        #expect(other == 0)
        #expect((signIns...signIns + again).contains(Int(sessions)), "\(sessions) sessions, \(signIns) sign-ins, \(again) again")
    }

    @Test(arguments: [true, false])
    func `wherever in a request of any kind its connection breaks, it is answered as without that, and done once`(
        isPassedOn: Bool
    ) async throws {
        let proxy = try TCPProxy(to: try await apart { try PostgresServer.shared() }.port)
        let disturbed = try await HostileSide(try await RecordsFixture(), port: proxy.port)
        let calm = try await HostileSide(try await RecordsFixture())
        for request in HostileRequest.all {
            try await request.prepare(disturbed)
            try await request.prepare(calm)
            var (number, again) = (0, 0)
            repeat {
                // The server does not get this piece of the request, or its answer does not come.
                proxy.cut(afterPieces: number, passingLast: isPassedOn)
                if try await Self.compare(request, number, disturbed, calm) { again += 1 }
                proxy.forgetCut()
                number += 1
            } while proxy.hasCut && number < HostileRequest.most - 1
            // The last request ended without a cut.
            #expect(number > request.leastPieces && !proxy.hasCut, "\(request.name): \(number)")
            #expect(try await disturbed.state() == calm.state(), "\(request.name)")
            if request.name == HostileRequest.signIn.name {
                try await Self.checkSessions(disturbed, signIns: number, tried: again)
            }
        }
        proxy.end()
        await disturbed.close()
        await calm.close()
    }

    @Test func `wherever in a request of any kind its database restarts, it is answered as without that, and done once`()
        async throws
    {
        var random = Randomness("steps of requests in which a database restarts")
        let server = try await apart { try PostgresServer() }
        let proxy = try TCPProxy(to: server.port)
        let disturbed = try await HostileSide(try await RecordsFixture(on: server), port: proxy.port)
        let calm = try await HostileSide(try await RecordsFixture())
        /// Restarts the database at a step of a request, if the request has so many steps.
        func restart(_ step: Int, _ isPassedOn: Bool, _ request: HostileRequest, _ number: Int) async throws -> Bool {
            proxy.cut(afterPieces: step, passingLast: isPassedOn) {
                do {
                    try server.restart()
                } catch {
                    Issue.record(error)
                }
            }
            let isSentAgain = try await Self.compare(request, number, disturbed, calm)
            proxy.forgetCut()
            return isSentAgain
        }
        for request in HostileRequest.all {
            try await request.prepare(disturbed)
            try await request.prepare(calm)
            let before = proxy.pieces
            var again = try await Self.compare(request, 0, disturbed, calm) ? 1 : 0
            let pieces = proxy.pieces - before
            var number = 1
            if request.name == HostileRequest.save.name {
                for isPassedOn in [true, false] {
                    var step = 0
                    repeat {
                        if try await restart(step, isPassedOn, request, number) { again += 1 }
                        (step, number) = (step + 1, number + 1)
                    } while proxy.hasCut && number < HostileRequest.most - 1
                    #expect(step > request.leastPieces && !proxy.hasCut, "\(step)")
                }
            } else {
                var step = Int.random(in: 0..<max(1, pieces), using: &random)
                let isPassedOn = Bool.random(using: &random)
                // A step after the answer is no part of the request. Then the step before it is tried.
                repeat {
                    if try await restart(step, isPassedOn, request, number) { again += 1 }
                    (step, number) = (step - 1, number + 1)
                } while !proxy.hasCut && step >= 0
                #expect(proxy.hasCut, "\(request.name)")
            }
            #expect(try await disturbed.state() == calm.state(), "\(request.name)")
            if request.name == HostileRequest.signIn.name {
                try await Self.checkSessions(disturbed, signIns: number, tried: again)
            }
        }
        proxy.end()
        await disturbed.close()
        await calm.close()
    }
}

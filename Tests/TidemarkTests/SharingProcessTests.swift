import TestSupport
import Testing

/// Goal: each of six people who tries an operation on a shared record, through a container or directly at the cloud, gets the
/// outcome of a table, and nothing else changes. Method: a process for each person, over clouds in directories.
@Suite(.timeLimit(.minutes(30))) struct SharingProcessTests {
    @Test func `six processes try every operation, through their containers and the cloud, and get the outcomes of the table`()
        async throws
    {
        let trial = try await SharingTrial.prepared()
        try trial.makeWorlds()
        try await trial.run()
    }
}

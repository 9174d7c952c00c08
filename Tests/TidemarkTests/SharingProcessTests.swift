import TestSupport
import Testing

/// Goal: whoever tries what with what is shared, through a container or past it, gets what the table says, and nothing else has happened.
/// Method: a process for each person, over clouds in directories.
@Suite(.timeLimit(.minutes(30))) struct SharingProcessTests {
    @Test func `six processes try everything, through their containers and past them, and each gets what the table says`()
        async throws
    {
        let trial = try await SharingTrial.prepared()
        try trial.makeWorlds()
        try await trial.run()
    }
}

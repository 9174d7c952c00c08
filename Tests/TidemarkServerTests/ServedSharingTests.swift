import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkHTTP
import TidemarkIdentity

/// Goal: over HTTP, too, each person who tries an operation on a share gets the outcome of the table, and nothing else changes.
/// Method: as with clouds in directories, a process for each person; these know the servers' addresses and their own sessions.
@Suite(.timeLimit(.minutes(30))) struct ServedSharingTests {
    @Test func `six processes try every operation through servers, and each gets the outcome of the table`() async throws {
        let trial = try await SharingTrial.prepared()
        let sessions = try await Self.sessions(in: trial.template)
        try trial.makeWorlds()
        var servers: [ListeningServer] = []
        for world in trial.worlds {
            let server = try await ListeningServer.started(over: world.appendingPathComponent("cloud"))
            let name = HTTPCloud(server.address, container: TwoUserFixture.container).name
            for (person, user, token) in sessions {
                let file = SharingTrial.container(of: person, in: world).appendingPathComponent("cloud-session")
                try SessionFile(at: file).keep(CloudSession(cloud: name, userRecordName: user, token: token))
            }
            servers.append(server)
        }
        try await trial.run(["--served"])
        #expect(Set(servers.map(\.address)).count == trial.worlds.count)
    }

    /// Serves the cloud, and signs everybody in. Copies of the cloud accept the same tokens.
    private static func sessions(in world: URL) async throws -> [(person: String, user: String, token: String)] {
        let directory = world.appendingPathComponent("cloud")
        let (cloud, access) = (try EmbeddedCloud(at: directory), try CredentialStore(at: directory))
        try await access.addContainer(TwoUserFixture.container)
        var sessions: [(person: String, user: String, token: String)] = []
        for person in SharingTrial.people {
            let account = try #require(try await cloud.account("\(person)@example.org")).id
            let token = try await access.makeSession(
                account: account, container: TwoUserFixture.container, environment: .development, kind: .device)
            sessions.append((person, EmbeddedCloud.userRecordName(account, in: TwoUserFixture.container), token.text))
        }
        return sessions
    }
}

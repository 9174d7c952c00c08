import TestSupport
import Testing
import TidemarkCloud
import TidemarkHTTP
import TidemarkTesting

/// Goal: a server reads the bodies that the client compresses. Method: the client and a server in this process, over a socket.
@Suite(.timeLimit(.minutes(30))) struct ServedPackingTests {
    private static let zone = CloudZoneID("Journal")

    @Test func `a packed request is understood by the server`() async throws {
        let served = try await ServedCloudSubject.started()
        let known = try await served.cloud("anna@example.org")
        let store = SessionMemory()
        var timeouts = HTTPTimeouts()
        timeouts.packsOnLoopback = true
        let packing = HTTPCloud(
            served.address, container: FaultyCloudFixture.container, environment: .development, session: store,
            timeouts: timeouts)
        let token = try await served.access.makeSession(
            account: try #require(try await served.fixture.id("anna@example.org")), container: FaultyCloudFixture.container,
            environment: .development, kind: .device)
        store.keep(try CloudSession(cloud: packing.name, userRecordName: "_anna", token: token.text))
        try await packing.database(.private).modifyZones(saving: [Self.zone], deleting: [])
        let caption = String(repeating: "Senja ", count: 1000)
        let record = CloudRecord(CloudRecordID("a", in: Self.zone), type: "Destination", fields: ["caption": .string(caption)])
        _ = try await packing.database(.private).modify(
            ModifyRecordsRequest(zone: Self.zone, operations: [RecordOperation(.create, record)]))
        let found = try await known.database(.private).lookup(["a"], in: Self.zone, desiredKeys: nil)
        #expect(try found.first?.get().fields["caption"] == .string(caption))
    }
}

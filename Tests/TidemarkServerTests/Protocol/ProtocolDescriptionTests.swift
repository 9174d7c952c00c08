import Foundation
import Logging
import TestSupport
import Testing
import TidemarkIdentity

@testable import TidemarkServer

/// Goal: `openapi.json` describes every operation, and no other. Method: the operations of the real server, and the paths and
/// methods of `openapi.json`.
@Suite(.timeLimit(.minutes(30))) struct ProtocolDescriptionTests {
    @Test func `openapi.json has the server's operations, each path and method, and no other`() async throws {
        let fixture = try FaultyCloudFixture()
        try await CredentialStore(at: fixture.directory).addContainer(FaultyCloudFixture.container)
        let server = try CloudServer(
            ServerConfiguration(directory: fixture.directory, port: 0),
            logger: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
        // The console and the pages of people are for browsers, and not part of the protocol.
        let served = server.operations.filter { operation in !["console", "people"].contains { operation.id.hasPrefix($0) } }
            .map { "\($0.method.rawValue) \($0.path)" }
        let description = try #require(
            JSONSerialization.jsonObject(with: Data(PackageResources.openapi_json)) as? [String: Any])
        let paths = try #require(description["paths"] as? [String: [String: Any]])
        let methods: Set = ["get", "put", "post", "delete", "patch", "head", "options"]
        let described = paths.flatMap { path, items in
            items.keys.filter(methods.contains).map { "\($0.uppercased()) \(path)" }
        }
        #expect(served.count == Set(served).count)
        #expect(Set(served).subtracting(described).sorted() == [])
        #expect(Set(described).subtracting(served).sorted() == [])
    }
}

import Foundation
import TestServers
import TestSupport
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkServer

/// Runs a flow over a new cloud, in each kind of storage.
enum StoredClouds {
    typealias Flow = (EmbeddedCloud, CredentialStore) async throws -> Void

    static func overDirectory(_ flow: Flow) async throws {
        let scratch = try Scratch()
        try await flow(
            EmbeddedCloud(at: scratch["cloud"]), CredentialStore(at: scratch["cloud"], now: Timestamp.now, passwordLogN: 4))
    }

    static func overPostgreSQL(_ flow: Flow) async throws {
        let (scratch, server) = (try Scratch(), try PostgresServer.shared())
        try FileManager.default.createDirectory(at: scratch["assets"], withIntermediateDirectories: true)
        let opened = try await OpenedDatabase(
            ServerConfiguration.Database(
                address: server.address(try server.makeDatabase()), assets: .directory(scratch["assets"])))
        let (cloud, credentials) = try opened.administered()
        do {
            try await flow(cloud, credentials)
        } catch {
            await opened.close()
            throw error
        }
        await opened.close()
    }
}

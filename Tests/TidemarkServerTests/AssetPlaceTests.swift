import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkPostgres

@testable import TidemarkServer

/// Goal: a server never takes a directory for that with its database's contents if it is another one. Method: directories that
/// are moved, emptied and swapped, and a database that names contents or none.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct AssetPlaceTests {
    private let scratch = try! Scratch()
    private let server = try! PostgresServer.shared()
    private static let marker = ".tidemark-assets"

    /// Runs a body with a database that has its tables, and its name.
    private func withDatabase(_ body: (PostgresDatabase, _ name: String) async throws -> Void) async throws {
        let name = try server.makeDatabase()
        let database = PostgresDatabase(PostgresConfiguration(try PostgresAddress(server.address(name))))
        try await PostgresMigrations(PostgresCloudTables.migrations).run(on: database)
        do {
            try await body(database, name)
        } catch {
            await database.close()
            throw error
        }
        await database.close()
    }

    private func nameContent(in name: String) throws {
        try server.sql(
            "INSERT INTO tidemark_assets (container, owner, digest, size, payer) VALUES (1, '_a', repeat('0', 64)::bytea, 1, '_a')",
            in: name)
    }

    private func folder(_ name: String) throws -> URL {
        try FileManager.default.createDirectory(at: scratch[name], withIntermediateDirectories: true)
        return scratch[name]
    }

    private func tie(_ folder: URL, to database: PostgresDatabase) async throws {
        try await AssetPlace(.directory(folder)).tie(to: database)
    }

    private func refusal(of folder: URL, by database: PostgresDatabase) async -> String {
        let error = await #expect(throws: CloudError(.serviceUnavailable, "")) { try await tie(folder, to: database) }
        return error?.reason ?? ""
    }

    private func identifier(in folder: URL) throws -> String {
        try String(contentsOf: folder.appendingPathComponent(Self.marker), encoding: .utf8)
    }

    @Test func `a database accepts the first directory of assets, and no other afterwards`() async throws {
        try await withDatabase { database, name in
            let (first, other) = (try folder("first"), try folder("other"))
            try await tie(first, to: database)
            let kept = try #require(try await database.assetPlaceIdentifier())
            #expect(try identifier(in: first) == kept + "\n")
            try nameContent(in: name)
            try await tie(first, to: database)
            let missing = await refusal(of: other, by: database)
            #expect(missing.contains(other.path) && missing.contains("Is the file system mounted?"), "\(missing)")
            #expect(missing.contains("touch \(other.path)/\(Self.marker)"), "\(missing)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: other.path) == [])
            // A person who has moved the contents by hand confirms it with the same file or an empty one.
            try scratch.write(try identifier(in: first), to: "other/\(Self.marker)")
            try await tie(other, to: database)
            try scratch.write("", to: "third/\(Self.marker)")
            try await tie(scratch["third"], to: database)
            #expect(try identifier(in: scratch["third"]) == identifier(in: first))
        }
    }

    @Test func `a directory of another database is refused`() async throws {
        let shared = try folder("assets")
        try await withDatabase { one, _ in try await tie(shared, to: one) }
        try await withDatabase { other, _ in
            let reason = await refusal(of: shared, by: other)
            #expect(reason.contains("belongs to another database"), "\(reason)")
            let identifier = try await other.assetPlaceIdentifier()
            #expect(identifier == nil)
        }
    }

    @Test func `a database that names contents refuses an empty directory, and accepts one with contents`() async throws {
        try await withDatabase { database, name in
            try nameContent(in: name)
            let assets = try folder("assets")
            // A file system may have this folder of its own.
            _ = try folder("assets/lost+found")
            let reason = await refusal(of: assets, by: database)
            #expect(reason.contains("is empty, and the database names contents. Is the file system mounted?"), "\(reason)")
            #expect(try await database.assetPlaceIdentifier() == nil)
            _ = try folder("assets/journal/production")
            try await tie(assets, to: database)
            #expect(try await database.assetPlaceIdentifier() != nil)
        }
    }

    @Test func `servers that start at once tie the directory with one identifier`() async throws {
        try await withDatabase { database, _ in
            let assets = try folder("assets")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<8 { group.addTask { try await AssetPlace(.directory(assets)).tie(to: database) } }
                try await group.waitForAll()
            }
            let kept = try #require(try await database.assetPlaceIdentifier())
            #expect(try identifier(in: assets) == kept + "\n")
        }
    }

    @Test func `a missing directory, or a file in its place, is named with the remedy, and not made`() async throws {
        try await withDatabase { database, _ in
            let missing = await refusal(of: scratch["none"], by: database)
            #expect(missing.contains("is not there. Is the file system mounted?") && missing.contains("mkdir"), "\(missing)")
            #expect(!FileManager.default.fileExists(atPath: scratch["none"].path))
            let file = try scratch.write("", to: "file")
            let reason = await refusal(of: file, by: database)
            #expect(reason.hasSuffix("is a file"), "\(reason)")
        }
    }
}

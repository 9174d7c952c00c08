import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkTesting

/// Goal: every cloud does what the contract says. Method: the checks of `TidemarkTesting`, each on a cloud of its own.
@Suite struct ContractTests {
    /// An embedded cloud in a folder of the test's own.
    final class Embedded: CloudContract.Subject {
        private let scratch: Scratch
        private let cloud: EmbeddedCloud
        private let container = "iCloud.org.example.journal"

        init() throws {
            scratch = try Scratch()
            cloud = try EmbeddedCloud(at: scratch["cloud"])
        }

        func database(_ scope: DatabaseScope, account: String?) async throws -> any CloudDatabase {
            try cloud.database(scope, of: container, account: try await id(account))
        }

        func deployed(_ scope: DatabaseScope, account: String) async throws -> any CloudDatabase {
            try await cloud.deploySchema(of: container)
            return try cloud.database(scope, of: container, environment: .production, account: try await id(account))
        }

        private func id(_ account: String?) async throws -> String? {
            guard let account else { return nil }
            return try await cloud.addAccount(account).id
        }

        func index(_ field: String, of type: String) async throws {
            let known = try await cloud.schema(of: container).types[type]?.fields[field]?.type ?? ""
            var indexes: Set<CloudSchema.Index> = [.queryable]
            if !known.hasPrefix("list") { indexes.insert(.sortable) }
            if known == "string" { indexes.insert(.searchable) }
            try await cloud.setIndexes(indexes, of: field, in: type, container: container)
        }

        func setQuota(_ bytes: Int64, of account: String) async throws {
            var known = try #require(try await cloud.account(account))
            known.quota = bytes
            try await cloud.update(known)
        }

        func setStatus(_ status: CloudAccount.Status, of account: String) async throws {
            var known = try #require(try await cloud.account(account))
            known.status = status
            try await cloud.update(known)
        }

        func describe(_ account: String, name: PersonName, phone: String) async throws {
            var known = try await cloud.addAccount(account)
            (known.name, known.phone) = (name, phone)
            try await cloud.update(known)
        }

        func purge(_ zone: CloudZoneID, of account: String) async throws {
            try await cloud.database(.private, of: container, account: try await id(account)).purgeZone(zone)
        }
    }

    @Test(.timeLimit(.minutes(10)), arguments: CloudContract.checks)
    func `the embedded cloud fulfils the contract`(check: CloudContract.Check) async throws {
        try await check.run(Embedded())
    }
}

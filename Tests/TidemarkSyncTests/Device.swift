import Foundation
import GRDB
import TestSupport
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
import TidemarkTesting

/// A device of a person: a container of its own, and the engine that synchronises it.
struct Device {
    let container: ContainerDirectory
    let store: RecordStore
    let engine: SyncEngine

    init(
        _ url: URL, database: any CloudDatabase, configuration: SyncConfiguration = SyncConfiguration(),
        environment: SyncEnvironment = .system, containerEnvironment: StoreEnvironment = .development
    ) throws {
        container = try ContainerDirectory(openingOrCreatingAt: url, environment: containerEnvironment)
        store = try RecordStore(container: container, scope: .private, notifier: nil, now: environment.now)
        engine = try SyncEngine(container: container, database: database, configuration: configuration, environment: environment)
    }

    /// Waits until the device before has closed the container.
    static func opening(_ url: URL, database: any CloudDatabase) async throws -> Device {
        try await gone(url)
        return try Device(url, database: database)
    }

    /// Returns when no engine synchronises the container any more: the engine of a released device closes it a moment later, when
    /// its thread ends.
    static func gone(_ url: URL) async throws {
        let container = try ContainerDirectory(openingAt: url)
        let end = ContinuousClock.now + .seconds(60)
        while true {
            do {
                return try SyncLock(container).release()
            } catch let failure as ContainerEvent.Failure
                where failure.code == SyncErrorCode.anotherSyncer && ContinuousClock.now < end
            {
                await Task.yield()
            }
        }
    }

    static let author = TransactionAuthor("test", origin: .save)

    /// Sets fields of a record, new or existing.
    func set(_ name: String, _ values: [String: FieldValue?], type: String = "Destination") async throws {
        let schema = RecordTypeSchema(
            name: type, fields: values.compactMap { name, value in value.map { .init(name: name, type: $0.type) } })
        try await store.apply(
            [
                RecordEdit(
                    record: RecordName(type: type, name: name), base: .any, values: values.compactMapValues { $0 },
                    fields: Set(values.keys))
            ], schemas: [schema])
    }

    func delete(_ name: String, type: String = "Destination") async throws {
        try await store.apply(
            [RecordEdit(record: RecordName(type: type, name: name), base: .any, values: nil, fields: [])], schemas: [])
    }

    /// All records with their values.
    func records(_ type: String = "Destination") throws -> [String: [String: FieldValue]] {
        let reader = try StoreReader(container: container)
        var all: [String: [String: FieldValue]] = [:]
        guard let schema = try reader.types().first(where: { $0.name == type }) else { return [:] }
        try reader.forEachRecord(RecordQuery(type: type)) { record in
            all[record.name] = zip(schema.fields, record.values).reduce(into: [:]) { $0[$1.0.name] = $1.1 }
        }
        return all
    }

    func reader() throws -> StoreReader { try StoreReader(container: container) }
}

extension RecordStore {
    func apply(_ edits: [RecordEdit], schemas: [RecordTypeSchema]) throws {
        _ = try save(
            edits, schemas: schemas, blobs: [], author: Device.author, policy: { _ in .mergeByPropertyObjectTrump },
            check: { _ in })
    }
}

/// A cloud with one account.
struct TestCloud {
    let cloud: EmbeddedCloud
    let account: StoredAccount
    static let container = "iCloud.org.example.journal"

    init(
        _ scratch: Scratch, _ email: String = "anna@example.org", limits: CloudLimits = CloudLimits()
    ) async throws {
        cloud = try EmbeddedCloud(at: scratch["cloud"], limits: limits)
        account = try await cloud.addAccount(email)
    }

    func database(_ environment: StoreEnvironment = .development) throws -> EmbeddedDatabase {
        try cloud.database(.private, of: Self.container, environment: environment, account: account.id)
    }
}

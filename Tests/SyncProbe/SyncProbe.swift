import ArgumentParser
import Foundation
import GRDB
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkHTTP
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
import TidemarkTesting

/// Edits containers and synchronises them through a cloud that goes wrong, as processes that can be killed.
@main
struct SyncProbe: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync-probe", subcommands: [Synchronize.self, EditRecords.self, PurgeHistory.self, Digest.self])
}

struct Synchronize: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync", abstract: "Synchronises until both sides have all that the other has, or for ever.")

    @Argument var container: String
    @OptionGroup var cloud: CloudOptions
    @Option var policy = "mergeByPropertyObjectTrump"
    @Option(help: "Of all requests, how many go wrong.") var faults = 0.0
    @Option var seed: UInt64 = 1
    @Flag(help: "Goes on until it is killed.") var forever = false

    func run() async throws {
        let directory = try ContainerDirectory(openingAt: URL(fileURLWithPath: container))
        let faulty = FaultyDatabase(try await cloud.databases().private, plan: .all(rate: faults, seed: seed))
        guard let policy = MergePolicy(name: policy) else { throw ValidationError("no policy \(policy)") }
        var configuration = SyncConfiguration()
        configuration.mergePolicy = { _ in policy }
        let engine = try SyncEngine(container: directory, database: faulty, configuration: configuration)
        while true {
            let report = try await engine.sync(patience: .seconds(3600))
            if report.isComplete, !forever {
                print("complete \(report.imported) \(report.exported) \(report.conflicts)")
                return
            }
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}

/// Where the cloud is: in a directory, or behind a server.
struct CloudOptions: ParsableArguments {
    @Option(name: .customLong("cloud"), help: "The cloud's directory.") var directory: String?
    @Option(help: "The address of the server that has the cloud.") var server: String?
    @Option(help: "The file with the session to ask the server with.") var session: String?
    @Option(help: "The container in the cloud.") var cloudContainer = "probe"
    @Flag(name: .customLong("insecure-http"), help: "Allows http:// to other machines.") var insecureHTTP = false

    func validate() throws {
        guard (directory == nil) != (server == nil), (server == nil) == (session == nil) else {
            throw ValidationError("name one cloud: --cloud, or --server and --session")
        }
    }

    func databases() async throws -> CloudDatabases {
        if let server, let session {
            let file = SessionFile(at: URL(fileURLWithPath: session))
            return HTTPCloud(try ServerAddress(server, allowsInsecure: insecureHTTP), container: cloudContainer, session: file)
                .databases
        }
        let embedded = try EmbeddedCloud(at: URL(fileURLWithPath: directory ?? ""))
        return try embedded.databases(of: cloudContainer, account: try await embedded.addAccount("anna@example.org").id)
    }
}

struct EditRecords: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "edit", abstract: "Edits records at random, and tells of each edit when it is durable: record, field, value."
    )

    @Argument var container: String
    @Option var count = 1000
    @Option var seed: UInt64 = 1
    @Option(help: "Tells whose edits they are.") var device = "a"
    @Option(help: "Milliseconds between two.") var pause = 0
    @Option(help: "So many records are edited.") var records = 200

    func run() async throws {
        let directory = try ContainerDirectory(openingAt: URL(fileURLWithPath: container))
        let store = try RecordStore(container: directory, notifier: StoreChangeNotifier(container: directory, role: .app))
        let reader = try StoreReader(container: directory)
        let names = try reader.names("Destination", limit: records)
        var random = SeededRandom(seed)
        for number in 0..<count {
            let name = names[Int(random.next() % UInt64(names.count))]
            let field = random.next() % 2 == 0 ? "caption" : "rating"
            let value: FieldValue = field == "caption" ? .string("\(device) \(number)") : .int64(Int64(number))
            let edit = RecordEdit(
                record: RecordName(type: "Destination", name: name), base: .any, values: [field: value], fields: [field])
            // A line that was begun tells of an edit that may be there or not.
            print("try \(name) \(field) \(number)")
            fflush(nil)
            _ = try await store.save(
                [edit], schemas: [], blobs: [], author: TransactionAuthor("probe", origin: .save), policy: { _ in .overwrite },
                check: { _ in })
            print("done \(name) \(field) \(number)")
            fflush(nil)
            if pause > 0 { try await Task.sleep(for: .milliseconds(pause)) }
        }
    }
}

struct PurgeHistory: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge-history", abstract: "Removes the private store's history that is older than some minutes.")

    @Argument var container: String
    @Option var minutes = 10

    func run() async throws {
        let directory = try ContainerDirectory(openingAt: URL(fileURLWithPath: container))
        let store = try RecordStore(container: directory, notifier: StoreChangeNotifier(container: directory, role: .app))
        let purge = try await store.purgeHistory(olderThan: .seconds(60 * minutes), keepingAtLeast: .zero)
        print("\(purge.transactions) transactions, \(purge.changes) changes")
    }
}

struct Digest: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "digest", abstract: "A digest of all records, and with --values what they hold.")

    @Argument var container: String
    @Flag var values = false

    func run() async throws {
        let reader = try StoreReader(container: ContainerDirectory(openingAt: URL(fileURLWithPath: container)))
        var digest = AssetDigest()
        var count = 0
        let types = try reader.types().map(\.name)
        for type in try reader.types().sorted(by: { $0.name < $1.name }) {
            try reader.forEachRecord(RecordQuery(type: type.name, sortField: "_name")) { record in
                let fields = zip(type.fields, record.values).compactMap { field, value in value.map { "\(field.name)=\($0)" } }
                let line = ([type.name, record.name] + fields.sorted()).joined(separator: "\u{1f}")
                digest.update(Data((line + "\n").utf8))
                count += 1
                if values {
                    let byName = Dictionary(uniqueKeysWithValues: zip(type.fields.map(\.name), record.values))
                    func text(_ field: String) -> String {
                        switch byName[field] ?? nil {
                        case .string(let text): text
                        case .int64(let number): "\(number)"
                        default: ""
                        }
                    }
                    print("\(record.name)\t\(text("caption"))\t\(text("rating"))")
                }
            }
        }
        let pending = try reader.outbox().pending
        // What the outbox does not know of would wait for ever.
        let rows = try reader.read { db in
            try types.reduce(0) { count, type in
                try count + (Int.fetchOne(db, sql: "SELECT count(*) FROM _\(type) WHERE _pending IS NOT NULL") ?? 0)
            }
        }
        precondition(rows <= pending, "\(rows) rows are pending, and the outbox knows of \(pending)")
        print("digest \(digest.finish().digest) \(count) records, \(pending) pending")
    }
}

extension StoreReader {
    fileprivate func names(_ type: String, limit: Int) throws -> [String] {
        var names: [String] = []
        try forEachRecord(RecordQuery(type: type, sortField: "_name", limit: limit)) { names.append($0.name) }
        return names
    }
}

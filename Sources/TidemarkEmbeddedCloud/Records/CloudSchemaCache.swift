import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Caches the decoded schema of a container, which every request that saves records needs.
///
/// The database names each state of the schema by a random number, so that a state which was rolled back is never taken for
/// another.
final class CloudSchemaCache: Sendable {
    private let known = LockedValue<(version: Int64, schema: CloudSchema)?>(nil)

    func schema(of version: Int64) -> CloudSchema? {
        known.withLock { known in known?.version == version ? known?.schema : nil }
    }

    func keep(_ schema: CloudSchema, of version: Int64) { known.withLock { $0 = (version, schema) } }
}

extension SQLiteCloudTransaction {
    func schema() throws(CloudError) -> CloudSchema {
        try run {
            guard let version = try Int64.fetchOne(statement("SELECT value FROM counters WHERE name = 'schema'")) else {
                return CloudSchema()
            }
            if let known = context.schemas.schema(of: version) { return known }
            let content = try Data.fetchOne(statement("SELECT content FROM documents WHERE name = 'schema'"))
            let schema = try content.map { try JSONDecoder().decode(CloudSchema.self, from: $0) } ?? CloudSchema()
            context.schemas.keep(schema, of: version)
            return schema
        }
    }

    func save(_ schema: CloudSchema) throws(CloudError) {
        try run {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            try statement("INSERT OR REPLACE INTO documents (name, content) VALUES ('schema', ?)")
                .execute(arguments: [try encoder.encode(schema)])
            let version = Int64.random(in: .min ... .max)
            try statement("INSERT OR REPLACE INTO counters (name, value) VALUES ('schema', ?)").execute(arguments: [version])
        }
    }

    func countRecords(
        of type: String, where isCounted: (Data) throws(CloudError) -> Bool
    ) throws(CloudError) -> Int {
        try run {
            let rows = try Row.fetchCursor(
                statement("SELECT fields FROM records WHERE type = ? AND is_deleted = 0"), arguments: [type])
            var count = 0
            while let row = try rows.next() {
                if try isCounted(row.decode(atIndex: 0)) { count += 1 }
            }
            return count
        }
    }
}

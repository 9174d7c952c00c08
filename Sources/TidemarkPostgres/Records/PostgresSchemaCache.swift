import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// The schema of a container as it was last decoded: every request that saves looks at it.
///
/// The database names each state of the schema by a random number, so that a state that was rolled back is never taken for another.
final class PostgresSchemaCache: Sendable {
    private let known = LockedValue<(version: Int64, schema: CloudSchema)?>(nil)

    func schema(of version: Int64) -> CloudSchema? {
        known.withLock { known in known?.version == version ? known?.schema : nil }
    }

    func keep(_ schema: CloudSchema, of version: Int64) { known.withLock { $0 = (version, schema) } }
}

extension PostgresCloudTransaction {
    func schema() throws(CloudError) -> CloudSchema {
        try run {
            let row = try db.query(commandOfSchema).first
            guard let version: Int64 = try row?.value(0) else {
                state.schema = 0
                return CloudSchema()
            }
            state.schema = version
            if let known = context.schemas.schema(of: version) { return known }
            // Another server may have replaced it since.
            let sql = "SELECT version, content FROM tidemark_schemas WHERE container = $1"
            guard let row = try db.query(sql, container).first else {
                throw CloudError(.internalError, "the database has lost a schema")
            }
            let schema = try JSONDecoder().decode(CloudSchema.self, from: try row.value(1, as: Data.self))
            let newest: Int64 = try row.value(0)
            state.schema = newest
            context.schemas.keep(schema, of: newest)
            return schema
        }
    }

    func save(_ schema: CloudSchema) throws(CloudError) {
        try run {
            guard written != nil else { throw CloudError(.internalError, "a transaction that reads writes the schema") }
            state.hasWritten = true
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            let content = try encoder.encode(schema)
            let version = Int64.random(in: 1 ... .max)
            let known = state.schema ?? 0
            let sql =
                known == 0
                ? """
                INSERT INTO tidemark_schemas (container, version, content) SELECT $1, $2, $3 WHERE $4 = 0
                ON CONFLICT (container) DO NOTHING
                """ : "UPDATE tidemark_schemas SET version = $2, content = $3 WHERE container = $1 AND version = $4"
            guard try db.query(sql, container, version, content, known).affected == 1 else {
                throw db.restart("another server has changed the schema meanwhile")
            }
            state.schema = version
        }
    }
}

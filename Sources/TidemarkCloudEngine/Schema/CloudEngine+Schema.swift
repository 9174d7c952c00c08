import Foundation
package import TidemarkCloud
package import TidemarkModel

extension CloudEngine {
    /// Sets the indexes of a field; `recordName` stands for the type itself. Existing records are indexed again.
    ///
    /// - Throws: `CloudError` `invalidArguments` for a field that is not there or that can't have such an index.
    package func setIndexes(_ indexes: Set<CloudSchema.Index>, of field: String, in typeName: String) async throws(CloudError) {
        try await storage.write(owners: .all) { rows throws(CloudError) in
            var schema = try rows.schema()
            guard var type = schema.types[typeName] else {
                throw CloudError(.unknownItem, "there is no record type '\(typeName)'")
            }
            if field == "recordName" {
                type.isQueryable = indexes.contains(.queryable)
                schema.types[typeName] = type
                return try rows.save(schema)
            }
            guard var known = type.fields[field], let fieldType = known.fieldType else {
                throw CloudError(.invalidArguments, "'\(typeName)' has no field '\(field)'")
            }
            for index in indexes {
                guard index.suits(fieldType) else {
                    throw CloudError(.invalidArguments, "a field of the type \(fieldType) can't be \(index.rawValue)")
                }
            }
            for index in CloudSchema.Index.allCases {
                guard indexes.contains(index) else {
                    known.indexes[index] = nil
                    continue
                }
                if known.indexes[index] == nil {
                    known.indexes[index] = schema.nextIndex
                    schema.nextIndex += 1
                }
            }
            type.fields[field] = known
            schema.types[typeName] = type
            try rows.save(schema)
            try rows.reindex(typeName) { record, data throws(CloudError) in
                schema.indexed(stored: data, type: typeName, name: record)
            }
        }
    }

    /// Adds types and fields to a development schema. What is there already stays as it is.
    ///
    /// - Throws: `CloudError` `invalidArguments` for a name that can't be, and for a field that has another type; `limitExceeded` for a field
    ///   too many. Nothing is added then.
    package func addToSchema(_ types: [String: [String: FieldType]]) async throws(CloudError) {
        try await storage.write(owners: []) { rows throws(CloudError) in
            var schema = try rows.schema()
            for (name, fields) in types {
                try CloudSchema.checkName(name)
                var type = schema.types[name] ?? CloudSchema.RecordType()
                for (field, wanted) in fields {
                    if let known = type.fields[field] {
                        guard known.fieldType == wanted else {
                            throw CloudError(
                                .invalidArguments, "'\(field)' of '\(name)' is \(known.type), and can't become \(wanted)")
                        }
                        continue
                    }
                    try CloudSchema.checkName(field)
                    try CloudSchema.checkTypeOfDevices(wanted, of: field)
                    type.fields[field] = CloudSchema.Field(type: wanted.description)
                }
                guard type.fields.count <= limits.fieldsPerType else {
                    throw CloudError(.limitExceeded, "'\(name)' can't have more than \(limits.fieldsPerType) fields")
                }
                schema.types[name] = type
            }
            try rows.save(schema)
        }
    }

    /// Adds the types and fields of a schema to this environment, where the schema is fixed. Existing types and fields stay.
    ///
    /// - Parameter known: The types with which the schema was compared; `nil` to deploy over any types.
    /// - Throws: `CloudError` `invalidArguments` where a field has another type; `serverRecordChanged` where other types than the known ones
    ///   are there, and they lack something of this schema.
    package func deploy(_ schema: CloudSchema, over known: CloudSchema? = nil) async throws(CloudError) {
        try await storage.write(owners: .all) { rows throws(CloudError) in
            let before = try rows.schema()
            var deployed = before
            for (name, type) in schema.types {
                var there = deployed.types[name] ?? CloudSchema.RecordType()
                there.isQueryable = type.isQueryable
                for (field, wanted) in type.fields {
                    if let known = there.fields[field], known.type != wanted.type {
                        throw CloudError(
                            .invalidArguments,
                            "'\(field)' of '\(name)' is \(known.type) in production and can't become \(wanted.type). Give the field "
                                + "another name in development")
                    }
                    var merged = there.fields[field] ?? CloudSchema.Field(type: wanted.type)
                    merged.indexes = [:]
                    for index in CloudSchema.Index.allCases where wanted.indexes[index] != nil {
                        merged.indexes[index] = there.fields[field]?.indexes[index] ?? deployed.nextIndex
                        if merged.indexes[index] == deployed.nextIndex { deployed.nextIndex += 1 }
                    }
                    there.fields[field] = merged
                }
                deployed.types[name] = there
            }
            // A transaction that runs again finds its own result.
            if let known, before.types != known.types, before.types != deployed.types {
                throw CloudError(.serverRecordChanged, "the schema of production has changed meanwhile, and nothing is deployed")
            }
            try rows.save(deployed)
            for name in schema.types.keys {
                try rows.reindex(name) { record, data throws(CloudError) in
                    deployed.indexed(stored: data, type: name, name: record)
                }
            }
        }
    }

    /// Replaces the schema of development by the deployed one, after the environment's records were removed.
    ///
    /// - Parameter deployed: The schema of production. No number of an index is used twice.
    package func reset(to deployed: CloudSchema) async throws(CloudError) {
        try await storage.write(owners: .all) { rows throws(CloudError) in
            var schema = try rows.schema()
            let before = schema.types.keys
            schema.types = [:]
            for (name, type) in deployed.types.sorted(by: { $0.key < $1.key }) {
                var made = CloudSchema.RecordType(isQueryable: type.isQueryable)
                for (field, known) in type.fields.sorted(by: { $0.key < $1.key }) {
                    made.fields[field] = CloudSchema.Field(type: known.type)
                    for index in CloudSchema.Index.allCases where known.indexes[index] != nil {
                        made.fields[field]?.indexes[index] = schema.nextIndex
                        schema.nextIndex += 1
                    }
                }
                schema.types[name] = made
            }
            try rows.save(schema)
            // Records may have been saved meanwhile. They are indexed by the new schema.
            let now = schema
            for name in Set(before).union(schema.types.keys) {
                try rows.reindex(name) { record, data throws(CloudError) in
                    now.indexed(stored: data, type: name, name: record)
                }
            }
        }
    }

    /// Lets a development schema grow no more, or again.
    package func setFrozen(_ isFrozen: Bool) async throws(CloudError) {
        try await storage.write(owners: []) { rows throws(CloudError) in
            var schema = try rows.schema()
            schema.isFrozen = isFrozen ? true : nil
            try rows.save(schema)
        }
    }

    /// Removes a type, or one of its fields, from a development schema. The next record that has the field decides its type.
    ///
    /// - Parameter isForced: Whether to remove it although records have it. They keep their values and can be read, but no query
    ///   finds them by the field any more.
    /// - Returns: The number of records that have it.
    /// - Throws: `CloudError` `unknownItem` for what is not there; `invalidArguments` where records have it.
    package func removeFromSchema(_ typeName: String, field: String?, isForced: Bool) async throws(CloudError) -> Int {
        @Sendable func check(_ schema: CloudSchema) throws(CloudError) -> CloudSchema.RecordType {
            guard let type = schema.types[typeName] else {
                throw CloudError(.unknownItem, "there is no record type '\(typeName)'")
            }
            guard field.map({ type.fields[$0] != nil }) ?? true else {
                throw CloudError(.unknownItem, "'\(typeName)' has no field '\(field ?? "")'")
            }
            return type
        }
        // A read does not block writers, and this one looks at all records.
        let count = try await storage.read { rows throws(CloudError) in
            _ = try check(rows.schema())
            return try rows.countRecords(of: typeName) { data throws(CloudError) in
                guard let field else { return true }
                return try FieldCoding.decode(data, only: [field])[field] != nil
            }
        }
        let what = field.map { "the field '\($0)' of '\(typeName)'" } ?? "the type '\(typeName)'"
        guard count == 0 || isForced else {
            throw CloudError(
                .invalidArguments,
                "\(count) \(count == 1 ? "record has" : "records have") \(what), and nothing is removed. With --force it is: "
                    + "records keep their values, no query finds them by it, and the next record that is saved decides the type. "
                    + "Devices that hold values of the old type are refused after that")
        }
        try await storage.write(owners: .all) { rows throws(CloudError) in
            var schema = try rows.schema()
            var type = try check(schema)
            let isIndexed: Bool
            if let field {
                isIndexed = type.fields.removeValue(forKey: field)?.indexes.isEmpty == false
                schema.types[typeName] = type
            } else {
                isIndexed = type.fields.values.contains { !$0.indexes.isEmpty }
                schema.types[typeName] = nil
            }
            try rows.save(schema)
            guard isIndexed else { return }
            try rows.reindex(typeName) { record, data throws(CloudError) in
                schema.indexed(stored: data, type: typeName, name: record)
            }
        }
        return count
    }

    package func schema() async throws(CloudError) -> CloudSchema {
        try await storage.read { rows throws(CloudError) in try rows.schema() }
    }
}

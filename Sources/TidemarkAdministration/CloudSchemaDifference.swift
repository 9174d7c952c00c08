import Foundation
import TidemarkCloud
import TidemarkCloudEngine

/// One thing in which the development schema differs from that of production.
package struct CloudSchemaDifference: Hashable, Sendable {
    /// What differs.
    package enum Change: Hashable, Sendable {
        case newType
        case newField(String)
        /// Deploying is refused because of it.
        case otherType(production: String, development: String)
        case indexes(production: [String], development: [String])
        /// Production has it, and keeps it.
        case onlyInProduction
    }

    package let type: String
    /// `nil` for the type itself.
    package let field: String?
    package let change: Change

    /// Whether deploying is refused because of it.
    package var isRefused: Bool { if case .otherType = change { true } else { false } }

    /// The difference, for people.
    package var sentence: String {
        let name = field.map { "\(type).\($0)" } ?? type
        switch change {
        case .newType: return "\(name) is new"
        case .newField(let kind): return "\(name) is new: \(kind)"
        case .otherType(let production, let development):
            return "\(name) is \(production) in production, and \(development) in development"
        case .indexes(let production, let development):
            let (new, old) = (development.filter { !production.contains($0) }, production.filter { !development.contains($0) })
            let changes = [("gets", new), ("loses", old)].filter { !$0.1.isEmpty }.map { verb, indexes in
                "\(verb) the \(indexes.count == 1 ? "index" : "indexes") \(indexes.joined(separator: ", "))"
            }
            return "\(name) \(changes.joined(separator: " and "))"
        case .onlyInProduction: return "\(name) is in production only, and stays there"
        }
    }

    /// Whether deploying changes something in production because of it, or is refused.
    package var isDeployed: Bool { change != .onlyInProduction }

    /// A digest of differences. Other differences have another digest.
    package static func digest(of differences: [CloudSchemaDifference]) -> String {
        let texts = differences.map { "\($0.type)\0\($0.field ?? "")\0\($0.sentence)\0" }
        return AssetDigest.asset(of: Data(texts.joined().utf8)).digest
    }

    static func between(_ development: CloudSchema, _ production: CloudSchema) -> [CloudSchemaDifference] {
        var found: [CloudSchemaDifference] = []
        for name in Set(development.types.keys).union(production.types.keys).sorted() {
            guard let new = development.types[name] else {
                found.append(.init(type: name, field: nil, change: .onlyInProduction))
                continue
            }
            let old = production.types[name]
            if old == nil { found.append(.init(type: name, field: nil, change: .newType)) }
            let fields = Set(new.fields.keys).union(old?.fields.keys.map { $0 } ?? [])
            for field in ["recordName"] + fields.sorted() {
                let (here, there) = (new.fields[field], old?.fields[field])
                if let here, let there, here.type != there.type {
                    found.append(
                        .init(type: name, field: field, change: .otherType(production: there.type, development: here.type)))
                    continue
                }
                if here == nil, there != nil {
                    found.append(.init(type: name, field: field, change: .onlyInProduction))
                    continue
                }
                if let here, there == nil { found.append(.init(type: name, field: field, change: .newField(here.type))) }
                let (wanted, known) = (names(new.indexes(of: field)), names(old?.indexes(of: field) ?? []))
                if wanted != known {
                    found.append(.init(type: name, field: field, change: .indexes(production: known, development: wanted)))
                }
            }
        }
        return found
    }

    private static func names(_ indexes: Set<CloudSchema.Index>) -> [String] {
        CloudSchema.Index.allCases.filter(indexes.contains).map(\.rawValue)
    }
}

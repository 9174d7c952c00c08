import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// A request without a reply, as `tide_requests` has it, complete enough to be made again. Each property of the changes is an
/// array of values, so that many changes are written and read at once.
struct StoredRequest: Codable {
    /// The properties that many changes have in common.
    struct Shape: Codable, Hashable {
        let type: Int64
        let kind: Int
        let fields: [String]
        let cleared: [String]
        let edited: String
    }

    private var shapes: [Shape] = []
    /// For each change, the number of its shape.
    private var shape: [Int] = []
    private var rows: [Int64] = []
    private var versions: [Int64] = []
    private var names: [String] = []
    /// Empty for none.
    private var tags: [String] = []

    private init(_ items: [ExportItem]) {
        var last: (item: ExportItem, shape: Int)?
        for item in items {
            if last.map({ $0.item.hasShape(of: item) }) != true {
                shapes.append(
                    Shape(
                        type: item.key.typeID, kind: item.key.kind.rawValue, fields: item.values.keys.sorted(),
                        cleared: item.cleared.sorted(), edited: item.edited.description))
                last = (item, shapes.count - 1)
            }
            shape.append(shapes.count - 1)
            rows.append(item.key.row)
            versions.append(item.version)
            names.append(item.name)
            tags.append(item.tag ?? "")
        }
    }

    /// A change, as it was sent.
    struct Item {
        let shape: Shape
        let row, version: Int64
        let name: String
        let tag: String?
    }

    /// The changes of a stored text; none if the text is damaged. Then the request is forgotten, and its changes are sent again.
    static func items(of text: String) -> [Item] {
        guard let stored = try? JSONDecoder().decode(StoredRequest.self, from: Data(text.utf8)) else { return [] }
        let counts = [stored.rows.count, stored.versions.count, stored.names.count, stored.tags.count]
        guard counts.allSatisfy({ $0 == stored.shape.count }), stored.shape.allSatisfy(stored.shapes.indices.contains) else {
            return []
        }
        return stored.shape.indices.map { index in
            Item(
                shape: stored.shapes[stored.shape[index]], row: stored.rows[index], version: stored.versions[index],
                name: stored.names[index], tag: stored.tags[index].isEmpty ? nil : stored.tags[index])
        }
    }

    /// JSON in the form of `JSONEncoder`, which takes a hundred times as long for single texts and numbers.
    static func text(of items: [ExportItem]) throws -> String {
        let request = StoredRequest(items)
        func json(_ value: some Encodable) throws -> String { String(decoding: try JSONEncoder().encode(value), as: UTF8.self) }
        func list(_ texts: [String]) throws -> String {
            let quoted = try texts.map { text in
                text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x22 && $0 != 0x5c } ? "\"\(text)\"" : try json(text)
            }
            return "[\(quoted.joined(separator: ","))]"
        }
        func list(_ numbers: [some BinaryInteger]) -> String { "[\(numbers.map { String($0) }.joined(separator: ","))]" }
        return """
            {"shapes":\(try json(request.shapes)),"shape":\(list(request.shape)),"rows":\(list(request.rows)),\
            "versions":\(list(request.versions)),"names":\(try list(request.names)),"tags":\(try list(request.tags))}
            """
    }
}

extension ExportItem {
    fileprivate func hasShape(of other: ExportItem) -> Bool {
        key.typeID == other.key.typeID && key.kind == other.key.kind && edited == other.edited && cleared == other.cleared
            && values.count == other.values.count && values.keys.allSatisfy { other.values[$0] != nil }
    }
}

extension SentRequest {
    /// Notes the request as one that may have been sent.
    func store(_ db: Database, zone: Int64) throws {
        try db.cachedStatement(sql: "INSERT OR REPLACE INTO tide_requests (token, items, zone) VALUES (?, ?, ?)")
            .execute(arguments: [token, StoredRequest.text(of: items), zone])
    }

    /// The records of a zone's requests that have no reply yet.
    static func names(_ db: Database, zone: Int64) throws -> Set<String> {
        let sql = "SELECT i.value FROM tide_requests r, json_each(r.items, '$.names') i WHERE r.zone = ?"
        return Set(try String?.fetchAll(db.cachedStatement(sql: sql), arguments: [zone]).compactMap { $0 })
    }
}

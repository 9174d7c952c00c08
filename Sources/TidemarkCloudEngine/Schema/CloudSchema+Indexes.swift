import Foundation
import TidemarkCloud
package import TidemarkModel

extension CloudSchema.Index {
    package func suits(_ type: FieldType) -> Bool {
        switch self {
        case .queryable: type.scalar.isOrdered
        case .sortable: !type.isList && type.scalar.isOrdered
        case .searchable: type.scalar.hasWords
        }
    }
}

extension FieldType.Scalar {
    /// Whether values of the type can be compared in a query.
    fileprivate var isOrdered: Bool {
        switch self {
        case .string, .int64, .double, .timestamp, .location, .reference: true
        case .bytes, .asset: false
        }
    }

    /// Whether values of the type have words that can be searched for.
    fileprivate var hasWords: Bool {
        switch self {
        case .string: true
        case .int64, .double, .timestamp, .bytes, .location, .reference, .asset: false
        }
    }
}

extension CloudSchema {
    /// Returns the values that a record is found under, by the numbers of the indexes. Where a record lacks a value of a sortable
    /// index, the negative number of the index has the record's name. So records without a value are found in the order of their
    /// names.
    func indexed(_ fields: [String: CloudValue], type: String, name record: String) -> [Int64: [IndexValue]] {
        guard let known = types[type] else { return [:] }
        var indexed: [Int64: [IndexValue]] = [:]
        for (name, field) in known.fields where !field.indexes.isEmpty {
            let sortable = field.indexes[.sortable]
            guard let value = fields[name] else {
                if let sortable { indexed[-sortable] = [.text(record)] }
                continue
            }
            var values = value.scalars.compactMap(\.indexValue)
            if let sortable {
                // A field that was a list and was removed may have left several values. The first is compared and sorted by.
                values = Array(values.prefix(1))
                if values.isEmpty { indexed[-sortable] = [.text(record)] } else { indexed[sortable] = values }
            }
            if let index = field.indexes[.queryable] { indexed[index] = values }
            if let index = field.indexes[.searchable] {
                let tokens = value.scalars.flatMap { scalar -> [String] in
                    switch scalar {
                    case .string(let text): Self.tokens(text)
                    case .int64, .double, .timestamp, .bytes, .location, .reference, .asset, .list: []
                    }
                }
                indexed[index] = Set(tokens).sorted().map { .text($0) }
            }
        }
        return indexed
    }

    /// As ``indexed(_:type:name:)``, for fields as they are stored. Damaged fields have no values, so a query finds their record
    /// only among those without a value.
    func indexed(stored fields: Data, type: String, name: String) -> [Int64: [IndexValue]] {
        indexed((try? FieldCoding.decode(fields)) ?? [:], type: type, name: name)
    }

    /// Returns the words of a text, in the form in which they are compared.
    static func tokens(_ text: String) -> [String] {
        text.lowercased().split { !$0.isLetter && !$0.isNumber }.map(String.init)
    }
}

extension CloudValue {
    var indexValue: IndexValue? {
        switch self {
        case .string(let text): .text(text)
        case .int64(let number), .timestamp(let number): .integer(number)
        case .double(let number): .real(number)
        case .location(let place): .text("\(place.latitude) \(place.longitude)")
        case .reference(let reference): .text(reference.recordName)
        case .bytes, .asset, .list: nil
        }
    }
}

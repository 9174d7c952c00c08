import Foundation
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Values as a store has them, and as a cloud has them.
enum ValueMapping {
    /// - Parameter asset: The cloud's name of one of the store's assets.
    /// - Returns: `nil` for what a cloud can't hold: a list or a location that is no such JSON.
    static func cloudValue(_ value: FieldValue, asset: (String) -> CloudAsset?) -> CloudValue? {
        switch value {
        case .string(let text): return .string(text)
        case .int64(let number): return .int64(number)
        case .double(let number): return .double(number)
        case .timestamp(let time): return .timestamp(time)
        case .bytes(let bytes): return .bytes(Data(bytes))
        case .location(let text):
            return (try? JSONDecoder().decode(Location.self, from: Data(text.utf8))).map { .location($0) }
        case .reference(let name): return .reference(CloudReference(name))
        case .asset(let id): return asset(id).map { .asset($0) }
        case .list(let text, let scalar):
            let data = Data(text.utf8)
            func list<Element: Decodable>(_ type: Element.Type, _ value: (Element) -> CloudValue?) -> CloudValue? {
                guard let elements = try? JSONDecoder().decode([Element].self, from: data) else { return nil }
                let values = elements.compactMap(value)
                return values.count == elements.count ? .list(values, of: scalar) : nil
            }
            switch scalar {
            case .string: return list(String.self) { .string($0) }
            case .int64: return list(Int64.self) { .int64($0) }
            case .double: return list(Double.self) { .double($0) }
            case .timestamp: return list(Int64.self) { .timestamp($0) }
            case .reference: return list(String.self) { .reference(CloudReference($0)) }
            case .asset: return list(String.self) { asset($0).map { .asset($0) } }
            case .bytes, .location: return nil
            }
        }
    }

    /// - Parameter asset: The store's name of an asset.
    /// - Returns: `nil` for what a store can't hold.
    static func storeValue(_ value: CloudValue, asset: (CloudAsset) -> String?) -> FieldValue? {
        guard value.scalars.allSatisfy(\.isFinite) else { return nil }
        switch value {
        case .string(let text): return .string(text)
        case .int64(let number): return .int64(number)
        // A store has no negative zero.
        case .double(let number): return .double(number == 0 ? 0 : number)
        case .timestamp(let time): return .timestamp(time)
        case .bytes(let data): return .bytes(Array(data))
        case .location(let place): return .location(StoredText.location(place))
        case .reference(let reference): return .reference(reference.recordName)
        case .asset(let file): return asset(file).map { .asset($0) }
        case .list(let elements, let scalar):
            // Bytes and locations can't be in a list of a store's.
            guard scalar != .bytes, scalar != .location else { return nil }
            let values = elements.compactMap { storeValue($0, asset: asset) }
            guard values.count == elements.count, values.allSatisfy({ $0.type == FieldType(scalar) }) else { return nil }
            return .list(StoredText.list(values), of: scalar)
        }
    }
}

extension ExportItem {
    /// The assets that it names in the store.
    var assets: [String] {
        var assets: [String] = []
        for value in values.values where value.type.scalar == .asset { assets += value.assetIDs }
        return assets
    }
}

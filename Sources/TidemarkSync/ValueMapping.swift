import Foundation
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Maps values between a store and a cloud.
enum ValueMapping {
    /// - Parameter asset: The cloud's name of one of the store's assets.
    /// - Returns: The value in the cloud; `nil` for an asset that the cloud has no name for.
    static func cloudValue(_ value: FieldValue, asset: (String) -> CloudAsset?) -> CloudValue? {
        switch value {
        case .string(let text): return .string(text)
        case .int64(let number): return .int64(number)
        case .double(let number): return .double(number)
        case .timestamp(let time): return .timestamp(time)
        case .bytes(let bytes): return .bytes(Data(bytes))
        case .location(let place): return .location(place)
        case .reference(let name): return .reference(CloudReference(name))
        case .asset(let id): return asset(id).map { .asset($0) }
        case .list(let elements, let scalar):
            let values = elements.compactMap { cloudValue($0, asset: asset) }
            return values.count == elements.count ? .list(values, of: scalar) : nil
        }
    }

    /// - Parameter asset: The store's name of an asset.
    /// - Returns: The value in the store; `nil` for a value that a store can't hold.
    static func storeValue(_ value: CloudValue, asset: (CloudAsset) -> String?) -> FieldValue? {
        guard value.scalars.allSatisfy(\.isFinite) else { return nil }
        switch value {
        case .string(let text): return .string(text)
        case .int64(let number): return .int64(number)
        // A store has no negative zero.
        case .double(let number): return .double(number == 0 ? 0 : number)
        case .timestamp(let time): return .timestamp(time)
        case .bytes(let data): return .bytes(Array(data))
        case .location(let place): return .location(place)
        case .reference(let reference): return .reference(reference.recordName)
        case .asset(let file): return asset(file).map { .asset($0) }
        case .list(let elements, let scalar):
            // A list in a store can't hold bytes or locations.
            guard scalar != .bytes, scalar != .location else { return nil }
            let values = elements.compactMap { storeValue($0, asset: asset) }
            guard values.count == elements.count, values.allSatisfy({ $0.type == FieldType(scalar) }) else { return nil }
            return .list(values, of: scalar)
        }
    }
}

extension ExportItem {
    /// The store's assets that the value names.
    var assets: [String] {
        var assets: [String] = []
        for value in values.values where value.type.scalar == .asset { assets += value.assetIDs }
        return assets
    }
}

import Foundation
package import TidemarkModel

extension FieldValue {
    /// The assets that it names.
    package var assetIDs: [String] {
        switch self {
        case .asset(let id): [id]
        case .list(let elements, of: .asset): elements.flatMap(\.assetIDs)
        case .string, .int64, .double, .timestamp, .bytes, .location, .reference, .list: []
        }
    }
}

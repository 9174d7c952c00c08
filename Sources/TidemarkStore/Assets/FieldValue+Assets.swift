import Foundation
import TidemarkModel

extension FieldValue {
    /// The assets that it names; none in a list that is no JSON, which no store of ours has.
    package var assetIDs: [String] {
        switch self {
        case .asset(let id): [id]
        case .list(let text, of: .asset): (try? JSONDecoder().decode([String].self, from: Data(text.utf8))) ?? []
        default: []
        }
    }
}

import Foundation
import TidemarkModel
import TidemarkStore

extension Location: FieldConvertible {
    static var fieldType: FieldType { .location }

    func fieldContent() throws -> FieldContent {
        let members: [(String, Double?)] = [
            ("latitude", latitude), ("longitude", longitude), ("altitude", altitude), ("horizontalAccuracy", horizontalAccuracy),
            ("verticalAccuracy", verticalAccuracy), ("course", course), ("speed", speed),
        ]
        guard abs(latitude) <= 90, abs(longitude) <= 180, members.allSatisfy({ $0.1?.isFinite ?? true }) else {
            throw FieldError("the position \(latitude), \(longitude) is not on Earth, or a part of it is no number")
        }
        return .value(.location(StoredText.object(members.compactMap { name, value in value.map { (name, $0) } })))
    }

    init(_ stored: StoredField) throws {
        let text = try stored.text(as: .location)
        do {
            self = try JSONDecoder().decode(Location.self, from: Data(text.utf8))
        } catch {
            throw FieldError("holds '\(text)', which is no location")
        }
    }
}

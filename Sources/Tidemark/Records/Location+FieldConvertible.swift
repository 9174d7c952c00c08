import Foundation
public import TidemarkModel
import TidemarkSQLite
import TidemarkStore

extension Location: FieldConvertible {
    static var fieldType: FieldType { .location }

    func fieldContent() throws -> FieldContent {
        let others = [altitude, horizontalAccuracy, verticalAccuracy, course, speed]
        guard abs(latitude) <= 90, abs(longitude) <= 180, others.allSatisfy({ $0?.isFinite ?? true }) else {
            throw FieldError("the position \(latitude), \(longitude) is not on Earth, or a part of it is no number")
        }
        return .value(.location(self))
    }

    init(_ stored: StoredField) throws {
        let text = try stored.text(as: .location)
        guard let place = StoredText.place(text) else { throw FieldError("holds '\(text)', which is no location") }
        self = place
    }
}

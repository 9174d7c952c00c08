public import TidemarkCloud
public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

extension DeferredRecord {
    /// The name of the record's type, or of a field, that the store can't have because another name differs from it by the case of letters
    /// only; `nil` where the record was deferred for another reason.
    ///
    /// - Parameter types: The record types of the store.
    /// - Throws: `CloudError` where the deferred record can't be read.
    public func nameCollision(in types: [RecordTypeSchema]) throws(CloudError) -> NameCollision? {
        guard reason == .schema else { return nil }
        guard let known = types.first(where: { $0.name == type }) else {
            return types.first { NameCollision.collide($0.name, type) }.map { NameCollision(.recordType, type, $0.name) }
        }
        let fields = try fields().keys.sorted()
        let schema = RecordTypeSchema(name: type, fields: fields.map { .init(name: $0, type: .string) })
        return schema.nameCollision(with: known.fields)
    }
}

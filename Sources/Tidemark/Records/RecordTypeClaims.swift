import TidemarkModel
import TidemarkSQLite

/// The Swift types that a program uses for the record types of a container.
///
/// Two types of the same name, such as `Trip.Photo` and `Album.Photo`, would share one record type by mistake. A type that declares
/// its ``Record/recordType`` shares it on purpose.
final class RecordTypeClaims: Sendable {
    private let claims = LockedValue<[String: any Record.Type]>([:])
    /// The fields that hold the titles of shares, by record type; `nil` for a type without such a field.
    private let titleFields = LockedValue<[String: String?]>([:])

    /// The merge policies of types that have their own.
    private let policies = LockedValue<[String: MergePolicy]>([:])

    /// Returns the merge policy of a record type; `nil` if the program has used no Swift type with a policy for it.
    func mergePolicy(of type: String) -> MergePolicy? { policies.withLock { $0[type] } }

    /// Returns the field that holds the title of shares of a record type; `nil` if the program has used no Swift type with such a
    /// field.
    func shareTitleField(of type: String) -> String? { titleFields.withLock { $0[type] ?? nil } }

    /// Records the merge policy of a type, and the field that holds the title of shares.
    private func note<R: Record>(of type: R.Type, _ name: String) throws(StoreError) {
        guard titleFields.withLock({ $0[name] }) == nil else { return }
        let field: String?
        if let path = R.shareTitle { field = try PropertyNames.name(of: path) } else { field = nil }
        if let policy = R.mergePolicy { policies.withLock { $0[name] = policy } }
        titleFields.withLock { $0[name] = .some(field) }
    }

    /// Checks that no other type uses the record type by the default name.
    ///
    /// - Throws: ``StoreError`` `schema`; `invalid` if ``Record/shareTitle`` names no field.
    func check<R: Record>(_ type: R.Type) throws(StoreError) {
        let name = R.recordType
        try note(of: type, name)
        guard ImplicitRecordTypes.contains(type) else { return }
        let other = claims.withLock { claims -> (any Record.Type)? in
            guard let known = claims[name] else {
                claims[name] = type
                return nil
            }
            return ObjectIdentifier(known) == ObjectIdentifier(type) ? nil : known
        }
        guard let other else { return }
        throw StoreError(
            .schema,
            "\(String(reflecting: type)) and \(String(reflecting: other)) both have the record type '\(name)', by the default "
                + "name. Declare `static let recordType` in one of them: another name, or the same name if they should share the records"
        )
    }
}

/// The types whose record type is the name of the Swift type, because they declare none.
enum ImplicitRecordTypes {
    private static let names = LockedValue<[ObjectIdentifier: String]>([:])

    /// Returns the name of a type, and records that the type declares no record type.
    static func name(of type: any Record.Type) -> String {
        let id = ObjectIdentifier(type)
        if let name = names.withLock({ $0[id] }) { return name }
        let name = String(describing: type)
        names.withLock { $0[id] = name }
        return name
    }

    static func contains(_ type: any Record.Type) -> Bool { names.withLock { $0[ObjectIdentifier(type)] != nil } }
}

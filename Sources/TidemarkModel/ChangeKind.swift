/// What a change did to a record. The raw values are stored, and are those of `tide_change_kind` in the C core.
public enum ChangeKind: Int, Codable, CaseIterable, Sendable {
    /// The record was made; as `NSPersistentHistoryChangeType.insert`.
    case insert = 1
    /// Values of the record were changed; as `NSPersistentHistoryChangeType.update`.
    case update = 2
    /// The record was deleted; as `NSPersistentHistoryChangeType.delete`.
    case delete = 3
}

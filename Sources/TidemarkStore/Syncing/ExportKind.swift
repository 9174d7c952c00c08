/// What the cloud is asked to do with a record. The raw values are stored; an insert and an update are both a save.
public enum ExportKind: Int, Sendable {
    /// The record was made or changed here.
    case save = 1
    /// The record was deleted here.
    case delete = 3
}

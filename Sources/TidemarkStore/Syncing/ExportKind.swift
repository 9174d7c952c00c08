/// The operation that the cloud is asked for. The raw values are stored. An insert and an update are both saves.
public enum ExportKind: Int, Sendable {
    /// The record was made or changed here.
    case save = 1
    /// The record was deleted here.
    case delete = 3
}

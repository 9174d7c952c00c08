import TidemarkSQLite

extension StoreReader {
    /// Reads what an open store has committed.
    package init(_ store: RecordStore) {
        self.init(container: store.container, scope: store.scope, database: store.reader)
    }
}

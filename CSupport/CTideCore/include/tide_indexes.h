/// Builds the indexes of a record type's table, and builds them again where they do not match the table.
///
/// When a disk flips a bit in an indexed column, the index keeps the former value. As SQLite updates or deletes the row, it looks for the
/// entry of the present value, and fails with SQLITE_CORRUPT_INDEX. The indexes of values are derived from the table, so they can be built
/// again (REINDEX reads the table and nothing else), and then the row can be written. The index of names is not built again for a damaged
/// row: it may have the only intact copy of the name.
///
/// Rules: as for a writer (`tide_writer.h`): the caller's connection and transaction; one thread at a time.
/// Why C: the writer needs it between two of its steps.

#ifndef TIDE_INDEXES_H
#define TIDE_INDEXES_H

#include "tide_writer.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// Builds the indexes of a table that are missing: the unique one of its names, and `table->indexes`.
/// Complexity: O(n log n) in the rows for each index that is missing, else O(1).
tide_status tide_indexes_build(struct sqlite3 *connection, const tide_table *table, tide_error *TIDE_NULLABLE error);

/// Drops the same indexes, for a load. No statement of the connection may be at a row.
tide_status tide_indexes_drop(struct sqlite3 *connection, const tide_table *table, tide_error *TIDE_NULLABLE error);

/// Builds all indexes of a table again from its rows, except the index `kept`; with NULL, all of them. TIDE_CORRUPT if two rows have the
/// same name.
/// Complexity: O(n log n) in the rows for each index.
tide_status tide_indexes_rebuild(
    struct sqlite3 *connection, const char *table, const char *TIDE_NULLABLE kept, tide_error *TIDE_NULLABLE error);

/// Whether the last call on the connection failed because an index lacks the entry of a row.
bool tide_indexes_lack_row(struct sqlite3 *connection);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

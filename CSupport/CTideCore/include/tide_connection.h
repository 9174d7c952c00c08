/// The settings that every connection to a store needs, and checkpoints.
///
/// Why C: `sqlite3_db_config` and `sqlite3_file_control` are variadic or untyped and can't be called from Swift.

#ifndef TIDE_CONNECTION_H
#define TIDE_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

struct sqlite3;
struct sqlite3_stmt;

/// Prepares a connection: DEFENSIVE on; double-quoted strings, trusted schema, automatic checkpoints and the checkpoint on closing
/// off; the -wal file stays when the last connection closes; synchronous FULL.
tide_status tide_connection_prepare(struct sqlite3 *connection, tide_error *TIDE_NULLABLE error);

/// Moves the write-ahead log into the database file; with `truncate`, empties the log too unless a reader needs it. The caller holds
/// the store's lock. `*remaining` is the number of frames that readers still hold back.
tide_status tide_connection_checkpoint(
    struct sqlite3 *connection, bool truncate, int32_t *remaining, tide_error *TIDE_NULLABLE error);

/// Has the number of pages in the write-ahead log written to `*frames` after each commit, for as long as the connection lives.
void tide_connection_watch_log(struct sqlite3 *connection, int32_t *frames);

/// Reads the number in the only row of a statement without arguments, and resets the statement. `false` when it has no row or fails.
bool tide_statement_number(struct sqlite3_stmt *statement, int32_t *number);

/// The last error of a connection as a status (TIDE_DISK_FULL, TIDE_BUSY, TIDE_CORRUPT, ...): "cannot DOING: SQLite's message".
tide_status tide_sqlite_error(struct sqlite3 *connection, const char *doing, tide_error *TIDE_NULLABLE error);
/// Why the system could not read the connection's database, or its log, if that ever happened: EIO, ENXIO or ERANGE; else 0. SQLite calls these
/// damage (SQLITE_CORRUPT).
int32_t tide_connection_read_errno(struct sqlite3 *connection);

/// The status and the message of an extended result code of SQLite.
tide_status tide_sqlite_code_error(int code, const char *message, const char *doing, tide_error *TIDE_NULLABLE error);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

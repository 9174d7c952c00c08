#include "tide_connection.h"

#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>
#include <string.h>

#include "tide_connection_settings.h"

tide_status tide_sqlite_code_error(int code, const char *message, const char *doing, tide_error *error) {
    tide_status status;
    switch (code & 0xff) {
    case SQLITE_FULL: status = TIDE_DISK_FULL; break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: status = TIDE_BUSY; break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: status = TIDE_CORRUPT; break;
    case SQLITE_NOMEM: status = TIDE_NO_MEMORY; break;
    case SQLITE_IOERR:
        // The log's index could not grow, because the disk has no room. SQLite reports that as an error of the disk.
        if (code == SQLITE_IOERR_SHMSIZE) {
            return tide_error_set(error, TIDE_DISK_FULL, code, "cannot %s: no space is left for the index of the log", doing);
        }
        status = TIDE_IO_ERROR;
        break;
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY: status = TIDE_IO_ERROR; break;
    default: status = TIDE_SQLITE_ERROR; break;
    }
    return tide_error_set(error, status, code, "cannot %s: %s", doing, message);
}

static int32_t file_read_errno(sqlite3_file *file) {
    int number = 0;
    if (!file || !file->pMethods || file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &number) != SQLITE_OK) return 0;
    return number == EIO || number == ENXIO || number == ERANGE ? number : 0;
}

int32_t tide_connection_read_errno(sqlite3 *connection) {
    sqlite3_file *database = NULL, *log = NULL;
    sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &database);
    sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    int32_t number = file_read_errno(database);
    return number ? number : file_read_errno(log);
}

tide_status tide_sqlite_error(sqlite3 *connection, const char *doing, tide_error *error) {
    int code = sqlite3_extended_errcode(connection);
    const char *path = sqlite3_db_filename(connection, "main");
    bool has_path = path && *path;
    if ((code & 0xff) == SQLITE_CORRUPT && has_path) {
        int32_t number = tide_connection_read_errno(connection);
        if (number) return tide_error_set(error, TIDE_IO_ERROR, number, "cannot %s: cannot read %s: %s", doing, path, strerror(number));
    }
    // SQLite opens a file for reading if it can't open it for writing, and reports that only at the first write.
    if (code == SQLITE_READONLY && has_path) {
        return tide_error_set(
            error, TIDE_IO_ERROR, code,
            "cannot %s: the database %s, or the log beside it, could be opened for reading only. Make sure that its files can be written, and "
            "that their disk works and has room", doing, path);
    }
    return tide_sqlite_code_error(code, sqlite3_errmsg(connection), doing, error);
}

int tide_connection_configure(sqlite3 *connection) {
    static const struct {
        int option, value;
    } settings[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1}, {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1}, {SQLITE_DBCONFIG_DQS_DML, 0},
        {SQLITE_DBCONFIG_DQS_DDL, 0},   {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
    };
    int code = SQLITE_OK;
    for (unsigned i = 0; i < sizeof settings / sizeof *settings && code == SQLITE_OK; i++) {
        code = sqlite3_db_config(connection, settings[i].option, settings[i].value, NULL);
    }
    return code;
}

tide_status tide_connection_prepare(sqlite3 *connection, tide_error *error) {
    int code = tide_connection_configure(connection), persist = 1;
    sqlite3_file_control(connection, "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
    sqlite3_wal_autocheckpoint(connection, 0);
    if (code == SQLITE_OK) code = sqlite3_exec(connection, "PRAGMA synchronous = FULL", NULL, NULL, NULL);
    return code == SQLITE_OK ? TIDE_OK : tide_sqlite_error(connection, "configure the connection", error);
}

static int log_note(void *context, sqlite3 *connection, const char *name, int frames) {
    (void)connection;
    (void)name;
    *(int32_t *)context = frames;
    return SQLITE_OK;
}

void tide_connection_watch_log(sqlite3 *connection, int32_t *frames) { sqlite3_wal_hook(connection, log_note, frames); }

bool tide_statement_number(sqlite3_stmt *statement, int32_t *number) {
    bool has_row = sqlite3_step(statement) == SQLITE_ROW;
    if (has_row) *number = sqlite3_column_int(statement, 0);
    return sqlite3_reset(statement) == SQLITE_OK && has_row;
}

tide_status tide_connection_checkpoint(sqlite3 *connection, bool truncate, int32_t *remaining, tide_error *error) {
    int frames = 0, moved = 0;
    int mode = truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
    int code = sqlite3_wal_checkpoint_v2(connection, "main", mode, &frames, &moved);
    // Busy: a reader holds frames back. All other frames were moved, and the rest is as durable in the log.
    if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY) return tide_sqlite_error(connection, "move the log into the database", error);
    *remaining = frames > moved ? frames - moved : 0;
    return TIDE_OK;
}

#include "tide_indexes.h"

#include <sqlite3.h>

#include "tide_connection.h"
#include "tide_text.h"

static tide_status execute(sqlite3 *connection, const tide_text *sql, const char *doing, tide_error *error) {
    if (sql->failed) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    return sqlite3_exec(connection, sql->bytes, NULL, NULL, NULL) ? tide_sqlite_error(connection, doing, error) : TIDE_OK;
}

tide_status tide_indexes_build(sqlite3 *connection, const tide_table *table, tide_error *error) {
    tide_text sql = {0};
    tide_text_format(&sql, "CREATE UNIQUE INDEX IF NOT EXISTS \"%s\" ON \"%s\" (_key, _zone)", table->index_name, table->name);
    tide_status status = execute(connection, &sql, "build the index of names", error);
    for (uint32_t i = 0; i < table->index_count && !status; i++) {
        tide_text_clear(&sql);
        tide_text_format(
            &sql, "CREATE INDEX IF NOT EXISTS \"%s\" ON \"%s\" (%s)", table->indexes[i].name, table->name, table->indexes[i].columns);
        status = execute(connection, &sql, "build an index of values", error);
    }
    tide_text_free(&sql);
    return status;
}

tide_status tide_indexes_drop(sqlite3 *connection, const tide_table *table, tide_error *error) {
    tide_text sql = {0};
    tide_text_format(&sql, "DROP INDEX IF EXISTS \"%s\"", table->index_name);
    tide_status status = execute(connection, &sql, "set the index of names aside", error);
    for (uint32_t i = 0; i < table->index_count && !status; i++) {
        tide_text_clear(&sql);
        tide_text_format(&sql, "DROP INDEX IF EXISTS \"%s\"", table->indexes[i].name);
        status = execute(connection, &sql, "set an index of values aside", error);
    }
    tide_text_free(&sql);
    return status;
}

tide_status tide_indexes_rebuild(sqlite3 *connection, const char *table, const char *kept, tide_error *error) {
    // SQLite itself quotes the names (%w): an untrusted file may give an index any name.
    const char *list =
        "SELECT group_concat(printf('REINDEX main.\"%w\";', name), '') FROM main.sqlite_master "
        "WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?1 COLLATE NOCASE AND name IS NOT ?2";
    sqlite3_stmt *statement = NULL;
    tide_text sql = {0};
    tide_status status = TIDE_OK;
    int code = sqlite3_prepare_v2(connection, list, -1, &statement, NULL);
    if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
    if (code == SQLITE_OK) code = kept ? sqlite3_bind_text(statement, 2, kept, -1, SQLITE_STATIC) : sqlite3_bind_null(statement, 2);
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        const char *statements = (const char *)sqlite3_column_text(statement, 0);
        tide_text_format(&sql, "%s", statements ? statements : "");
    } else {
        status = tide_sqlite_error(connection, "list the indexes", error);
    }
    sqlite3_finalize(statement);
    if (!status && sql.failed) status = tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    if (!status && sqlite3_exec(connection, sql.bytes, NULL, NULL, NULL) != SQLITE_OK) {
        code = sqlite3_extended_errcode(connection);
        status = (code & 0xff) == SQLITE_CONSTRAINT
                     ? tide_error_set(error, TIDE_CORRUPT, code, "two rows of the table %s have the same name", table)
                     : tide_sqlite_error(connection, "rebuild the indexes", error);
    }
    tide_text_free(&sql);
    return status;
}

bool tide_indexes_lack_row(sqlite3 *connection) { return sqlite3_extended_errcode(connection) == SQLITE_CORRUPT_INDEX; }

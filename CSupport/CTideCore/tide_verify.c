#include "tide_verify.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "tide_column.h"
#include "tide_connection.h"
#include "tide_text.h"

uint64_t tide_column_digest(sqlite3_stmt *row, int column, uint64_t field_seed) {
    switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER: return tide_value_digest_integer(field_seed, sqlite3_column_int64(row, column));
    case SQLITE_FLOAT: return tide_value_digest_real(field_seed, sqlite3_column_double(row, column));
    case SQLITE_NULL: return 0;
    default: {
        const void *bytes = sqlite3_column_blob(row, column);
        return tide_value_digest_bytes(field_seed, bytes, (size_t)sqlite3_column_bytes(row, column));
    }
    }
}

enum { column_id, column_digest, column_key, first_field };

static uint64_t row_digest(sqlite3_stmt *row, uint64_t seed, const uint64_t *field_seeds, uint32_t count) {
    bool is_blob = sqlite3_column_type(row, column_key) == SQLITE_BLOB;
    const void *key = sqlite3_column_blob(row, column_key);
    uint64_t digest = tide_key_digest(seed, key, (size_t)sqlite3_column_bytes(row, column_key), is_blob);
    for (uint32_t i = 0; i < count; i++) digest += tide_column_digest(row, (int)(first_field + i), field_seeds[i]);
    return digest;
}

tide_status tide_table_verify(
    sqlite3 *connection, uint64_t seed, const tide_table *table, uint64_t *rows, tide_row_visitor visitor, void *context,
    tide_error *error
) {
    *rows = 0;
    uint64_t *seeds = calloc(table->field_count + 1, sizeof *seeds);
    tide_text sql = {0};
    tide_text_format(&sql, "SELECT _id, _digest, _key");
    for (uint32_t i = 0; i < table->field_count; i++) {
        tide_text_format(&sql, ", \"%s\"", table->fields[i].column);
        if (seeds) seeds[i] = tide_field_seed(seed, table->fields[i].name, strlen(table->fields[i].name));
    }
    tide_text_format(&sql, " FROM \"%s\" NOT INDEXED", table->name);
    sqlite3_stmt *row = NULL;
    tide_status status = TIDE_OK;
    if (!seeds || sql.failed) {
        status = tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    } else if (sqlite3_prepare_v2(connection, sql.bytes, (int)sql.length, &row, NULL) != SQLITE_OK) {
        status = tide_sqlite_error(connection, "read the records", error);
    } else {
        int code;
        while ((code = sqlite3_step(row)) == SQLITE_ROW) {
            ++*rows;
            if ((uint64_t)sqlite3_column_int64(row, column_digest) != row_digest(row, seed, seeds, table->field_count)) {
                visitor(context, sqlite3_column_int64(row, column_id));
            }
        }
        if (code != SQLITE_DONE) status = tide_sqlite_error(connection, "read the records", error);
    }
    sqlite3_finalize(row);
    tide_text_free(&sql);
    free(seeds);
    return status;
}

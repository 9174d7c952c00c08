#include "tide_verify.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "tide_column.h"
#include "tide_connection.h"
#include "tide_indexes.h"
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

bool tide_column_has_type(sqlite3_stmt *row, int column, uint32_t type) {
    int stored = sqlite3_column_type(row, column);
    if (stored == SQLITE_NULL) return true;
    switch (type) {
    case TIDE_TYPE_INT64:
    case TIDE_TYPE_TIMESTAMP: return stored == SQLITE_INTEGER;
    case TIDE_TYPE_DOUBLE: return stored == SQLITE_FLOAT;
    case TIDE_TYPE_BYTES: return stored == SQLITE_BLOB;
    default: return stored == SQLITE_TEXT;
    }
}

static uint64_t key_digest(sqlite3_stmt *row, int column, uint64_t seed) {
    bool is_blob = sqlite3_column_type(row, column) == SQLITE_BLOB;
    const void *key = sqlite3_column_blob(row, column);
    return tide_key_digest(seed, key, (size_t)sqlite3_column_bytes(row, column), is_blob);
}

bool tide_row_is_intact(
    sqlite3_stmt *row, tide_row_columns columns, uint64_t seed, const tide_field_digest *fields, uint32_t count
) {
    uint64_t digest = key_digest(row, columns.key, seed);
    for (uint32_t i = 0; i < count; i++) {
        int column = columns.first_field + (int)i;
        // The type is asked for once, for the class and the digest, because this runs for every value that is exported.
        int type = sqlite3_column_type(row, column);
        if (type == SQLITE_NULL) continue;
        switch (fields[i].type) {
        case TIDE_TYPE_INT64:
        case TIDE_TYPE_TIMESTAMP:
            if (type != SQLITE_INTEGER) return false;
            digest += tide_value_digest_integer(fields[i].seed, sqlite3_column_int64(row, column));
            continue;
        case TIDE_TYPE_DOUBLE:
            if (type != SQLITE_FLOAT) return false;
            digest += tide_value_digest_real(fields[i].seed, sqlite3_column_double(row, column));
            continue;
        case TIDE_TYPE_BYTES:
            if (type != SQLITE_BLOB) return false;
            break;
        default:
            if (type != SQLITE_TEXT) return false;
            break;
        }
        const void *bytes = sqlite3_column_blob(row, column);
        digest += tide_value_digest_bytes(fields[i].seed, bytes, (size_t)sqlite3_column_bytes(row, column));
    }
    return (uint64_t)sqlite3_column_int64(row, columns.digest) == digest;
}

uint64_t tide_row_digest_parts(
    sqlite3_stmt *row, tide_row_columns columns, uint64_t seed, const tide_field_digest *fields, uint32_t count, uint64_t *parts
) {
    uint64_t digest = key_digest(row, columns.key, seed);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t part = tide_column_digest(row, columns.first_field + (int)i, fields[i].seed);
        if (parts) parts[i] = part;
        digest += part;
    }
    return (uint64_t)sqlite3_column_int64(row, columns.digest) - digest;
}

enum { column_id, column_digest, column_key, first_field };

static const tide_row_columns columns_of_table = {.key = column_key, .digest = column_digest, .first_field = first_field};

/// Prepares a statement that yields a table's rows, and the seeds of its fields.
static tide_status rows_prepare(
    sqlite3 *connection, uint64_t seed, const tide_table *table, const char *condition, tide_field_digest **fields,
    sqlite3_stmt **row, tide_error *error
) {
    *row = NULL;
    if (!(*fields = calloc(table->field_count + 1, sizeof **fields))) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    tide_text sql = {0};
    tide_text_format(&sql, "SELECT _id, _digest, _key");
    for (uint32_t i = 0; i < table->field_count; i++) {
        tide_text_format(&sql, ", \"%s\"", table->fields[i].column);
        (*fields)[i] = (tide_field_digest){
            .seed = tide_field_seed(seed, table->fields[i].name, strlen(table->fields[i].name)), .type = table->fields[i].type};
    }
    tide_text_format(&sql, " FROM \"%s\" %s", table->name, condition);
    tide_status status = TIDE_OK;
    if (sql.failed) {
        status = tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    } else if (sqlite3_prepare_v2(connection, sql.bytes, (int)sql.length, row, NULL) != SQLITE_OK) {
        status = tide_sqlite_error(connection, "read the records", error);
    }
    tide_text_free(&sql);
    return status;
}

tide_status tide_table_verify(
    sqlite3 *connection, uint64_t seed, const tide_table *table, uint64_t *rows, tide_row_visitor visitor, void *context,
    tide_error *error
) {
    *rows = 0;
    tide_field_digest *fields = NULL;
    sqlite3_stmt *row = NULL;
    tide_status status = rows_prepare(connection, seed, table, "NOT INDEXED", &fields, &row, error);
    if (!status) {
        int code;
        while ((code = sqlite3_step(row)) == SQLITE_ROW) {
            ++*rows;
            if (!tide_row_is_intact(row, columns_of_table, seed, fields, table->field_count)) {
                visitor(context, sqlite3_column_int64(row, column_id));
            }
        }
        if (code != SQLITE_DONE) status = tide_sqlite_error(connection, "read the records", error);
    }
    sqlite3_finalize(row);
    free(fields);
    return status;
}

// Flipped bits

/// The most bytes that are hashed in search of a flipped bit: less than a second's work.
#define TIDE_MEND_WORK 8000000000.0

/// Flips each bit of some bytes in turn, until they have the wanted digest. Then the bit stays flipped; otherwise the bytes are as before.
static bool bytes_mend(uint8_t *bytes, size_t length, uint64_t field_seed, uint64_t wanted) {
    if ((double)length * (double)length * 8 > TIDE_MEND_WORK) return false;
    for (size_t i = 0; i < length; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (uint8_t)(1 << bit);
            if (tide_value_digest_bytes(field_seed, bytes, length) == wanted) return true;
            bytes[i] ^= (uint8_t)(1 << bit);
        }
    }
    return false;
}

/// The column and the value to write once a flipped bit was found.
typedef struct mended {
    const char *column;
    int type;
    int64_t integer;
    double real;
    uint8_t *bytes;
    size_t length;
} mended;

/// Looks for a flipped bit in the value of a column, which has its field's type, and whose digest should be `wanted`.
static tide_status value_mend(
    sqlite3_stmt *row, int column, uint64_t field_seed, uint64_t wanted, mended *found, bool *is_found, tide_error *error
) {
    int type = sqlite3_column_type(row, column);
    *found = (mended){.type = type};
    switch (type) {
    case SQLITE_NULL: return TIDE_OK;
    case SQLITE_INTEGER:
        for (int bit = 0; bit < 64 && !*is_found; bit++) {
            found->integer = (int64_t)((uint64_t)sqlite3_column_int64(row, column) ^ UINT64_C(1) << bit);
            *is_found = tide_value_digest_integer(field_seed, found->integer) == wanted;
        }
        return TIDE_OK;
    case SQLITE_FLOAT:
        for (int bit = 0; bit < 64 && !*is_found; bit++) {
            double value = sqlite3_column_double(row, column);
            uint64_t bits;
            memcpy(&bits, &value, sizeof bits);
            bits ^= UINT64_C(1) << bit;
            memcpy(&found->real, &bits, sizeof bits);
            // NaN would be stored as NULL.
            *is_found = found->real == found->real && tide_value_digest_real(field_seed, found->real) == wanted;
        }
        return TIDE_OK;
    default: break;
    }
    const void *bytes = sqlite3_column_blob(row, column);
    found->length = (size_t)sqlite3_column_bytes(row, column);
    if (found->length == 0) return TIDE_OK;
    if (!(found->bytes = malloc(found->length))) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    memcpy(found->bytes, bytes, found->length);
    *is_found = bytes_mend(found->bytes, found->length, field_seed, wanted);
    if (!*is_found) {
        free(found->bytes);
        found->bytes = NULL;
    }
    return TIDE_OK;
}

static tide_status mended_write(sqlite3 *connection, const tide_table *table, int64_t id, const mended *found, tide_error *error) {
    tide_text sql = {0};
    tide_text_format(&sql, "UPDATE \"%s\" SET \"%s\" = ?1 WHERE _id = ?2", table->name, found->column);
    sqlite3_stmt *update = NULL;
    tide_status status = TIDE_OK;
    if (sql.failed) {
        status = tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    } else if (sqlite3_prepare_v2(connection, sql.bytes, (int)sql.length, &update, NULL) != SQLITE_OK) {
        status = tide_sqlite_error(connection, "repair a record", error);
    } else {
        int code = SQLITE_OK;
        switch (found->type) {
        case SQLITE_INTEGER: code = sqlite3_bind_int64(update, 1, found->integer); break;
        case SQLITE_FLOAT: code = sqlite3_bind_double(update, 1, found->real); break;
        case SQLITE_TEXT:
            code = sqlite3_bind_text(update, 1, (const char *)found->bytes, (int)found->length, SQLITE_STATIC);
            break;
        default: code = sqlite3_bind_blob(update, 1, found->bytes, (int)found->length, SQLITE_STATIC); break;
        }
        if (code == SQLITE_OK) code = sqlite3_bind_int64(update, 2, id);
        if (code == SQLITE_OK) code = sqlite3_step(update);
        if (code != SQLITE_DONE) {
            status = tide_sqlite_error(connection, "repair a record", error);
            // The index has the record's right value already, and so lacks the damaged row's entry.
            if (tide_indexes_lack_row(connection)) {
                sqlite3_reset(update);
                status = tide_indexes_rebuild(connection, table->name, table->index_name, error);
                if (!status && sqlite3_step(update) != SQLITE_DONE) status = tide_sqlite_error(connection, "repair a record", error);
            }
        }
    }
    sqlite3_finalize(update);
    tide_text_free(&sql);
    return status;
}

tide_status tide_row_mend_bit(
    sqlite3 *connection, uint64_t seed, const tide_table *table, int64_t id, bool *is_mended, tide_error *error
) {
    *is_mended = false;
    tide_field_digest *fields = NULL;
    sqlite3_stmt *row = NULL;
    mended found = {0};
    uint64_t *parts = calloc(table->field_count + 1, sizeof *parts);
    tide_status status = rows_prepare(connection, seed, table, "WHERE _id = ?1", &fields, &row, error);
    if (!status && !parts) status = tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    if (!status) {
        int code = sqlite3_bind_int64(row, 1, id);
        if (code == SQLITE_OK) code = sqlite3_step(row);
        if (code == SQLITE_ROW && !tide_row_is_intact(row, columns_of_table, seed, fields, table->field_count)) {
            uint64_t missing = tide_row_digest_parts(row, columns_of_table, seed, fields, table->field_count, parts);
            uint64_t stored = (uint64_t)sqlite3_column_int64(row, column_digest), computed = stored - missing;
            bool has_types = true;
            for (uint32_t i = 0; i < table->field_count; i++) {
                has_types = has_types && tide_column_has_type(row, (int)(first_field + i), fields[i].type);
            }
            uint64_t difference = stored ^ computed;
            if (has_types && difference && (difference & (difference - 1)) == 0) {
                found = (mended){.column = "_digest", .type = SQLITE_INTEGER, .integer = (int64_t)computed};
                *is_mended = true;
            }
            for (uint32_t i = 0; i < table->field_count && has_types && !*is_mended && !status; i++) {
                status = value_mend(row, (int)(first_field + i), fields[i].seed, parts[i] + missing, &found, is_mended, error);
                found.column = table->fields[i].column;
            }
        } else if (code != SQLITE_ROW && code != SQLITE_DONE) {
            status = tide_sqlite_error(connection, "read a record", error);
        }
        sqlite3_reset(row);
    }
    if (!status && *is_mended) status = mended_write(connection, table, id, &found, error);
    if (status) *is_mended = false;
    free(found.bytes);
    free(parts);
    free(fields);
    sqlite3_finalize(row);
    return status;
}

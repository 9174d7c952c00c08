#include "tide_writer.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tide_batch_layout.h"
#include "tide_column.h"
#include "tide_connection.h"
#include "tide_fingerprints.h"
#include "tide_text.h"

// Bookkeeping columns of a type's table in the order of the INSERT; the fields follow.
enum { insert_id = 1, insert_key, insert_zone, insert_version, insert_pending, insert_digest, insert_first_field };
enum { update_version = 1, update_pending, update_digest, update_id, update_first_field };
enum { load_version = 0, load_pending, load_first_field };
enum { update_cache_size = 16 };
// tide_changes.kind and tide_outbox.kind
enum { change_insert = 1, change_update = 2 };

typedef struct stored_field {
    char *name;
    char *column;
    size_t name_length;
    tide_type type;
    uint64_t seed;
} stored_field;

/// An UPDATE of one set of fields, kept because a source tends to change the same fields in many rows.
typedef struct update_statement {
    sqlite3_stmt *statement;
    uint8_t *fields;
    uint64_t last_use;
} update_statement;

/// A row of the batch and what it is sorted by: the beginning of its key, so that sorting seldom looks at the key itself; or the row
/// id of its record.
typedef struct ordered_row {
    uint64_t rank;
    uint32_t row;
} ordered_row;

struct tide_writer {
    sqlite3 *connection;
    uint64_t seed;
    char *table;
    char *index_name;
    int64_t type_id;
    stored_field *fields;
    uint32_t field_count;
    char **siblings;
    uint32_t sibling_count;

    sqlite3_stmt *find, *scan, *load, *insert, *note_change, *note_pending;
    sqlite3_stmt **find_in_sibling;
    update_statement updates[update_cache_size];
    uint64_t update_uses;

    bool index_is_checked;
    tide_fingerprints *fingerprints;

    /// Of the batch at hand: its column's index + 1 for each field, the cells to compare, the set of changed fields.
    uint32_t *column_of_field;
    uint8_t *changed_fields;
    /// Room for twice the batch's rows: all of them, and those that need a second look.
    ordered_row *order;
    uint32_t order_capacity;
    tide_text before;
};

static tide_status out_of_memory(tide_error *error) { return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory"); }

static tide_status prepare(
    tide_writer *writer, const tide_text *sql, const char *doing, sqlite3_stmt **statement, tide_error *error
) {
    if (sql->failed) return out_of_memory(error);
    if (sqlite3_prepare_v3(
            writer->connection, sql->bytes, (int)sql->length, SQLITE_PREPARE_PERSISTENT, statement, NULL)) {
        return tide_sqlite_error(writer->connection, doing, error);
    }
    return TIDE_OK;
}

/// Runs a statement that yields no row, and readies it for the next use.
static tide_status run(tide_writer *writer, sqlite3_stmt *statement, const char *doing, tide_error *error) {
    int code = sqlite3_step(statement);
    if (code == SQLITE_DONE) {
        sqlite3_reset(statement);
        return TIDE_OK;
    }
    tide_status status = tide_sqlite_error(writer->connection, doing, error);
    sqlite3_reset(statement);
    return status;
}

static tide_status execute(sqlite3 *connection, const tide_text *sql, const char *doing, tide_error *error) {
    if (sql->failed) return out_of_memory(error);
    return sqlite3_exec(connection, sql->bytes, NULL, NULL, NULL) ? tide_sqlite_error(connection, doing, error) : TIDE_OK;
}

static void finalize(sqlite3_stmt **statement) {
    sqlite3_finalize(*statement);
    *statement = NULL;
}

static void update_clear(update_statement *update) {
    finalize(&update->statement);
    free(update->fields);
    *update = (update_statement){0};
}

static void table_clear(tide_writer *writer) {
    finalize(&writer->find);
    finalize(&writer->scan);
    finalize(&writer->load);
    finalize(&writer->insert);
    finalize(&writer->note_change);
    finalize(&writer->note_pending);
    for (uint32_t i = 0; i < writer->sibling_count; i++) {
        if (writer->find_in_sibling) finalize(&writer->find_in_sibling[i]);
        free(writer->siblings[i]);
    }
    for (uint32_t i = 0; i < update_cache_size; i++) update_clear(&writer->updates[i]);
    for (uint32_t i = 0; i < writer->field_count; i++) {
        free(writer->fields[i].name);
        free(writer->fields[i].column);
    }
    free(writer->find_in_sibling);
    free(writer->siblings);
    free(writer->fields);
    free(writer->table);
    free(writer->index_name);
    free(writer->column_of_field);
    free(writer->changed_fields);
    writer->find_in_sibling = NULL;
    writer->siblings = NULL;
    writer->fields = NULL;
    writer->table = writer->index_name = NULL;
    writer->column_of_field = NULL;
    writer->changed_fields = NULL;
    writer->sibling_count = writer->field_count = 0;
}

static tide_status fields_copy(tide_writer *writer, const tide_table *table) {
    writer->fields = calloc(table->field_count + 1, sizeof *writer->fields);
    writer->column_of_field = calloc(table->field_count + 1, sizeof *writer->column_of_field);
    writer->changed_fields = calloc(table->field_count / 8 + 1, 1);
    writer->siblings = calloc(table->sibling_count + 1, sizeof *writer->siblings);
    writer->find_in_sibling = calloc(table->sibling_count + 1, sizeof(sqlite3_stmt *));
    writer->table = strdup(table->name);
    writer->index_name = strdup(table->index_name);
    if (!writer->fields || !writer->column_of_field || !writer->changed_fields || !writer->siblings ||
        !writer->find_in_sibling || !writer->table || !writer->index_name) {
        return TIDE_NO_MEMORY;
    }
    for (uint32_t i = 0; i < table->field_count; i++) {
        stored_field *field = &writer->fields[writer->field_count++];
        size_t length = strlen(table->fields[i].name);
        *field = (stored_field){
            .name = strdup(table->fields[i].name),
            .column = strdup(table->fields[i].column),
            .name_length = length,
            .type = table->fields[i].type,
            .seed = tide_field_seed(writer->seed, table->fields[i].name, length),
        };
        if (!field->name || !field->column) return TIDE_NO_MEMORY;
    }
    for (uint32_t i = 0; i < table->sibling_count; i++) {
        if (!(writer->siblings[writer->sibling_count++] = strdup(table->siblings[i]))) return TIDE_NO_MEMORY;
    }
    return TIDE_OK;
}

tide_status tide_writer_set_table(tide_writer *writer, const tide_table *table, tide_error *error) {
    table_clear(writer);
    if (table->field_count > TIDE_BATCH_COLUMN_LIMIT) {
        return tide_error_set(
            error, TIDE_CORRUPT, 0, "the table %s has %u fields; at most %d are allowed", table->name, table->field_count,
            TIDE_BATCH_COLUMN_LIMIT);
    }
    if (fields_copy(writer, table)) return out_of_memory(error);

    tide_text sql = {0};
    tide_text_format(&sql, "SELECT _id FROM \"%s\" WHERE _key = ?1 AND _zone = ?2", writer->table);
    tide_status status = prepare(writer, &sql, "prepare the look-up", &writer->find, error);

    tide_text_clear(&sql);
    tide_text_format(&sql, "SELECT _id, _digest FROM \"%s\" WHERE _id BETWEEN ?1 AND ?2 ORDER BY _id", writer->table);
    if (!status) status = prepare(writer, &sql, "prepare the comparison of digests", &writer->scan, error);

    tide_text_clear(&sql);
    tide_text_format(&sql, "SELECT _version, _pending");
    for (uint32_t i = 0; i < writer->field_count; i++) tide_text_format(&sql, ", \"%s\"", writer->fields[i].column);
    tide_text_format(&sql, " FROM \"%s\" WHERE _id = ?1", writer->table);
    if (!status) status = prepare(writer, &sql, "prepare the comparison", &writer->load, error);

    tide_text_clear(&sql);
    tide_text_format(&sql, "INSERT INTO \"%s\" (_id, _key, _zone, _version, _pending, _digest", writer->table);
    for (uint32_t i = 0; i < writer->field_count; i++) tide_text_format(&sql, ", \"%s\"", writer->fields[i].column);
    tide_text_format(&sql, ") VALUES (?1");
    for (uint32_t i = 2; i < insert_first_field + writer->field_count; i++) tide_text_format(&sql, ", ?%u", i);
    tide_text_format(&sql, ")");
    if (!status) status = prepare(writer, &sql, "prepare the insert", &writer->insert, error);

    tide_text_clear(&sql);
    tide_text_format(
        &sql, "INSERT INTO tide_changes (id, transaction_id, type_id, kind, first_row, last_row, previous, before) "
              "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
    if (!status) status = prepare(writer, &sql, "prepare the history", &writer->note_change, error);

    tide_text_clear(&sql);
    tide_text_format(&sql, "INSERT INTO tide_outbox (type_id, kind, first_row, last_row, change_id) VALUES (?1, ?2, ?3, ?4, ?5)");
    if (!status) status = prepare(writer, &sql, "prepare the outbox", &writer->note_pending, error);

    for (uint32_t i = 0; i < writer->sibling_count && !status; i++) {
        tide_text_clear(&sql);
        tide_text_format(&sql, "SELECT 1 FROM \"%s\" WHERE _key = ?1 AND _zone = ?2", writer->siblings[i]);
        status = prepare(writer, &sql, "prepare the look-up in another type", &writer->find_in_sibling[i], error);
    }
    tide_text_free(&sql);
    return status;
}

tide_status tide_writer_create(
    sqlite3 *connection, uint64_t seed, const tide_table *table, tide_writer **writer, tide_error *error
) {
    *writer = NULL;
    tide_writer *created = calloc(1, sizeof *created);
    if (!created) return out_of_memory(error);
    created->connection = connection;
    created->seed = seed;
    created->type_id = table->type_id;
    tide_status status = tide_writer_set_table(created, table, error);
    if (status) {
        tide_writer_destroy(created);
        return status;
    }
    *writer = created;
    return TIDE_OK;
}

void tide_writer_destroy(tide_writer *writer) {
    if (!writer) return;
    table_clear(writer);
    tide_fingerprints_destroy(writer->fingerprints);
    tide_text_free(&writer->before);
    free(writer->order);
    free(writer);
}

// Loading

tide_status tide_writer_index_build(sqlite3 *connection, const char *table, const char *index_name, tide_error *error) {
    tide_text sql = {0};
    tide_text_format(&sql, "CREATE UNIQUE INDEX IF NOT EXISTS \"%s\" ON \"%s\" (_key, _zone)", index_name, table);
    tide_status status = execute(connection, &sql, "build the index of names", error);
    tide_text_free(&sql);
    return status;
}

tide_status tide_writer_load_begin(tide_writer *writer, tide_error *error) {
    if (writer->fingerprints) return TIDE_OK;
    tide_text sql = {0};
    tide_text_format(&sql, "SELECT 1 FROM \"%s\" LIMIT 1", writer->table);
    sqlite3_stmt *statement = NULL;
    tide_status status = prepare(writer, &sql, "look whether the table is empty", &statement, error);
    bool is_empty = !status && sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_finalize(statement);
    if (!status && is_empty) {
        tide_text_clear(&sql);
        tide_text_format(&sql, "DROP INDEX IF EXISTS \"%s\"", writer->index_name);
        status = execute(writer->connection, &sql, "set the index of names aside", error);
        if (!status && !(writer->fingerprints = tide_fingerprints_create())) status = out_of_memory(error);
    }
    tide_text_free(&sql);
    return status;
}

bool tide_writer_is_loading(const tide_writer *writer) { return writer->fingerprints != NULL; }

void tide_writer_load_forget(tide_writer *writer) {
    tide_fingerprints_destroy(writer->fingerprints);
    writer->fingerprints = NULL;
    writer->index_is_checked = false;
}

tide_status tide_writer_load_end(tide_writer *writer, tide_error *error) {
    tide_fingerprints_destroy(writer->fingerprints);
    writer->fingerprints = NULL;
    tide_status status = tide_writer_index_build(writer->connection, writer->table, writer->index_name, error);
    writer->index_is_checked = status == TIDE_OK;
    return status;
}

// Rows

static void bind_key(sqlite3_stmt *statement, int parameter, const tide_batch *batch, const tide_row *row) {
    const char *bytes = batch->text + row->key.offset;
    if (row->key_is_blob) {
        sqlite3_bind_blob(statement, parameter, bytes, (int)row->key.length, SQLITE_STATIC);
    } else {
        sqlite3_bind_text(statement, parameter, bytes, (int)row->key.length, SQLITE_STATIC);
    }
}

static void bind_cell(sqlite3_stmt *statement, int parameter, const tide_batch *batch, tide_cell cell) {
    switch (cell.kind) {
    case TIDE_KIND_INTEGER: sqlite3_bind_int64(statement, parameter, cell.integer); break;
    case TIDE_KIND_REAL: sqlite3_bind_double(statement, parameter, cell.real); break;
    case TIDE_KIND_TEXT:
    case TIDE_KIND_CLAIM:
        sqlite3_bind_text(statement, parameter, batch->text + cell.offset, (int)cell.length, SQLITE_STATIC);
        break;
    case TIDE_KIND_BLOB:
        sqlite3_bind_blob(statement, parameter, batch->text + cell.offset, (int)cell.length, SQLITE_STATIC);
        break;
    default: sqlite3_bind_null(statement, parameter); break;
    }
}

static tide_cell field_cell(const tide_writer *writer, const tide_batch *batch, uint32_t field, uint32_t row) {
    uint32_t column = writer->column_of_field[field];
    return column ? tide_column_cell(&batch->columns[column - 1], row) : (tide_cell){.kind = TIDE_KIND_ABSENT};
}

/// Whether a stored value is the one that the cell holds.
static bool column_equals(sqlite3_stmt *row, int column, const tide_batch *batch, tide_cell cell) {
    int type = sqlite3_column_type(row, column);
    switch (cell.kind) {
    case TIDE_KIND_INTEGER: return type == SQLITE_INTEGER && sqlite3_column_int64(row, column) == cell.integer;
    case TIDE_KIND_REAL: return type == SQLITE_FLOAT && sqlite3_column_double(row, column) == cell.real;
    case TIDE_KIND_TEXT:
    case TIDE_KIND_CLAIM:
    case TIDE_KIND_BLOB: {
        if (type != (cell.kind == TIDE_KIND_BLOB ? SQLITE_BLOB : SQLITE_TEXT)) return false;
        // The bytes first: asking for them as a blob leaves text as it lies, without a terminator.
        const void *bytes = sqlite3_column_blob(row, column);
        if ((uint32_t)sqlite3_column_bytes(row, column) != cell.length) return false;
        return cell.length == 0 || memcmp(bytes, batch->text + cell.offset, cell.length) == 0;
    }
    default: return type == SQLITE_NULL;
    }
}

static void before_append(tide_text *before, const stored_field *field, sqlite3_stmt *row, int column) {
    tide_text_append(before, before->length > 1 ? ",\"" : "\"", before->length > 1 ? 2 : 1);
    tide_text_append(before, field->name, field->name_length);
    tide_text_append(before, "\":", 2);
    switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER: tide_text_format(before, "%" PRId64, (int64_t)sqlite3_column_int64(row, column)); break;
    case SQLITE_FLOAT: tide_text_format(before, "%.17g", sqlite3_column_double(row, column)); break;
    case SQLITE_NULL: tide_text_append(before, "null", 4); break;
    case SQLITE_BLOB: {
        const void *bytes = sqlite3_column_blob(row, column);
        tide_text_base64(before, bytes, (size_t)sqlite3_column_bytes(row, column));
        break;
    }
    default: {
        const void *bytes = sqlite3_column_blob(row, column);
        tide_text_json_string(before, bytes, (size_t)sqlite3_column_bytes(row, column));
        break;
    }
    }
}

/// The UPDATE of just the changed fields, from the cache or prepared in the place of the one used longest ago.
static tide_status update_find(tide_writer *writer, sqlite3_stmt **statement, tide_error *error) {
    size_t set_size = writer->field_count / 8 + 1;
    update_statement *oldest = &writer->updates[0];
    for (uint32_t i = 0; i < update_cache_size; i++) {
        update_statement *update = &writer->updates[i];
        if (update->statement && memcmp(update->fields, writer->changed_fields, set_size) == 0) {
            update->last_use = ++writer->update_uses;
            *statement = update->statement;
            return TIDE_OK;
        }
        if (update->last_use < oldest->last_use) oldest = update;
    }
    update_clear(oldest);
    if (!(oldest->fields = malloc(set_size))) return out_of_memory(error);
    memcpy(oldest->fields, writer->changed_fields, set_size);
    tide_text sql = {0};
    tide_text_format(&sql, "UPDATE \"%s\" SET _version = ?1, _pending = ?2, _digest = ?3", writer->table);
    int parameter = update_first_field;
    for (uint32_t i = 0; i < writer->field_count; i++) {
        if (!(writer->changed_fields[i / 8] & (1 << (i % 8)))) continue;
        tide_text_format(&sql, ", \"%s\" = ?%d", writer->fields[i].column, parameter++);
    }
    tide_text_format(&sql, " WHERE _id = ?%d", (int)update_id);
    tide_status status = prepare(writer, &sql, "prepare the update", &oldest->statement, error);
    tide_text_free(&sql);
    oldest->last_use = ++writer->update_uses;
    *statement = oldest->statement;
    return status;
}

typedef struct apply {
    tide_writer *writer;
    tide_batch *batch;
    int64_t zone, transaction;
    tide_counters *counters;
    tide_counts *counts;
    tide_error *error;
    /// Rows inserted by this batch so far begin here; all carry the change `insert_change`.
    int64_t first_inserted;
    int64_t insert_change;
} apply;

static tide_status change_note(
    apply *it, int64_t change, int kind, int64_t first, int64_t last, const int64_t *previous, const tide_text *before
) {
    sqlite3_stmt *note = it->writer->note_change;
    sqlite3_bind_int64(note, 1, change);
    sqlite3_bind_int64(note, 2, it->transaction);
    sqlite3_bind_int64(note, 3, it->writer->type_id);
    sqlite3_bind_int(note, 4, kind);
    sqlite3_bind_int64(note, 5, first);
    sqlite3_bind_int64(note, 6, last);
    if (previous) {
        sqlite3_bind_int64(note, 7, *previous);
    } else {
        sqlite3_bind_null(note, 7);
    }
    if (before) {
        sqlite3_bind_text(note, 8, before->bytes, (int)before->length, SQLITE_STATIC);
    } else {
        sqlite3_bind_null(note, 8);
    }
    return run(it->writer, note, "write history", it->error);
}

static tide_status pending_note(apply *it, int64_t change, int kind, int64_t first, int64_t last) {
    sqlite3_stmt *note = it->writer->note_pending;
    sqlite3_bind_int64(note, 1, it->writer->type_id);
    sqlite3_bind_int(note, 2, kind);
    sqlite3_bind_int64(note, 3, first);
    sqlite3_bind_int64(note, 4, last);
    sqlite3_bind_int64(note, 5, change);
    return run(it->writer, note, "write the outbox", it->error);
}

static tide_status claim_reject(apply *it, uint32_t row, const stored_field *field) {
    return tide_batch_row_reject(
        it->batch, row, field->name, field->name_length, TIDE_REJECT_ASSET_UNKNOWN,
        "the row names an asset that this record does not hold; give the file instead (export with its assets)");
}

static tide_status row_insert(apply *it, uint32_t index) {
    tide_writer *writer = it->writer;
    const tide_row *row = &it->batch->rows[index];
    sqlite3_stmt *insert = writer->insert;
    for (uint32_t i = 0; i < writer->field_count; i++) {
        tide_cell cell = field_cell(writer, it->batch, i, index);
        if (cell.kind == TIDE_KIND_CLAIM) return claim_reject(it, index, &writer->fields[i]);
        bind_cell(insert, (int)(insert_first_field + i), it->batch, cell);
    }
    int64_t id = it->counters->next_row;
    sqlite3_bind_int64(insert, insert_id, id);
    bind_key(insert, insert_key, it->batch, row);
    sqlite3_bind_int64(insert, insert_zone, it->zone);
    sqlite3_bind_int64(insert, insert_version, it->insert_change);
    sqlite3_bind_int(insert, insert_pending, -1);
    sqlite3_bind_int64(insert, insert_digest, (int64_t)row->digest);
    tide_status status = run(writer, insert, "insert a record", it->error);
    if (status) return status;
    it->counters->next_row++;
    it->counts->inserted++;
    return TIDE_OK;
}

/// Merges the changed fields into what is pending already: -1 stands for all fields, NULL for none, a BLOB for a set.
static void bind_pending(sqlite3_stmt *update, sqlite3_stmt *stored, const tide_writer *writer, uint8_t *merged, size_t size) {
    if (sqlite3_column_type(stored, load_pending) == SQLITE_INTEGER) {
        sqlite3_bind_int(update, update_pending, -1);
        return;
    }
    memcpy(merged, writer->changed_fields, size);
    const uint8_t *pending = sqlite3_column_blob(stored, load_pending);
    size_t pending_size = (size_t)sqlite3_column_bytes(stored, load_pending);
    for (size_t i = 0; pending && i < pending_size && i < size; i++) merged[i] |= pending[i];
    while (size > 1 && merged[size - 1] == 0) size--;
    sqlite3_bind_blob(update, update_pending, merged, (int)size, SQLITE_TRANSIENT);
}

static tide_status row_write_changes(apply *it, uint32_t index, int64_t id, uint64_t digest) {
    tide_writer *writer = it->writer;
    sqlite3_stmt *stored = writer->load, *update = NULL;
    tide_status status = update_find(writer, &update, it->error);
    if (status) return status;
    int64_t change = it->counters->next_change++;
    int64_t previous = sqlite3_column_int64(stored, load_version);
    bool was_pending = sqlite3_column_type(stored, load_pending) != SQLITE_NULL;

    uint8_t merged[TIDE_BATCH_COLUMN_LIMIT / 8 + 1];
    bind_pending(update, stored, writer, merged, writer->field_count / 8 + 1);
    sqlite3_bind_int64(update, update_version, change);
    sqlite3_bind_int64(update, update_digest, (int64_t)digest);
    sqlite3_bind_int64(update, update_id, id);
    tide_text_clear(&writer->before);
    tide_text_append(&writer->before, "{", 1);
    int parameter = update_first_field;
    for (uint32_t i = 0; i < writer->field_count; i++) {
        if (!(writer->changed_fields[i / 8] & (1 << (i % 8)))) continue;
        before_append(&writer->before, &writer->fields[i], stored, (int)(load_first_field + i));
        bind_cell(update, parameter++, it->batch, field_cell(writer, it->batch, i, index));
    }
    tide_text_append(&writer->before, "}", 1);
    if (writer->before.failed) return out_of_memory(it->error);
    sqlite3_reset(stored);

    status = run(writer, update, "update a record", it->error);
    if (!status) status = change_note(it, change, change_update, id, id, &previous, &writer->before);
    if (!status && !was_pending) status = pending_note(it, change, change_update, id, id);
    if (!status) it->counts->updated++;
    return status;
}

static tide_status row_compare(apply *it, uint32_t index, int64_t id) {
    tide_writer *writer = it->writer;
    sqlite3_stmt *stored = writer->load;
    sqlite3_bind_int64(stored, 1, id);
    if (sqlite3_step(stored) != SQLITE_ROW) {
        tide_status status = tide_sqlite_error(writer->connection, "read a record", it->error);
        sqlite3_reset(stored);
        return status;
    }
    memset(writer->changed_fields, 0, writer->field_count / 8 + 1);
    bool is_changed = false;
    uint64_t digest = 0;
    for (uint32_t i = 0; i < writer->field_count; i++) {
        tide_cell cell = field_cell(writer, it->batch, i, index);
        int column = (int)(load_first_field + i);
        if (cell.kind == TIDE_KIND_ABSENT || column_equals(stored, column, it->batch, cell)) {
            digest += tide_column_digest(stored, column, writer->fields[i].seed);
            continue;
        }
        if (cell.kind == TIDE_KIND_CLAIM) {
            sqlite3_reset(stored);
            return claim_reject(it, index, &writer->fields[i]);
        }
        digest += tide_cell_digest(it->batch, cell, writer->fields[i].seed);
        writer->changed_fields[i / 8] |= (uint8_t)(1 << (i % 8));
        is_changed = true;
    }
    tide_status status = TIDE_OK;
    if (is_changed) {
        status = row_write_changes(it, index, id, digest);
    } else {
        it->counts->unchanged++;
    }
    sqlite3_reset(stored);
    return status;
}

/// TIDE_REJECTED when a record of another type has the name.
static tide_status siblings_check(apply *it, uint32_t index) {
    tide_writer *writer = it->writer;
    for (uint32_t i = 0; i < writer->sibling_count; i++) {
        sqlite3_stmt *find = writer->find_in_sibling[i];
        bind_key(find, 1, it->batch, &it->batch->rows[index]);
        sqlite3_bind_int64(find, 2, it->zone);
        int code = sqlite3_step(find);
        tide_status status = code == SQLITE_DONE || code == SQLITE_ROW
                                 ? TIDE_OK
                                 : tide_sqlite_error(writer->connection, "look for the name in another type", it->error);
        sqlite3_reset(find);
        if (status) return status;
        if (code == SQLITE_DONE) continue;
        char message[400];
        snprintf(
            message, sizeof message, "a record of type %.255s has this name; a name is unique in its zone", writer->siblings[i]);
        status = tide_batch_row_reject(it->batch, index, "", 0, TIDE_REJECT_NAME_TAKEN, message);
        return status ? status : TIDE_REJECTED;
    }
    return TIDE_OK;
}

static tide_status row_insert_if_free(apply *it, uint32_t index) {
    tide_status status = siblings_check(it, index);
    if (status == TIDE_REJECTED) return TIDE_OK;
    return status ? status : row_insert(it, index);
}

/// The row id of the record that has the row's name; 0 when there is none.
static tide_status row_find(apply *it, uint32_t index, int64_t *id) {
    tide_writer *writer = it->writer;
    bind_key(writer->find, 1, it->batch, &it->batch->rows[index]);
    sqlite3_bind_int64(writer->find, 2, it->zone);
    int code = sqlite3_step(writer->find);
    *id = code == SQLITE_ROW ? sqlite3_column_int64(writer->find, 0) : 0;
    tide_status status = code == SQLITE_ROW || code == SQLITE_DONE
                             ? TIDE_OK
                             : tide_sqlite_error(writer->connection, "look up a record", it->error);
    sqlite3_reset(writer->find);
    return status;
}

/// Compares rows, sorted by the row ids of their records, with the digests stored for `first`...`last`; keeps those that differ.
static tide_status digests_compare(apply *it, ordered_row *rows, uint32_t count, ordered_row *different, uint32_t *different_count) {
    tide_writer *writer = it->writer;
    sqlite3_bind_int64(writer->scan, 1, (int64_t)rows[0].rank);
    sqlite3_bind_int64(writer->scan, 2, (int64_t)rows[count - 1].rank);
    uint32_t i = 0;
    int code = SQLITE_DONE;
    while (i < count && (code = sqlite3_step(writer->scan)) == SQLITE_ROW) {
        uint64_t id = (uint64_t)sqlite3_column_int64(writer->scan, 0);
        if (id < rows[i].rank) continue;
        if (id > rows[i].rank) break;
        if ((uint64_t)sqlite3_column_int64(writer->scan, 1) == it->batch->rows[rows[i].row].digest) {
            it->counts->unchanged++;
        } else {
            different[(*different_count)++] = rows[i];
        }
        i++;
    }
    tide_status status = code == SQLITE_ROW || code == SQLITE_DONE
                             ? TIDE_OK
                             : tide_sqlite_error(writer->connection, "compare the records", it->error);
    sqlite3_reset(writer->scan);
    if (!status && i < count) return tide_error_set(it->error, TIDE_CORRUPT, 0, "the index of names has a record that is not there");
    return status;
}

// Batches

static uint64_t key_prefix(const tide_batch *batch, const tide_row *row) {
    const uint8_t *key = (const uint8_t *)batch->text + row->key.offset;
    uint64_t prefix = 0;
    for (uint32_t i = 0; i < 8; i++) prefix = prefix << 8 | (i < row->key.length ? key[i] : 0);
    return prefix;
}

/// How two rows' names are ordered; 0 when they have the same.
static int compare_keys(const tide_batch *batch, ordered_row a, ordered_row b) {
    if (a.rank != b.rank) return a.rank < b.rank ? -1 : 1;
    const tide_row *x = &batch->rows[a.row], *y = &batch->rows[b.row];
    if (x->key_is_blob != y->key_is_blob) return x->key_is_blob ? 1 : -1;
    uint32_t shorter = x->key.length < y->key.length ? x->key.length : y->key.length;
    int order = memcmp(batch->text + x->key.offset, batch->text + y->key.offset, shorter);
    if (order) return order;
    if (x->key.length != y->key.length) return x->key.length < y->key.length ? -1 : 1;
    return 0;
}

typedef bool (*row_order)(const tide_batch *batch, ordered_row a, ordered_row b);

static bool comes_before_by_key(const tide_batch *batch, ordered_row a, ordered_row b) {
    int order = compare_keys(batch, a, b);
    return order ? order < 0 : a.row < b.row;
}

static bool comes_before_by_id(const tide_batch *batch, ordered_row a, ordered_row b) {
    (void)batch;
    return a.rank < b.rank;
}

/// Heap sort: in place, without recursion, O(n log n) whatever the input.
static void sort_rows(ordered_row *rows, uint32_t count, const tide_batch *batch, row_order comes_before) {
    for (uint32_t end = count, root = count / 2; end > 1;) {
        ordered_row moving;
        if (root > 0) {
            moving = rows[--root];
        } else {
            end--;
            moving = rows[end];
            rows[end] = rows[0];
        }
        uint32_t hole = root;
        for (uint32_t child = 2 * hole + 1; child < end; child = 2 * hole + 1) {
            if (child + 1 < end && comes_before(batch, rows[child], rows[child + 1])) child++;
            if (!comes_before(batch, moving, rows[child])) break;
            rows[hole] = rows[child];
            hole = child;
        }
        rows[hole] = moving;
    }
}

/// Refuses rows that have a value in a column which the table lacks.
static tide_status unknown_column_reject(tide_batch *batch, const tide_column *column) {
    for (uint32_t i = 0; i < column->count; i++) {
        if (column->cells[i].kind <= TIDE_KIND_NULL) continue;
        char message[400];
        snprintf(
            message, sizeof message, "the type has no field '%.255s'; in production the schema is fixed", column->name);
        tide_status status = tide_batch_row_reject(
            batch, column->first_row + i, column->name, column->name_length, TIDE_REJECT_UNKNOWN_FIELD, message);
        if (status) return status;
    }
    return TIDE_OK;
}

static tide_status columns_match(tide_writer *writer, tide_batch *batch, tide_error *error) {
    memset(writer->column_of_field, 0, (writer->field_count + 1) * sizeof *writer->column_of_field);
    uint32_t guess = 0;
    for (uint32_t i = 0; i < batch->column_count; i++) {
        const tide_column *column = &batch->columns[i];
        bool is_known = false;
        for (uint32_t j = 0; j < writer->field_count && !is_known; j++, guess++) {
            if (guess >= writer->field_count) guess = 0;
            const stored_field *field = &writer->fields[guess];
            if (field->name_length != column->name_length || memcmp(field->name, column->name, field->name_length)) continue;
            is_known = true;
            if (column->type != TIDE_TYPE_UNKNOWN && column->type != (uint32_t)field->type) {
                return tide_error_set(
                    error, TIDE_MISUSE, 0, "field '%s' has another type in the store than in the batch", field->name);
            }
            writer->column_of_field[guess] = i + 1;
        }
        if (is_known) continue;
        if (unknown_column_reject(batch, column)) return out_of_memory(error);
    }
    return TIDE_OK;
}

/// Lists the rows that have not been refused, in the order of the source.
static tide_status rows_list(tide_writer *writer, const tide_batch *batch, uint32_t *count, tide_error *error) {
    if (batch->row_count > writer->order_capacity) {
        free(writer->order);
        writer->order = malloc(2 * (size_t)batch->row_count * sizeof *writer->order);
        writer->order_capacity = writer->order ? batch->row_count : 0;
        if (!writer->order) return out_of_memory(error);
    }
    *count = 0;
    for (uint32_t i = 0; i < batch->row_count; i++) {
        if (!batch->rows[i].is_rejected) writer->order[(*count)++] = (ordered_row){.row = i};
    }
    return TIDE_OK;
}

/// Row ids that lie closer than this on average are read in one sweep.
enum { sweep_density = 4 };

/// Compares rows whose records are there with these, and writes what differs. Both in the order of the table, so that each of its
/// pages is read, and written, once. `different` has room for all of them.
static tide_status found_write(apply *it, ordered_row *found, uint32_t count, ordered_row *different) {
    if (count == 0) return TIDE_OK;
    sort_rows(found, count, it->batch, comes_before_by_id);
    uint32_t different_count = 0;
    tide_status status = TIDE_OK;
    if (found[count - 1].rank - found[0].rank < (uint64_t)sweep_density * count) {
        status = digests_compare(it, found, count, different, &different_count);
    } else {
        for (uint32_t i = 0; i < count && !status; i++) status = digests_compare(it, &found[i], 1, different, &different_count);
    }
    for (uint32_t i = 0; i < different_count && !status; i++) {
        status = row_compare(it, different[i].row, (int64_t)different[i].rank);
    }
    return status;
}

/// Whether rows claim assets that their record must hold already: what one may claim depends on those before it.
static bool rows_claim(const apply *it, const ordered_row *rows, uint32_t count) {
    for (uint32_t i = 0; i < it->batch->column_count; i++) {
        for (uint32_t j = 0; j < count; j++) {
            if (tide_column_cell(&it->batch->columns[i], rows[j].row).kind == TIDE_KIND_CLAIM) return true;
        }
    }
    return false;
}

/// Makes the last of `count` rows of one name say what all of them say one after the other, so that a source that names a record
/// twice changes nothing when it comes again. The others count as unchanged.
static tide_status rows_fold(apply *it, const ordered_row *rows, uint32_t count) {
    uint32_t last = rows[count - 1].row;
    for (uint32_t i = count - 1; i-- > 0;) {
        if (tide_batch_row_complete(it->batch, last, rows[i].row, it->writer->seed)) return out_of_memory(it->error);
        it->counts->unchanged++;
    }
    return TIDE_OK;
}

/// Writes rows by looking their names up. `rows` is followed by as much room again.
static tide_status rows_write(apply *it, ordered_row *rows, uint32_t count) {
    ordered_row *room = rows + count;
    for (uint32_t i = 0; i < count; i++) rows[i].rank = key_prefix(it->batch, &it->batch->rows[rows[i].row]);
    sort_rows(rows, count, it->batch, comes_before_by_key);
    // From the front of the room the rows that were found, from its end those that must wait for others of their name; new ones
    // move to the front of the rows.
    uint32_t found = 0, fresh = 0, waiting = 0;
    tide_status status = TIDE_OK;
    for (uint32_t i = 0, end; i < count && !status; i = end) {
        ordered_row row = rows[i];
        int64_t id = 0;
        if ((status = row_find(it, row.row, &id))) break;
        for (end = i + 1; end < count && compare_keys(it->batch, row, rows[end]) == 0;) end++;
        if (end > i + 1 && id && !rows_claim(it, rows + i, end - i)) {
            row = rows[end - 1];
            status = rows_fold(it, rows + i, end - i);
        } else {
            for (uint32_t j = i + 1; j < end; j++) room[count - ++waiting] = rows[j];
        }
        if (id) {
            room[found++] = (ordered_row){.rank = (uint64_t)id, .row = row.row};
        } else {
            rows[fresh++] = row;
        }
    }
    for (uint32_t i = 0; i < fresh && !status; i++) status = row_insert_if_free(it, rows[i].row);
    if (!status) status = found_write(it, room, found, rows);
    for (uint32_t i = 1; i <= waiting && !status; i++) {
        ordered_row row = room[count - i];
        int64_t id;
        if ((status = row_find(it, row.row, &id))) break;
        status = id ? row_compare(it, row.row, id) : row_insert_if_free(it, row.row);
    }
    return status;
}

/// Inserts rows into a table that has been empty, for as long as each name is certainly new. `*done` rows were written.
static tide_status rows_load(apply *it, const ordered_row *rows, uint32_t count, uint32_t *done) {
    tide_writer *writer = it->writer;
    for (*done = 0; *done < count; ++*done) {
        uint32_t index = rows[*done].row;
        const tide_row *row = &it->batch->rows[index];
        uint64_t print = XXH3_64bits_withSeed(it->batch->text + row->key.offset, row->key.length, writer->seed);
        if (!tide_fingerprints_add(writer->fingerprints, print)) return tide_writer_load_end(writer, it->error);
        tide_status status = row_insert_if_free(it, index);
        if (status) return status;
    }
    return TIDE_OK;
}

tide_status tide_writer_apply(
    tide_writer *writer, tide_batch *batch, int64_t zone, int64_t transaction, tide_counters *counters, tide_counts *counts,
    tide_error *error
) {
    tide_status status = columns_match(writer, batch, error);
    if (status) return status;
    if (!writer->fingerprints && !writer->index_is_checked && (status = tide_writer_load_end(writer, error))) return status;
    uint32_t count = 0, done = 0;
    if ((status = rows_list(writer, batch, &count, error))) return status;

    apply it = {
        .writer = writer, .batch = batch, .zone = zone, .transaction = transaction, .counters = counters, .counts = counts,
        .error = error, .first_inserted = counters->next_row, .insert_change = counters->next_change++,
    };
    if (writer->fingerprints) status = rows_load(&it, writer->order, count, &done);
    if (!status && done < count) status = rows_write(&it, writer->order + done, count - done);
    int64_t last = counters->next_row - 1;
    if (status || last < it.first_inserted) return status;
    status = change_note(&it, it.insert_change, change_insert, it.first_inserted, last, NULL, NULL);
    return status ? status : pending_note(&it, it.insert_change, change_insert, it.first_inserted, last);
}

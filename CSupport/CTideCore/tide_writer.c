#include "tide_writer.h"

#include <stdlib.h>
#include <string.h>

#include "tide_connection.h"
#include "tide_indexes.h"
#include "tide_writer_layout.h"

tide_status tide_out_of_memory(tide_error *error) { return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory"); }

tide_status tide_writer_prepare(
    tide_writer *writer, const tide_text *sql, const char *doing, sqlite3_stmt **statement, tide_error *error
) {
    if (sql->failed) return tide_out_of_memory(error);
    if (sqlite3_prepare_v3(
            writer->connection, sql->bytes, (int)sql->length, SQLITE_PREPARE_PERSISTENT, statement, NULL)) {
        return tide_sqlite_error(writer->connection, doing, error);
    }
    return TIDE_OK;
}

int tide_writer_step(tide_writer *writer, sqlite3_stmt *statement) {
    if (!writer->bind_failure) return sqlite3_step(statement);
    writer->step_failure = writer->bind_failure;
    writer->bind_failure = SQLITE_OK;
    return writer->step_failure;
}

tide_status tide_writer_error(tide_writer *writer, const char *doing, tide_error *error) {
    int code = writer->step_failure;
    writer->step_failure = SQLITE_OK;
    // Later calls have replaced the connection's own error code.
    return code ? tide_sqlite_code_error(code, sqlite3_errstr(code), doing, error)
                : tide_sqlite_error(writer->connection, doing, error);
}

tide_status tide_writer_run(tide_writer *writer, sqlite3_stmt *statement, const char *doing, tide_error *error) {
    int code = tide_writer_step(writer, statement);
    if (code == SQLITE_DONE) {
        sqlite3_reset(statement);
        return TIDE_OK;
    }
    tide_status status = tide_writer_error(writer, doing, error);
    sqlite3_reset(statement);
    return status;
}

tide_status tide_writer_run_update(tide_writer *writer, sqlite3_stmt *statement, const char *doing, tide_error *error) {
    tide_status status = tide_writer_run(writer, statement, doing, error);
    if (!status || !tide_indexes_lack_row(writer->connection)) return status;
    status = tide_indexes_rebuild(writer->connection, writer->table, writer->index_name, error);
    return status ? status : tide_writer_run(writer, statement, doing, error);
}

static tide_status execute(tide_writer *writer, const char *sql, tide_error *error) {
    return sqlite3_exec(writer->connection, sql, NULL, NULL, NULL)
               ? tide_sqlite_error(writer->connection, "mark the place of a deletion", error)
               : TIDE_OK;
}

tide_status tide_writer_run_deletion(
    tide_writer *writer, sqlite3_stmt *statement, bool is_damaged, const char *doing, tide_error *error
) {
    tide_status status;
    if (!is_damaged) {
        status = tide_writer_run(writer, statement, doing, error);
        if (!status || !tide_indexes_lack_row(writer->connection)) return status;
        status = tide_indexes_rebuild(writer->connection, writer->table, NULL, error);
        return status ? status : tide_writer_run(writer, statement, doing, error);
    }
    // SQLite may have removed the name's entry before it missed the entry of a value, and does not restore it by itself.
    if ((status = execute(writer, "SAVEPOINT tide_deletion", error))) return status;
    status = tide_writer_run(writer, statement, doing, error);
    if (status && tide_indexes_lack_row(writer->connection)) {
        status = execute(writer, "ROLLBACK TO tide_deletion", error);
        if (!status) status = tide_indexes_rebuild(writer->connection, writer->table, writer->index_name, error);
        if (!status) status = tide_writer_run(writer, statement, doing, error);
    }
    return status ? status : execute(writer, "RELEASE tide_deletion", error);
}

static void finalize(sqlite3_stmt **statement) {
    sqlite3_finalize(*statement);
    *statement = NULL;
}

void tide_update_clear(tide_update_statement *update) {
    finalize(&update->statement);
    free(update->fields);
    *update = (tide_update_statement){0};
}

static void table_clear(tide_writer *writer) {
    finalize(&writer->find);
    finalize(&writer->scan);
    finalize(&writer->load);
    finalize(&writer->insert);
    finalize(&writer->erase);
    finalize(&writer->note_change);
    finalize(&writer->mark_synced);
    finalize(&writer->acknowledge);
    for (uint32_t i = 0; i < writer->sibling_count; i++) {
        finalize(&writer->find_in_sibling[i]);
        free(writer->siblings[i]);
    }
    for (uint32_t i = 0; i < tide_update_cache_size; i++) tide_update_clear(&writer->updates[i]);
    for (uint32_t i = 0; i < writer->field_count; i++) {
        free(writer->fields[i].name);
        free(writer->fields[i].column);
    }
    for (uint32_t i = 0; i < writer->index_count; i++) {
        free((char *)writer->indexes[i].name);
        free((char *)writer->indexes[i].columns);
    }
    free(writer->indexes);
    free(writer->find_in_sibling);
    free(writer->siblings);
    free(writer->fields);
    free(writer->digests);
    free(writer->table);
    free(writer->index_name);
    free(writer->column_of_field);
    free(writer->changed_fields);
    writer->indexes = NULL;
    writer->find_in_sibling = NULL;
    writer->siblings = NULL;
    writer->fields = NULL;
    writer->digests = NULL;
    writer->table = writer->index_name = NULL;
    writer->column_of_field = NULL;
    writer->changed_fields = NULL;
    writer->sibling_count = writer->field_count = writer->index_count = 0;
}

/// Makes an array of zeros; `*failed` becomes true where memory ran out.
static void *array_make(size_t count, size_t size, bool *failed) {
    void *made = calloc(count, size);
    if (!made) *failed = true;
    return made;
}

static char *name_copy(const char *name, bool *failed) {
    char *copy = strdup(name);
    if (!copy) *failed = true;
    return copy;
}

static tide_status table_copy(tide_writer *writer, const tide_table *table) {
    bool failed = false;
    writer->fields = array_make(table->field_count + 1, sizeof *writer->fields, &failed);
    writer->digests = array_make(table->field_count + 1, sizeof *writer->digests, &failed);
    writer->column_of_field = array_make(table->field_count + 1, sizeof *writer->column_of_field, &failed);
    writer->changed_fields = array_make(table->field_count / 8 + 1, 1, &failed);
    writer->siblings = array_make(table->sibling_count + 1, sizeof *writer->siblings, &failed);
    writer->find_in_sibling = array_make(table->sibling_count + 1, sizeof(sqlite3_stmt *), &failed);
    writer->indexes = array_make(table->index_count + 1, sizeof *writer->indexes, &failed);
    writer->table = name_copy(table->name, &failed);
    writer->index_name = name_copy(table->index_name, &failed);
    if (failed) return TIDE_NO_MEMORY;
    for (uint32_t i = 0; i < table->field_count; i++) {
        size_t length = strlen(table->fields[i].name);
        const tide_stored_field field = {
            .name = name_copy(table->fields[i].name, &failed),
            .column = name_copy(table->fields[i].column, &failed),
            .name_length = length,
            .type = table->fields[i].type,
            .seed = tide_field_seed(writer->seed, table->fields[i].name, length),
        };
        writer->digests[i] = (tide_field_digest){.seed = field.seed, .type = field.type};
        writer->fields[writer->field_count++] = field;
    }
    for (uint32_t i = 0; i < table->sibling_count; i++) {
        writer->siblings[writer->sibling_count++] = name_copy(table->siblings[i], &failed);
    }
    for (uint32_t i = 0; i < table->index_count; i++) {
        writer->indexes[writer->index_count++] = (tide_index){
            .name = name_copy(table->indexes[i].name, &failed), .columns = name_copy(table->indexes[i].columns, &failed)};
    }
    return failed ? TIDE_NO_MEMORY : TIDE_OK;
}

tide_status tide_writer_set_table(tide_writer *writer, const tide_table *table, tide_error *error) {
    table_clear(writer);
    if (table->field_count > TIDE_BATCH_COLUMN_LIMIT) {
        return tide_error_set(
            error, TIDE_CORRUPT, 0, "the table %s has %u fields; at most %d are allowed", table->name, table->field_count,
            TIDE_BATCH_COLUMN_LIMIT);
    }
    if (table_copy(writer, table)) return tide_out_of_memory(error);
    // The table may have a new index.
    writer->indexes_are_checked = false;

    tide_text sql = {0};
    tide_text_format(&sql, "SELECT _id FROM \"%s\" WHERE _key = ?1 AND _zone BETWEEN ?2 AND ?3 ORDER BY _zone", writer->table);
    tide_status status = tide_writer_prepare(writer, &sql, "prepare the look-up", &writer->find, error);

    tide_text_clear(&sql);
    tide_text_format(&sql, "SELECT _id, _digest, _key");
    for (uint32_t i = 0; i < writer->field_count; i++) tide_text_format(&sql, ", \"%s\"", writer->fields[i].column);
    tide_text_format(&sql, " FROM \"%s\" WHERE _id BETWEEN ?1 AND ?2 ORDER BY _id", writer->table);
    if (!status) status = tide_writer_prepare(writer, &sql, "prepare the comparison of digests", &writer->scan, error);

    tide_text_clear(&sql);
    tide_text_format(&sql, "SELECT _version, _pending, _key, _tag, _base, _zone, _digest");
    for (uint32_t i = 0; i < writer->field_count; i++) tide_text_format(&sql, ", \"%s\"", writer->fields[i].column);
    tide_text_format(&sql, " FROM \"%s\" WHERE _id = ?1", writer->table);
    if (!status) status = tide_writer_prepare(writer, &sql, "prepare the comparison", &writer->load, error);

    tide_text_clear(&sql);
    tide_text_format(&sql, "INSERT INTO \"%s\" (_id, _key, _zone, _version, _pending, _digest, _tag, _base, _edited", writer->table);
    for (uint32_t i = 0; i < writer->field_count; i++) tide_text_format(&sql, ", \"%s\"", writer->fields[i].column);
    tide_text_format(&sql, ") VALUES (?1");
    for (uint32_t i = 2; i < tide_insert_first_field + writer->field_count; i++) tide_text_format(&sql, ", ?%u", i);
    tide_text_format(&sql, ")");
    if (!status) status = tide_writer_prepare(writer, &sql, "prepare the insert", &writer->insert, error);

    tide_text_clear(&sql);
    tide_text_format(&sql, "DELETE FROM \"%s\" WHERE _id = ?1", writer->table);
    if (!status) status = tide_writer_prepare(writer, &sql, "prepare the deletion", &writer->erase, error);

    tide_text_clear(&sql);
    tide_text_format(
        &sql, "INSERT INTO tide_changes (id, transaction_id, type_id, kind, first_row, last_row, previous, before, key, tag, base, "
              "zone) "
              "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)");
    if (!status) status = tide_writer_prepare(writer, &sql, "prepare the history", &writer->note_change, error);

    tide_text_clear(&sql);
    tide_text_format(
        &sql, "UPDATE \"%s\" SET _tag = ?1, _base = _version, _edited = ?2, _pending = NULL WHERE _id = ?3", writer->table);
    if (!status) status = tide_writer_prepare(writer, &sql, "prepare the note of the cloud's tag", &writer->mark_synced, error);

    tide_text_clear(&sql);
    tide_text_format(
        &sql, "UPDATE \"%s\" SET _tag = ?1, _base = ?2, _edited = ?3, _pending = NULL "
              "WHERE _id = ?4 AND _version = ?2 AND _tag IS ?5", writer->table);
    if (!status) status = tide_writer_prepare(writer, &sql, "prepare the acknowledgement", &writer->acknowledge, error);

    for (uint32_t i = 0; i < writer->sibling_count && !status; i++) {
        tide_text_clear(&sql);
        tide_text_format(&sql, "SELECT 1 FROM \"%s\" WHERE _key = ?1 AND _zone BETWEEN ?2 AND ?3", writer->siblings[i]);
        status = tide_writer_prepare(writer, &sql, "prepare the look-up in another type", &writer->find_in_sibling[i], error);
    }
    tide_text_free(&sql);
    return status;
}

tide_status tide_writer_create(
    sqlite3 *connection, uint64_t seed, const tide_table *table, tide_writer **writer, tide_error *error
) {
    *writer = NULL;
    tide_writer *created = calloc(1, sizeof *created);
    if (!created) return tide_out_of_memory(error);
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

/// The part of the table's description that its indexes need.
static tide_table table_of(const tide_writer *writer) {
    return (tide_table){
        .name = writer->table, .index_name = writer->index_name, .indexes = writer->indexes, .index_count = writer->index_count};
}

tide_status tide_writer_load_begin(tide_writer *writer, tide_error *error) {
    if (writer->fingerprints) return TIDE_OK;
    tide_text sql = {0};
    tide_text_format(&sql, "SELECT 1 FROM \"%s\" LIMIT 1", writer->table);
    sqlite3_stmt *statement = NULL;
    tide_status status = tide_writer_prepare(writer, &sql, "look whether the table is empty", &statement, error);
    int code = status ? SQLITE_ERROR : sqlite3_step(statement);
    bool is_empty = code == SQLITE_DONE;
    if (!status && !is_empty && code != SQLITE_ROW) {
        status = tide_sqlite_error(writer->connection, "look whether the table is empty", error);
    }
    sqlite3_finalize(statement);
    tide_text_free(&sql);
    if (!status && is_empty) {
        tide_table table = table_of(writer);
        status = tide_indexes_drop(writer->connection, &table, error);
        if (!status && !(writer->fingerprints = tide_fingerprints_create())) status = tide_out_of_memory(error);
    }
    return status;
}

bool tide_writer_is_loading(const tide_writer *writer) { return writer->fingerprints != NULL; }

void tide_writer_load_forget(tide_writer *writer) {
    tide_fingerprints_destroy(writer->fingerprints);
    writer->fingerprints = NULL;
    writer->indexes_are_checked = false;
}

tide_status tide_writer_load_end(tide_writer *writer, tide_error *error) {
    tide_fingerprints_destroy(writer->fingerprints);
    writer->fingerprints = NULL;
    tide_table table = table_of(writer);
    tide_status status = tide_indexes_build(writer->connection, &table, error);
    writer->indexes_are_checked = status == TIDE_OK;
    return status;
}

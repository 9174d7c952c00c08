#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tide_column.h"
#include "tide_connection.h"
#include "tide_writer_layout.h"

static void bind_key(tide_writer *writer, sqlite3_stmt *statement, int parameter, const tide_batch *batch, const tide_row *row) {
    const char *bytes = batch->text + row->key.offset;
    if (row->key_is_blob) {
        tide_writer_bound(writer, sqlite3_bind_blob(statement, parameter, bytes, (int)row->key.length, SQLITE_STATIC));
    } else {
        tide_writer_bound(writer, sqlite3_bind_text(statement, parameter, bytes, (int)row->key.length, SQLITE_STATIC));
    }
}

static void bind_cell(tide_writer *writer, sqlite3_stmt *statement, int parameter, const tide_batch *batch, tide_cell cell) {
    switch (cell.kind) {
    case TIDE_KIND_INTEGER: tide_writer_bound(writer, sqlite3_bind_int64(statement, parameter, cell.integer)); break;
    case TIDE_KIND_REAL: tide_writer_bound(writer, sqlite3_bind_double(statement, parameter, cell.real)); break;
    case TIDE_KIND_TEXT:
    case TIDE_KIND_CLAIM:
        tide_writer_bound(writer, sqlite3_bind_text(statement, parameter, batch->text + cell.offset, (int)cell.length, SQLITE_STATIC));
        break;
    case TIDE_KIND_BLOB:
        tide_writer_bound(writer, sqlite3_bind_blob(statement, parameter, batch->text + cell.offset, (int)cell.length, SQLITE_STATIC));
        break;
    default: tide_writer_bound(writer, sqlite3_bind_null(statement, parameter)); break;
    }
}

static void bind_span(tide_writer *writer, sqlite3_stmt *statement, int parameter, const tide_batch *batch, tide_span span) {
    tide_writer_bound(writer, sqlite3_bind_text(statement, parameter, batch->text + span.offset, (int)span.length, SQLITE_STATIC));
}

static void bind_edited(tide_writer *writer, sqlite3_stmt *statement, int parameter, const tide_batch *batch, const tide_row *row) {
    if (row->has_edited) {
        bind_span(writer, statement, parameter, batch, row->edited);
    } else {
        tide_writer_bound(writer, sqlite3_bind_null(statement, parameter));
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
        // sqlite3_column_blob leaves text as it is; sqlite3_column_text could copy it to add a terminator.
        const void *bytes = sqlite3_column_blob(row, column);
        if ((uint32_t)sqlite3_column_bytes(row, column) != cell.length) return false;
        return cell.length == 0 || memcmp(bytes, batch->text + cell.offset, cell.length) == 0;
    }
    default: return type == SQLITE_NULL;
    }
}

/// Finds the UPDATE of the changed fields in the cache, or prepares it in place of the one that was used longest ago.
static tide_status update_find(tide_writer *writer, sqlite3_stmt **statement, tide_error *error) {
    size_t set_size = writer->field_count / 8 + 1;
    tide_update_statement *oldest = &writer->updates[0];
    for (uint32_t i = 0; i < tide_update_cache_size; i++) {
        tide_update_statement *update = &writer->updates[i];
        if (update->statement && memcmp(update->fields, writer->changed_fields, set_size) == 0) {
            update->last_use = ++writer->update_uses;
            *statement = update->statement;
            return TIDE_OK;
        }
        if (update->last_use < oldest->last_use) oldest = update;
    }
    tide_update_clear(oldest);
    if (!(oldest->fields = malloc(set_size))) return tide_out_of_memory(error);
    memcpy(oldest->fields, writer->changed_fields, set_size);
    tide_text sql = {0};
    tide_text_format(&sql, "UPDATE \"%s\" SET _version = ?1, _pending = ?2, _digest = ?3", writer->table);
    int parameter = tide_update_first_field;
    for (uint32_t i = 0; i < writer->field_count; i++) {
        if (!(writer->changed_fields[i / 8] & (1 << (i % 8)))) continue;
        tide_text_format(&sql, ", \"%s\" = ?%d", writer->fields[i].column, parameter++);
    }
    tide_text_format(&sql, " WHERE _id = ?%d", (int)tide_update_id);
    tide_status status = tide_writer_prepare(writer, &sql, "prepare the update", &oldest->statement, error);
    tide_text_free(&sql);
    oldest->last_use = ++writer->update_uses;
    *statement = oldest->statement;
    return status;
}

/// Clears the parameters that only deletions bind: key, tag, base and zone.
static void deletion_clear(tide_writer *writer) {
    for (int parameter = 9; parameter <= 12; parameter++) tide_writer_bound(writer, sqlite3_bind_null(writer->note_change, parameter));
}

tide_status tide_change_note(
    tide_apply *it, int64_t change, int kind, int64_t first, int64_t last, const int64_t *previous, const tide_text *before
) {
    tide_writer *writer = it->writer;
    sqlite3_stmt *note = writer->note_change;
    tide_writer_bound(writer, sqlite3_bind_int64(note, 1, change));
    tide_writer_bound(writer, sqlite3_bind_int64(note, 2, it->transaction));
    tide_writer_bound(writer, sqlite3_bind_int64(note, 3, writer->type_id));
    tide_writer_bound(writer, sqlite3_bind_int(note, 4, kind));
    tide_writer_bound(writer, sqlite3_bind_int64(note, 5, first));
    tide_writer_bound(writer, sqlite3_bind_int64(note, 6, last));
    if (previous) {
        tide_writer_bound(writer, sqlite3_bind_int64(note, 7, *previous));
    } else {
        tide_writer_bound(writer, sqlite3_bind_null(note, 7));
    }
    if (before) {
        tide_writer_bound(writer, sqlite3_bind_text(note, 8, before->bytes, (int)before->length, SQLITE_STATIC));
    } else {
        tide_writer_bound(writer, sqlite3_bind_null(note, 8));
    }
    tide_status status = tide_writer_run(writer, note, "write history", it->error);
    deletion_clear(writer);
    return status;
}

static tide_status claim_reject(tide_apply *it, uint32_t row, const tide_stored_field *field) {
    return tide_batch_row_reject(
        it->batch, row, field->name, field->name_length, TIDE_REJECT_ASSET_UNKNOWN,
        "the row names an asset that this record does not hold; give the file instead (export with its assets)");
}

static tide_status row_insert(tide_apply *it, uint32_t index) {
    tide_writer *writer = it->writer;
    const tide_row *row = &it->batch->rows[index];
    sqlite3_stmt *insert = writer->insert;
    for (uint32_t i = 0; i < writer->field_count; i++) {
        tide_cell cell = field_cell(writer, it->batch, i, index);
        if (cell.kind == TIDE_KIND_CLAIM) {
            // The row is not inserted, so it does not matter whether its values could be bound.
            writer->bind_failure = SQLITE_OK;
            return claim_reject(it, index, &writer->fields[i]);
        }
        bind_cell(writer, insert, (int)(tide_insert_first_field + i), it->batch, cell);
    }
    int64_t id = it->counters->next_row;
    tide_writer_bound(writer, sqlite3_bind_int64(insert, tide_insert_id, id));
    bind_key(writer, insert, tide_insert_key, it->batch, row);
    tide_writer_bound(writer, sqlite3_bind_int64(insert, tide_insert_zone, it->zone));
    tide_writer_bound(writer, sqlite3_bind_int64(insert, tide_insert_version, it->insert_change));
    tide_writer_bound(writer, sqlite3_bind_int64(insert, tide_insert_digest, (int64_t)row->digest));
    if (row->is_from_cloud) {
        tide_writer_bound(writer, sqlite3_bind_null(insert, tide_insert_pending));
        bind_span(writer, insert, tide_insert_tag, it->batch, row->tag);
        tide_writer_bound(writer, sqlite3_bind_int64(insert, tide_insert_base, it->insert_change));
    } else {
        tide_writer_bound(writer, sqlite3_bind_int(insert, tide_insert_pending, -1));
        tide_writer_bound(writer, sqlite3_bind_null(insert, tide_insert_tag));
        tide_writer_bound(writer, sqlite3_bind_null(insert, tide_insert_base));
    }
    bind_edited(writer, insert, tide_insert_edited, it->batch, row);
    tide_status status = tide_writer_run(writer, insert, "insert a record", it->error);
    if (status) return status;
    it->counters->next_row++;
    it->counts->inserted++;
    return TIDE_OK;
}

/// Merges the changed fields into the pending ones: -1 stands for all fields, NULL for none, a BLOB for a set.
static void bind_pending(tide_writer *writer, sqlite3_stmt *update, sqlite3_stmt *stored, uint8_t *merged, size_t size) {
    if (sqlite3_column_type(stored, tide_load_pending) == SQLITE_INTEGER) {
        tide_writer_bound(writer, sqlite3_bind_int(update, tide_update_pending, -1));
        return;
    }
    memcpy(merged, writer->changed_fields, size);
    const uint8_t *pending = sqlite3_column_blob(stored, tide_load_pending);
    size_t pending_size = (size_t)sqlite3_column_bytes(stored, tide_load_pending);
    for (size_t i = 0; pending && i < pending_size && i < size; i++) merged[i] |= pending[i];
    while (size > 1 && merged[size - 1] == 0) size--;
    tide_writer_bound(writer, sqlite3_bind_blob(update, tide_update_pending, merged, (int)size, SQLITE_TRANSIENT));
}

static const tide_row_columns columns_of_load = {
    .key = tide_load_key, .digest = tide_load_digest, .first_field = tide_load_first_field};

static bool stored_is_intact(const tide_writer *writer) {
    return tide_row_is_intact(writer->load, columns_of_load, writer->seed, writer->digests, writer->field_count);
}

static tide_status damaged_reject(tide_apply *it, uint32_t row) {
    return tide_batch_row_reject(
        it->batch, row, "", 0, TIDE_REJECT_DAMAGED,
        "the record's values in the store are damaged, and nothing is merged with them; repair it ('tidemark verify --repair'), or delete it");
}

/// Restores the fields in `changed_fields` of a damaged record. The record keeps its version, and history gets no entry.
static tide_status row_repair(tide_apply *it, uint32_t index, int64_t id, uint64_t digest) {
    tide_writer *writer = it->writer;
    sqlite3_stmt *stored = writer->load, *update = NULL;
    tide_status status = update_find(writer, &update, it->error);
    if (status) return status;
    tide_writer_bound(writer, sqlite3_bind_value(update, tide_update_version, sqlite3_column_value(stored, tide_load_version)));
    tide_writer_bound(writer, sqlite3_bind_value(update, tide_update_pending, sqlite3_column_value(stored, tide_load_pending)));
    tide_writer_bound(writer, sqlite3_bind_int64(update, tide_update_digest, (int64_t)digest));
    tide_writer_bound(writer, sqlite3_bind_int64(update, tide_update_id, id));
    int parameter = tide_update_first_field;
    for (uint32_t i = 0; i < writer->field_count; i++) {
        if (!(writer->changed_fields[i / 8] & (1 << (i % 8)))) continue;
        bind_cell(writer, update, parameter++, it->batch, field_cell(writer, it->batch, i, index));
    }
    sqlite3_reset(stored);
    if ((status = tide_writer_run_update(writer, update, "repair a record", it->error))) return status;
    it->counts->unchanged++;
    it->counts->repaired++;
    return TIDE_OK;
}

static tide_status row_write_changes(tide_apply *it, uint32_t index, int64_t id, uint64_t digest, bool is_damaged) {
    tide_writer *writer = it->writer;
    sqlite3_stmt *stored = writer->load, *update = NULL;
    tide_status status = update_find(writer, &update, it->error);
    if (status) return status;
    int64_t change = it->counters->next_change++;
    int64_t previous = sqlite3_column_int64(stored, tide_load_version);

    uint8_t merged[TIDE_BATCH_COLUMN_LIMIT / 8 + 1];
    bind_pending(writer, update, stored, merged, writer->field_count / 8 + 1);
    tide_writer_bound(writer, sqlite3_bind_int64(update, tide_update_version, change));
    tide_writer_bound(writer, sqlite3_bind_int64(update, tide_update_digest, (int64_t)digest));
    tide_writer_bound(writer, sqlite3_bind_int64(update, tide_update_id, id));
    tide_before_begin(&writer->before, is_damaged);
    int parameter = tide_update_first_field;
    for (uint32_t i = 0; i < writer->field_count; i++) {
        if (!(writer->changed_fields[i / 8] & (1 << (i % 8)))) continue;
        tide_before_append(&writer->before, &writer->fields[i], stored, (int)(tide_load_first_field + i), is_damaged);
        bind_cell(writer, update, parameter++, it->batch, field_cell(writer, it->batch, i, index));
    }
    tide_text_append(&writer->before, "}", 1);
    sqlite3_reset(stored);
    if (writer->before.failed) return tide_out_of_memory(it->error);

    status = tide_writer_run_update(writer, update, "update a record", it->error);
    if (!status) status = tide_change_note(it, change, tide_change_update, id, id, &previous, &writer->before);
    if (!status) it->counts->updated++;
    return status;
}

tide_status tide_row_compare(tide_apply *it, uint32_t index, int64_t id) {
    tide_writer *writer = it->writer;
    sqlite3_stmt *stored = writer->load;
    tide_writer_bound(writer, sqlite3_bind_int64(stored, 1, id));
    int code = tide_writer_step(writer, stored);
    if (code != SQLITE_ROW) {
        tide_status status = code == SQLITE_DONE
                                 ? tide_error_set(it->error, TIDE_CORRUPT, 0, "the index of names has a record that is not there")
                                 : tide_writer_error(writer, "read a record", it->error);
        sqlite3_reset(stored);
        return status;
    }
    memset(writer->changed_fields, 0, writer->field_count / 8 + 1);
    bool is_changed = false, is_damaged = !stored_is_intact(writer);
    const tide_row *row = &it->batch->rows[index];
    // The row has all original values of the damaged record: its digest is the stored one.
    bool is_whole = is_damaged && (uint64_t)sqlite3_column_int64(stored, tide_load_digest) == row->digest;
    uint64_t digest = tide_key_digest(
        writer->seed, tide_batch_text(it->batch, row->key.offset), row->key.length, row->key_is_blob);
    for (uint32_t i = 0; i < writer->field_count; i++) {
        tide_cell cell = field_cell(writer, it->batch, i, index);
        int column = (int)(tide_load_first_field + i);
        if (is_whole && cell.kind == TIDE_KIND_ABSENT) cell.kind = TIDE_KIND_NULL;
        if (cell.kind == TIDE_KIND_ABSENT || column_equals(stored, column, it->batch, cell)) {
            digest += tide_column_digest(stored, column, writer->fields[i].seed);
            continue;
        }
        if (cell.kind == TIDE_KIND_CLAIM && !is_whole) {
            sqlite3_reset(stored);
            return claim_reject(it, index, &writer->fields[i]);
        }
        digest += tide_cell_digest(it->batch, cell, writer->fields[i].seed);
        writer->changed_fields[i / 8] |= (uint8_t)(1 << (i % 8));
        is_changed = true;
    }
    tide_status status = TIDE_OK;
    if (is_damaged && (is_whole || (row->is_from_cloud && !is_changed))) {
        status = row_repair(it, index, id, digest);
    } else if (is_damaged && !row->is_from_cloud) {
        sqlite3_reset(stored);
        return damaged_reject(it, index);
    } else if (is_changed) {
        status = row_write_changes(it, index, id, digest, is_damaged);
    } else {
        it->counts->unchanged++;
    }
    sqlite3_reset(stored);
    return status;
}

tide_status tide_row_mark_synced(tide_apply *it, uint32_t index, int64_t id) {
    const tide_row *row = &it->batch->rows[index];
    if (!row->is_from_cloud || row->is_rejected) return TIDE_OK;
    tide_writer *writer = it->writer;
    sqlite3_stmt *mark = writer->mark_synced;
    bind_span(writer, mark, tide_synced_tag, it->batch, row->tag);
    bind_edited(writer, mark, tide_synced_edited, it->batch, row);
    tide_writer_bound(writer, sqlite3_bind_int64(mark, tide_synced_id, id));
    return tide_writer_run(writer, mark, "note the cloud's tag", it->error);
}

tide_status tide_row_delete(tide_apply *it, int64_t id) {
    tide_writer *writer = it->writer;
    sqlite3_stmt *stored = writer->load;
    tide_writer_bound(writer, sqlite3_bind_int64(stored, 1, id));
    int code = tide_writer_step(writer, stored);
    if (code != SQLITE_ROW) {
        tide_status status = code == SQLITE_DONE ? TIDE_OK : tide_writer_error(writer, "read a record", it->error);
        sqlite3_reset(stored);
        return status;
    }
    int64_t previous = sqlite3_column_int64(stored, tide_load_version);
    bool is_damaged = !stored_is_intact(writer);
    tide_before_begin(&writer->before, is_damaged);
    for (uint32_t i = 0; i < writer->field_count; i++) {
        int column = (int)(tide_load_first_field + i);
        if (sqlite3_column_type(stored, column) == SQLITE_NULL) continue;
        tide_before_append(&writer->before, &writer->fields[i], stored, column, is_damaged);
    }
    tide_text_append(&writer->before, "}", 1);
    tide_writer_bound(writer, sqlite3_bind_value(writer->note_change, 9, sqlite3_column_value(stored, tide_load_key)));
    tide_writer_bound(writer, sqlite3_bind_value(writer->note_change, 10, sqlite3_column_value(stored, tide_load_tag)));
    tide_writer_bound(writer, sqlite3_bind_value(writer->note_change, 11, sqlite3_column_value(stored, tide_load_base)));
    // NULL stands for the default zone.
    if (sqlite3_column_int64(stored, tide_load_zone) != 1) {
        tide_writer_bound(writer, sqlite3_bind_value(writer->note_change, 12, sqlite3_column_value(stored, tide_load_zone)));
    }
    sqlite3_reset(stored);
    if (writer->before.failed) {
        deletion_clear(writer);
        return tide_out_of_memory(it->error);
    }

    tide_writer_bound(writer, sqlite3_bind_int64(writer->erase, 1, id));
    tide_status status = tide_writer_run_deletion(writer, writer->erase, is_damaged, "delete a record", it->error);
    if (status) deletion_clear(writer);
    int64_t change = it->counters->next_change++;
    if (!status) status = tide_change_note(it, change, tide_change_delete, id, id, &previous, &writer->before);
    if (!status) it->counts->deleted++;
    return status;
}

/// TIDE_REJECTED when a record of another type has the name.
static tide_status siblings_check(tide_apply *it, uint32_t index) {
    tide_writer *writer = it->writer;
    for (uint32_t i = 0; i < writer->sibling_count; i++) {
        sqlite3_stmt *find = writer->find_in_sibling[i];
        bind_key(writer, find, 1, it->batch, &it->batch->rows[index]);
        tide_writer_bound(writer, sqlite3_bind_int64(find, 2, it->first_zone));
        tide_writer_bound(writer, sqlite3_bind_int64(find, 3, it->last_zone));
        int code = tide_writer_step(writer, find);
        tide_status status = code == SQLITE_DONE || code == SQLITE_ROW
                                 ? TIDE_OK
                                 : tide_writer_error(writer, "look for the name in another type", it->error);
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

tide_status tide_row_insert_if_free(tide_apply *it, uint32_t index) {
    tide_status status = siblings_check(it, index);
    if (status == TIDE_REJECTED) return TIDE_OK;
    return status ? status : row_insert(it, index);
}

tide_status tide_row_find(tide_apply *it, uint32_t index, int64_t *id) {
    tide_writer *writer = it->writer;
    bind_key(writer, writer->find, 1, it->batch, &it->batch->rows[index]);
    tide_writer_bound(writer, sqlite3_bind_int64(writer->find, 2, it->first_zone));
    tide_writer_bound(writer, sqlite3_bind_int64(writer->find, 3, it->last_zone));
    int code = tide_writer_step(writer, writer->find);
    *id = code == SQLITE_ROW ? sqlite3_column_int64(writer->find, 0) : 0;
    tide_status status = code == SQLITE_ROW || code == SQLITE_DONE
                             ? TIDE_OK
                             : tide_writer_error(writer, "look up a record", it->error);
    sqlite3_reset(writer->find);
    return status;
}

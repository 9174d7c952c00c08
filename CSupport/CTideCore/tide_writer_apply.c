#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tide_connection.h"
#include "tide_writer_layout.h"

// Order

static uint64_t key_prefix(const tide_batch *batch, const tide_row *row) {
    const uint8_t *key = (const uint8_t *)batch->text + row->key.offset;
    uint64_t prefix = 0;
    for (uint32_t i = 0; i < 8; i++) prefix = prefix << 8 | (i < row->key.length ? key[i] : 0);
    return prefix;
}

/// Compares two rows' names; 0 when they are the same.
static int compare_keys(const tide_batch *batch, tide_ordered_row a, tide_ordered_row b) {
    if (a.rank != b.rank) return a.rank < b.rank ? -1 : 1;
    const tide_row *x = &batch->rows[a.row], *y = &batch->rows[b.row];
    if (x->key_is_blob != y->key_is_blob) return x->key_is_blob ? 1 : -1;
    uint32_t shorter = x->key.length < y->key.length ? x->key.length : y->key.length;
    int order = memcmp(batch->text + x->key.offset, batch->text + y->key.offset, shorter);
    if (order) return order;
    if (x->key.length != y->key.length) return x->key.length < y->key.length ? -1 : 1;
    return 0;
}

typedef bool (*row_order)(const tide_batch *batch, tide_ordered_row a, tide_ordered_row b);

static bool comes_before_by_key(const tide_batch *batch, tide_ordered_row a, tide_ordered_row b) {
    int order = compare_keys(batch, a, b);
    return order ? order < 0 : a.row < b.row;
}

static bool comes_before_by_row(const tide_batch *batch, tide_ordered_row a, tide_ordered_row b) {
    (void)batch;
    return a.row < b.row;
}

static bool comes_before_by_id(const tide_batch *batch, tide_ordered_row a, tide_ordered_row b) {
    (void)batch;
    return a.rank < b.rank;
}

/// Heap sort: in place, without recursion, O(n log n) whatever the input.
static void sort_rows(tide_ordered_row *rows, uint32_t count, const tide_batch *batch, row_order comes_before) {
    for (uint32_t end = count, root = count / 2; end > 1;) {
        tide_ordered_row moving;
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

// Rows of existing records

static const tide_row_columns columns_of_scan = {
    .key = tide_scan_key, .digest = tide_scan_digest, .first_field = tide_scan_first_field};

/// Compares rows, sorted by the row ids of their records, with the digests stored for `first`...`last`; keeps those that differ, and
/// those whose record is damaged.
static tide_status digests_compare(tide_apply *it, tide_ordered_row *rows, uint32_t count, tide_ordered_row *different, uint32_t *different_count) {
    tide_writer *writer = it->writer;
    tide_writer_bound(writer, sqlite3_bind_int64(writer->scan, 1, (int64_t)rows[0].rank));
    tide_writer_bound(writer, sqlite3_bind_int64(writer->scan, 2, (int64_t)rows[count - 1].rank));
    uint32_t i = 0;
    int code = SQLITE_DONE;
    while (i < count && (code = tide_writer_step(writer, writer->scan)) == SQLITE_ROW) {
        uint64_t id = (uint64_t)sqlite3_column_int64(writer->scan, tide_scan_id);
        if (id < rows[i].rank) continue;
        if (id > rows[i].rank) break;
        bool is_equal = (uint64_t)sqlite3_column_int64(writer->scan, tide_scan_digest) == it->batch->rows[rows[i].row].digest;
        // Equal digests do not prove that the stored values are intact.
        if (is_equal && tide_row_is_intact(writer->scan, columns_of_scan, writer->seed, writer->digests, writer->field_count)) {
            it->counts->unchanged++;
        } else {
            different[(*different_count)++] = rows[i];
        }
        i++;
    }
    tide_status status = code == SQLITE_ROW || code == SQLITE_DONE
                             ? TIDE_OK
                             : tide_writer_error(writer, "compare the records", it->error);
    sqlite3_reset(writer->scan);
    if (!status && i < count) return tide_error_set(it->error, TIDE_CORRUPT, 0, "the index of names has a record that is not there");
    return status;
}

// Batches

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
            const tide_stored_field *field = &writer->fields[guess];
            if (field->name_length != column->name_length || memcmp(field->name, column->name, field->name_length)) continue;
            is_known = true;
            uint32_t type = column->type == TIDE_TYPE_BOOLEAN ? TIDE_TYPE_INT64 : column->type;
            if (type != TIDE_TYPE_UNKNOWN && type != (uint32_t)field->type) {
                return tide_error_set(
                    error, TIDE_MISUSE, 0, "field '%s' has another type in the store than in the batch", field->name);
            }
            writer->column_of_field[guess] = i + 1;
        }
        if (is_known) continue;
        if (unknown_column_reject(batch, column)) return tide_out_of_memory(error);
    }
    return TIDE_OK;
}

/// Lists the rows that have not been refused, in the order of the source.
static tide_status rows_list(tide_writer *writer, const tide_batch *batch, uint32_t *count, tide_error *error) {
    if (batch->row_count > writer->order_capacity) {
        free(writer->order);
        writer->order = malloc(2 * (size_t)batch->row_count * sizeof *writer->order);
        writer->order_capacity = writer->order ? batch->row_count : 0;
        if (!writer->order) return tide_out_of_memory(error);
    }
    *count = 0;
    for (uint32_t i = 0; i < batch->row_count; i++) {
        if (!batch->rows[i].is_rejected) writer->order[(*count)++] = (tide_ordered_row){.row = i};
    }
    return TIDE_OK;
}

/// Row ids that lie closer than this on average are read in one sweep.
enum { sweep_density = 4 };

/// Compares rows with the existing records of their names, and writes the differences. Both happen in the order of the table, so that each
/// page is read and written once. `different` has room for all rows.
static tide_status found_write(tide_apply *it, tide_ordered_row *found, uint32_t count, tide_ordered_row *different) {
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
        status = tide_row_compare(it, different[i].row, (int64_t)different[i].rank);
    }
    return status;
}

/// Whether rows claim assets that their record must hold already. What such a row may claim depends on the rows before it.
static bool rows_claim(const tide_apply *it, const tide_ordered_row *rows, uint32_t count) {
    for (uint32_t i = 0; i < it->batch->column_count; i++) {
        for (uint32_t j = 0; j < count; j++) {
            if (tide_column_cell(&it->batch->columns[i], rows[j].row).kind == TIDE_KIND_CLAIM) return true;
        }
    }
    return false;
}

/// Merges `count` rows of one name into the last of them, as if they were applied one after the other. So a source that names a record
/// twice changes nothing when it is imported again. The other rows count as unchanged.
static tide_status rows_fold(tide_apply *it, const tide_ordered_row *rows, uint32_t count) {
    uint32_t last = rows[count - 1].row;
    for (uint32_t i = count - 1; i-- > 0;) {
        if (tide_batch_row_complete(it->batch, last, rows[i].row, it->writer->seed)) return tide_out_of_memory(it->error);
        it->counts->unchanged++;
    }
    return TIDE_OK;
}

/// Writes rows by looking their names up. `rows` is followed by as much room again.
static tide_status rows_write(tide_apply *it, tide_ordered_row *rows, uint32_t count) {
    tide_ordered_row *room = rows + count;
    for (uint32_t i = 0; i < count; i++) rows[i].rank = key_prefix(it->batch, &it->batch->rows[rows[i].row]);
    sort_rows(rows, count, it->batch, comes_before_by_key);
    // `room` has the rows of existing records at its front, and at its end the rows that must wait for others of their name. Rows of
    // new records move to the front of `rows`.
    uint32_t found = 0, fresh = 0, waiting = 0;
    tide_status status = TIDE_OK;
    for (uint32_t i = 0, end; i < count && !status; i = end) {
        tide_ordered_row row = rows[i];
        int64_t id = 0;
        if ((status = tide_row_find(it, row.row, &id))) break;
        for (end = i + 1; end < count && compare_keys(it->batch, row, rows[end]) == 0;) end++;
        if (end > i + 1 && id && !rows_claim(it, rows + i, end - i)) {
            row = rows[end - 1];
            status = rows_fold(it, rows + i, end - i);
        } else {
            for (uint32_t j = i + 1; j < end; j++) room[count - ++waiting] = rows[j];
        }
        if (id) {
            room[found++] = (tide_ordered_row){.rank = (uint64_t)id, .row = row.row};
        } else {
            rows[fresh++] = row;
        }
    }
    // New records stay in the order of the source.
    sort_rows(rows, fresh, it->batch, comes_before_by_row);
    for (uint32_t i = 0; i < fresh && !status; i++) status = tide_row_insert_if_free(it, rows[i].row);
    if (!status) status = found_write(it, room, found, rows);
    for (uint32_t i = 0; i < found && !status; i++) status = tide_row_mark_synced(it, room[i].row, (int64_t)room[i].rank);
    for (uint32_t i = 1; i <= waiting && !status; i++) {
        tide_ordered_row row = room[count - i];
        int64_t id;
        if ((status = tide_row_find(it, row.row, &id))) break;
        status = id ? tide_row_compare(it, row.row, id) : tide_row_insert_if_free(it, row.row);
        if (!status && id) status = tide_row_mark_synced(it, row.row, id);
    }
    return status;
}

/// Inserts rows into a table that has been empty, for as long as each name is certainly new. `*done` rows were written.
static tide_status rows_load(tide_apply *it, const tide_ordered_row *rows, uint32_t count, uint32_t *done) {
    tide_writer *writer = it->writer;
    for (*done = 0; *done < count; ++*done) {
        uint32_t index = rows[*done].row;
        const tide_row *row = &it->batch->rows[index];
        uint64_t print = XXH3_64bits_withSeed(it->batch->text + row->key.offset, row->key.length, writer->seed);
        if (!tide_fingerprints_add(writer->fingerprints, print)) return tide_writer_load_end(writer, it->error);
        tide_status status = tide_row_insert_if_free(it, index);
        if (status) return status;
    }
    return TIDE_OK;
}

tide_status tide_writer_apply(
    tide_writer *writer, tide_batch *batch, int64_t zone, bool is_anywhere, int64_t transaction, tide_counters *counters,
    tide_counts *counts, tide_error *error
) {
    tide_status status = columns_match(writer, batch, error);
    if (status) return status;
    if (!writer->fingerprints && !writer->indexes_are_checked && (status = tide_writer_load_end(writer, error))) return status;
    uint32_t count = 0, done = 0;
    if ((status = rows_list(writer, batch, &count, error))) return status;

    tide_apply it = {
        .writer = writer, .batch = batch, .zone = zone, .first_zone = is_anywhere ? 0 : zone,
        .last_zone = is_anywhere ? INT64_MAX : zone, .transaction = transaction, .counters = counters, .counts = counts,
        .error = error, .first_inserted = counters->next_row, .insert_change = counters->next_change++,
    };
    if (writer->fingerprints) status = rows_load(&it, writer->order, count, &done);
    if (!status && done < count) status = rows_write(&it, writer->order + done, count - done);
    int64_t last = counters->next_row - 1;
    if (status || last < it.first_inserted) return status;
    return tide_change_note(&it, it.insert_change, tide_change_insert, it.first_inserted, last, NULL, NULL);
}

static void bind_text(tide_writer *writer, sqlite3_stmt *statement, int parameter, const char *text, tide_span span) {
    tide_writer_bound(writer, sqlite3_bind_text(statement, parameter, text + span.offset, (int)span.length, SQLITE_STATIC));
}

tide_status tide_writer_acknowledge(
    tide_writer *writer, const char *text, tide_acknowledgement *records, size_t count, tide_error *error
) {
    sqlite3_stmt *statement = writer->acknowledge;
    for (size_t i = 0; i < count; i++) {
        tide_acknowledgement *it = &records[i];
        bind_text(writer, statement, tide_acknowledge_tag, text, it->tag);
        tide_writer_bound(writer, sqlite3_bind_int64(statement, tide_acknowledge_version, it->version));
        bind_text(writer, statement, tide_acknowledge_edited, text, it->edited);
        tide_writer_bound(writer, sqlite3_bind_int64(statement, tide_acknowledge_id, it->row));
        if (it->has_known_tag) {
            bind_text(writer, statement, tide_acknowledge_known_tag, text, it->known_tag);
        } else {
            tide_writer_bound(writer, sqlite3_bind_null(statement, tide_acknowledge_known_tag));
        }
        tide_status status = tide_writer_run(writer, statement, "note the cloud's answer", error);
        if (status) return status;
        it->is_noted = sqlite3_changes(writer->connection) > 0;
    }
    return TIDE_OK;
}

tide_status tide_writer_delete(
    tide_writer *writer, const int64_t *ids, size_t count, int64_t transaction, tide_counters *counters, tide_counts *counts,
    tide_error *error
) {
    tide_apply it = {.writer = writer, .transaction = transaction, .counters = counters, .counts = counts, .error = error};
    tide_status status = TIDE_OK;
    for (size_t i = 0; i < count && !status; i++) status = tide_row_delete(&it, ids[i]);
    return status;
}

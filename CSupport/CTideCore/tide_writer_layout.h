/// The fields of a writer, for the core.

#ifndef TIDE_WRITER_LAYOUT_H
#define TIDE_WRITER_LAYOUT_H

#include <sqlite3.h>

#include "tide_batch_layout.h"
#include "tide_fingerprints.h"
#include "tide_text.h"
#include "tide_verify.h"
#include "tide_writer.h"

// Parameters of the INSERT and of UPDATEs, and columns of the SELECT of a row; the fields follow.
enum {
    tide_insert_id = 1, tide_insert_key, tide_insert_zone, tide_insert_version, tide_insert_pending, tide_insert_digest,
    tide_insert_tag, tide_insert_base, tide_insert_edited, tide_insert_first_field,
};
enum { tide_synced_tag = 1, tide_synced_edited, tide_synced_id };
enum { tide_acknowledge_tag = 1, tide_acknowledge_version, tide_acknowledge_edited, tide_acknowledge_id, tide_acknowledge_known_tag };
enum { tide_update_version = 1, tide_update_pending, tide_update_digest, tide_update_id, tide_update_first_field };
enum {
    tide_load_version = 0, tide_load_pending, tide_load_key, tide_load_tag, tide_load_base, tide_load_zone, tide_load_digest,
    tide_load_first_field,
};
enum { tide_scan_id = 0, tide_scan_digest, tide_scan_key, tide_scan_first_field };
enum { tide_update_cache_size = 16 };

typedef struct tide_stored_field {
    char *name;
    char *column;
    size_t name_length;
    tide_type type;
    uint64_t seed;
} tide_stored_field;

/// An UPDATE of one set of fields, kept because a source tends to change the same fields in many rows.
typedef struct tide_update_statement {
    sqlite3_stmt *statement;
    uint8_t *fields;
    uint64_t last_use;
} tide_update_statement;

/// A row of the batch with its sort key: the beginning of its record's key, so that sorting seldom looks at the key itself; or the row
/// id of its record.
typedef struct tide_ordered_row {
    uint64_t rank;
    uint32_t row;
} tide_ordered_row;

struct tide_writer {
    sqlite3 *connection;
    uint64_t seed;
    char *table;
    char *index_name;
    int64_t type_id;
    tide_stored_field *fields;
    uint32_t field_count;
    tide_field_digest *digests;
    tide_index *indexes;
    uint32_t index_count;
    char **siblings;
    uint32_t sibling_count;

    sqlite3_stmt *find, *scan, *load, *insert, *erase, *note_change, *mark_synced, *acknowledge;
    sqlite3_stmt **find_in_sibling;
    tide_update_statement updates[tide_update_cache_size];
    uint64_t update_uses;

    /// The code of the first parameter that could not be bound for the next step, and the code of the step that failed because of it; else 0.
    int bind_failure, step_failure;

    bool indexes_are_checked;
    tide_fingerprints *fingerprints;

    /// For the present batch: each field's column in it, as the index + 1, and the set of changed fields.
    uint32_t *column_of_field;
    uint8_t *changed_fields;
    /// Room for twice the batch's rows: all of them, and those that need a second look.
    tide_ordered_row *order;
    uint32_t order_capacity;
    tide_text before;
};

/// A batch on its way into the table, or records on their way out of it.
typedef struct tide_apply {
    tide_writer *writer;
    /// NULL where records are deleted.
    tide_batch *batch;
    /// The zone of new records, the first and the last zone in which names are looked for, and the id for history.
    int64_t zone, first_zone, last_zone, transaction;
    tide_counters *counters;
    tide_counts *counts;
    tide_error *error;
    /// The id of the first row that this batch inserts. All rows that it inserts have the change `insert_change`.
    int64_t first_inserted;
    int64_t insert_change;
} tide_apply;

// tide_writer.c

tide_status tide_out_of_memory(tide_error *error);
void tide_update_clear(tide_update_statement *update);
tide_status tide_writer_prepare(
    tide_writer *writer, const tide_text *sql, const char *doing, sqlite3_stmt **statement, tide_error *error);
/// Notes the code of a sqlite3_bind_*. The next step reports the first failure, and does nothing else.
static inline void tide_writer_bound(tide_writer *writer, int code) {
    if (code && !writer->bind_failure) writer->bind_failure = code;
}
/// Steps a statement; returns the code of the first parameter that could not be bound, if any, and does nothing then.
int tide_writer_step(tide_writer *writer, sqlite3_stmt *statement);
/// The error of a step that has failed.
tide_status tide_writer_error(tide_writer *writer, const char *doing, tide_error *error);
/// Runs a statement that yields no row, and readies it for the next use.
tide_status tide_writer_run(tide_writer *writer, sqlite3_stmt *statement, const char *doing, tide_error *error);
/// As `tide_writer_run`, for a statement that changes values of a row. If an index lacks the row's entry, the indexes of values are built
/// again and the statement runs once more.
tide_status tide_writer_run_update(tide_writer *writer, sqlite3_stmt *statement, const char *doing, tide_error *error);
/// As `tide_writer_run_update`, for the deletion of a row. If the row is not damaged, the index is: then all indexes are built again.
tide_status tide_writer_run_deletion(
    tide_writer *writer, sqlite3_stmt *statement, bool is_damaged, const char *doing, tide_error *error);

// tide_writer_before.c: the values of a record before a change

/// Begins the JSON object of the values before a change. The values of a damaged record get a mark: they must not be restored.
void tide_before_begin(tide_text *before, bool is_damaged);
/// Adds the value of a column. The caller ends the object.
void tide_before_append(
    tide_text *before, const tide_stored_field *field, sqlite3_stmt *row, int column, bool is_damaged);

// tide_writer_row.c: one row of the batch

/// The row id of the record that has the row's name; 0 when there is none.
tide_status tide_row_find(tide_apply *it, uint32_t index, int64_t *id);
/// Inserts a row, or refuses it when a record of another type has the name.
tide_status tide_row_insert_if_free(tide_apply *it, uint32_t index);
/// Compares a row with the record, and writes the differences.
tide_status tide_row_compare(tide_apply *it, uint32_t index, int64_t id);
/// Marks a record as synchronised, with the cloud's tag, if the row is from the cloud.
tide_status tide_row_mark_synced(tide_apply *it, uint32_t index, int64_t id);
/// Deletes a record, if it is there.
tide_status tide_row_delete(tide_apply *it, int64_t id);
/// Adds a change of some rows to history.
tide_status tide_change_note(
    tide_apply *it, int64_t change, int kind, int64_t first, int64_t last, const int64_t *previous,
    const tide_text *before);

#endif

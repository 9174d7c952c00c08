/// Writes batches of records into the table of their type: compares each record with the stored row, writes only what changed, and
/// notes the difference (which fields, and their values before) in history, and in the row which fields a cloud does not have yet.
/// Deletes records, with all their values noted.
///
/// It knows the tables of Documentation/Formats/store.md: the table of each type, and `tide_changes`.
/// Rules: it runs on a connection that the caller owns and inside a transaction that the caller has begun (BEGIN IMMEDIATE, under
/// the store's lock) and will commit or roll back; on any status but TIDE_OK the caller must roll back. It never begins, commits or
/// checkpoints. New rows get consecutive row ids, so that a single history row (first...last) stands for all inserts of a batch.
/// Threads: one at a time, the thread of the connection.
///
/// *Loading.* While a type's table is empty and more batches are announced, its unique index on the names is left out, and so are
/// the indexes of its values. Names are told apart by a set of 64-bit fingerprints in memory, and the indexes are built afterwards:
/// inserting random names singly into a B-tree costs more than everything else together once the tree outgrows the cache. A name that
/// may have occurred ends loading at once: the indexes are built and the batch goes on by look-ups. A store in which loading was
/// interrupted lacks the indexes; the next process that writes to it builds them (`tide_indexes_build`). Uniqueness holds throughout: a
/// fingerprint can only err towards "may have occurred".
///
/// *Damage.* Where a flipped bit keeps a row from being written because an index lacks its entry, the table's indexes are built again
/// (`tide_indexes.h`) and the row is written.
///
/// Why C: it is the bottleneck of imports; each row costs one or two prepared statements and nothing else.

#ifndef TIDE_WRITER_H
#define TIDE_WRITER_H

#include "tide_batch.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

struct sqlite3;

/// The kind of a change: `kind` in `tide_changes`. ChangeKind of the Swift code has the same values.
typedef enum tide_change_kind {
    tide_change_insert = 1,
    tide_change_update = 2,
    tide_change_delete = 3,
} tide_change_kind;

/// A field of a record type as it is stored.
typedef struct tide_field {
    const char *name;
    /// The SQL column of the field; a checked identifier.
    const char *column;
    tide_type type;
} tide_field;

/// An index of values. Both texts are made of checked identifiers.
typedef struct tide_index {
    const char *name;
    /// In SQL, quoted.
    const char *columns;
} tide_index;

/// A record type's table. Only read during the call that takes it.
typedef struct tide_table {
    /// Checked identifiers.
    const char *name;
    const char *index_name;
    int64_t type_id;
    const tide_field *TIDE_NULLABLE fields;
    uint32_t field_count;
    /// The indexes of the table, without the index of names and without those of unique keys, which a load needs.
    const tide_index *TIDE_NULLABLE indexes;
    uint32_t index_count;
    /// The tables of the other types: a record name is unique in its zone, whatever the type.
    const char *_Nonnull const *TIDE_NULLABLE siblings;
    uint32_t sibling_count;
} tide_table;

/// Numbers that the store hands out; the caller reads them in the transaction and stores them before it commits.
typedef struct tide_counters {
    int64_t next_row;
    int64_t next_change;
} tide_counters;

/// The number of rows, or deletions, for each result. Each call adds to the numbers.
typedef struct tide_counts {
    uint64_t inserted, updated, unchanged, deleted;
    /// Of the unchanged rows, those whose stored values were damaged and are whole again.
    uint64_t repaired;
} tide_counts;

/// A version of a record that a cloud has acknowledged. The texts are pieces of a single run of bytes.
typedef struct tide_acknowledgement {
    int64_t row;
    /// The version that was sent.
    int64_t version;
    /// The record's new tag, and its tag before.
    tide_span tag, known_tag;
    /// When the record's fields were edited.
    tide_span edited;
    bool has_known_tag;
    /// Out: whether the row still had that version, and is marked as synchronised now.
    bool is_noted;
} tide_acknowledgement;

/// A writer; made by `tide_writer_create`.
typedef struct tide_writer tide_writer;

/// Prepares a writer for a table of a connection. `seed` is the store's digest seed. The caller owns the writer, ends it with
/// `tide_writer_destroy` before the connection closes, and makes a new table description known by `tide_writer_set_table`.
tide_status tide_writer_create(
    struct sqlite3 *connection, uint64_t seed, const tide_table *table, tide_writer *TIDE_NULLABLE *_Nonnull writer,
    tide_error *TIDE_NULLABLE error);
/// Frees a writer and its prepared statements. NULL does nothing.
void tide_writer_destroy(tide_writer *TIDE_NULLABLE writer);

/// Takes a changed description of the same type (fields, indexes, siblings added); loading goes on. Indexes that are missing are built
/// with the next batch.
tide_status tide_writer_set_table(tide_writer *writer, const tide_table *table, tide_error *TIDE_NULLABLE error);

/// Begins loading if the table is empty: drops the indexes. Does nothing otherwise.
tide_status tide_writer_load_begin(tide_writer *writer, tide_error *TIDE_NULLABLE error);
/// Ends loading, and builds the indexes that are missing.
tide_status tide_writer_load_end(tide_writer *writer, tide_error *TIDE_NULLABLE error);
/// Whether loading was begun and has not ended.
bool tide_writer_is_loading(const tide_writer *writer);
/// Forgets the state of a load in memory, after its transaction was rolled back or another connection has written.
/// The indexes are built at the next `tide_writer_apply` if they are missing.
void tide_writer_load_forget(tide_writer *writer);

/// Writes a batch. Rows refused before are passed over; rows that the store refuses (the name belongs to another type, a field that
/// the table lacks, an asset claimed that the record does not hold) are refused in the batch. Needs digests (`tide_batch_digest`
/// with the same seed). `zone` is the row id of the zone that new records go to; existing records are looked for in it, or, with
/// `is_anywhere`, in all zones, the zone of the least id first. `transaction` is the id that history rows carry.
/// A record whose values do not match its digest is damaged. A row with all of its original values repairs it, in place and without
/// history; a row from the cloud replaces it; any other row is refused (`damaged`), because the values to merge it with are unknown.
/// Of rows with the same name the last counts, field by field. If the record exists already, they count as a single row, and the others
/// as unchanged.
/// Complexity: O(n log n) in rows; while loading O(n).
tide_status tide_writer_apply(
    tide_writer *writer, tide_batch *batch, int64_t zone, bool is_anywhere, int64_t transaction, tide_counters *counters,
    tide_counts *counts, tide_error *TIDE_NULLABLE error);

/// Deletes the records of these row ids; history keeps their names and values, and whether they were damaged. An id that is not there is
/// passed over.
/// Complexity: O(n) look-ups; in the order of the table it reads each page once.
tide_status tide_writer_delete(
    tide_writer *writer, const int64_t *ids, size_t count, int64_t transaction, tide_counters *counters, tide_counts *counts,
    tide_error *TIDE_NULLABLE error);

/// Marks rows as synchronised if they still have the version that was sent, and the tag that the cloud had before; `is_noted` tells
/// which. Other rows stay as they are. The spans are pieces of `text`.
/// Why C: it runs once for each uploaded record, with a prepared statement and five bindings.
/// Complexity: O(n) look-ups.
tide_status tide_writer_acknowledge(
    tide_writer *writer, const char *text, tide_acknowledgement *records, size_t count, tide_error *TIDE_NULLABLE error);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

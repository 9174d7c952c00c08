/// A batch of records as columns. A reader fills it, the intake of files completes it, and the writer compares it with the store.
///
/// Layout: one arena of text per batch; a cell is 16 bytes and refers to its text by offset, so a batch can grow without moving
/// anything that points into it. A column's cells begin at the row in which the column first appeared. Each row keeps the source
/// text that it came from, for the rejects file.
/// Limits: text below 4 GiB; `tide_batch_is_full` says when the bounds given at creation are reached. A single row may exceed the
/// byte bound by its own size.
/// Threads: one at a time; handing a batch from one thread to the next needs the usual synchronisation by the caller.
///
/// Why C: five values a row, hundreds of thousands of rows a second; and the same memory serves parser, hasher and SQLite.

#ifndef TIDE_BATCH_H
#define TIDE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// The type of a field; the values are stored (tide_fields.type). A list of T is T | TIDE_TYPE_LIST.
typedef enum tide_type {
    TIDE_TYPE_UNKNOWN = 0,
    TIDE_TYPE_STRING = 1,
    TIDE_TYPE_INT64 = 2,
    TIDE_TYPE_DOUBLE = 3,
    TIDE_TYPE_TIMESTAMP = 4,
    TIDE_TYPE_BYTES = 5,
    TIDE_TYPE_LOCATION = 6,
    TIDE_TYPE_REFERENCE = 7,
    TIDE_TYPE_ASSET = 8,
    TIDE_TYPE_LIST = 0x10,
    /// An int64 that people read and write as true and false: its values are 1 and 0. Stored and sent as TIDE_TYPE_INT64.
    TIDE_TYPE_BOOLEAN = 0x20 | TIDE_TYPE_INT64,
} tide_type;

/// The kind of a cell's value.
typedef enum tide_kind {
    /// The row does not mention this field: the stored value stays.
    TIDE_KIND_ABSENT = 0,
    /// The row says that the field has no value.
    TIDE_KIND_NULL = 1,
    TIDE_KIND_INTEGER = 2,
    TIDE_KIND_REAL = 3,
    TIDE_KIND_TEXT = 4,
    TIDE_KIND_BLOB = 5,
    /// A file to ingest, as a path below the assets root; the intake turns it into TEXT.
    TIDE_KIND_PATH = 6,
    /// Several such paths, each ended by NUL; the intake turns them into TEXT, a JSON array.
    TIDE_KIND_PATHS = 7,
    /// The identifier of an asset, or a JSON array of them, that the same record must already hold; the writer checks it.
    TIDE_KIND_CLAIM = 8,
    /// This kind and those below exist only between reading a row and inferring its column's type.
    TIDE_KIND_BOOLEAN = 20,
    TIDE_KIND_RAW_NUMBER = 21,
    TIDE_KIND_RAW_LIST = 22,
    TIDE_KIND_RAW_OBJECT = 23,
    TIDE_KIND_RAW_TEXT = 24,
} tide_kind;

/// A value. TEXT, BLOB and the kinds from PATH on refer to the batch's arena.
typedef struct tide_cell {
    uint8_t kind;
    uint8_t reserved[3];
    /// Bytes of text.
    uint32_t length;
    union {
        int64_t integer;
        double real;
        uint64_t offset;
    };
} tide_cell;

/// A stretch of the arena.
typedef struct tide_span {
    uint32_t offset;
    uint32_t length;
} tide_span;

/// Why a row was refused.
typedef struct tide_rejection {
    tide_reject reject;
    uint32_t row;
    /// From 1; of a folder of photos, the file's number in order.
    uint64_t line;
    /// The field at fault; empty when it is the row.
    tide_span field;
    /// The reason, as a sentence.
    tide_span message;
    /// The row as it stood in the source.
    tide_span source;
    /// The row was longer than `source`.
    bool source_is_cut;
} tide_rejection;

/// A batch; made by `tide_batch_create`.
typedef struct tide_batch tide_batch;

/// Creates an empty batch that counts as full from `row_limit` rows or `byte_limit` bytes of memory on. The caller owns it and ends
/// it with `tide_batch_destroy`.
tide_status tide_batch_create(uint32_t row_limit, size_t byte_limit, tide_batch *TIDE_NULLABLE *_Nonnull batch);
/// Frees a batch and all that its text and cells occupy. NULL does nothing.
void tide_batch_destroy(tide_batch *TIDE_NULLABLE batch);
/// Empties a batch, columns included, and keeps its memory for the next use. Memory far beyond the byte bound is freed.
void tide_batch_reset(tide_batch *batch);

/// Whether the rows and refusals have reached the row bound, or the text, cells and refusals the byte bound.
bool tide_batch_is_full(const tide_batch *batch);
/// Rows that were added, refused ones included.
uint32_t tide_batch_row_count(const tide_batch *batch);
/// Rows that have not been refused.
uint32_t tide_batch_live_count(const tide_batch *batch);

// Text

/// Makes room for `length` more bytes and for 64 beyond them that a vectorised parser may read; they count once committed.
/// The pointer holds until the next call that adds text. NULL when memory or the arena's range is exhausted.
char *TIDE_NULLABLE tide_batch_text_reserve(tide_batch *batch, size_t length);
/// Takes the first `length` of the bytes reserved last into the arena and returns where they lie.
tide_span tide_batch_text_commit(tide_batch *batch, size_t length);
/// Copies text into the arena.
tide_status tide_batch_text_add(tide_batch *batch, const void *TIDE_NULLABLE bytes, size_t length, tide_span *span);
/// The text at an offset of the arena. The pointer holds until the next call that adds text, or resets or destroys the batch.
const char *tide_batch_text(const tide_batch *batch, size_t offset);

// Columns

/// The column of that name, made if there is none. TIDE_REJECTED when there is none and the name is no identifier, or there are
/// TIDE_BATCH_COLUMN_LIMIT columns already.
tide_status tide_batch_column(
    tide_batch *batch, const char *name, size_t length, uint32_t *column, tide_error *TIDE_NULLABLE error);
/// The column of a field of a source. As tide_batch_column, and TIDE_REJECTED when the name differs from another column's, or from the field
/// of the record names, by the case of letters only.
tide_status tide_batch_source_column(
    tide_batch *batch, const char *name, size_t length, const char *name_field, uint32_t *column, tide_error *TIDE_NULLABLE error);
/// Columns that the batch has, used or not.
uint32_t tide_batch_column_count(const tide_batch *batch);
/// The name of a column, NUL-terminated, and its length in bytes. The batch owns it, until it is reset or destroyed.
const char *tide_batch_column_name(const tide_batch *batch, uint32_t column, size_t *length);
/// The type that was set for a column; TIDE_TYPE_UNKNOWN until then.
tide_type tide_batch_column_type(const tide_batch *batch, uint32_t column);
/// Sets the type of a column. The cells stay as they are.
void tide_batch_column_set_type(tide_batch *batch, uint32_t column, tide_type type);
/// Returns whether any live row has a value for the column.
bool tide_batch_column_is_used(const tide_batch *batch, uint32_t column);

/// The most columns of a batch. SQLite allows 2,000; the store's own columns take the rest.
#define TIDE_BATCH_COLUMN_LIMIT 1900

// Rows

/// Begins a row that came from `source`, at `line`. Its cells are absent and it has no name.
tide_status tide_batch_row_add(tide_batch *batch, uint64_t line, tide_span source, uint32_t *row);
/// Puts a value into a cell of the last row. TIDE_REJECTED (duplicateKey) when the cell has one.
tide_status tide_batch_row_set(tide_batch *batch, uint32_t column, tide_cell cell);
/// Changes a cell of any row.
void tide_batch_cell_replace(tide_batch *batch, uint32_t row, uint32_t column, tide_cell cell);
/// Puts a value into a cell of any row, also of a row before or behind the cells that the column has.
tide_status tide_batch_cell_set(tide_batch *batch, uint32_t row, uint32_t column, tide_cell cell);
/// A cell of any row; of the kind TIDE_KIND_ABSENT where the column has none for it.
tide_cell tide_batch_cell(const tide_batch *batch, uint32_t row, uint32_t column);

/// Gives the row its record name: TIDE_REJECTED when it is empty, longer than 255 bytes or has control characters.
tide_status tide_batch_row_name(tide_batch *batch, uint32_t row, const char *name, size_t length, tide_error *TIDE_NULLABLE error);
/// Returns false only for a text in Unicode's normal form C; for some of these it returns true. Reads the bytes once.
bool tide_text_may_need_composing(const char *text, size_t length);
/// Returns false only if the names of all rows are in Unicode's normal form C; see `tide_text_may_need_composing`.
bool tide_batch_may_need_composing(const tide_batch *batch);
/// The key that stands for the name in the store: `*is_blob` tells a BLOB from a TEXT. Length 0 when the row has no name.
const char *tide_batch_row_key(const tide_batch *batch, uint32_t row, size_t *length, bool *is_blob);
/// Marks the row as a cloud's version of a record, with its tag and the times of its edits (NULL: not known). The writer stores both with
/// the record, and marks it as synchronised. For rows that have all fields.
tide_status tide_batch_row_from_cloud(
    tide_batch *batch, uint32_t row, const char *tag, size_t tag_length, const char *TIDE_NULLABLE edited, size_t edited_length);
/// The line that was given with `tide_batch_row_add`.
uint64_t tide_batch_row_line(const tide_batch *batch, uint32_t row);
/// The source text that was given with `tide_batch_row_add`.
tide_span tide_batch_row_source(const tide_batch *batch, uint32_t row);
/// Whether a row has not been refused.
bool tide_batch_row_is_live(const tide_batch *batch, uint32_t row);

/// Refuses a row: it stays in the batch, but nothing of it is written. A row that is refused already stays as it is.
tide_status tide_batch_row_reject(
    tide_batch *batch, uint32_t row, const char *field, size_t field_length, tide_reject reject, const char *message);
/// Notes a refusal of something that never became a row.
tide_status tide_batch_reject(
    tide_batch *batch, uint64_t line, tide_span source, bool source_is_cut, tide_reject reject, const char *message);
/// Refusals of rows, and of sources that never became rows.
uint32_t tide_batch_rejection_count(const tide_batch *batch);
/// A refusal, by its index below the count; `row` is UINT32_MAX for a source that never became a row.
tide_rejection tide_batch_rejection(const tide_batch *batch, uint32_t index);

// Digests

/// Sets each live row's digest: the sum over its key and its values of XXH3-64(value), seeded with `seed` and the field's name, so that
/// the order of fields does not matter and NULL counts nothing. It detects change and accident, not malice; the seed is secret to the store.
void tide_batch_digest(tide_batch *batch, uint64_t seed);
/// The digest of a row, as `tide_batch_digest` has set it.
uint64_t tide_batch_row_digest(const tide_batch *batch, uint32_t row);

/// The digest of a row's key.
uint64_t tide_key_digest(uint64_t seed, const void *TIDE_NULLABLE key, size_t length, bool is_blob);
/// The seed of a field's values.
uint64_t tide_field_seed(uint64_t seed, const char *name, size_t length);
/// The digest of a value, as stored.
uint64_t tide_value_digest_bytes(uint64_t field_seed, const void *TIDE_NULLABLE bytes, size_t length);
/// The digest of an integer: of its 8 bytes, least significant first.
uint64_t tide_value_digest_integer(uint64_t field_seed, int64_t value);
/// The digest of a real number, as stored.
uint64_t tide_value_digest_real(uint64_t field_seed, double value);

// Names and identifiers

/// Encodes a record name as its key: 16 bytes for a UUID in lower case or of digits alone, 17 (the last is 'U') for a UUID in upper case, else
/// the name.
/// `key` has room for 17 bytes. Returns its length, or 0 when the name is its own key.
size_t tide_name_encode(const char *name, size_t length, uint8_t key[_Nonnull 17]);
/// Decodes a key of 16 or 17 bytes; `name` has room for 36 bytes. Returns the name's length, or 0 when the key is no such key.
size_t tide_name_decode(const void *key, size_t length, char name[_Nonnull 36]);
/// Whether a text can name a type or a field: a letter, then letters, digits or `_`, all ASCII, at most 255; not beginning with
/// "sqlite_" or "tide_" in any case.
bool tide_identifier_is_valid(const char *name, size_t length);
/// Whether two names are different, but the same for SQL, which compares names without the case of letters.
bool tide_identifiers_collide(const char *one, size_t one_length, const char *other, size_t other_length);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

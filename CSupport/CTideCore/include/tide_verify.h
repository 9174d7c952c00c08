/// Reads a type's table again and compares each row with its digest.
///
/// Why C: it is bound by the memory bandwidth of a whole store.

#ifndef TIDE_VERIFY_H
#define TIDE_VERIFY_H

#include "tide_writer.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

struct sqlite3_stmt;

/// The properties of a field that the digests of its values depend on.
typedef struct tide_field_digest {
    uint64_t seed;
    /// A `tide_type`.
    uint32_t type;
} tide_field_digest;

/// Places of columns in a statement's row.
typedef struct tide_row_columns {
    int key, digest, first_field;
} tide_row_columns;

/// Compares the row at which a statement stands with its digest. False if a value, the name or the digest has changed since it was
/// written.
/// `seed` is the store's digest seed. Reads nothing but the row, and allocates nothing.
bool tide_row_is_intact(
    struct sqlite3_stmt *row, tide_row_columns columns, uint64_t seed, const tide_field_digest *TIDE_NULLABLE fields, uint32_t count);

/// Splits the digest of the row at which a statement stands: `parts[i]` is the part of the field `i`. Returns the difference: the stored
/// digest less the key and all parts; 0 for an intact row.
uint64_t tide_row_digest_parts(
    struct sqlite3_stmt *row, tide_row_columns columns, uint64_t seed, const tide_field_digest *TIDE_NULLABLE fields, uint32_t count,
    uint64_t *TIDE_NULLABLE parts);

/// Looks for a single flipped bit in a row's values, or in its digest, and flips it back. The digest proves the bit: another one would
/// pass with a probability of some 2^-40 at worst. Values that are so long that the search would take seconds are not searched.
/// Runs in the caller's transaction.
/// Complexity: O(bits x bytes) of each value; 2 ms for 2,000 bytes.
tide_status tide_row_mend_bit(
    struct sqlite3 *connection, uint64_t seed, const tide_table *table, int64_t id, bool *is_mended,
    tide_error *TIDE_NULLABLE error);

/// Called for a row whose values do not match its digest.
typedef void (*tide_row_visitor)(void *TIDE_NULLABLE context, int64_t row);

/// Calls `visitor` for each row that does not match. `*rows` is the number of rows read. `seed` is the store's digest seed.
tide_status tide_table_verify(
    struct sqlite3 *connection, uint64_t seed, const tide_table *table, uint64_t *rows, tide_row_visitor visitor,
    void *TIDE_NULLABLE context, tide_error *TIDE_NULLABLE error);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

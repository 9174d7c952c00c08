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

/// A row whose values are not what its digest says.
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

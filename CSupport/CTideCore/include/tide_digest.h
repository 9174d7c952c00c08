/// Digests the result of a query: the rows with their order, and the types and bytes of their values.
///
/// Two databases with equal digests of their tables hold the same. XXH3-128 detects accident, not malice.
///
/// Why C: it is bound by the memory bandwidth of a whole store.

#ifndef TIDE_DIGEST_H
#define TIDE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

struct sqlite3;
struct sqlite3_stmt;

/// How many rows a query yields, and the two halves of their digest.
typedef struct tide_digest {
    uint64_t rows;
    uint64_t low, high;
} tide_digest;

/// Digests all rows of a query without parameters.
tide_status tide_digest_rows(
    struct sqlite3 *connection, const char *sql, tide_digest *digest, tide_error *TIDE_NULLABLE error);

/// Digests bytes in memory: XXH3-128 in its canonical form, most significant byte first.
///
/// `digest` has room for 16 bytes.
void tide_digest_bytes(const void *TIDE_NULLABLE bytes, size_t length, uint8_t *digest);

/// Whether columns of the row at which a statement stands match their digest.
///
/// The digest is one of `tide_digest_bytes`, of the byte `table` and then of each column, in the given order: a byte for its type (0 NULL,
/// 1 integer, 2 text, 3 blob), then an integer zigzag-coded in groups of seven bits, low ones first, or the length, coded so, and the bytes;
/// of text those before its first NUL. A value whose type has changed does not match.
bool tide_columns_have_digest(
    struct sqlite3_stmt *row, uint8_t table, const int *columns, size_t count, int digest_column);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

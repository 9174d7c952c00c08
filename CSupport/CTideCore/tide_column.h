/// Values in a statement's row, for the core.

#ifndef TIDE_COLUMN_H
#define TIDE_COLUMN_H

#include <sqlite3.h>
#include <stdint.h>

/// The digest of a stored value; 0 for NULL.
uint64_t tide_column_digest(sqlite3_stmt *row, int column, uint64_t field_seed);

#endif

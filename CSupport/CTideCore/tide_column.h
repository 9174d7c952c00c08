/// Values in a statement's row, for the core.

#ifndef TIDE_COLUMN_H
#define TIDE_COLUMN_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/// The digest of a stored value; 0 for NULL.
uint64_t tide_column_digest(sqlite3_stmt *row, int column, uint64_t field_seed);
/// Whether a stored value has the storage class of its field's type (`tide_type`); NULL has that of all. A damaged record header can turn
/// text into a blob of the same bytes, which has the same digest.
bool tide_column_has_type(sqlite3_stmt *row, int column, uint32_t type);

#endif

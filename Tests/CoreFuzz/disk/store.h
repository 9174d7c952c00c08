/// A store on the disk in memory, and the steps that a program does with it.

#ifndef STORE_H
#define STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "tide_status.h"

/// Steps 0 to `STORE_STEPS` - 1: a load in two batches, updates, deletions, acknowledgements, a new field, checkpoints.
#define STORE_STEPS 16
/// The step that moves the log into the file of the store, and empties it.
#define STORE_TRUNCATION 9

typedef struct store store;

/// Makes an empty store. The disk has no fault.
void store_make(void);
/// Opens the store. With `is_normal`, its commits are not synced, as with `synchronous = NORMAL`.
///
/// Returns NULL and the error where that fails.
store *store_open(bool is_normal, tide_error *error);
void store_close(store *store);
/// Does a step, in a transaction of its own, which is rolled back where it fails. The store may be used on.
tide_status store_step(store *store, int step, uint64_t seed, tide_error *error);
/// Has each row compared with its digest. `report` gets the row ids of the others.
tide_status store_verify(store *store, void (*report)(void *context, int64_t row), void *context, tide_error *error);
/// Whether `PRAGMA integrity_check` finds nothing.
bool store_is_whole(store *store);
struct sqlite3 *store_connection(store *store);
/// A digest of all rows and of the history. Ends the test where the database is not whole, or a row does not match its digest.
uint64_t store_digest(store *store, const char *what);

#endif

/// A store of one record type, written as RecordStore writes it: the same tables, settings, lock and transactions.

#ifndef STORE_H
#define STORE_H

#include "core.h"

#include "tide_lock.h"
#include "tide_writer.h"

#include <sqlite3.h>

typedef struct core_store {
    sqlite3 *database;
    tide_lock *lock;
    tide_writer *writer;
    sqlite3_stmt *read_counters, *note_transaction;
    /// Pages in the log after the last commit, and from how many on they are moved into the database.
    int32_t frames, frames_max;
    /// Whether the file was not there.
    bool is_fresh;
} core_store;

/// The digests' seed; a real store draws its own.
enum { CORE_DIGEST_SEED = 20240602 };

/// The type's fields, in the order of the manifest.
enum { CORE_FIELD_COUNT = 5 };
extern const tide_field core_fields[CORE_FIELD_COUNT];

/// Opens or creates the store. `store` must stay where it is until it is closed.
void core_store_open(core_store *store, const floor_options *options);
/// Writes a batch, digests included, in one durable transaction. An empty table is loaded without its index until `is_last`.
void core_store_write(core_store *store, tide_batch *batch, bool is_last, tide_counts *counts);
/// Moves the log into the database and empties it.
void core_store_checkpoint(core_store *store);
void core_store_close(core_store *store);

#endif

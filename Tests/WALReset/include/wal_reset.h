/// SQLite's WAL reset bug (before 3.51.3), made to happen or not: a checkpoint of one connection between whose two looks at the
/// write-ahead log another connection commits and begins the log anew. A hook in the VFS puts the commit in that very place.

#ifndef WAL_RESET_H
#define WAL_RESET_H

#include <stdbool.h>

typedef struct wal_reset_outcome {
    /// The hook ran: the commit was attempted in the middle of the checkpoint.
    bool was_attempted;
    /// The commit was kept out by the lock.
    bool was_kept_out;
    int acknowledged;
    /// Rows there after closing and reopening.
    int found;
} wal_reset_outcome;

/// `checkpoint_mode`: 0 PASSIVE, 1 FULL, 2 RESTART, 3 TRUNCATE. `with_lock`: writes and checkpoints go under the store's lock.
/// Returns 0, or -1 when the experiment itself failed.
int wal_reset_try(const char *_Nonnull folder, int checkpoint_mode, bool with_lock, wal_reset_outcome *_Nonnull outcome);

/// Whether this SQLite has the bug, by its version.
bool wal_reset_is_expected(void);

#endif

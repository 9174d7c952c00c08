/// The lock that every write and every checkpoint of a store goes under, across processes and connections.
///
/// Why it exists: SQLite before 3.51.3 can lose acknowledged commits when a checkpoint of one connection races a commit of another
/// (the "WAL reset" bug), so the two must never overlap. The lock is flock(2) on an empty file of its own beside the database, which stays.
/// The kernel releases the lock when the process dies, however it dies.
/// Threads: a `tide_lock` belongs to one connection. Two of them exclude each other also within one process.

#ifndef TIDE_LOCK_H
#define TIDE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// An open lock file; made by `tide_lock_create`.
typedef struct tide_lock tide_lock;

/// Opens the lock file, making it if need be (mode 0600). The caller ends the lock with `tide_lock_destroy`.
tide_status tide_lock_create(const char *path, tide_lock *TIDE_NULLABLE *_Nonnull lock, tide_error *TIDE_NULLABLE error);
/// Closes the lock file, which releases the lock, and frees the lock. NULL does nothing.
void tide_lock_destroy(tide_lock *TIDE_NULLABLE lock);

/// Takes the lock, exclusively or shared, waiting at most `timeout_ms`. TIDE_BUSY when the time has passed. Not recursive.
tide_status tide_lock_acquire(tide_lock *lock, bool shared, uint32_t timeout_ms, tide_error *TIDE_NULLABLE error);
/// Releases the lock. The lock may be taken again.
void tide_lock_release(tide_lock *lock);

/// Whether the file at the lock's path is still the file that was opened.
bool tide_lock_is_in_place(const tide_lock *lock);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

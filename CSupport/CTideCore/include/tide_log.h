/// Examines a write-ahead log beside what the wal-index (the -shm file) says of it.
///
/// SQLite reads a log up to the first frame whose checksum is wrong, and takes that for its end: a frame that is damaged later drops all
/// that was committed behind it, without an error. The index still knows how far the log was committed, until SQLite builds it again,
/// which the first process to open the database does. So this is to be asked before that.
///
/// Rules: nothing is written and no lock is taken. What the index says counts only while it belongs to the log (both have the same salt)
/// and is whole itself. SQLite writes it after the frames are durable (`synchronous = FULL`), so that a power cut leaves none that says
/// more than the log has.
/// Threads: any.
///
/// Why C: the checksums of some 64 MiB, and the descriptors of -shm files, which must not be closed while SQLite has locks on them.

#ifndef TIDE_LOG_H
#define TIDE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// What is known of a log. All are 0 where nothing is.
typedef struct tide_log_state {
    /// Whether a connection keeps the index up: then it is not built again by the next one.
    bool is_in_use;
    /// Frames that the index says are committed, and those among them that are in the database, too.
    uint32_t committed, moved;
    /// Frames from the first one on that are whole; `committed` at the most.
    uint32_t whole;
    /// Tells this log from the one before and the one after it.
    uint64_t salt;
} tide_log_state;

/// Whether commits are lost: frames that are damaged, or behind one that is, and are not in the database.
static inline bool tide_log_has_loss(const tide_log_state *state) {
    return state->whole < state->committed && state->moved < state->committed;
}

/// Examines the log of the database at `database`. A log or an index that is missing is no error.
///
/// TIDE_IO_ERROR when a file can't be read, TIDE_NO_MEMORY. Reads the log once, up to what is committed.
tide_status tide_log_examine(const char *database, tide_log_state *state, tide_error *TIDE_NULLABLE error);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

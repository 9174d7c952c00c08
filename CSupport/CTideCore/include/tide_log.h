/// Compares a write-ahead log with the wal-index (the -shm file).
///
/// SQLite reads a log up to the first frame whose checksum is wrong, and takes that frame for the log's end. So a damaged frame drops all
/// commits behind it, without an error. The index still knows how far the log was committed, until the first process that opens the
/// database builds it again. So call this before that.
///
/// Rules: nothing is written and no lock is taken. The index counts only while it belongs to the log (both have the same salt) and is
/// whole itself. SQLite writes it after the frames are durable (`synchronous = FULL`), so that after a power cut no index has more
/// commits than the log.
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

/// The known state of a log. All members are 0 if nothing is known.
typedef struct tide_log_state {
    /// Whether a connection keeps the index up: then the next connection does not build it again.
    bool is_in_use;
    /// Frames that the index says are committed, and those among them that are in the database, too.
    uint32_t committed, moved;
    /// Frames from the first one on that are whole; `committed` at the most.
    uint32_t whole;
    /// Tells this log from the logs before and after it.
    uint64_t salt;
} tide_log_state;

/// Whether commits are lost: frames that are damaged, or behind a damaged frame, and are not in the database.
static inline bool tide_log_has_loss(const tide_log_state *state) {
    return state->whole < state->committed && state->moved < state->committed;
}

/// Examines the log of the database at `database`. A log or an index that is missing is no error.
///
/// TIDE_IO_ERROR when a file can't be read, TIDE_NO_MEMORY. Reads the log once, up to the last commit.
tide_status tide_log_examine(const char *database, tide_log_state *state, tide_error *TIDE_NULLABLE error);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

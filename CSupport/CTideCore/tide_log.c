#include "tide_log.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tide_log_format.h"
#include "tide_reader_index.h"

/// Counts the frames of a log that are whole, up to `limit`. Returns 0, or errno.
static int whole_frames(int descriptor, const unsigned char *header, uint32_t limit, uint32_t *count) {
    const tide_log_header log = tide_log_header_decode(header);
    const size_t size = TIDE_LOG_FRAME_HEADER_SIZE + log.page_size;
    unsigned char *frame = sqlite3_malloc64(size);
    if (!frame) return ENOMEM;
    uint32_t checksum[2] = {log.checksum[0], log.checksum[1]};
    int failure = 0;
    for (*count = 0; *count < limit; ++*count) {
        ssize_t got = tide_log_read(descriptor, frame, size, TIDE_LOG_HEADER_SIZE + (off_t)size * *count);
        if (got < 0) failure = errno;
        if (got != (ssize_t)size || !tide_log_frame_is_whole(&log, frame, checksum)) break;
    }
    sqlite3_free(frame);
    return failure;
}

/// Examines an open log. Returns 0, or errno.
static int examine(int descriptor, const tide_wal_index_header *index, tide_log_state *state) {
    unsigned char header[TIDE_LOG_HEADER_SIZE];
    ssize_t got = tide_log_read(descriptor, header, sizeof header, 0);
    if (got < 0) return errno;
    // The index does not belong to a log that was emptied, or that a process without an index has started again.
    if (got != (ssize_t)sizeof header) return 0;
    const bool is_first = memcmp(header + 16, index->salt, 4) == 0, is_second = memcmp(header + 20, index->salt + 4, 4) == 0;
    if (!is_first && !is_second) return 0;
    uint32_t whole = 0;
    if (is_first && is_second && tide_log_header_is_whole(header)) {
        int failure = whole_frames(descriptor, header, index->committed, &whole);
        if (failure) return failure;
    }
    state->committed = index->committed;
    state->moved = index->moved;
    state->whole = whole;
    for (unsigned i = 0; i < sizeof index->salt; i++) state->salt = state->salt << 8 | index->salt[i];
    return 0;
}

/// Opens and examines the log at `path`, if there is one. Returns 0, or errno.
static int file_examine(const char *path, const tide_wal_index_header *index, tide_log_state *state) {
    int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (descriptor < 0) return errno == ENOENT ? 0 : errno;
    struct stat status;
    int failure = fstat(descriptor, &status) == 0 ? 0 : errno;
    if (!failure && S_ISREG(status.st_mode)) failure = examine(descriptor, index, state);
    close(descriptor);
    return failure;
}

tide_status tide_log_examine(const char *database, tide_log_state *state, tide_error *error) {
    *state = (tide_log_state){0};
    tide_wal_index index;
    char *path = sqlite3_mprintf("%s-wal", database);
    if (!path || tide_wal_index_begin(&index, database) != SQLITE_OK) {
        sqlite3_free(path);
        return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    }
    tide_wal_index_header before, after;
    bool is_found, is_same = false;
    const char *examined = index.path;
    int failure = tide_wal_index_peek(&index, &before, &is_found);
    if (!failure && is_found) {
        examined = path;
        failure = file_examine(path, &before, state);
        if (!failure) {
            examined = index.path;
            failure = tide_wal_index_peek(&index, &after, &is_same);
        }
        // A writer may have started the log again meanwhile. Then the frames that were read belong to no single log.
        if (!is_same || memcmp(&before, &after, sizeof before) != 0) *state = (tide_log_state){0};
        state->is_in_use = before.is_kept_up;
    }
    tide_status result = TIDE_OK;
    if (failure) {
        errno = failure;
        result = failure == ENOMEM ? tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory") : tide_error_errno(error, "read", examined);
    }
    tide_wal_index_end(&index);
    sqlite3_free(path);
    return result;
}

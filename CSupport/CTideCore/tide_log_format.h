/// The format of a write-ahead log; "WAL File Format" in SQLite's documentation. For the core alone.

#ifndef TIDE_LOG_FORMAT_H
#define TIDE_LOG_FORMAT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum {
    /// Bytes before the first frame, and before each frame's page.
    TIDE_LOG_HEADER_SIZE = 32,
    TIDE_LOG_FRAME_HEADER_SIZE = 24,
    /// The first bytes of a log as a number. The last bit is set in a log whose checksums take the most significant byte first.
    TIDE_LOG_MAGIC = 0x377f0682,
};

typedef struct tide_log_header {
    bool is_big_endian;
    uint32_t page_size;
    unsigned char salt[8];
    uint32_t checksum[2];
} tide_log_header;

/// A number whose most significant byte comes first.
static inline uint32_t tide_log_number(const unsigned char *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/// Adds bytes, a multiple of 8, to a checksum.
static inline void tide_log_checksum_add(uint32_t checksum[2], const unsigned char *bytes, size_t count, bool is_big_endian) {
    uint32_t first = checksum[0], second = checksum[1];
    for (size_t i = 0; i < count; i += 8) {
        uint32_t words[2];
        if (is_big_endian) {
            words[0] = tide_log_number(bytes + i);
            words[1] = tide_log_number(bytes + i + 4);
        } else {
            for (int word = 0; word < 2; word++) {
                const unsigned char *at = bytes + i + 4 * word;
                words[word] = (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
            }
        }
        first += words[0] + second;
        second += words[1] + first;
    }
    checksum[0] = first;
    checksum[1] = second;
}

static inline tide_log_header tide_log_header_decode(const unsigned char *header) {
    tide_log_header decoded = {
        .is_big_endian = tide_log_number(header) & 1,
        .page_size = tide_log_number(header + 8),
        .checksum = {tide_log_number(header + 24), tide_log_number(header + 28)},
    };
    memcpy(decoded.salt, header + 16, sizeof decoded.salt);
    return decoded;
}

/// Tells whether SQLite accepts a log with this header. In any other log, no frame counts.
static inline bool tide_log_header_is_whole(const unsigned char *header) {
    const tide_log_header decoded = tide_log_header_decode(header);
    const uint32_t size = decoded.page_size;
    if ((tide_log_number(header) & ~1u) != TIDE_LOG_MAGIC) return false;
    if (size < 512 || size > 65536 || (size & (size - 1)) != 0) return false;
    uint32_t checksum[2] = {0, 0};
    tide_log_checksum_add(checksum, header, 24, decoded.is_big_endian);
    return checksum[0] == decoded.checksum[0] && checksum[1] == decoded.checksum[1];
}

/// Tells whether a frame ends a transaction: then its header has the size of the database.
static inline bool tide_log_frame_is_commit(const unsigned char *frame) { return tide_log_number(frame + 4) != 0; }

/// Tells whether a frame (header and page) is the next frame of a log, and adds it to the checksum.
static inline bool tide_log_frame_is_whole(const tide_log_header *log, const unsigned char *frame, uint32_t checksum[2]) {
    if (tide_log_number(frame) == 0 || memcmp(frame + 8, log->salt, sizeof log->salt) != 0) return false;
    tide_log_checksum_add(checksum, frame, 8, log->is_big_endian);
    tide_log_checksum_add(checksum, frame + TIDE_LOG_FRAME_HEADER_SIZE, log->page_size, log->is_big_endian);
    return checksum[0] == tide_log_number(frame + 16) && checksum[1] == tide_log_number(frame + 20);
}

/// Reads up to `count` bytes of a file. Returns the number of bytes, fewer only at the file's end, or -1.
static inline ssize_t tide_log_read(int descriptor, void *bytes, size_t count, off_t offset) {
    size_t done = 0;
    while (done < count) {
        ssize_t got = pread(descriptor, (char *)bytes + done, count - done, offset + (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

#endif

#include "tide_decompression.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "tide_archive_limits.h"

enum { block_size = 64 << 10 };

struct tide_decompression {
    int descriptor;
    /// The bytes that were read before, and how many of them were passed on.
    char *head;
    size_t head_length, head_at;
    bool source_is_at_end;
    int read_error;
    /// NULL unless the source is zstd.
    struct archive *archive;
    bool archive_is_at_end;
    bool is_gzip, is_in_member;
    z_stream gzip;
    uint64_t bytes_in, bytes_out;
    char compressed[block_size];
};

static bool is_gzip(const char *head, size_t length) { return length >= 2 && memcmp(head, "\x1f\x8b", 2) == 0; }

bool tide_is_compressed(const char *head, size_t length) {
    return is_gzip(head, length) || (length >= 4 && memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0);
}

static ssize_t raw_read(tide_decompression *from, char *buffer, size_t capacity) {
    if (from->head_at < from->head_length) {
        size_t rest = from->head_length - from->head_at, count = rest < capacity ? rest : capacity;
        memcpy(buffer, from->head + from->head_at, count);
        from->head_at += count;
        return (ssize_t)count;
    }
    for (;;) {
        ssize_t count = read(from->descriptor, buffer, capacity);
        if (count >= 0) return count;
        if (errno == EINTR) continue;
        from->read_error = errno;
        return -1;
    }
}

static tide_status refuse_damage(const tide_decompression *from, const char *reason, tide_error *error) {
    if (from->read_error) {
        errno = from->read_error;
        return tide_error_errno(error, "read", "the source");
    }
    return tide_error_reject(
        error, TIDE_REJECT_MALFORMED, "the compressed data is damaged: %.200s", reason ? reason : "it ends too soon");
}

// gzip

static tide_status gzip_begin(tide_decompression *from, tide_error *error) {
    // 16 more than the greatest window: the data has the header and the trailer of gzip.
    if (inflateInit2(&from->gzip, MAX_WBITS + 16) != Z_OK) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    from->is_gzip = from->is_in_member = true;
    return TIDE_OK;
}

static tide_status gzip_read(tide_decompression *from, char *buffer, size_t capacity, size_t *count, tide_error *error) {
    z_stream *stream = &from->gzip;
    uInt room = capacity < 1 << 30 ? (uInt)capacity : 1 << 30;
    stream->next_out = (Bytef *)buffer;
    stream->avail_out = room;
    while (stream->avail_out == room) {
        if (stream->avail_in == 0 && !from->source_is_at_end) {
            ssize_t got = raw_read(from, from->compressed, sizeof from->compressed);
            if (got < 0) return refuse_damage(from, NULL, error);
            from->source_is_at_end = got == 0;
            from->bytes_in += (uint64_t)got;
            stream->next_in = (Bytef *)from->compressed;
            stream->avail_in = (uInt)got;
        }
        if (!from->is_in_member) {
            if (stream->avail_in == 0) break;
            if (*stream->next_in == 0) {
                stream->next_in++;
                stream->avail_in--;
                continue;
            }
            inflateReset(stream);
            from->is_in_member = true;
        }
        int result = inflate(stream, Z_NO_FLUSH);
        if (result == Z_MEM_ERROR) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
        if (result == Z_STREAM_END) {
            from->is_in_member = false;
        } else if (result == Z_BUF_ERROR) {
            if (from->source_is_at_end) return refuse_damage(from, NULL, error);
        } else if (result != Z_OK) {
            return refuse_damage(from, stream->msg ? stream->msg : "it needs a dictionary", error);
        }
    }
    *count = room - stream->avail_out;
    return TIDE_OK;
}

// zstd

static la_ssize_t archive_fill(struct archive *archive, void *context, const void **buffer) {
    tide_decompression *from = context;
    ssize_t count = raw_read(from, from->compressed, sizeof from->compressed);
    if (count < 0) {
        archive_set_error(archive, from->read_error, "cannot be read");
        return -1;
    }
    from->bytes_in += (uint64_t)count;
    *buffer = from->compressed;
    return count;
}

static tide_status refuse_archive(const tide_decompression *from, tide_error *error) {
    if (!from->read_error && archive_errno(from->archive) == ENOMEM) {
        return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    }
    return refuse_damage(from, archive_error_string(from->archive), error);
}

static tide_status archive_begin(tide_decompression *from, tide_error *error) {
    from->archive = archive_read_new();
    if (!from->archive) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    if (archive_read_support_filter_zstd(from->archive) != ARCHIVE_OK
        || archive_read_support_format_raw(from->archive) != ARCHIVE_OK
        || archive_read_support_format_empty(from->archive) != ARCHIVE_OK) {
        if (archive_errno(from->archive) == ENOMEM) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
        return tide_error_reject(error, TIDE_REJECT_MALFORMED, "this system's libarchive cannot decompress zstd");
    }
    errno = 0;
    if (archive_read_open(from->archive, from, NULL, archive_fill, NULL) != ARCHIVE_OK) {
        // libarchive gives no reason where it has no memory for its first filter, and none where a short source ends too soon.
        bool is_short_of_memory = errno == ENOMEM && !archive_errno(from->archive) && !from->read_error;
        return is_short_of_memory ? tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory") : refuse_archive(from, error);
    }
    struct archive_entry *entry;
    int result = archive_read_next_header(from->archive, &entry);
    if (result == ARCHIVE_EOF) {
        from->archive_is_at_end = true;
        return TIDE_OK;
    }
    // libarchive would read data that is too short to be recognised without decompressing it.
    if (archive_filter_code(from->archive, 0) == ARCHIVE_FILTER_NONE) return refuse_archive(from, error);
    return result == ARCHIVE_OK || result == ARCHIVE_WARN ? TIDE_OK : refuse_archive(from, error);
}

static tide_status archive_read(tide_decompression *from, char *buffer, size_t capacity, size_t *count, tide_error *error) {
    if (from->archive_is_at_end) return TIDE_OK;
    la_ssize_t got;
    do got = archive_read_data(from->archive, buffer, capacity);
    while (got == ARCHIVE_RETRY);
    if (got < 0) return refuse_archive(from, error);
    from->archive_is_at_end = got == 0;
    *count = (size_t)got;
    return TIDE_OK;
}

// All

tide_status tide_decompression_create(
    int descriptor, const char *head, size_t length, tide_decompression **decompression, tide_error *error
) {
    *decompression = NULL;
    tide_decompression *created = calloc(1, sizeof *created);
    if (!created) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    created->descriptor = descriptor;
    created->head_length = length;
    created->head = malloc(length + 1);
    tide_status status = created->head ? TIDE_OK : tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    if (!status) {
        memcpy(created->head, head, length);
        if (is_gzip(head, length)) status = gzip_begin(created, error);
        else if (tide_is_compressed(head, length)) status = archive_begin(created, error);
    }
    if (status) {
        tide_decompression_destroy(created);
        return status;
    }
    *decompression = created;
    return TIDE_OK;
}

void tide_decompression_destroy(tide_decompression *decompression) {
    if (!decompression) return;
    if (decompression->archive) archive_read_free(decompression->archive);
    if (decompression->is_gzip) inflateEnd(&decompression->gzip);
    free(decompression->head);
    free(decompression);
}

tide_status tide_decompression_read(
    tide_decompression *decompression, char *buffer, size_t capacity, size_t *count, tide_error *error
) {
    *count = 0;
    if (!decompression->archive && !decompression->is_gzip) {
        ssize_t got = raw_read(decompression, buffer, capacity);
        if (got < 0) return refuse_damage(decompression, NULL, error);
        *count = (size_t)got;
        return TIDE_OK;
    }
    tide_status status = decompression->is_gzip ? gzip_read(decompression, buffer, capacity, count, error)
                                                : archive_read(decompression, buffer, capacity, count, error);
    decompression->bytes_out += *count;
    if (!status && tide_archive_expands_too_far(decompression->bytes_in, decompression->bytes_out)) {
        *count = 0;
        return tide_error_reject(
            error, TIDE_REJECT_TOO_LONG,
            "the compressed data expands to more than %d times its size; if it is as it should be, decompress it first (zcat, "
            "zstdcat) and import '-'", tide_expansion_limit);
    }
    return status;
}

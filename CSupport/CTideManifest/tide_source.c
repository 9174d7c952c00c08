#include "tide_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { read_step = 1 << 20 };

tide_status tide_source_open(tide_source *source, int descriptor, const char *encoding, tide_error *error) {
    *source = (tide_source){.descriptor = descriptor};
    source->buffer = malloc(2 * read_step);
    source->capacity = 2 * read_step;
    source->digest = XXH3_createState();
    if (!source->buffer || !source->digest) {
        tide_source_close(source);
        return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    }
    XXH3_128bits_reset(source->digest);
    tide_status status = tide_source_fill(source, 4, error);
    if (!status && tide_input_is_needed(tide_source_bytes(source), tide_source_length(source), encoding)) {
        status = tide_input_create(
            descriptor, tide_source_bytes(source), tide_source_length(source), encoding, &source->input, error);
        source->start = source->end = 0;
        source->is_at_end = false;
    }
    if (status) tide_source_close(source);
    return status;
}

void tide_source_close(tide_source *source) {
    tide_input_destroy(source->input);
    free(source->buffer);
    XXH3_freeState(source->digest);
    source->input = NULL;
    source->buffer = NULL;
    source->digest = NULL;
}

static tide_status step_read(tide_source *source, size_t *count, tide_error *error) {
    if (source->input) return tide_input_read(source->input, source->buffer + source->end, read_step, count, error);
    ssize_t got;
    do got = read(source->descriptor, source->buffer + source->end, read_step);
    while (got < 0 && errno == EINTR);
    if (got < 0) return tide_error_errno(error, "read", "the source");
    *count = (size_t)got;
    return TIDE_OK;
}

tide_status tide_source_fill(tide_source *source, size_t wanted, tide_error *error) {
    while (tide_source_length(source) < wanted && !source->is_at_end) {
        if (source->start > 0 && (source->start == source->end || source->end + read_step > source->capacity)) {
            memmove(source->buffer, source->buffer + source->start, tide_source_length(source));
            source->end -= source->start;
            source->start = 0;
        }
        if (source->end + read_step > source->capacity) {
            size_t larger = source->capacity * 2;
            char *moved = realloc(source->buffer, larger);
            if (!moved) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
            source->buffer = moved;
            source->capacity = larger;
        }
        size_t count = 0;
        tide_status status = step_read(source, &count, error);
        if (status) return status;
        if (count == 0) source->is_at_end = true;
        source->end += count;
    }
    return TIDE_OK;
}

tide_status tide_source_more(tide_source *source, tide_error *error) {
    return tide_source_fill(source, tide_source_length(source) + 1, error);
}

void tide_source_consume(tide_source *source, size_t length) {
    XXH3_128bits_update(source->digest, source->buffer + source->start, length);
    source->start += length;
    source->consumed += length;
}

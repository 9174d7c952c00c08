// Fuzzes the readers of manifests, with inputs as manifest_input.h has them.

#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "manifest_input.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

static int source_open(const uint8_t *data, size_t size) {
#if defined(__linux__)
    int descriptor = memfd_create("manifest", 0);
#else
    char path[] = "/tmp/manifest-fuzz-XXXXXX";
    int descriptor = mkstemp(path);
    unlink(path);
#endif
    if (descriptor < 0 || write(descriptor, data, size) != (ssize_t)size || lseek(descriptor, 0, SEEK_SET) != 0) abort();
    return descriptor;
}

/// Everything that a writer would look at.
static uint64_t batch_walk(const tide_batch *batch) {
    uint64_t sum = 0;
    for (uint32_t row = 0; row < tide_batch_row_count(batch); row++) {
        size_t length;
        bool is_blob;
        const char *key = tide_batch_row_key(batch, row, &length, &is_blob);
        for (size_t i = 0; i < length; i++) sum += (uint8_t)key[i];
        if (tide_batch_row_is_live(batch, row) && length == 0) abort();
        for (uint32_t column = 0; column < tide_batch_column_count(batch); column++) {
            tide_cell cell = tide_batch_cell(batch, row, column);
            if (cell.kind < TIDE_KIND_TEXT) continue;
            // A live row has no value whose type was not inferred.
            if (tide_batch_row_is_live(batch, row) && cell.kind >= TIDE_KIND_BOOLEAN) abort();
            if (cell.kind > TIDE_KIND_CLAIM) continue;
            const char *text = tide_batch_text(batch, cell.offset);
            for (uint32_t i = 0; i < cell.length; i++) sum += (uint8_t)text[i];
        }
    }
    for (uint32_t i = 0; i < tide_batch_rejection_count(batch); i++) {
        tide_rejection rejection = tide_batch_rejection(batch, i);
        const char *text = tide_batch_text(batch, rejection.source.offset);
        for (uint32_t j = 0; j < rejection.source.length; j++) sum += (uint8_t)text[j];
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    int source = source_open(data + 1, size - 1);
    tide_manifest_options options = manifest_input_options(data, size);
    tide_manifest *manifest = NULL;
    tide_batch *batch = NULL;
    tide_error error;
    uint64_t sum = 0;
    if (tide_batch_create(manifest_input_row_limit(data), 1 << 20, &batch) == TIDE_OK &&
        tide_manifest_create(source, &options, &manifest, &error) == TIDE_OK) {
        tide_status status;
        uint64_t offset = 0;
        do {
            status = tide_manifest_read(manifest, batch, &error);
            if (status && status != TIDE_END) break;
            tide_batch_digest(batch, 1);
            sum += batch_walk(batch);
            tide_position position = tide_manifest_position(manifest);
            // Each batch gets further, or the reader would never end.
            if (status != TIDE_END && position.offset == offset && tide_batch_rejection_count(batch) == 0) abort();
            offset = position.offset;
            tide_batch_reset(batch);
        } while (status == TIDE_OK);
    }
    tide_manifest_destroy(manifest);
    tide_batch_destroy(batch);
    close(source);
    volatile uint64_t used = sum;
    (void)used;
    return 0;
}

#include "tide_digest.h"

#include <sqlite3.h>
#include <string.h>
#include <xxhash.h>

#include "tide_connection.h"

enum { small_value = 512 };

/// Values are gathered, and large ones hashed where they lie.
typedef struct gathering {
    XXH3_state_t *hash;
    uint8_t bytes[8192];
    size_t length;
} gathering;

static void flush(gathering *gathering) {
    XXH3_128bits_update(gathering->hash, gathering->bytes, gathering->length);
    gathering->length = 0;
}

static void add(gathering *gathering, const void *bytes, size_t length) {
    if (gathering->length + length > sizeof gathering->bytes) flush(gathering);
    if (length > small_value) {
        flush(gathering);
        XXH3_128bits_update(gathering->hash, bytes, length);
    } else if (length > 0) {
        memcpy(gathering->bytes + gathering->length, bytes, length);
        gathering->length += length;
    }
}

static void add_value(gathering *gathering, sqlite3_stmt *row, int column) {
    // Type and length first, so that no two rows of values run into the same bytes.
    int type = sqlite3_column_type(row, column);
    uint8_t kind = (uint8_t)type;
    add(gathering, &kind, sizeof kind);
    switch (type) {
    case SQLITE_NULL: break;
    case SQLITE_INTEGER: {
        int64_t value = sqlite3_column_int64(row, column);
        add(gathering, &value, sizeof value);
        break;
    }
    case SQLITE_FLOAT: {
        double value = sqlite3_column_double(row, column);
        add(gathering, &value, sizeof value);
        break;
    }
    default: {
        const void *bytes = sqlite3_column_blob(row, column);
        uint64_t length = (uint64_t)sqlite3_column_bytes(row, column);
        add(gathering, &length, sizeof length);
        add(gathering, bytes, (size_t)length);
    }
    }
}

tide_status tide_digest_rows(sqlite3 *connection, const char *sql, tide_digest *digest, tide_error *error) {
    *digest = (tide_digest){0};
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(connection, sql, -1, &row, NULL) != SQLITE_OK) {
        return tide_sqlite_error(connection, "read the rows", error);
    }
    gathering gathering = {.hash = XXH3_createState()};
    if (!gathering.hash) {
        sqlite3_finalize(row);
        return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    }
    XXH3_128bits_reset(gathering.hash);
    int columns = sqlite3_column_count(row), code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        digest->rows++;
        for (int column = 0; column < columns; column++) add_value(&gathering, row, column);
    }
    flush(&gathering);
    XXH128_hash_t hash = XXH3_128bits_digest(gathering.hash);
    digest->low = hash.low64;
    digest->high = hash.high64;
    tide_status status = code == SQLITE_DONE ? TIDE_OK : tide_sqlite_error(connection, "read the rows", error);
    XXH3_freeState(gathering.hash);
    sqlite3_finalize(row);
    return status;
}

void tide_digest_bytes(const void *bytes, size_t length, uint8_t *digest) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, length));
    memcpy(digest, canonical.digest, sizeof canonical.digest);
}

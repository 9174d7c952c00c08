#include "tide_digest.h"

#include <sqlite3.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tide_connection.h"

enum { small_value = 512 };

/// Small values are gathered in a buffer and hashed together. Large ones are hashed without a copy.
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
    // Type and length come first, so that different values never give the same bytes.
    int type = sqlite3_column_type(row, column);
    uint8_t kind = (uint8_t)type;
    add(gathering, &kind, sizeof kind);
    switch (type) {
    case SQLITE_NULL: break;
    case SQLITE_INTEGER: add(gathering, &(int64_t){sqlite3_column_int64(row, column)}, sizeof(int64_t)); break;
    case SQLITE_FLOAT: add(gathering, &(double){sqlite3_column_double(row, column)}, sizeof(double)); break;
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

/// The bytes of a row's columns. They are gathered, and hashed in one call if they fit into the buffer.
typedef struct column_bytes {
    /// Used once `is_long`.
    XXH3_state_t hash;
    bool is_long;
    size_t length;
    uint8_t bytes[1024];
} column_bytes;

static void hash_column_bytes(column_bytes *out, const void *bytes, size_t length) {
    if (!out->is_long) XXH3_128bits_reset(&out->hash);
    out->is_long = true;
    XXH3_128bits_update(&out->hash, bytes, length);
}

static void add_column_bytes(column_bytes *out, const void *bytes, size_t length) {
    if (out->length + length > sizeof out->bytes) {
        hash_column_bytes(out, out->bytes, out->length);
        out->length = 0;
    }
    if (length > sizeof out->bytes) {
        hash_column_bytes(out, bytes, length);
    } else if (length > 0) {
        memcpy(out->bytes + out->length, bytes, length);
        out->length += length;
    }
}

static void add_column_number(column_bytes *out, uint8_t kind, uint64_t number) {
    uint8_t bytes[11] = {kind};
    size_t length = 1;
    for (; number >= 0x80; number >>= 7) bytes[length++] = (uint8_t)number | 0x80;
    bytes[length++] = (uint8_t)number;
    add_column_bytes(out, bytes, length);
}

/// - Returns: Whether the value's type can be digested.
static bool add_column(column_bytes *out, sqlite3_stmt *row, int column) {
    switch (sqlite3_column_type(row, column)) {
    case SQLITE_NULL: add_column_bytes(out, &(uint8_t){0}, 1); return true;
    case SQLITE_INTEGER: {
        uint64_t value = (uint64_t)sqlite3_column_int64(row, column);
        add_column_number(out, 1, value << 1 ^ (value >> 63 ? UINT64_MAX : 0));
        return true;
    }
    case SQLITE_TEXT: {
        const char *text = (const char *)sqlite3_column_text(row, column);
        if (!text) return false;
        size_t length = strnlen(text, (size_t)sqlite3_column_bytes(row, column));
        add_column_number(out, 2, length);
        add_column_bytes(out, text, length);
        return true;
    }
    case SQLITE_BLOB: {
        // SQLite returns NULL for an empty blob.
        const void *bytes = sqlite3_column_blob(row, column);
        size_t length = (size_t)sqlite3_column_bytes(row, column);
        add_column_number(out, 3, length);
        add_column_bytes(out, bytes, length);
        return true;
    }
    default: return false;
    }
}

bool tide_columns_have_digest(sqlite3_stmt *row, uint8_t table, const int *columns, size_t count, int digest_column) {
    column_bytes out;
    out.is_long = false;
    out.length = 0;
    add_column_bytes(&out, &table, sizeof table);
    for (size_t index = 0; index < count; index++) {
        if (!add_column(&out, row, columns[index])) return false;
    }
    XXH128_hash_t hash;
    if (out.is_long) {
        XXH3_128bits_update(&out.hash, out.bytes, out.length);
        hash = XXH3_128bits_digest(&out.hash);
    } else {
        hash = XXH3_128bits(out.bytes, out.length);
    }
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    return sqlite3_column_type(row, digest_column) == SQLITE_BLOB
        && sqlite3_column_bytes(row, digest_column) == (int)sizeof canonical.digest
        && memcmp(sqlite3_column_blob(row, digest_column), canonical.digest, sizeof canonical.digest) == 0;
}

// Bits of a store that flip, sectors that are zeros, pages that are exchanged: what is read otherwise than it was written is reported.

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "damage.h"
#include "disk.h"
#include "store.h"

enum { page_size = 16384, sector_size = 512, row_limit = 200 };

/// What the rows of a store are, each by its row id: a digest of name and values; 0 for none.
typedef struct rows {
    uint64_t digests[row_limit];
    /// Rows with another id than a store of the tests has.
    int strange;
    /// Whether SQLite has called the database damaged.
    bool is_refused;
    bool is_reported[row_limit];
} rows;

static uint64_t value_digest(uint64_t digest, sqlite3_stmt *row, int column) {
    uint64_t number = (uint64_t)sqlite3_column_int64(row, column);
    int type = sqlite3_column_type(row, column);
    double real = sqlite3_column_double(row, column);
    if (type == SQLITE_FLOAT) memcpy(&number, &real, sizeof number);
    digest = (digest ^ (uint64_t)type) * 0x100000001b3;
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) return (digest ^ number) * 0x100000001b3 + 1;
    const uint8_t *bytes = sqlite3_column_blob(row, column);
    int length = sqlite3_column_bytes(row, column);
    for (int i = 0; i < length; i++) digest = (digest ^ bytes[i]) * 0x100000001b3;
    return digest + (uint64_t)length;
}

static void row_note(void *context, int64_t id) {
    rows *rows = context;
    if (id >= 0 && id < row_limit) rows->is_reported[id] = true;
}

/// Reads all rows, and has them verified. Damage may keep any call from working, but with a message.
static void rows_read(store *store, rows *rows) {
    memset(rows, 0, sizeof *rows);
    sqlite3_stmt *row = NULL;
    sqlite3 *connection = store_connection(store);
    int code = sqlite3_prepare_v2(connection, "SELECT _id, _key, caption, rating, notes, added FROM \"Place\" NOT INDEXED", -1, &row, NULL);
    while (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(row, 0);
        uint64_t digest = 0xcbf29ce484222325;
        for (int column = 1; column < 6; column++) digest = value_digest(digest, row, column);
        if (id >= 0 && id < row_limit && !rows->digests[id]) rows->digests[id] = digest;
        else rows->strange++;
        code = SQLITE_OK;
    }
    rows->is_refused = code != SQLITE_DONE;
    sqlite3_finalize(row);
    tide_error error;
    if (store_verify(store, row_note, rows, &error)) rows->is_refused = true;
    if (!store_is_whole(store)) rows->is_refused = true;
}

/// Damages a file at a random place, and describes how.
static void file_damage(uint8_t *bytes, size_t length, uint64_t *random, char *text, size_t size) {
    size_t place = random_below(random, length), pages = length / page_size, page = place / page_size, other = random_below(random, pages);
    switch (random_below(random, 8)) {
    case 0:
        place -= place % sector_size;
        memset(bytes + place, 0, sector_size);
        snprintf(text, size, "zeros at %zu", place);
        break;
    case 1:
        for (size_t i = 0; i < page_size; i++) {
            uint8_t byte = bytes[page * page_size + i];
            bytes[page * page_size + i] = bytes[other * page_size + i];
            bytes[other * page_size + i] = byte;
        }
        snprintf(text, size, "pages %zu and %zu", page + 1, other + 1);
        break;
    default:
        bytes[place] ^= (uint8_t)(1 << random_below(random, 8));
        snprintf(text, size, "a bit at %zu of page %zu", place % page_size, page + 1);
        break;
    }
}

damage_counts damage_run(uint64_t seed, int points) {
    tide_error error;
    store *store = store_open(false, &error);
    check(store != NULL, "%s", error.message);
    rows whole, damaged;
    rows_read(store, &whole);
    check(!whole.is_refused && !whole.strange, "the store is damaged already");
    store_close(store);
    disk_count();
    damage_counts counts = {0};
    for (int point = 0; point < points; point++) {
        disk_rewind();
        size_t length;
        uint8_t *bytes = disk_bytes("store", &length);
        char what[80];
        uint64_t random = seed * 1000003 + (uint64_t)point;
        file_damage(bytes, length, &random, what, sizeof what);
        store = store_open(false, &error);
        if (!store) {
            check(error.message[0] != 0, "seed %" PRIu64 ", %s: nothing is told", seed, what);
            counts.refused++;
            continue;
        }
        rows_read(store, &damaged);
        store_close(store);
        bool is_other = damaged.strange > 0;
        for (int id = 0; id < row_limit; id++) {
            if (damaged.digests[id] == whole.digests[id]) continue;
            is_other = true;
            check(damaged.is_refused || damaged.is_reported[id], "seed %" PRIu64 ", %s: row %d is read otherwise, and not told", seed, what, id);
        }
        check(!damaged.strange || damaged.is_refused, "seed %" PRIu64 ", %s: a row more, and not told", seed, what);
        if (damaged.is_refused) counts.refused++;
        else if (is_other) counts.reported++;
        else counts.harmless++;
    }
    disk_rewind();
    return counts;
}

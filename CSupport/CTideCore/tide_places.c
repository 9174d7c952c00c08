#include "tide_places.h"

#include <sqlite3.h>
#include <string.h>

#include "tide_batch.h"

/// Writes the name that a row's key stands for. Returns its length, or 0 when the key can't be one.
static size_t name_of_key(sqlite3_stmt *statement, char *name) {
    int type = sqlite3_column_type(statement, 0);
    if (type != SQLITE_BLOB && type != SQLITE_TEXT) return 0;
    const void *key = type == SQLITE_BLOB ? sqlite3_column_blob(statement, 0) : sqlite3_column_text(statement, 0);
    size_t length = (size_t)sqlite3_column_bytes(statement, 0);
    // No bytes, or no memory for them.
    if (key == NULL || length == 0 || length > TIDE_PLACE_NAME_MAX) return 0;
    if (type == SQLITE_BLOB) return tide_name_decode(key, length, name);
    memcpy(name, key, length);
    return length;
}

int32_t tide_places_read(
    sqlite3_stmt *statement, tide_place *places, size_t capacity, char *names, size_t names_capacity, size_t *count) {
    size_t used = 0;
    for (*count = 0; *count < capacity && names_capacity - used >= TIDE_PLACE_NAME_MAX; ++*count) {
        int code = sqlite3_step(statement);
        if (code != SQLITE_ROW) return code;
        size_t length = name_of_key(statement, names + used);
        places[*count] = (tide_place){
            .zone = sqlite3_column_int64(statement, 1),
            .name = (uint32_t)used,
            .name_length = (uint16_t)length,
            .is_unsaved = sqlite3_column_int(statement, 2) != 0,
        };
        used += length;
    }
    return SQLITE_ROW;
}

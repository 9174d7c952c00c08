/// Reads the names and zones of a query's records, a page at a time, into the caller's memory.
///
/// Rules: the caller owns the statement, and binds, resets and finalises it. Its first columns are the record's key,
/// its zone, and whether no cloud has it.
/// Limits: names of 1 to TIDE_PLACE_NAME_MAX bytes.
/// Threads: one at a time, the thread of the statement's connection.
///
/// Why C: it is called for each of a million rows, and makes nothing on the heap for any of them.

#ifndef TIDE_PLACES_H
#define TIDE_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

struct sqlite3_stmt;

/// The greatest length of a name.
#define TIDE_PLACE_NAME_MAX 255

/// The name and the zone of a record.
typedef struct tide_place {
    int64_t zone;
    /// Where the name begins, and its length; 0 for a key that can't be a name.
    uint32_t name;
    uint16_t name_length;
    bool is_unsaved;
} tide_place;

/// Reads the next rows, until there are `capacity`, or no room for another name.
///
/// `names` has room for `names_capacity` bytes, at least TIDE_PLACE_NAME_MAX. `count` gets the number of rows. Returns SQLite's own result:
/// SQLITE_ROW when there may be more, SQLITE_DONE when there are none, else why it failed, with the rows until then.
int32_t tide_places_read(
    struct sqlite3_stmt *statement, tide_place *places, size_t capacity, char *names, size_t names_capacity, size_t *count);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

/// Where the records of a store are: their keys and zones, and whether a cloud knows them, read from its table in order. One thread.

#include "database.h"

#include <string.h>

void floor_places(const floor_options *options) {
    sqlite3 *database;
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    double start = floor_clock();
    int code = sqlite3_open_v2(options->path, &database, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK) floor_fail(0, "%s: %s", options->path, sqlite3_errstr(code));
    sqlite3_stmt *read = database_prepare(
        database, "SELECT _key, _zone, _tag IS NULL AND _pending IS NOT NULL FROM Destination ORDER BY _id");
    uint64_t rows = 0, bytes = 0, sum = 0;
    while ((code = sqlite3_step(read)) == SQLITE_ROW) {
        uint64_t key = 0;
        int length = sqlite3_column_bytes(read, 0);
        memcpy(&key, sqlite3_column_blob(read, 0), length < 8 ? (size_t)length : 8);
        sum += key + (uint64_t)sqlite3_column_int64(read, 1) + (uint64_t)sqlite3_column_int(read, 2);
        bytes += (uint64_t)length;
        rows++;
    }
    if (code != SQLITE_DONE) database_check(database, code);
    double seconds = floor_clock() - start;
    // So that nothing of it can be left out.
    if (sum == 0) floor_fail(0, "%s has no rows", options->path);
    floor_report("places", seconds, rows, bytes);
    sqlite3_finalize(read);
    sqlite3_close(database);
}

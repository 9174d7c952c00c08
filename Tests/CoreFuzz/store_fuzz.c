// Fuzzes what reads the files of a store: the header, the log with its index, and rows of a database that somebody else has written, with
// their digests.
//
// The first byte chooses: the input is a database; or a log beside one, the rest its index; or values of rows, as SQL literals are no
// concern here: they are put into a table of a record type by their types.

#include <fcntl.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tide_connection.h"
#include "tide_digest.h"
#include "tide_header.h"
#include "tide_log.h"
#include "tide_places.h"
#include "tide_reader_vfs.h"
#include "tide_verify.h"

#define require(condition) ((condition) ? (void)0 : (fprintf(stderr, "line %d: %s\n", __LINE__, #condition), abort()))

static char folder[] = "/tmp/tidemark-store-XXXXXX";

static const tide_field fields[] = {
    {"caption", "caption", TIDE_TYPE_STRING}, {"rating", "rating", TIDE_TYPE_INT64}, {"height", "height", TIDE_TYPE_DOUBLE},
    {"notes", "notes", TIDE_TYPE_BYTES},      {"flag", "flag", TIDE_TYPE_BOOLEAN},
};
static const tide_table table = {.name = "Place", .index_name = "tide_name_Place", .type_id = 1, .fields = fields, .field_count = 5};

static void path_make(char path[100], const char *name) { snprintf(path, 100, "%s/%s", folder, name); }

static void file_write(const char *name, const uint8_t *bytes, size_t length) {
    char path[100];
    path_make(path, name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    require(file >= 0 && write(file, bytes, length) == (ssize_t)length);
    close(file);
}

static void files_remove(void) {
    static const char *const names[] = {"a.sqlite", "a.sqlite-wal", "a.sqlite-shm", "a.sqlite-journal"};
    char path[100];
    for (int i = 0; i < 4; i++) path_make(path, names[i]), unlink(path);
}

static void row_count(void *context, int64_t row) {
    (void)row;
    ++*(uint64_t *)context;
}

/// Reads a table as `verify` does.
static void rows_walk(sqlite3 *connection) {
    uint64_t rows = 0, damaged = 0;
    tide_error error;
    tide_status status = tide_table_verify(connection, 7, &table, &rows, row_count, &damaged, &error);
    require(status || damaged <= rows);
    tide_digest digest;
    tide_digest_rows(connection, "SELECT * FROM \"Place\"", &digest, &error);
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(connection, "SELECT _key, _zone, _tag FROM \"Place\"", -1, &statement, NULL) == SQLITE_OK) {
        tide_place places[16];
        char names[16 * TIDE_PLACE_NAME_MAX];
        size_t count = 0;
        int32_t code = SQLITE_ROW;
        while (code == SQLITE_ROW) {
            code = tide_places_read(statement, places, 16, names, sizeof names, &count);
            for (size_t i = 0; i < count; i++) require(places[i].name + (size_t)places[i].name_length <= sizeof names);
        }
    }
    sqlite3_finalize(statement);
}

static void database_read(void) {
    char uri[160], path[100];
    path_make(path, "a.sqlite");
    snprintf(uri, sizeof uri, "file://%s?vfs=" TIDE_READER_VFS_NAME, path);
    sqlite3 *connection = NULL;
    if (sqlite3_open_v2(uri, &connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) == SQLITE_OK
        && tide_reader_prepare(connection, NULL) == TIDE_OK) {
        rows_walk(connection);
        tide_reader_is_undisturbed(connection);
    }
    sqlite3_close(connection);
}

/// Puts values into rows, of any type in any column.
static void rows_make(const uint8_t *bytes, size_t length) {
    sqlite3 *connection = NULL;
    require(sqlite3_open(":memory:", &connection) == SQLITE_OK);
    require(sqlite3_exec(connection,
                         "CREATE TABLE \"Place\" (_id INTEGER PRIMARY KEY, _key, _zone, _tag, _digest, caption, rating, height, notes, flag)",
                         NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_stmt *insert = NULL;
    require(sqlite3_prepare_v2(connection, "INSERT INTO \"Place\" VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)", -1, &insert, NULL)
            == SQLITE_OK);
    int64_t rows = 0;
    for (size_t at = 0; at < length && rows < 8; rows++) {
        for (int column = 1; column <= 9 && at < length; column++) {
            uint8_t kind = bytes[at++];
            size_t count = kind >> 3 < length - at ? kind >> 3 : length - at;
            int64_t number = 0;
            memcpy(&number, bytes + at, count < 8 ? count : 8);
            double real;
            memcpy(&real, &number, 8);
            switch (kind & 7) {
            case 0: sqlite3_bind_null(insert, column); break;
            case 1: sqlite3_bind_int64(insert, column, number); break;
            case 2: sqlite3_bind_double(insert, column, real); break;
            case 3:
            case 4: sqlite3_bind_text(insert, column, (const char *)bytes + at, (int)count, SQLITE_STATIC); break;
            default: sqlite3_bind_blob(insert, column, bytes + at, (int)count, SQLITE_STATIC); break;
            }
            at += count;
        }
        sqlite3_step(insert);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    rows_walk(connection);
    require(sqlite3_exec(connection, "BEGIN", NULL, NULL, NULL) == SQLITE_OK);
    for (int64_t id = 1; id <= rows; id++) {
        bool is_mended;
        tide_row_mend_bit(connection, 7, &table, id, &is_mended, NULL);
        sqlite3_stmt *row = NULL;
        require(sqlite3_prepare_v2(connection, "SELECT * FROM \"Place\" WHERE _id = ?1", -1, &row, NULL) == SQLITE_OK);
        sqlite3_bind_int64(row, 1, id);
        require(sqlite3_step(row) == SQLITE_ROW);
        tide_columns_have_digest(row, 3, (const int[]){1, 2, 3, 5, 6, 8}, 6, 4);
        sqlite3_finalize(row);
    }
    sqlite3_close(connection);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static bool is_ready;
    if (!is_ready) require(mkdtemp(folder) && tide_reader_vfs_register(NULL) == TIDE_OK);
    is_ready = true;
    if (length < 1) return 0;
    char path[100];
    path_make(path, "a.sqlite");
    uint8_t choice = bytes[0] & 3;
    bytes++, length--;
    if (choice == 0) {
        rows_make(bytes, length);
        return 0;
    }
    if (choice == 1) {
        file_write("a.sqlite", bytes, length);
    } else {
        // A log and its index, whose lengths the next two bytes share out.
        if (length < 2) return 0;
        size_t split = ((size_t)bytes[0] << 8 | bytes[1]) % (length - 1);
        file_write("a.sqlite-wal", bytes + 2, split);
        file_write("a.sqlite-shm", bytes + 2 + split, length - 2 - split);
        if (choice == 3) file_write("a.sqlite", bytes + 2, length - 2);
    }
    uint8_t header[TIDE_HEADER_SIZE];
    tide_header_read(path, header, NULL);
    tide_log_state state;
    tide_status status = tide_log_examine(path, &state, NULL);
    require(status == TIDE_OK && state.whole <= state.committed);
    database_read();
    files_remove();
    return 0;
}

/// Goal: where records are is read as it is, whatever a table has for keys, and never past the memory that was lent.
/// Method: tables in memory, under the sanitizers; pages of every size compared with the rows.

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tide_places.h"

static int failures;

static void expect(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "places: %s\n", what);
    failures++;
}

static sqlite3_stmt *query(sqlite3 *database, const char *sql) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        fprintf(stderr, "places: %s: %s\n", sql, sqlite3_errmsg(database));
        exit(1);
    }
    return statement;
}

/// Reads one row with just the memory that it may take.
static tide_place one(sqlite3 *database, const char *row, char name[TIDE_PLACE_NAME_MAX]) {
    sqlite3_stmt *statement = query(database, row);
    tide_place place;
    size_t count;
    char *names = malloc(TIDE_PLACE_NAME_MAX);
    expect(tide_places_read(statement, &place, 1, names, TIDE_PLACE_NAME_MAX, &count) == SQLITE_ROW && count == 1, row);
    memcpy(name, names + place.name, place.name_length);
    free(names);
    sqlite3_finalize(statement);
    return place;
}

static void expect_name(sqlite3 *database, const char *key, const char *expected) {
    char row[1024], name[TIDE_PLACE_NAME_MAX];
    snprintf(row, sizeof row, "SELECT %s, -7, 1", key);
    tide_place place = one(database, row, name);
    expect(place.zone == -7 && place.is_unsaved, key);
    expect(place.name_length == strlen(expected) && memcmp(name, expected, strlen(expected)) == 0, key);
}

static void test_keys(sqlite3 *database) {
    expect_name(database, "x'00112233445566778899aabbccddeeff'", "00112233-4455-6677-8899-aabbccddeeff");
    expect_name(database, "x'00112233445566778899aabbccddeeff55'", "00112233-4455-6677-8899-AABBCCDDEEFF");
    expect_name(database, "'sixteen bytes  !'", "sixteen bytes  !");
    expect_name(database, "'seventeen bytes U'", "seventeen bytes U");
    char longest[TIDE_PLACE_NAME_MAX + 1];
    memset(longest, 'x', TIDE_PLACE_NAME_MAX);
    longest[TIDE_PLACE_NAME_MAX] = 0;
    expect_name(database, "replace(hex(zeroblob(127)), '0', 'x') || 'x'", longest);
    const char *none[] = {"replace(hex(zeroblob(128)), '0', 'x')", "''", "x''", "x'00'", "x'00112233445566778899aabbccddeeff56'",
                          "zeroblob(300)", "zeroblob(18)", "NULL", "1", "1.5"};
    for (size_t index = 0; index < sizeof none / sizeof *none; index++) expect_name(database, none[index], "");
}

/// Rows with names of 1 to 255 bytes, read in pages of every kind.
static void test_pages(sqlite3 *database) {
    const char *sql = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) "
                      "SELECT substr(replace(hex(zeroblob(128)), '0', char(97 + i % 26)), 1, 1 + i * 7 % 255), i, i % 2 FROM n";
    const size_t capacities[] = {1, 3, 1000, 4000}, rooms[] = {255, 256, 1000, 300000};
    for (int kind = 0; kind < 16; kind++) {
        size_t capacity = capacities[kind % 4], room = rooms[kind / 4], count, rows = 0;
        tide_place *places = malloc(capacity * sizeof *places);
        char *names = malloc(room);
        sqlite3_stmt *statement = query(database, sql);
        int32_t code = SQLITE_ROW;
        while (code == SQLITE_ROW) {
            code = tide_places_read(statement, places, capacity, names, room, &count);
            expect(count > 0 || code == SQLITE_DONE, "a page without rows");
            for (size_t index = 0; index < count; index++, rows++) {
                const tide_place *place = &places[index];
                size_t length = 1 + rows * 7 % 255;
                int holds = place->zone == (int64_t)rows && place->is_unsaved == (rows % 2 == 1) && place->name_length == length;
                for (size_t at = 0; holds && at < length; at++) holds = names[place->name + at] == (char)('a' + rows % 26);
                expect(holds, "a row that is not as it was");
            }
        }
        expect(code == SQLITE_DONE && rows == 1000, "not all rows");
        sqlite3_finalize(statement);
        free(places);
        free(names);
    }
}

static void test_failure(sqlite3 *database) {
    tide_place places[10];
    char names[10 * TIDE_PLACE_NAME_MAX];
    size_t count;
    sqlite3_stmt *statement = query(
        database, "SELECT 'a', 2, 0 UNION ALL SELECT 'b', CASE WHEN random() IS NULL THEN 0 ELSE abs(-9223372036854775808) END, 0");
    int32_t code = tide_places_read(statement, places, 10, names, sizeof names, &count);
    expect((code & 0xff) == SQLITE_ERROR && count == 1 && places[0].zone == 2, "an error after a row");
    sqlite3_finalize(statement);
}

int main(void) {
    sqlite3 *database;
    if (sqlite3_open(":memory:", &database) != SQLITE_OK) return 1;
    test_keys(database);
    test_pages(database);
    test_failure(database);
    sqlite3_close(database);
    if (failures == 0) puts("places: passed");
    return failures != 0;
}

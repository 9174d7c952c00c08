// Goal: a connection to a store has the settings that its durability and its safety rest on.
// Method: SQLite is asked for each, of a database in a file.

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tide_connection.h"

static int failures;

static void expect(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "connection: failed: %s\n", what);
    failures++;
}

static int number_of(sqlite3 *connection, const char *sql) {
    sqlite3_stmt *statement = NULL;
    int32_t number = -1;
    if (sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) == SQLITE_OK) tide_statement_number(statement, &number);
    sqlite3_finalize(statement);
    return number;
}

static int setting_of(sqlite3 *connection, int option) {
    int value = -1;
    sqlite3_db_config(connection, option, -1, &value);
    return value;
}

int main(void) {
    char folder[] = "/tmp/tidemark-connection-XXXXXX", path[100], log[120], index[120];
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/a.sqlite", folder);
    snprintf(log, sizeof log, "%s-wal", path);
    snprintf(index, sizeof index, "%s-shm", path);
    sqlite3 *connection;
    if (sqlite3_open(path, &connection) != SQLITE_OK) return 1;
    // As a connection would lose what it has saved, and obey what another has written.
    sqlite3_exec(connection, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE t (a)", NULL, NULL, NULL);
    tide_error error = {0};
    expect(tide_connection_prepare(connection, &error) == TIDE_OK, error.message);
    expect(number_of(connection, "PRAGMA synchronous") == 2, "synchronous is FULL");
    expect(number_of(connection, "PRAGMA wal_autocheckpoint") == 0, "no checkpoint by itself");
    expect(setting_of(connection, SQLITE_DBCONFIG_DEFENSIVE) == 1, "defensive");
    expect(setting_of(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE) == 1, "no checkpoint at the end");
    expect(setting_of(connection, SQLITE_DBCONFIG_DQS_DML) == 0, "no texts in double quotes");
    expect(setting_of(connection, SQLITE_DBCONFIG_DQS_DDL) == 0, "no texts in double quotes in a schema");
    expect(setting_of(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA) == 0, "no trust in the schema");
    sqlite3_exec(connection, "INSERT INTO t VALUES (1)", NULL, NULL, NULL);
    expect(sqlite3_close(connection) == SQLITE_OK, "closed");
    expect(access(log, F_OK) == 0, "the log stays");

    unlink(path);
    unlink(log);
    unlink(index);
    rmdir(folder);
    if (failures == 0) puts("connection: passed");
    return failures != 0;
}

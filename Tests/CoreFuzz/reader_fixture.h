// Databases in the states that writers leave, and connections of the reader's file layer, for its tests.

#ifndef READER_FIXTURE_H
#define READER_FIXTURE_H

#include <fcntl.h>
#include <sys/stat.h>

#include "store_fixture.h"
#include "tide_reader_vfs.h"

static tide_error error;

static inline int reader_try(const char *path, sqlite3 **reader) {
    char uri[150];
    snprintf(uri, sizeof uri, "file://%s?vfs=" TIDE_READER_VFS_NAME, path);
    return sqlite3_open_v2(uri, reader, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
}

static inline sqlite3 *reader_open(const char *path) {
    sqlite3 *reader;
    check(reader_try(path, &reader) == SQLITE_OK, "%s: %s", path, sqlite3_errmsg(reader));
    check(!tide_reader_prepare(reader, &error), "%s", error.message);
    return reader;
}

/// The extended code of a query, and the number in its first row.
static inline int query(sqlite3 *reader, const char *sql, int64_t *number) {
    sqlite3_stmt *statement = NULL;
    sqlite3_extended_result_codes(reader, 1);
    int code = sqlite3_prepare_v2(reader, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        *number = sqlite3_column_int64(statement, 0);
        code = SQLITE_OK;
    }
    // The last step may have read as well.
    int last = sqlite3_finalize(statement);
    return code == SQLITE_OK ? last : code;
}

#define expect_count(reader, expected) expect_count_at(reader, expected, __FILE__, __LINE__)

static inline void expect_count_at(sqlite3 *reader, int expected, const char *file, int line) {
    int64_t number = -1;
    int code = query(reader, "SELECT count(*) FROM t", &number);
    if (code == SQLITE_OK && number == expected) return;
    check_fail(file, line, "count", "%d rows, not %d; %d, %s", (int)number, expected, code, sqlite3_errmsg(reader));
}

static inline void expect_code(sqlite3 *reader, const char *sql, int expected) {
    int64_t number;
    int code = query(reader, sql, &number);
    check(code == expected, "%s: %d, not %d: %s", sql, code, expected, sqlite3_errmsg(reader));
}

static char log_path[100], index_path[100], journal_path[100];

/// A store with a table `t` of one row, which is not in a transaction.
static inline void make(store *it, const char *mode) {
    store_open(it, mode);
    store_execute(it, "COMMIT; CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    snprintf(log_path, sizeof log_path, "%s-wal", it->path);
    snprintf(index_path, sizeof index_path, "%s-shm", it->path);
    snprintf(journal_path, sizeof journal_path, "%s-journal", it->path);
}

static inline void end(store *it) {
    if (!it->connection) check(sqlite3_open(":memory:", &it->connection) == SQLITE_OK, "a connection");
    store_close(it);
}

/// Ends the writer as a kill does: the files stay as they are.
static inline void writer_kill(store *it) {
    static uint8_t log[2000000], index[100000];
    bool has_log = access(log_path, F_OK) == 0;
    size_t log_length = has_log ? bytes_read(log_path, log, sizeof log) : 0, index_length = has_log ? bytes_read(index_path, index, sizeof index) : 0;
    tide_writer_destroy(it->writer);
    it->writer = NULL;
    check(sqlite3_close(it->connection) == SQLITE_OK, "a statement is left");
    it->connection = NULL;
    if (!has_log) return;
    bytes_write(log_path, log, log_length);
    bytes_write(index_path, index, index_length);
}

/// The names, sizes and times of a folder's files.
static inline tide_text folder_state(const store *it) {
    tide_text text = {0};
    const char *paths[] = {it->path, log_path, index_path, journal_path};
    for (int i = 0; i < 4; i++) {
        struct stat status;
        if (stat(paths[i], &status) == 0) {
            tide_text_format(&text, "%s %lld %lld.%09ld %d\n", paths[i], (long long)status.st_size, (long long)status.st_mtime,
#ifdef __APPLE__
                             status.st_mtimespec.tv_nsec,
#else
                             status.st_mtim.tv_nsec,
#endif
                             (int)status.st_ino);
        }
    }
    return text;
}

static inline void expect_folder(const store *it, tide_text *before) {
    tide_text after = folder_state(it);
    check(!strcmp(before->bytes, after.bytes), "the folder was\n%s and is\n%s", before->bytes, after.bytes);
    tide_text_free(&after);
    tide_text_free(before);
}

#endif

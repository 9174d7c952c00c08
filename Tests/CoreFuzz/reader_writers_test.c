// Goal: a reader beside writers sees what they have committed, or is told that its read is void.
// Method: writers that come, commit, end and are killed while a reader reads; damaged logs and indexes. System calls fail, each in its turn: then
// SQLite reports an error, or the rows are right.

#include "reader_fixture.h"
#include "database_faults.h"

/// A read transaction beside a writer.
static void test_writers(void) {
    store it;
    make(&it, "WAL");
    sqlite3 *reader = reader_open(it.path);
    sqlite3_exec(reader, "BEGIN", NULL, NULL, NULL);
    expect_count(reader, 1);
    store_execute(&it, "INSERT INTO t VALUES (2)");
    int32_t remaining;
    check(!tide_connection_checkpoint(it.connection, true, &remaining, &it.error) && remaining > 0, "the reader holds frames back");
    expect_count(reader, 1);
    check(tide_reader_is_undisturbed(reader), "undisturbed");
    sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL);
    expect_count(reader, 2);
    check(!tide_connection_checkpoint(it.connection, true, &remaining, &it.error) && remaining == 0, "nothing holds frames back");
    expect_count(reader, 2);
    // A log that has grown beyond the first part of its index.
    store_execute(&it, "PRAGMA cache_size = 10; BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4500)"
                       " INSERT INTO t SELECT zeroblob(4000) FROM n; COMMIT");
    expect_count(reader, 4502);
    sqlite3_close(reader);
    reader = reader_open(it.path);
    expect_count(reader, 4502);
    sqlite3_close(reader);
    end(&it);
}

static store *coming;

/// A writer opens the database, and commits.
static void writer_come(void) {
    check(sqlite3_open(coming->path, &coming->connection) == SQLITE_OK, "%s", coming->path);
    store_execute(coming, "INSERT INTO t VALUES (7)");
}

/// Without an index, no lock keeps writers away: a read is void once there is one.
static void test_disturbances(void) {
    for (int has_log = 0; has_log < 2; has_log++) {
        store it;
        make(&it, "WAL");
        coming = &it;
        int32_t remaining;
        store_execute(&it,
                      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) INSERT INTO t SELECT zeroblob(3000) FROM n");
        if (!has_log) check(!tide_connection_checkpoint(it.connection, true, &remaining, &it.error), "moved");
        writer_kill(&it);
        unlink(index_path);
        sqlite3 *reader = reader_open(it.path);
        sqlite3_stmt *statement = NULL;
        check(sqlite3_prepare_v2(reader, "SELECT a FROM t", -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW, "a row");
        writer_come();
        check(!tide_reader_is_undisturbed(reader), "a writer has come");
        int code, rows = 0;
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) rows++;
        sqlite3_extended_result_codes(reader, 1);
        check(code == SQLITE_BUSY && sqlite3_extended_errcode(reader) == SQLITE_BUSY_SNAPSHOT && rows < 200, "%d: %s", rows, sqlite3_errmsg(reader));
        sqlite3_finalize(statement);
        // The next read sees what was committed.
        expect_count(reader, 202);
        check(tide_reader_is_undisturbed(reader), "the next read");
        sqlite3_close(reader);
        end(&it);
    }
}

/// Changes bytes of a file in another process: SQLite would lose its locks as this one closes the file.
static void bytes_change(const char *path, int offset, const char *octal) {
    char command[200];
    snprintf(command, sizeof command, "printf '%s' | dd of=%s bs=1 seek=%d conv=notrunc status=none", octal, path, offset);
    check(system(command) == 0, "%s", command);
}

static void test_torn_indexes(void) {
    store it;
    make(&it, "WAL");
    sqlite3 *reader = reader_open(it.path);
    expect_count(reader, 1);
    // A writer has died in the middle of a change, and another connection keeps the index up.
    bytes_change(index_path, 8, "\\177");
    expect_code(reader, "SELECT count(*) FROM t", SQLITE_READONLY_RECOVERY);
    // A new connection reads by an index of its own.
    sqlite3_close(reader);
    reader = reader_open(it.path);
    expect_count(reader, 1);
    sqlite3_close(reader);
    // The next writer repairs it.
    store_execute(&it, "INSERT INTO t VALUES (2)");
    reader = reader_open(it.path);
    expect_count(reader, 2);
    // The index is removed: no lock on it keeps anybody away.
    unlink(index_path);
    expect_code(reader, "SELECT count(*) FROM t", SQLITE_READONLY_RECOVERY);
    sqlite3_close(reader);
    end(&it);
}

/// Logs without a commit: the database alone counts, and later commits are seen.
static void test_logs_without_commits(void) {
    static const char *const kinds[] = {"empty", "a header", "a damaged header", "a cut frame", "frames of an earlier log", "a damaged frame",
                                        "an open transaction",
                                        "a cut header"};
    static uint8_t log[2000000], whole[2000000];
    for (int kind = 0; kind < 8; kind++) {
        store it;
        make(&it, "WAL");
        int32_t remaining;
        check(!tide_connection_checkpoint(it.connection, true, &remaining, &it.error), "moved");
        if (kind == 6) store_execute(&it, "PRAGMA cache_size = 1; BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)"
                                          " INSERT INTO t SELECT zeroblob(4000) FROM n; COMMIT");
        else store_execute(&it, "INSERT INTO t VALUES (2)");
        size_t length = bytes_read(log_path, log, sizeof log);
        memcpy(whole, log, length);
        writer_kill(&it);
        unlink(index_path);
        if (kind == 2) log[5] ^= 1;
        if (kind == 4) log[32 + 8] ^= 1;
        if (kind == 5) log[32 + 24 + 100] ^= 1;
        bytes_write(log_path, log,
                    kind == 0 ? 0 : kind == 1 ? 32 : kind == 3 ? length - 1 : kind == 7 ? 10 : kind == 6 ? 32 + 2 * (24 + 4096) : length);
        tide_text before = folder_state(&it);
        sqlite3 *reader = reader_open(it.path);
        for (int i = 0; i < 2; i++) {
            int64_t number = -1;
            int code = query(reader, "SELECT count(*) FROM t", &number);
            check(code == SQLITE_OK && number == 1, "%s: %d, %s", kinds[kind], (int)number, sqlite3_errmsg(reader));
        }
        expect_folder(&it, &before);
        // The log gets its commits, in place.
        int rows = kind == 6 ? 21 : 2;
        int descriptor = open(log_path, O_WRONLY);
        check(descriptor >= 0 && write(descriptor, whole, length) == (ssize_t)length && close(descriptor) == 0, "%s", log_path);
        expect_count(reader, rows);
        // A writer goes on with it, and is killed.
        coming = &it;
        writer_come();
        expect_count(reader, rows + 1);
        sqlite3_close(reader);
        writer_kill(&it);
        unlink(index_path);
        reader = reader_open(it.path);
        expect_count(reader, rows + 1);
        sqlite3_close(reader);
        end(&it);
    }
}

/// Whichever call fails, SQLite reports an error, or the rows are right; and the next connection reads them.
static void test_failing_calls(void) {
    static const char *const calls[] = {"pread", "fstat", "lstat", "open", "fcntl", "mmap", "opendir", "sqlite3_malloc"};
    static const int failures[] = {EIO, ENOENT, EINTR, ENOMEM};
    int errors = 0, results = 0;
    for (int state = 0; state < 4; state++) {
        store it;
        make(&it, state == 0 ? "DELETE" : "WAL");
        if (state > 1) writer_kill(&it);
        if (state > 2) unlink(index_path);
        for (int i = 0; i < 8 * 4; i++) {
            for (int number = 0;; number++) {
                sqlite3 *reader = NULL;
                int64_t count = -1;
                system_faults_begin(calls[i / 4], failures[i % 4], number);
                int code = reader_try(it.path, &reader);
                if (code == SQLITE_OK) code = query(reader, "SELECT count(*) FROM t", &count);
                bool is_undisturbed = code == SQLITE_OK && tide_reader_is_undisturbed(reader);
                sqlite3_close(reader);
                if (!system_faults_end()) break;
                if (code != SQLITE_OK) errors++;
                else if (is_undisturbed) results++;
                check(code != SQLITE_OK || !is_undisturbed || count == 1, "%s %d fails with %s: %d rows", calls[i / 4], number,
                      strerror(failures[i % 4]), (int)count);
                reader = reader_open(it.path);
                expect_count(reader, 1);
                sqlite3_close(reader);
            }
        }
        end(&it);
    }
    check(errors > 50 && results > 50, "%d errors, %d results", errors, results);
}

int main(void) {
    system_allocations_include();
    check(!tide_reader_vfs_register(&error), "%s", error.message);
    test_writers();
    test_disturbances();
    test_torn_indexes();
    test_logs_without_commits();
    test_failing_calls();
    puts("reader_writers: passed");
    return 0;
}

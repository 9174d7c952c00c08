// Goal: a connection of the reader's file layer reads what has been committed, and changes nothing.
// Method: databases in all states that writers leave. Folders are compared before and after.

#include "reader_fixture.h"

static void test_states_of_databases(void) {
    static const char *const states[] = {"no log", "log in use", "log and index left", "log without an index", "index without a log",
                                         "persistent journal"};
    for (int state = 0; state < 6; state++) {
        store it;
        make(&it, state == 0 ? "DELETE" : state == 5 ? "PERSIST" : "WAL");
        int32_t remaining;
        if (state == 4) check(!tide_connection_checkpoint(it.connection, false, &remaining, NULL), "moved");
        if (state == 5) store_execute(&it, "INSERT INTO t VALUES (2); DELETE FROM t WHERE a = 2");
        if (state > 1) writer_kill(&it);
        if (state == 3) unlink(index_path);
        if (state == 4) unlink(log_path);
        tide_text before = folder_state(&it);
        sqlite3 *reader = reader_open(it.path);
        expect_count(reader, 1);
        check(tide_reader_is_undisturbed(reader), "%s", states[state]);
        sqlite3_close(reader);
        expect_folder(&it, &before);
        end(&it);
    }
}

/// No call changes a file, whatever it is.
static void test_refusals(void) {
    static const char *const changes[] = {
        "INSERT INTO t VALUES (2)", "DELETE FROM t", "DROP TABLE t", "PRAGMA user_version = 5", "VACUUM", "CREATE TABLE u (a)"};
    for (int is_log = 0; is_log < 2; is_log++) {
        store it;
        make(&it, is_log ? "WAL" : "DELETE");
        tide_text before = folder_state(&it);
        sqlite3 *reader = reader_open(it.path);
        expect_count(reader, 1);
        for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
            int64_t number;
            check((query(reader, changes[i], &number) & 0xff) == SQLITE_READONLY, "%s: %s", changes[i], sqlite3_errmsg(reader));
            sqlite3_exec(reader, "ROLLBACK", NULL, NULL, NULL);
        }
        // What SQLite itself would not ask for.
        for (int i = 0; i < 2; i++) {
            sqlite3_file *file;
            check(sqlite3_file_control(reader, "main", i ? SQLITE_FCNTL_JOURNAL_POINTER : SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK, "a file");
            if (!file->pMethods) continue;
            check(file->pMethods->xWrite(file, "x", 1, 0) == SQLITE_READONLY && file->pMethods->xTruncate(file, 0) == SQLITE_READONLY, "refused");
            check(file->pMethods->xSync(file, SQLITE_SYNC_FULL) == SQLITE_OK, "there is nothing to sync");
            int is_locked = 7;
            check(file->pMethods->xCheckReservedLock(file, &is_locked) == SQLITE_OK && !is_locked, "no lock");
            check(file->pMethods->xSectorSize(file) > 0 && file->pMethods->xDeviceCharacteristics(file) >= 0, "the disk");
            if (i == 0) {
                check(file->pMethods->xLock(file, SQLITE_LOCK_RESERVED) == SQLITE_READONLY, "no lock to write");
                check(file->pMethods->xFileControl(file, SQLITE_FCNTL_SIZE_HINT, &(sqlite3_int64){1 << 20}) == SQLITE_NOTFOUND, "no room to write");
            } else {
                check(file->pMethods->xLock(file, SQLITE_LOCK_SHARED) == SQLITE_OK && file->pMethods->xUnlock(file, SQLITE_LOCK_NONE) == SQLITE_OK,
                      "locks");
                check(file->pMethods->xFileControl(file, SQLITE_FCNTL_SIZE_HINT, NULL) == SQLITE_NOTFOUND, "no room to write");
            }
        }
        sqlite3_vfs *vfs = sqlite3_vfs_find(TIDE_READER_VFS_NAME);
        check(vfs->xDelete(vfs, it.path, 0) == SQLITE_READONLY, "refused");
        char *name = NULL;
        check(sqlite3_file_control(reader, "main", SQLITE_FCNTL_VFSNAME, &name) == SQLITE_OK && !strcmp(name, TIDE_READER_VFS_NAME), "%s", name);
        sqlite3_free(name);
        int has_moved = 7;
        check(sqlite3_file_control(reader, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved) == SQLITE_OK && !has_moved, "in place");
        int number = -1;
        check(sqlite3_file_control(reader, "main", SQLITE_FCNTL_LAST_ERRNO, &number) == SQLITE_OK && number >= 0, "the last errno");
        check(sqlite3_file_control(reader, "main", SQLITE_FCNTL_LOCKSTATE, &number) == SQLITE_OK && number <= SQLITE_LOCK_SHARED, "the lock");
        sqlite3_close(reader);
        expect_folder(&it, &before);
        end(&it);
    }
}

/// The file layer's other calls are those of the default one.
static void test_passed_calls(void) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(TIDE_READER_VFS_NAME), *real = sqlite3_vfs_find(NULL);
    char bytes[64] = {0}, zeros[64] = {0};
    check(vfs->xRandomness(vfs, sizeof bytes, bytes) == sizeof bytes && memcmp(bytes, zeros, sizeof bytes), "random bytes");
    check(vfs->xSleep(vfs, 100) >= 100, "slept");
    double day;
    sqlite3_int64 now, real_now;
    check(vfs->xCurrentTime(vfs, &day) == SQLITE_OK && day > 2460000, "the time");
    check(vfs->xCurrentTimeInt64(vfs, &now) == SQLITE_OK && real->xCurrentTimeInt64(real, &real_now) == SQLITE_OK && real_now - now < 60000,
          "the time");
    check(vfs->xGetLastError(vfs, 0, NULL) == real->xGetLastError(real, 0, NULL), "the last error");
    int is_there = 7;
    check(vfs->xAccess(vfs, "/tmp/no file", SQLITE_ACCESS_EXISTS, &is_there) == SQLITE_OK && !is_there, "no file");
    // Only databases, their logs and their journals have a name that is opened.
    sqlite3_file *file = calloc(1, (size_t)vfs->szOsFile);
    char path[] = "/tmp/tidemark-reader-XXXXXX";
    check(mkdtemp(path), "%s", path);
    char none[60];
    snprintf(none, sizeof none, "%s/none", path);
    const char *name = sqlite3_create_filename(none, "", "", 0, NULL);
    check(vfs->xOpen(vfs, name, file, SQLITE_OPEN_TEMP_DB | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) == SQLITE_CANTOPEN, "refused");
    check(vfs->xOpen(vfs, name, file, SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) == SQLITE_CANTOPEN, "no file is made");
    check(vfs->xOpen(vfs, name, file, SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_READWRITE, NULL) == SQLITE_CANTOPEN && !file->pMethods, "no journal");
    sqlite3_free_filename(name);
    free(file);
    check(rmdir(path) == 0, "%s is empty", path);
}

/// Reading needs room for what is sorted: temporary files are no part of a database.
static void test_temporary_files(void) {
    store it;
    make(&it, "WAL");
    store_execute(&it, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) INSERT INTO t SELECT hex(zeroblob(i)) FROM n");
    sqlite3 *reader = reader_open(it.path);
    sqlite3_exec(reader, "PRAGMA temp_store = 1; PRAGMA cache_size = 4; PRAGMA cache_spill = 1", NULL, NULL, NULL);
    check(sqlite3_exec(reader, "CREATE TEMP TABLE u AS SELECT a FROM t ORDER BY a DESC", NULL, NULL, NULL) == SQLITE_OK, "%s",
          sqlite3_errmsg(reader));
    int64_t number = 0;
    check(query(reader, "SELECT count(*) FROM u", &number) == SQLITE_OK && number == 1501, "%d", (int)number);
    sqlite3_close(reader);
    end(&it);
}

static void test_other_connections(void) {
    store it;
    make(&it, "WAL");
    check(tide_reader_prepare(it.connection, &error) == TIDE_SQLITE_ERROR, "%s", error.message);
    check(!strcmp(error.message, "this SQLite takes no URI filenames, which reading without the means to write needs"), "%s", error.message);
    check(tide_reader_is_undisturbed(it.connection), "not one of these");
    sqlite3 *reader;
    check(reader_try("/tmp/no folder/a.sqlite", &reader) == SQLITE_CANTOPEN, "no database");
    check(tide_reader_prepare(reader, &error) == TIDE_SQLITE_ERROR && tide_reader_is_undisturbed(reader), "%s", error.message);
    sqlite3_close(reader);
    reader = reader_open(it.path);
    int value = -1;
    static const int options[] = {SQLITE_DBCONFIG_DEFENSIVE, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, SQLITE_DBCONFIG_TRUSTED_SCHEMA,
                                  SQLITE_DBCONFIG_DQS_DML,
                                  SQLITE_DBCONFIG_DQS_DDL};
    for (int i = 0; i < 5; i++) {
        sqlite3_db_config(reader, options[i], -1, &value);
        check(value == (i < 2), "option %d is %d", options[i], value);
    }
    sqlite3_close(reader);
    end(&it);
}

/// A journal of a writer that was killed: what is in the database may be half of a transaction.
static void test_hot_journals(void) {
    store it;
    make(&it, "DELETE");
    static uint8_t database[200000], journal[100000];
    store_execute(&it, "PRAGMA cache_size = 1; BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)"
                       " INSERT INTO t SELECT zeroblob(4000) FROM n");
    size_t length = bytes_read(it.path, database, sizeof database), journal_length = bytes_read(journal_path, journal, sizeof journal);
    store_execute(&it, "ROLLBACK");
    tide_writer_destroy(it.writer);
    it.writer = NULL;
    sqlite3_close(it.connection);
    it.connection = NULL;
    bytes_write(it.path, database, length);
    bytes_write(journal_path, journal, journal_length);
    tide_text before = folder_state(&it);
    sqlite3 *reader = reader_open(it.path);
    int64_t number;
    int code = query(reader, "SELECT count(*) FROM t", &number);
    check((code & 0xff) == SQLITE_READONLY || (code & 0xff) == SQLITE_CANTOPEN, "%d: %s", code, sqlite3_errmsg(reader));
    sqlite3_close(reader);
    // The journal can be read, to its end and beyond.
    sqlite3_vfs *vfs = sqlite3_vfs_find(TIDE_READER_VFS_NAME);
    sqlite3_file *file = calloc(1, (size_t)vfs->szOsFile);
    const char *name = sqlite3_create_filename(it.path, journal_path, log_path, 0, NULL);
    check(vfs->xOpen(vfs, sqlite3_filename_journal(name), file, SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK, "%s",
          journal_path);
    sqlite3_int64 size;
    check(file->pMethods->xFileSize(file, &size) == SQLITE_OK && size == (sqlite3_int64)journal_length, "%d bytes", (int)size);
    uint8_t bytes[8];
    check(file->pMethods->xRead(file, bytes, 8, 0) == SQLITE_OK && !memcmp(bytes, journal, 8), "the beginning");
    check(file->pMethods->xRead(file, bytes, 8, size - 3) == SQLITE_IOERR_SHORT_READ, "the end");
    check(!memcmp(bytes, journal + journal_length - 3, 3) && !memcmp(bytes + 3, "\0\0\0\0\0", 5), "zeros beyond the end");
    check(file->pMethods->xClose(file) == SQLITE_OK, "closed");
    // The database, without flags to fill in.
    check(vfs->xOpen(vfs, name, file, SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) == SQLITE_OK, "%s", it.path);
    check(file->pMethods->xRead(file, bytes, 8, 0) == SQLITE_OK && !memcmp(bytes, "SQLite f", 8), "the beginning");
    check(file->pMethods->xClose(file) == SQLITE_OK, "closed");
    sqlite3_free_filename(name);
    free(file);
    expect_folder(&it, &before);
    end(&it);
}

/// Makes a store whose log was moved into the database, and removes the log and the index.
static void make_without_log(store *it) {
    make(it, "WAL");
    int32_t remaining;
    check(!tide_connection_checkpoint(it->connection, true, &remaining, &it->error), "moved");
    writer_kill(it);
    unlink(log_path), unlink(index_path);
}

/// A reader finds a log that is made while its connection is open. A pipe in the place of the log is an error.
static void test_missing_logs(void) {
    store it;
    make_without_log(&it);
    sqlite3 *reader = reader_open(it.path);
    expect_count(reader, 1);
    sqlite3_file *log;
    check(sqlite3_file_control(reader, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log->pMethods, "the log");
    uint8_t bytes[4] = {1, 2, 3, 4};
    sqlite3_int64 size = 7;
    check(log->pMethods->xFileSize(log, &size) == SQLITE_OK && size == 0, "no log");
    check(log->pMethods->xRead(log, bytes, 4, 0) == SQLITE_IOERR_SHORT_READ && !memcmp(bytes, "\0\0\0\0", 4), "zeros");
    check(mkfifo(log_path, 0600) == 0, "%s", log_path);
    check(log->pMethods->xRead(log, bytes, 4, 0) == SQLITE_CANTOPEN && log->pMethods->xFileSize(log, &size) == SQLITE_CANTOPEN, "a pipe");
    unlink(log_path);
    bytes_write(log_path, (const uint8_t *)"log of another kind", 19);
    check(log->pMethods->xRead(log, bytes, 4, 15) == SQLITE_OK && !memcmp(bytes, "kind", 4), "the log");
    check(log->pMethods->xFileSize(log, &size) == SQLITE_OK && size == 0, "no frame of it counts");
    sqlite3_close(reader);
    end(&it);
}

/// A pipe or a link in the place of the log is an error.
static void test_other_files(void) {
    for (int kind = 0; kind < 2; kind++) {
        store it;
        make_without_log(&it);
        check(kind ? symlink(it.path, log_path) == 0 : mkfifo(log_path, 0600) == 0, "%s", log_path);
        sqlite3 *reader = reader_open(it.path);
        expect_code(reader, "SELECT count(*) FROM t", SQLITE_CANTOPEN);
        sqlite3_close(reader);
        end(&it);
    }
}

int main(void) {
    check(!tide_reader_vfs_register(&error) && !tide_reader_vfs_register(NULL), "%s", error.message);
    test_states_of_databases();
    test_refusals();
    test_passed_calls();
    test_temporary_files();
    test_other_connections();
    test_hot_journals();
    test_missing_logs();
    test_other_files();
    puts("reader: passed");
    return 0;
}

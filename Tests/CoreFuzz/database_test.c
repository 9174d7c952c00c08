// Goal: the log of a database is moved into it, and compared with its index, as the headers say; a lock excludes others, and waits as long as it may.
// Method: databases in files, whose bytes are changed; system calls that fail, each in its turn; a second process, and a second connection.

#include <sys/wait.h>

#include "store_fixture.h"
#include "database_faults.h"
#include "tide_lock.h"
#include "tide_log.h"

static off_t file_size(const store *it, const char *suffix) {
    char path[100];
    snprintf(path, sizeof path, "%s%s", it->path, suffix);
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size : -1;
}

// Checkpoints

static void test_checkpoints(void) {
    store it;
    store_open(&it, "WAL");
    int32_t frames = -1, remaining = -1;
    tide_connection_watch_log(it.connection, &frames);
    store_apply(&it, "a|rating=#1\nb|rating=#1\n");
    // The log can't be moved while a transaction is open.
    check(tide_connection_checkpoint(it.connection, false, &remaining, &it.error) == TIDE_BUSY, "%s", it.error.message);
    check(!strcmp(it.error.message, "cannot move the log into the database: database table is locked"), "%s", it.error.message);
    store_execute(&it, "COMMIT");
    check(frames > 0, "%d frames", (int)frames);
    off_t size = file_size(&it, "-wal");
    check(!tide_connection_checkpoint(it.connection, false, &remaining, &it.error) && remaining == 0, "%s", it.error.message);
    check(file_size(&it, "-wal") == size, "the log stays");
    check(!tide_connection_checkpoint(it.connection, true, &remaining, &it.error) && remaining == 0, "%s", it.error.message);
    check(file_size(&it, "-wal") == 0, "the log is emptied");
    // A reader holds frames back that are newer than what it reads.
    sqlite3 *reader;
    check(sqlite3_open(it.path, &reader) == SQLITE_OK, "a reader");
    store_execute(&it, "UPDATE Place SET rating = 2");
    int32_t first = frames;
    sqlite3_exec(reader, "BEGIN; SELECT * FROM Place", NULL, NULL, NULL);
    store_execute(&it, "UPDATE Place SET rating = 3");
    check(frames > first, "%d frames", (int)frames);
    for (int truncate = 0; truncate < 2; truncate++) {
        check(!tide_connection_checkpoint(it.connection, truncate, &remaining, &it.error) && remaining == frames - first, "%d", (int)remaining);
    }
    sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL);
    check(!tide_connection_checkpoint(it.connection, true, &remaining, &it.error) && remaining == 0, "%d", (int)remaining);
    sqlite3_close(reader);
    store_execute(&it, "BEGIN");
    store_close(&it);
}

static void test_settings_that_fail(void) {
    store it;
    store_open(&it, "WAL");
    // Within a transaction, the setting can't be changed.
    check(tide_connection_prepare(it.connection, &it.error) == TIDE_SQLITE_ERROR, "%s", it.error.message);
    check(!strcmp(it.error.message, "cannot configure the connection: Safety level may not be changed inside a transaction"), "%s", it.error.message);
    int32_t number = 7;
    static const struct {
        const char *sql;
        bool has_number;
        int32_t number;
    } cases[] = {{"SELECT -5, 6", true, -5}, {"SELECT 1 WHERE 0", false, 7}, {"SELECT abs(-9223372036854775808)", false, 7},
                 {"SELECT NULL", true, 0}};
    for (int i = 0; i < 4; i++) {
        sqlite3_stmt *statement = store_prepare(&it, cases[i].sql);
        for (int round = 0; round < 2; round++) {
            number = 7;
            check(tide_statement_number(statement, &number) == cases[i].has_number && number == cases[i].number, "%s: %d", cases[i].sql, number);
        }
        sqlite3_finalize(statement);
    }
    store_close(&it);
}

// Logs

enum { frame_size = 24 + 4096 };

/// A database with some commits in its log, and what its log and its index are as long as it is open.
typedef struct log_files {
    store store;
    char log[100], index[100];
    uint8_t log_bytes[60000], index_bytes[40000];
    size_t log_length, index_length;
    /// Frames of the log, all of which are committed.
    uint32_t frames;
} log_files;

static void files_restore(const log_files *it) {
    bytes_write(it->log, it->log_bytes, it->log_length);
    bytes_write(it->index, it->index_bytes, it->index_length);
}

static void files_make(log_files *it) {
    store_open(&it->store, "WAL");
    snprintf(it->log, sizeof it->log, "%s-wal", it->store.path);
    snprintf(it->index, sizeof it->index, "%s-shm", it->store.path);
    int32_t remaining;
    store_execute(&it->store, "COMMIT; CREATE TABLE t (a)");
    check(!tide_connection_checkpoint(it->store.connection, true, &remaining, NULL), "the log is emptied");
    for (int i = 0; i < 4; i++) store_execute(&it->store, "INSERT INTO t VALUES (1)");
    it->log_length = bytes_read(it->log, it->log_bytes, sizeof it->log_bytes);
    it->index_length = bytes_read(it->index, it->index_bytes, sizeof it->index_bytes);
    it->frames = (uint32_t)(it->log_length - 32) / frame_size;
    check(it->frames >= 4 && it->log_length == 32 + (size_t)it->frames * frame_size, "%zu bytes", it->log_length);
}

/// Ends the connection, and makes the files as they were before that.
static void connection_end(log_files *it) {
    tide_writer_destroy(it->store.writer);
    sqlite3_close(it->store.connection);
    it->store.writer = NULL, it->store.connection = NULL;
    files_restore(it);
}

static void files_end(log_files *it) {
    if (!it->store.connection) check(sqlite3_open(it->store.path, &it->store.connection) == SQLITE_OK, "%s", it->store.path);
    store_execute(&it->store, "BEGIN");
    store_close(&it->store);
}

static tide_log_state examine(const log_files *it) {
    tide_log_state state;
    tide_error error;
    check(tide_log_examine(it->store.path, &state, &error) == TIDE_OK, "%s", error.message);
    return state;
}

static void expect_nothing_known(const log_files *it, const char *what) {
    tide_log_state state = examine(it);
    check(!state.committed && !state.moved && !state.whole && !state.salt && !state.is_in_use && !tide_log_has_loss(&state), "%s", what);
}


static void test_states_of_logs(void) {
    static log_files it;
    files_make(&it);
    tide_log_state state = examine(&it);
    check(state.is_in_use && state.committed == it.frames && state.whole == it.frames && state.moved == 0 && state.salt && !tide_log_has_loss(&state),
          "whole");
    uint64_t salt = state.salt;
    connection_end(&it);
    state = examine(&it);
    check(!state.is_in_use && state.committed == it.frames && state.whole == it.frames && state.salt == salt, "whole, and not in use");
    // Each damaged byte ends the whole frames, but those of the numbers of frames that nothing counts.
    for (size_t at = 0; at < it.log_length; at += at < 100 ? 1 : 511) {
        uint8_t byte = it.log_bytes[at];
        it.log_bytes[at] ^= 0x10;
        files_restore(&it);
        it.log_bytes[at] = byte;
        state = examine(&it);
        check(state.committed == it.frames && state.whole == (at < 32 ? 0 : (at - 32) / frame_size) && tide_log_has_loss(&state),
              "byte %zu: %u of %u", at, state.whole, state.committed);
    }
    // A log that is cut off.
    for (size_t length = 32; length < it.log_length; length += 1373) {
        bytes_write(it.log, it.log_bytes, length);
        state = examine(&it);
        check(state.committed == it.frames && state.whole == (length - 32) / frame_size, "%zu bytes: %u of %u", length, state.whole, state.committed);
    }
    // No index; one that is cut off, or torn, or not begun; no log; one without its header; one of another salt: nothing is known.
    files_restore(&it);
    unlink(it.index);
    expect_nothing_known(&it, "no index");
    for (size_t length = 0; length <= 96; length += 32) {
        bytes_write(it.index, it.index_bytes, length);
        expect_nothing_known(&it, "an index that is cut off");
    }
    for (size_t at = 0; at < 96; at++) {
        files_restore(&it);
        it.index_bytes[at] ^= 0x10;
        bytes_write(it.index, it.index_bytes, it.index_length);
        expect_nothing_known(&it, "a torn index");
        // Both copies agree, but not with their checksums.
        if (at < 48) it.index_bytes[at + 48] ^= 0x10;
        bytes_write(it.index, it.index_bytes, it.index_length);
        if (at < 48) expect_nothing_known(&it, "an index whose sum is wrong");
        it.index_bytes[at] ^= 0x10;
        if (at < 48) it.index_bytes[at + 48] ^= 0x10;
    }
    uint8_t zeros[136] = {0};
    bytes_write(it.index, zeros, sizeof zeros);
    expect_nothing_known(&it, "an index that is not begun");
    files_restore(&it);
    unlink(it.log);
    expect_nothing_known(&it, "no log");
    for (size_t length = 0; length < 32; length += 31) {
        bytes_write(it.log, it.log_bytes, length);
        expect_nothing_known(&it, "an empty log");
    }
    files_restore(&it);
    uint8_t other[64];
    memcpy(other, it.log_bytes, sizeof other);
    for (int i = 16; i < 24; i++) other[i] ^= 1;
    bytes_write(it.log, other, sizeof other);
    expect_nothing_known(&it, "another log");
    // Half of the salt is that of the index: damage of the header.
    memcpy(other + 20, it.log_bytes + 20, 4);
    bytes_write(it.log, other, sizeof other);
    state = examine(&it);
    check(state.committed == it.frames && state.whole == 0, "a damaged salt");
    // What is no regular file is no log, and no index.
    unlink(it.log);
    check(mkdir(it.log, 0700) == 0, "%s", it.log);
    expect_nothing_known(&it, "a folder for a log");
    rmdir(it.log);
    unlink(it.index);
    check(mkdir(it.index, 0700) == 0, "%s", it.index);
    expect_nothing_known(&it, "a folder for an index");
    rmdir(it.index);
    files_restore(&it);
    files_end(&it);
}

/// Frames that are in the database are no loss.
static void test_moved_frames(void) {
    static log_files it;
    files_make(&it);
    int32_t remaining;
    check(!tide_connection_checkpoint(it.store.connection, false, &remaining, NULL), "moved");
    it.log_bytes[100] ^= 1;
    FILE *log = fopen(it.log, "r+b");
    check(log && fwrite(it.log_bytes, 1, 200, log) == 200 && fclose(log) == 0, "%s", it.log);
    tide_log_state state = examine(&it);
    check(state.committed == it.frames && state.moved == it.frames && state.whole == 0 && !tide_log_has_loss(&state), "%u, %u", state.moved,
          state.whole);
    files_end(&it);
}

/// A call that fails is an error with the name of the file, or the result is that of a log that can be read.
static void test_logs_that_cannot_be_read(void) {
    static log_files it;
    files_make(&it);
    connection_end(&it);
    tide_log_state expected = examine(&it);
    static const struct {
        const char *call;
        int failure, number;
        tide_status status;
        const char *message;
    } cases[] = {
        {"open", EACCES, 0, TIDE_IO_ERROR, "-shm: Permission denied"}, {"open", EMFILE, 1, TIDE_IO_ERROR, "-wal: Too many open files"},
        {"open", ENOENT, 0, TIDE_OK, NULL},                            {"open", ENOENT, 1, TIDE_OK, NULL},
        {"pread", EIO, 0, TIDE_IO_ERROR, "-shm: Input/output error"},  {"pread", EIO, 1, TIDE_IO_ERROR, "-wal: Input/output error"},
        {"pread", EIO, 2, TIDE_IO_ERROR, "-wal: Input/output error"},  {"pread", EIO, 5, TIDE_IO_ERROR, "-wal: Input/output error"},
        {"pread", EIO, 6, TIDE_IO_ERROR, "-shm: Input/output error"},  {"fstat", EIO, 1, TIDE_IO_ERROR, "-wal: Input/output error"},
        {"fstat", EIO, 0, TIDE_IO_ERROR, "-shm: Input/output error"},  {"open", ENOMEM, 1, TIDE_NO_MEMORY, "out of memory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tide_error error = {0};
        tide_log_state state;
        system_faults_begin(cases[i].call, cases[i].failure, cases[i].number);
        tide_status status = tide_log_examine(it.store.path, &state, &error);
        check(system_faults_end(), "%s %d", cases[i].call, cases[i].number);
        check(status == cases[i].status, "%s %d: %s", cases[i].call, cases[i].number, error.message);
        check(!cases[i].message || strstr(error.message, cases[i].message), "%s", error.message);
        check(!state.committed && !state.salt, "%s %d: nothing is known", cases[i].call, cases[i].number);
        // A call that was interrupted is made again.
        if (strcmp(cases[i].call, "pread")) continue;
        system_faults_begin("pread", EINTR, cases[i].number);
        check(tide_log_examine(it.store.path, &state, &error) == TIDE_OK && system_faults_end(), "%s", error.message);
        check(!memcmp(&state, &expected, sizeof state), "interrupted");
    }
    // Allocations that fail.
    for (int number = 0;; number++) {
        tide_error error = {0};
        tide_log_state state;
        system_faults_begin("sqlite3_malloc", ENOMEM, number);
        tide_status status = tide_log_examine(it.store.path, &state, &error);
        if (!system_faults_end()) break;
        check(status == TIDE_NO_MEMORY && !strcmp(error.message, "out of memory") && !state.committed, "allocation %d: %s", number, error.message);
        check(number < 10, "%d allocations", number);
    }
    files_end(&it);
}

static log_files *changing;

static void index_change(void) {
    uint8_t other[136];
    memcpy(other, changing->index_bytes, sizeof other);
    // One frame more is in the database.
    other[96]++;
    int descriptor = open(changing->index, O_WRONLY);
    check(descriptor >= 0 && write(descriptor, other, sizeof other) == sizeof other, "%s", changing->index);
    close(descriptor);
}

/// An index that changes while the log is read belongs to no single log.
static void test_logs_that_change(void) {
    static log_files it;
    files_make(&it);
    connection_end(&it);
    changing = &it;
    for (uint32_t call = 1; call < it.frames + 3; call++) {
        files_restore(&it);
        tide_log_state state;
        system_event_begin("pread", index_change, (int)call);
        check(tide_log_examine(it.store.path, &state, NULL) == TIDE_OK && system_faults_end(), "call %u", call);
        check(!state.committed && !state.whole && !state.salt, "call %u", call);
    }
    files_end(&it);
}

// Locks

static void test_locks(void) {
    char path[] = "/tmp/tidemark-lock-XXXXXX";
    int descriptor = mkstemp(path);
    check(descriptor >= 0, "%s", path);
    tide_error error = {0};
    tide_lock *one, *other;
    check(!tide_lock_create(path, &one, &error) && !tide_lock_create(path, &other, &error), "%s", error.message);
    check(!tide_lock_acquire(one, true, 0, &error) && !tide_lock_acquire(other, true, 0, &error), "shared: %s", error.message);
    tide_lock_release(other);
    check(tide_lock_acquire(other, false, 30, &error) == TIDE_BUSY, "exclusive");
    char expected[200];
    snprintf(expected, sizeof expected, "another process has held %s for over 30 ms; try again when it is done", path);
    check(!strcmp(error.message, expected), "%s", error.message);
    tide_lock_release(one);
    check(!tide_lock_acquire(other, false, 0, &error), "%s", error.message);
    check(tide_lock_acquire(one, true, 0, &error) == TIDE_BUSY, "shared");
    // A process holds the lock for some time, and dies without a release.
    tide_lock_release(other);
    int ready[2];
    check(pipe(ready) == 0, "a pipe");
    pid_t process = fork();
    check(process >= 0, "a process");
    if (process == 0) {
        tide_lock *held;
        if (tide_lock_create(path, &held, NULL) || tide_lock_acquire(held, false, 0, NULL) || write(ready[1], "x", 1) != 1) _exit(1);
        usleep(60000);
        _exit(0);
    }
    char byte;
    check(read(ready[0], &byte, 1) == 1, "held");
    check(!tide_lock_acquire(one, false, 10000, &error), "%s", error.message);
    waitpid(process, NULL, 0);
    close(ready[0]), close(ready[1]);
    // Calls that fail, or are interrupted.
    tide_lock_release(one);
    system_faults_begin("flock", EBADF, 0);
    check(tide_lock_acquire(one, false, 0, &error) == TIDE_IO_ERROR && error.system == EBADF && strstr(error.message, path), "%s", error.message);
    system_faults_begin("flock", EINTR, 0);
    check(!tide_lock_acquire(one, false, 1000, &error) && system_faults_end(), "%s", error.message);
    system_faults_begin("flock", EINTR, 0);
    tide_lock_release(one);
    check(system_faults_end() && !tide_lock_acquire(other, false, 0, &error), "released");
    tide_lock_release(other);
    system_faults_begin("flock", EBADF, 0);
    tide_lock_release(other);
    check(system_faults_end() && !tide_lock_acquire(other, false, 0, &error), "a release that fails has an end");
    // The end of a lock releases it.
    tide_lock_destroy(other);
    check(!tide_lock_acquire(one, false, 0, &error), "%s", error.message);
    // Whether the file is in place.
    check(tide_lock_is_in_place(one), "in place");
    system_faults_begin("fstat", EIO, 0);
    check(!tide_lock_is_in_place(one), "not known");
    system_faults_end();
    unlink(path);
    check(!tide_lock_is_in_place(one), "gone");
    check(symlink("/proc/version", path) == 0 && !tide_lock_is_in_place(one), "a file elsewhere");
    unlink(path);
    check(!tide_lock_create(path, &other, &error) && !tide_lock_is_in_place(one) && tide_lock_is_in_place(other), "another file");
    struct stat status;
    check(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600, "the mode %o", status.st_mode);
    tide_lock_destroy(one);
    tide_lock_destroy(other);
    tide_lock_destroy(NULL);
    unlink(path);
    check(symlink("/tmp/elsewhere", path) == 0, "a link");
    check(tide_lock_create(path, &one, &error) == TIDE_IO_ERROR && !one && error.system == ELOOP, "%s", error.message);
    check(strstr(error.message, "cannot open the lock file /tmp/tidemark-lock-"), "%s", error.message);
    unlink(path);
    close(descriptor);
}

int main(void) {
    system_allocations_include();
    test_checkpoints();
    test_settings_that_fail();
    test_states_of_logs();
    test_moved_frames();
    test_logs_that_cannot_be_read();
    test_logs_that_change();
    test_locks();
    puts("database: passed");
    return 0;
}

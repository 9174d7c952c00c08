// Goal: a failure of SQLite is told by what has failed: a read that the system refused is none of damage, and a database that can only be read
// is told with its file.
// Method: a file layer above SQLite's own, whose reads fail as SQLite's do where the disk can't be read.

#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tide_connection.h"
#include "tide_reader_vfs.h"

static int failures;

static void expect(bool holds, const char *what, const char *found) {
    if (holds) return;
    fprintf(stderr, "errors: %s: %s\n", what, found);
    failures++;
}

static sqlite3_vfs *real;
static int real_size;
static bool fails;
/// The errno of the last failed call on the database, and on its journal; -1: the layer doesn't know.
static int last_errno, journal_errno;

typedef struct file {
    sqlite3_file base;
    sqlite3_file *real;
    bool is_journal;
} file;

static sqlite3_file *behind(sqlite3_file *it) { return ((file *)it)->real; }

static int file_close(sqlite3_file *it) { return behind(it)->pMethods->xClose(behind(it)); }

static int file_read(sqlite3_file *it, void *bytes, int count, sqlite3_int64 at) {
    if (!fails) return behind(it)->pMethods->xRead(behind(it), bytes, count, at);
    last_errno = EIO;
    return SQLITE_IOERR_CORRUPTFS;
}

static int file_write(sqlite3_file *it, const void *bytes, int count, sqlite3_int64 at) {
    return behind(it)->pMethods->xWrite(behind(it), bytes, count, at);
}

static int file_truncate(sqlite3_file *it, sqlite3_int64 size) { return behind(it)->pMethods->xTruncate(behind(it), size); }
static int file_sync(sqlite3_file *it, int flags) { return behind(it)->pMethods->xSync(behind(it), flags); }
static int file_size(sqlite3_file *it, sqlite3_int64 *size) { return behind(it)->pMethods->xFileSize(behind(it), size); }
static int file_lock(sqlite3_file *it, int level) { return behind(it)->pMethods->xLock(behind(it), level); }
static int file_unlock(sqlite3_file *it, int level) { return behind(it)->pMethods->xUnlock(behind(it), level); }
static int file_check(sqlite3_file *it, int *out) { return behind(it)->pMethods->xCheckReservedLock(behind(it), out); }

static int file_control(sqlite3_file *it, int operation, void *argument) {
    if (operation == SQLITE_FCNTL_LAST_ERRNO) {
        int number = ((file *)it)->is_journal ? journal_errno : last_errno;
        if (number < 0) return SQLITE_NOTFOUND;
        *(int *)argument = number;
        return SQLITE_OK;
    }
    return behind(it)->pMethods->xFileControl(behind(it), operation, argument);
}

static int file_sector(sqlite3_file *it) { return behind(it)->pMethods->xSectorSize(behind(it)); }
static int file_device(sqlite3_file *it) { return behind(it)->pMethods->xDeviceCharacteristics(behind(it)); }

static const sqlite3_io_methods methods = {
    .iVersion = 1, .xClose = file_close, .xRead = file_read, .xWrite = file_write, .xTruncate = file_truncate, .xSync = file_sync,
    .xFileSize = file_size, .xLock = file_lock, .xUnlock = file_unlock, .xCheckReservedLock = file_check, .xFileControl = file_control,
    .xSectorSize = file_sector, .xDeviceCharacteristics = file_device,
};

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *opened, int flags, int *out_flags) {
    (void)vfs;
    file *it = (file *)opened;
    it->real = (sqlite3_file *)(it + 1);
    it->is_journal = flags & SQLITE_OPEN_MAIN_JOURNAL;
    memset(it->real, 0, (size_t)real_size);
    int code = real->xOpen(real, name, it->real, flags, out_flags);
    it->base.pMethods = code == SQLITE_OK ? &methods : NULL;
    return code;
}

static void vfs_register(void) {
    static sqlite3_vfs vfs;
    real = sqlite3_vfs_find(NULL);
    real_size = real->szOsFile;
    vfs = *real;
    vfs.zName = "failing";
    vfs.szOsFile = (int)sizeof(file) + real_size;
    vfs.xOpen = vfs_open;
    vfs.pNext = NULL;
    sqlite3_vfs_register(&vfs, 0);
}

static sqlite3 *database_open(const char *path, int flags, const char *vfs) {
    sqlite3 *connection;
    if (sqlite3_open_v2(path, &connection, flags, vfs) != SQLITE_OK) {
        fprintf(stderr, "errors: %s: %s\n", path, sqlite3_errmsg(connection));
        exit(1);
    }
    return connection;
}

/// Only the failures of reads that SQLite takes for damage count, in the database, or in its journal.
static void test_read_errno(sqlite3 *connection) {
    static const struct {
        int database, journal, expected;
    } cases[] = {
        {0, 0, 0}, {EIO, 0, EIO}, {ENXIO, 0, ENXIO}, {ERANGE, 0, ERANGE}, {ENOENT, 0, 0}, {0, EIO, EIO}, {-1, EIO, EIO}, {-1, -1, 0},
        {ENXIO, EIO, ENXIO},
    };
    sqlite3_exec(connection, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1)", NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        last_errno = cases[i].database, journal_errno = cases[i].journal;
        expect(tide_connection_read_errno(connection) == cases[i].expected, "the errno of a read", strerror(cases[i].expected));
    }
    last_errno = journal_errno = 0;
    sqlite3_exec(connection, "ROLLBACK", NULL, NULL, NULL);
}

static void test_codes(void) {
    static const struct {
        int code;
        tide_status status;
        const char *message;
    } cases[] = {
        {SQLITE_FULL, TIDE_DISK_FULL, "cannot save: why"},          {SQLITE_BUSY, TIDE_BUSY, "cannot save: why"},
        {SQLITE_BUSY_SNAPSHOT, TIDE_BUSY, "cannot save: why"},      {SQLITE_LOCKED, TIDE_BUSY, "cannot save: why"},
        {SQLITE_CORRUPT, TIDE_CORRUPT, "cannot save: why"},         {SQLITE_CORRUPT_INDEX, TIDE_CORRUPT, "cannot save: why"},
        {SQLITE_NOTADB, TIDE_CORRUPT, "cannot save: why"},          {SQLITE_NOMEM, TIDE_NO_MEMORY, "cannot save: why"},
        {SQLITE_IOERR_READ, TIDE_IO_ERROR, "cannot save: why"},     {SQLITE_IOERR_WRITE, TIDE_IO_ERROR, "cannot save: why"},
        {SQLITE_CANTOPEN, TIDE_IO_ERROR, "cannot save: why"},       {SQLITE_READONLY_DBMOVED, TIDE_IO_ERROR, "cannot save: why"},
        {SQLITE_CONSTRAINT, TIDE_SQLITE_ERROR, "cannot save: why"}, {SQLITE_INTERRUPT, TIDE_SQLITE_ERROR, "cannot save: why"},
        {SQLITE_IOERR_SHMSIZE, TIDE_DISK_FULL, "cannot save: no space is left for the index of the log"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tide_error error = {0};
        tide_status status = tide_sqlite_code_error(cases[i].code, "why", "save", &error);
        expect(status == cases[i].status && error.status == status && error.system == cases[i].code, "the status of a code", error.message);
        expect(!strcmp(error.message, cases[i].message), "the message of a code", error.message);
        expect(tide_sqlite_code_error(cases[i].code, "why", "save", NULL) == status, "without an error to fill", error.message);
    }
}

/// A database without a file has nothing that could not be read.
static void test_memory(void) {
    sqlite3 *connection = database_open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    tide_error error = {0};
    expect(tide_connection_read_errno(connection) == 0, "no file", "");
    sqlite3_exec(connection, "CREATE TABLE t (a UNIQUE); INSERT INTO t VALUES (1), (1)", NULL, NULL, NULL);
    expect(tide_sqlite_error(connection, "save", &error) == TIDE_SQLITE_ERROR, "a constraint", error.message);
    expect(!strcmp(error.message, "cannot save: UNIQUE constraint failed: t.a"), "SQLite's message", error.message);
    sqlite3_exec(connection, "PRAGMA query_only = 1; INSERT INTO t VALUES (2)", NULL, NULL, NULL);
    expect(tide_sqlite_error(connection, "save", &error) == TIDE_IO_ERROR, "it can only be read", error.message);
    expect(!strcmp(error.message, "cannot save: attempt to write a readonly database"), "there is no file to name", error.message);
    sqlite3_close(connection);
}

/// A connection that could not be opened has no file, and no name of one.
static void test_no_database(void) {
    sqlite3 *connection;
    tide_error error = {0};
    expect(sqlite3_open_v2("/tmp/no folder/a.sqlite", &connection, SQLITE_OPEN_READWRITE, NULL) == SQLITE_CANTOPEN, "no file", "");
    expect(tide_connection_read_errno(connection) == 0, "no read", "");
    expect(tide_sqlite_error(connection, "open it", &error) == TIDE_IO_ERROR, "it can't be opened", error.message);
    expect(!strcmp(error.message, "cannot open it: unable to open database file"), "SQLite's message", error.message);
    sqlite3_close(connection);
}

/// Damage of a database in memory is damage.
static void test_damaged_memory(void) {
    sqlite3 *connection = database_open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    sqlite3_exec(connection, "CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(20000))", NULL, NULL, NULL);
    sqlite3_int64 length;
    unsigned char *bytes = sqlite3_serialize(connection, "main", &length, 0);
    memset(bytes + 4096, 0xff, 4096);
    sqlite3_deserialize(connection, "main", bytes, length, length, SQLITE_DESERIALIZE_FREEONCLOSE);
    sqlite3_exec(connection, "SELECT * FROM t", NULL, NULL, NULL);
    tide_error error = {0};
    expect(tide_sqlite_error(connection, "look up a record", &error) == TIDE_CORRUPT, "damage", error.message);
    sqlite3_close(connection);
}

int main(void) {
    test_codes();
    test_memory();
    test_no_database();
    test_damaged_memory();
    char folder[] = "/tmp/tidemark-errors-XXXXXX", path[100], log[120];
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/a.sqlite", folder);
    vfs_register();
    sqlite3 *connection = database_open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "failing");
    sqlite3_exec(connection, "CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(20000))", NULL, NULL, NULL);
    expect(tide_connection_read_errno(connection) == 0, "all reads have worked", "");

    test_read_errno(connection);

    tide_error error = {0};
    sqlite3_exec(connection, "PRAGMA cache_size = 0; PRAGMA shrink_memory", NULL, NULL, NULL);
    fails = true;
    int code = sqlite3_exec(connection, "SELECT sum(length(hex(a))) FROM t", NULL, NULL, NULL);
    fails = false;
    expect((code & 0xff) == SQLITE_CORRUPT, "SQLite calls it damage", sqlite3_errmsg(connection));
    expect(tide_connection_read_errno(connection) == EIO, "the system's reason", sqlite3_errmsg(connection));
    expect(tide_sqlite_error(connection, "look up a record", &error) == TIDE_IO_ERROR, "no damage", error.message);
    expect(strstr(error.message, path) && strstr(error.message, strerror(EIO)), "the file, and the reason", error.message);
    sqlite3_close(connection);

    // Damage is told as such where the system could read.
    last_errno = 0;
    FILE *damaged = fopen(path, "r+b");
    if (!damaged || fseek(damaged, 4096, SEEK_SET) != 0) return 1;
    for (int i = 0; i < 4096; i++) fputc(0xff, damaged);
    fclose(damaged);
    connection = database_open(path, SQLITE_OPEN_READWRITE, "failing");
    sqlite3_exec(connection, "SELECT * FROM t", NULL, NULL, NULL);
    expect(tide_sqlite_error(connection, "look up a record", &error) == TIDE_CORRUPT, "damage", error.message);
    sqlite3_close(connection);

    connection = database_open(path, SQLITE_OPEN_READONLY, NULL);
    sqlite3_exec(connection, "CREATE TABLE other (a)", NULL, NULL, NULL);
    expect(tide_sqlite_error(connection, "save", &error) == TIDE_IO_ERROR, "it can only be read", error.message);
    expect(strstr(error.message, path) && strstr(error.message, "for reading only"), "the file that can only be read", error.message);
    sqlite3_close(connection);

    // Without a file layer there is nothing to read with. This comes last: there is none from then on.
    for (sqlite3_vfs *vfs; (vfs = sqlite3_vfs_find(NULL));) sqlite3_vfs_unregister(vfs);
    for (int i = 0; i < 2; i++) {
        expect(tide_reader_vfs_register(&error) == TIDE_SQLITE_ERROR, "no file layer", error.message);
        expect(!strcmp(error.message, "this SQLite has no file system to read from: unknown operation"), "the message", error.message);
    }

    unlink(path);
    snprintf(log, sizeof log, "%s-journal", path);
    unlink(log);
    rmdir(folder);
    if (failures == 0) puts("errors: passed");
    return failures != 0;
}

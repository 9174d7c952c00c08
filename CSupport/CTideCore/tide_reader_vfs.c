#include "tide_reader_vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tide_connection.h"
#include "tide_connection_settings.h"
#include "tide_log_format.h"
#include "tide_reader_index.h"

/// A database. The default VFS does the reading and the shared lock; the wal-index is our own.
typedef struct reader_database {
    sqlite3_file base;
    sqlite3_file *real;
    tide_wal_index index;
} reader_database;

/// A write-ahead log or a rollback journal.
typedef struct reader_log {
    sqlite3_file base;
    /// SQLite owns it, for as long as the file is open.
    const char *path;
    /// The database whose log it is; NULL for a journal.
    reader_database *database;
    /// -1 while there is none.
    int descriptor;
    /// The header of the last log in which a commit was found. A log keeps its commits as long as it has the same header.
    unsigned char header[TIDE_LOG_HEADER_SIZE];
} reader_log;

enum { DATABASE_SIZE = (sizeof(reader_database) + 15) / 16 * 16 };

_Static_assert(sizeof(reader_log) <= DATABASE_SIZE, "the memory of a database has room for a log");

static sqlite3_vfs *real_of(sqlite3_vfs *vfs) { return vfs->pAppData; }

// Refused by all files

static int refuse_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    (void)file, (void)bytes, (void)count, (void)offset;
    return SQLITE_READONLY;
}

static int refuse_truncate(sqlite3_file *file, sqlite3_int64 size) {
    (void)file, (void)size;
    return SQLITE_READONLY;
}

/// Nothing was written that would have to become durable.
static int nothing_to_sync(sqlite3_file *file, int flags) {
    (void)file, (void)flags;
    return SQLITE_OK;
}

// Logs

/// Opens the file if it is there by now.
static int log_find(reader_log *log) {
    if (log->descriptor >= 0) return SQLITE_OK;
    int descriptor = open(log->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (descriptor < 0) return errno == ENOENT ? SQLITE_OK : SQLITE_CANTOPEN;
    struct stat status;
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(descriptor);
        return SQLITE_CANTOPEN;
    }
    log->descriptor = descriptor;
    return SQLITE_OK;
}

static int log_close(sqlite3_file *file) {
    reader_log *log = (reader_log *)file;
    if (log->descriptor >= 0) close(log->descriptor);
    log->descriptor = -1;
    return SQLITE_OK;
}

static int log_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    reader_log *log = (reader_log *)file;
    int code = log_find(log);
    if (code != SQLITE_OK) return code;
    ssize_t done = log->descriptor >= 0 ? tide_log_read(log->descriptor, bytes, (size_t)count, offset) : 0;
    if (done < 0) return SQLITE_IOERR_READ;
    if (log->database && !tide_wal_index_is_undisturbed(&log->database->index)) return SQLITE_BUSY_SNAPSHOT;
    if (done == count) return SQLITE_OK;
    memset((char *)bytes + done, 0, (size_t)(count - done));
    return SQLITE_IOERR_SHORT_READ;
}

/// Finds out whether a log has a commit: a whole header, and behind it whole frames up to one that ends a transaction.
static int log_has_commit(reader_log *log, bool *has_commit) {
    *has_commit = false;
    unsigned char header[TIDE_LOG_HEADER_SIZE];
    ssize_t got = tide_log_read(log->descriptor, header, sizeof header, 0);
    if (got < 0) return SQLITE_IOERR_READ;
    if (got != (ssize_t)sizeof header || !tide_log_header_is_whole(header)) return SQLITE_OK;
    *has_commit = memcmp(header, log->header, sizeof header) == 0;
    if (*has_commit) return SQLITE_OK;
    const tide_log_header decoded = tide_log_header_decode(header);
    const size_t size = TIDE_LOG_FRAME_HEADER_SIZE + decoded.page_size;
    unsigned char *frame = sqlite3_malloc64(size);
    if (!frame) return SQLITE_NOMEM;
    uint32_t checksum[2] = {decoded.checksum[0], decoded.checksum[1]};
    off_t offset = TIDE_LOG_HEADER_SIZE;
    do {
        got = tide_log_read(log->descriptor, frame, size, offset);
        offset += (off_t)size;
        if (got != (ssize_t)size || !tide_log_frame_is_whole(&decoded, frame, checksum)) break;
        *has_commit = tide_log_frame_is_commit(frame);
    } while (!*has_commit);
    sqlite3_free(frame);
    if (*has_commit) memcpy(log->header, header, sizeof header);
    return got < 0 ? SQLITE_IOERR_READ : SQLITE_OK;
}

/// Tells the size of a log; 0 where no frame of it can count.
///
/// SQLite asks for the size where it builds an index of its own, and compares that index with the log before it reads: the salt with the
/// header's, and the checksum with the next frame's. A log without a commit leaves it no frame to take them from. If the log ends with
/// its header, or the header is damaged, SQLite would build the index again and again, and give up with SQLITE_PROTOCOL. If frames of an
/// earlier log follow the header, SQLite would keep the salt without a checksum, and never see what is committed to this log later.
/// A write error, a kill or a power cut before the end of the first commit leaves such a log. For one of 0 bytes SQLite has an answer: the
/// database alone counts.
static int log_size(sqlite3_file *file, sqlite3_int64 *size) {
    reader_log *log = (reader_log *)file;
    int code = log_find(log);
    if (code != SQLITE_OK) return code;
    struct stat status = {.st_size = 0};
    if (log->descriptor >= 0 && fstat(log->descriptor, &status) != 0) return SQLITE_IOERR_FSTAT;
    *size = status.st_size;
    if (!log->database || *size == 0) return SQLITE_OK;
    bool has_commit;
    code = log_has_commit(log, &has_commit);
    if (!has_commit) *size = 0;
    return code;
}

static int log_lock(sqlite3_file *file, int level) {
    (void)file, (void)level;
    return SQLITE_OK;
}

static int log_check_reserved_lock(sqlite3_file *file, int *is_locked) {
    (void)file;
    *is_locked = 0;
    return SQLITE_OK;
}

static int log_control(sqlite3_file *file, int operation, void *argument) {
    (void)file, (void)operation, (void)argument;
    return SQLITE_NOTFOUND;
}

static int log_sector_size(sqlite3_file *file) {
    (void)file;
    return 4096;
}

static int log_characteristics(sqlite3_file *file) {
    (void)file;
    return 0;
}

static const sqlite3_io_methods log_methods = {
    .iVersion = 1,
    .xClose = log_close,
    .xRead = log_read,
    .xWrite = refuse_write,
    .xTruncate = refuse_truncate,
    .xSync = nothing_to_sync,
    .xFileSize = log_size,
    .xLock = log_lock,
    .xUnlock = log_lock,
    .xCheckReservedLock = log_check_reserved_lock,
    .xFileControl = log_control,
    .xSectorSize = log_sector_size,
    .xDeviceCharacteristics = log_characteristics,
};

static int log_open(const char *path, reader_log *log, int flags, int *out_flags) {
    bool is_wal = flags & SQLITE_OPEN_WAL;
    *log = (reader_log){.path = path, .descriptor = -1};
    if (is_wal) log->database = (reader_database *)sqlite3_database_file_object(path);
    int code = log_find(log);
    // For a missing journal, SQLite expects SQLITE_CANTOPEN. A missing log is a log without frames.
    if (code == SQLITE_OK && !is_wal && log->descriptor < 0) code = SQLITE_CANTOPEN;
    if (code != SQLITE_OK) return code;
    log->base.pMethods = &log_methods;
    if (out_flags) *out_flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    return SQLITE_OK;
}

// Databases

static sqlite3_file *behind(sqlite3_file *file) { return ((reader_database *)file)->real; }
static tide_wal_index *index_of(sqlite3_file *file) { return &((reader_database *)file)->index; }

static int database_close(sqlite3_file *file) {
    tide_wal_index_end(index_of(file));
    return behind(file)->pMethods->xClose(behind(file));
}

static int database_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    int code = behind(file)->pMethods->xRead(behind(file), bytes, count, offset);
    // Checked after the read: SQLite must not see what a writer has changed in between.
    if (!tide_wal_index_is_undisturbed(index_of(file))) return SQLITE_BUSY_SNAPSHOT;
    return code;
}

static int database_size(sqlite3_file *file, sqlite3_int64 *size) {
    return behind(file)->pMethods->xFileSize(behind(file), size);
}

static int database_lock(sqlite3_file *file, int level) {
    return level > SQLITE_LOCK_SHARED ? SQLITE_READONLY : behind(file)->pMethods->xLock(behind(file), level);
}

static int database_unlock(sqlite3_file *file, int level) { return behind(file)->pMethods->xUnlock(behind(file), level); }

static int database_check_reserved_lock(sqlite3_file *file, int *is_locked) {
    return behind(file)->pMethods->xCheckReservedLock(behind(file), is_locked);
}

static int database_control(sqlite3_file *file, int operation, void *argument) {
    switch (operation) {
    case SQLITE_FCNTL_VFSNAME:
        *(char **)argument = sqlite3_mprintf("%s", TIDE_READER_VFS_NAME);
        return SQLITE_OK;
    case SQLITE_FCNTL_HAS_MOVED:
    case SQLITE_FCNTL_LOCKSTATE:
    case SQLITE_FCNTL_LAST_ERRNO: return behind(file)->pMethods->xFileControl(behind(file), operation, argument);
    // The other operations prepare or configure writing.
    default: return SQLITE_NOTFOUND;
    }
}

static int database_sector_size(sqlite3_file *file) { return behind(file)->pMethods->xSectorSize(behind(file)); }
static int database_characteristics(sqlite3_file *file) { return behind(file)->pMethods->xDeviceCharacteristics(behind(file)); }

static int database_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **out) {
    (void)extend;
    return tide_wal_index_map(index_of(file), region, size, out);
}

static int database_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
    return tide_wal_index_lock(index_of(file), offset, count, flags);
}

static void database_shm_barrier(sqlite3_file *file) {
    (void)file;
    __sync_synchronize();
}

static int database_shm_unmap(sqlite3_file *file, int delete) {
    (void)delete;
    tide_wal_index_release(index_of(file));
    return SQLITE_OK;
}

// Version 2: without memory-mapped reading, which would go past `database_read`.
static const sqlite3_io_methods database_methods = {
    .iVersion = 2,
    .xClose = database_close,
    .xRead = database_read,
    .xWrite = refuse_write,
    .xTruncate = refuse_truncate,
    .xSync = nothing_to_sync,
    .xFileSize = database_size,
    .xLock = database_lock,
    .xUnlock = database_unlock,
    .xCheckReservedLock = database_check_reserved_lock,
    .xFileControl = database_control,
    .xSectorSize = database_sector_size,
    .xDeviceCharacteristics = database_characteristics,
    .xShmMap = database_shm_map,
    .xShmLock = database_shm_lock,
    .xShmBarrier = database_shm_barrier,
    .xShmUnmap = database_shm_unmap,
};

static int database_open(sqlite3_vfs *real, const char *path, reader_database *database, int flags, int *out_flags) {
    *database = (reader_database){.real = (sqlite3_file *)((char *)database + DATABASE_SIZE)};
    int code = tide_wal_index_begin(&database->index, path);
    if (code != SQLITE_OK) return code;
    int given = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE)) | SQLITE_OPEN_READONLY;
    memset(database->real, 0, (size_t)real->szOsFile);
    code = real->xOpen(real, path, database->real, given, out_flags);
    if (code != SQLITE_OK) {
        if (database->real->pMethods) database->real->pMethods->xClose(database->real);
        tide_wal_index_end(&database->index);
        return code;
    }
    if (out_flags) *out_flags = (*out_flags & ~SQLITE_OPEN_READWRITE) | SQLITE_OPEN_READONLY;
    database->base.pMethods = &database_methods;
    return SQLITE_OK;
}

// The VFS

static int reader_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out_flags) {
    file->pMethods = NULL;
    if (path && flags & SQLITE_OPEN_MAIN_DB) {
        return database_open(real_of(vfs), path, (reader_database *)file, flags, out_flags);
    }
    if (path && flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) return log_open(path, (reader_log *)file, flags, out_flags);
    // A file without a name is a temporary one.
    return path ? SQLITE_CANTOPEN : real_of(vfs)->xOpen(real_of(vfs), path, file, flags, out_flags);
}

static int reader_delete(sqlite3_vfs *vfs, const char *path, int sync) {
    (void)vfs, (void)path, (void)sync;
    return SQLITE_READONLY;
}

static int reader_access(sqlite3_vfs *vfs, const char *path, int flags, int *result) {
    return real_of(vfs)->xAccess(real_of(vfs), path, flags, result);
}

static int reader_full_pathname(sqlite3_vfs *vfs, const char *path, int size, char *out) {
    return real_of(vfs)->xFullPathname(real_of(vfs), path, size, out);
}

static int reader_randomness(sqlite3_vfs *vfs, int count, char *out) { return real_of(vfs)->xRandomness(real_of(vfs), count, out); }
static int reader_sleep(sqlite3_vfs *vfs, int microseconds) { return real_of(vfs)->xSleep(real_of(vfs), microseconds); }
static int reader_current_time(sqlite3_vfs *vfs, double *time) { return real_of(vfs)->xCurrentTime(real_of(vfs), time); }

static int reader_current_time_64(sqlite3_vfs *vfs, sqlite3_int64 *time) {
    return real_of(vfs)->xCurrentTimeInt64(real_of(vfs), time);
}

static int reader_last_error(sqlite3_vfs *vfs, int size, char *out) {
    return real_of(vfs)->xGetLastError ? real_of(vfs)->xGetLastError(real_of(vfs), size, out) : 0;
}

static sqlite3_vfs reader_vfs = {
    .iVersion = 2,
    .zName = TIDE_READER_VFS_NAME,
    .xOpen = reader_open,
    .xDelete = reader_delete,
    .xAccess = reader_access,
    .xFullPathname = reader_full_pathname,
    .xRandomness = reader_randomness,
    .xSleep = reader_sleep,
    .xCurrentTime = reader_current_time,
    .xGetLastError = reader_last_error,
    .xCurrentTimeInt64 = reader_current_time_64,
};

static int registration_code;

static void register_once(void) {
    // Also initializes SQLite.
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    if (!real || real->iVersion < 2) {
        registration_code = SQLITE_NOTFOUND;
        return;
    }
    reader_vfs.szOsFile = DATABASE_SIZE + real->szOsFile;
    reader_vfs.mxPathname = real->mxPathname;
    reader_vfs.pAppData = real;
    registration_code = sqlite3_vfs_register(&reader_vfs, 0);
}

// For callers

tide_status tide_reader_vfs_register(tide_error *error) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_once);
    if (registration_code == SQLITE_OK) return TIDE_OK;
    return tide_error_set(
        error, TIDE_SQLITE_ERROR, registration_code, "this SQLite has no file system to read from: %s",
        sqlite3_errstr(registration_code));
}

static reader_database *database_of(sqlite3 *connection) {
    sqlite3_file *file = NULL;
    sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    return file && file->pMethods == &database_methods ? (reader_database *)file : NULL;
}

tide_status tide_reader_prepare(sqlite3 *connection, tide_error *error) {
    if (!database_of(connection)) {
        return tide_error_set(
            error, TIDE_SQLITE_ERROR, 0, "this SQLite takes no URI filenames, which reading without the means to write needs");
    }
    return tide_connection_configure(connection) == SQLITE_OK ? TIDE_OK : tide_sqlite_error(connection, "configure the connection", error);
}

bool tide_reader_is_undisturbed(sqlite3 *connection) {
    reader_database *database = database_of(connection);
    return !database || tide_wal_index_is_undisturbed(&database->index);
}

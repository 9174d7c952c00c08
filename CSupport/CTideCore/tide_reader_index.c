#include "tide_reader_index.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tide_log_format.h"
#include "tide_shm_descriptors.h"

#if !defined(F_OFD_SETLK) && defined(__APPLE__)
#define F_OFD_SETLK 90
#define F_OFD_GETLK 92
#endif

enum {
    REGION_SIZE = 32768,
    FIRST_LOCK_BYTE = 120,
    WRITE_LOCK = 0,
    READ_LOCK_0 = 3,
    DEAD_MAN = SQLITE_SHM_NLOCK,
    // SQLite asks four times in each try, once for each mark that it could set, and waits longer from try to try. 20 tries take some 15 ms.
    FRUITLESS_LIMIT = 80,
    // The most readings of an index that is being changed, 0.1 ms apart.
    USABLE_TRIES = 20,
    // The words of each of the header's two copies. The last two are a checksum of the others.
    HEADER_WORDS = 12,
    LAST_FRAME_WORD = 4,
    SALT_WORD = 8,
    // Behind the header come the number of frames moved into the database, and the read marks.
    MOVED_WORD = 24,
    READ_MARK_WORD = 25,
    READ_MARKS = 5,
};

static void descriptor_close(tide_wal_index *index) {
    if (index->descriptor < 0) return;
    tide_shm_descriptor_close(index->descriptor);
    index->descriptor = -1;
}

// Locks

static bool lock_set(const tide_wal_index *index, int offset, int type) {
    struct flock lock = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = FIRST_LOCK_BYTE + offset, .l_len = 1};
    return fcntl(index->descriptor, F_OFD_SETLK, &lock) == 0;
}

/// The lock that others hold on a byte: F_UNLCK, F_RDLCK or F_WRLCK; -1 when it can't be found out.
static int lock_seen(const tide_wal_index *index, int offset) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = FIRST_LOCK_BYTE + offset, .l_len = 1};
    return fcntl(index->descriptor, F_OFD_GETLK, &lock) == 0 ? lock.l_type : -1;
}

// Memory

static size_t mapping_size(void) {
    long page = sysconf(_SC_PAGESIZE);
    return page > REGION_SIZE ? (size_t)page : REGION_SIZE;
}

static void mappings_end(tide_wal_index *index) {
    for (int i = 0; i < index->mapping_count; i++) munmap(index->mappings[i], mapping_size());
    sqlite3_free(index->mappings);
    index->mappings = NULL;
    index->mapping_count = 0;
}

/// Maps a region. If the file is still too short for the first region, returns SQLITE_OK and leaves `*out` as it is.
static int region_map(tide_wal_index *index, int region, void volatile **out) {
    size_t size = mapping_size();
    size_t start = (size_t)region * REGION_SIZE;
    int number = (int)(start / size);
    if (number >= index->mapping_count) {
        struct stat status;
        if (fstat(index->descriptor, &status) != 0) return SQLITE_IOERR_SHMSIZE;
        if ((size_t)status.st_size < start + REGION_SIZE) return region == 0 ? SQLITE_OK : SQLITE_IOERR_SHMSIZE;
        void **grown = sqlite3_realloc64(index->mappings, sizeof *grown * (sqlite3_uint64)(number + 1));
        if (!grown) return SQLITE_NOMEM;
        index->mappings = grown;
        while (index->mapping_count <= number) {
            void *memory = mmap(NULL, size, PROT_READ, MAP_SHARED, index->descriptor, (off_t)size * index->mapping_count);
            if (memory == MAP_FAILED) return SQLITE_IOERR_SHMMAP;
            grown[index->mapping_count++] = memory;
        }
    }
    *out = (char *)index->mappings[number] + start % size;
    return SQLITE_OK;
}

/// Whether the header's two copies are equal, initialized, and sum up.
static bool is_whole(uint32_t copies[2][HEADER_WORDS]) {
    if (memcmp(copies[0], copies[1], sizeof copies[0]) != 0) return false;
    // The byte behind three words says whether the header is initialized.
    if (((const unsigned char *)copies[0])[12] == 0) return false;
    uint32_t first = 0, second = 0;
    for (int i = 0; i < HEADER_WORDS - 2; i += 2) {
        first += copies[0][i] + second;
        second += copies[0][i + 1] + first;
    }
    return first == copies[0][HEADER_WORDS - 2] && second == copies[0][HEADER_WORDS - 1];
}

/// Whether a read can begin with an index: the header's two copies are equal, initialized, and sum up; and the log is not needed, or
/// there is a mark to read it under.
static bool is_usable(const void volatile *region) {
    const uint32_t volatile *words = region;
    uint32_t copies[2][HEADER_WORDS];
    for (int i = 0; i < 2 * HEADER_WORDS; i++) copies[i / HEADER_WORDS][i % HEADER_WORDS] = words[i];
    if (!is_whole(copies)) return false;
    uint32_t last = copies[0][LAST_FRAME_WORD];
    bool is_readable = words[MOVED_WORD] == last;
    for (int i = 1; i < READ_MARKS; i++) is_readable = is_readable || words[READ_MARK_WORD + i] <= last;
    return is_readable;
}

// Attaching

static int unreliable(tide_wal_index *index) {
    index->was_unreliable = true;
    return SQLITE_READONLY_CANTINIT;
}

/// Waits a little for an index that is being changed; the dead man's switch is held.
static int usable_await(tide_wal_index *index) {
    for (int try = 0; try < USABLE_TRIES; try++) {
        void volatile *region = NULL;
        int code = region_map(index, 0, &region);
        if (code != SQLITE_OK) return code;
        if (region && is_usable(region)) return SQLITE_OK;
        // A writer is changing the index, and will finish.
        if (lock_seen(index, WRITE_LOCK) == F_WRLCK) return SQLITE_BUSY;
        usleep(100);
    }
    // A writer died while it changed the index. The next writer repairs it.
    return unreliable(index);
}

/// Attaches to the index, if a connection keeps it up. SQLITE_OK: the index is live. SQLITE_READONLY_CANTINIT: SQLite has to make an index
/// of its own. SQLITE_READONLY: SQLite has to begin again.
static int attach(tide_wal_index *index) {
    if (index->state == TIDE_WAL_INDEX_LIVE) return SQLITE_OK;
    struct stat status;
    bool is_there = lstat(index->path, &status) == 0;
    if (!is_there && errno != ENOENT) return SQLITE_CANTOPEN;
    bool is_open = is_there && index->descriptor >= 0 && status.st_dev == index->device && status.st_ino == index->inode;
    if (!is_open) {
        bool is_same = !is_there && index->state == TIDE_WAL_INDEX_ABSENT;
        descriptor_close(index);
        mappings_end(index);
        index->state = TIDE_WAL_INDEX_UNKNOWN;
        // SQLite believes that it holds locks, but those were on another file, or on none.
        if (index->held && !is_same) return SQLITE_READONLY;
    }
    if (is_there && !is_open) {
        int failure = tide_shm_descriptor_open(index->path, &index->descriptor, &index->device, &index->inode);
        if (failure == ENOMEM) return SQLITE_NOMEM;
        if (failure != 0 && failure != ENOENT) return SQLITE_CANTOPEN;
        is_there = failure == 0;
    }
    index->state = is_there ? TIDE_WAL_INDEX_LEFT : TIDE_WAL_INDEX_ABSENT;
    if (!is_there) return unreliable(index);
    switch (lock_seen(index, DEAD_MAN)) {
    case F_RDLCK: break;
    case F_UNLCK: return unreliable(index);
    case F_WRLCK: return SQLITE_BUSY;
    default: return SQLITE_IOERR_LOCK;
    }
    if (!lock_set(index, DEAD_MAN, F_RDLCK)) return SQLITE_BUSY;
    int code = usable_await(index);
    if (code == SQLITE_OK) {
        index->state = TIDE_WAL_INDEX_LIVE;
    } else {
        lock_set(index, DEAD_MAN, F_UNLCK);
    }
    return code;
}

// Looking

int tide_wal_index_peek(tide_wal_index *index, tide_wal_index_header *header, bool *is_found) {
    *is_found = false;
    if (index->descriptor < 0) {
        int failure = tide_shm_descriptor_open(index->path, &index->descriptor, &index->device, &index->inode);
        // EINVAL: the path names a folder, a pipe or a device, so there is no index.
        if (failure) return failure == ENOENT || failure == EINVAL ? 0 : failure;
    }
    uint32_t words[2 * HEADER_WORDS + 1] = {0};
    ssize_t got = tide_log_read(index->descriptor, words, sizeof words, 0);
    if (got < 0) return errno;
    uint32_t copies[2][HEADER_WORDS];
    memcpy(copies, words, sizeof copies);
    if (got < (ssize_t)sizeof words || !is_whole(copies)) return 0;
    memset(header, 0, sizeof *header);
    header->committed = copies[0][LAST_FRAME_WORD];
    header->moved = words[MOVED_WORD];
    memcpy(header->salt, &copies[0][SALT_WORD], sizeof header->salt);
    header->is_kept_up = lock_seen(index, DEAD_MAN) != F_UNLCK;
    *is_found = true;
    return 0;
}

// The methods

int tide_wal_index_begin(tide_wal_index *index, const char *database) {
    *index = (tide_wal_index){.descriptor = -1};
    index->path = sqlite3_mprintf("%s-shm", database);
    return index->path ? SQLITE_OK : SQLITE_NOMEM;
}

void tide_wal_index_release(tide_wal_index *index) {
    mappings_end(index);
    descriptor_close(index);
    index->state = TIDE_WAL_INDEX_UNKNOWN;
    index->held = 0;
}

void tide_wal_index_end(tide_wal_index *index) {
    tide_wal_index_release(index);
    sqlite3_free(index->path);
    index->path = NULL;
}

int tide_wal_index_map(tide_wal_index *index, int region, int region_size, void volatile **out) {
    *out = NULL;
    if (region_size != REGION_SIZE) return SQLITE_IOERR_SHMMAP;
    int code = attach(index);
    if (code == SQLITE_OK) code = region_map(index, region, out);
    // SQLITE_OK lets SQLite believe that it may write once it gets the lock for that, which it never gets. So it tries again after a
    // race with a writer. With SQLITE_READONLY it would give up.
    return code == SQLITE_OK && index->was_unreliable ? SQLITE_READONLY : code;
}

/// Answers a request for an exclusive lock, which SQLite needs to repair the index: the write lock for a torn header, or the locks of the
/// read marks to set a mark. SQLITE_BUSY makes SQLite try again. If a writer died, the index stays broken until the next writer comes:
/// after FRUITLESS_LIMIT requests without a writer at work, the answer is SQLITE_READONLY_RECOVERY.
static int mend(tide_wal_index *index, int offset) {
    int tries = offset == WRITE_LOCK ? READ_MARKS - 1 : 1;
    index->fruitless += (unsigned)tries;
    if (index->fruitless <= FRUITLESS_LIMIT || lock_seen(index, WRITE_LOCK) != F_UNLCK) return SQLITE_BUSY;
    return SQLITE_READONLY_RECOVERY;
}

static int lock_shared(tide_wal_index *index, int offset) {
    if (index->state == TIDE_WAL_INDEX_ABSENT) {
        index->held |= (uint8_t)(1u << offset);
        return SQLITE_OK;
    }
    if (index->descriptor < 0) return SQLITE_IOERR_SHMLOCK;
    if (offset == WRITE_LOCK) return mend(index, offset);
    // SQLite asks for this lock only to learn whether another connection holds it, and releases it at once.
    if (offset < READ_LOCK_0) return lock_seen(index, offset) == F_WRLCK ? SQLITE_BUSY : SQLITE_OK;
    struct stat status;
    if (index->state == TIDE_WAL_INDEX_LIVE && (fstat(index->descriptor, &status) != 0 || status.st_nlink == 0)) {
        return SQLITE_READONLY_RECOVERY;
    }
    if (!lock_set(index, offset, F_RDLCK)) return SQLITE_BUSY;
    index->held |= (uint8_t)(1u << offset);
    index->fruitless = 0;
    return SQLITE_OK;
}

int tide_wal_index_lock(tide_wal_index *index, int offset, int count, int flags) {
    if (flags & SQLITE_SHM_UNLOCK) {
        for (int i = offset; i < offset + count; i++) {
            uint8_t bit = (uint8_t)(1u << i);
            if (index->held & bit && index->descriptor >= 0) lock_set(index, i, F_UNLCK);
            index->held &= (uint8_t)~bit;
        }
        return SQLITE_OK;
    }
    if (flags & SQLITE_SHM_SHARED) return lock_shared(index, offset);
    return index->descriptor >= 0 ? mend(index, offset) : SQLITE_BUSY;
}

bool tide_wal_index_is_undisturbed(const tide_wal_index *index) {
    if (index->state != TIDE_WAL_INDEX_ABSENT && index->state != TIDE_WAL_INDEX_LEFT) return true;
    struct stat status;
    if (lstat(index->path, &status) != 0) return index->state == TIDE_WAL_INDEX_ABSENT && errno == ENOENT;
    return index->state == TIDE_WAL_INDEX_LEFT && status.st_dev == index->device && status.st_ino == index->inode;
}

// Goal: a reader takes the locks of the wal-index as the protocol says, uses an index only while it is whole and kept up, and never closes a
// descriptor that could release a writer's locks.
// Method: index files of the test's own, locks of another descriptor for those of a writer, system calls that fail, each in its turn.

#include <sqlite3.h>
#include <stdint.h>
#include <sys/resource.h>

#include "../../CSupport/CTideCore/tide_reader_index.h"
#include "../../CSupport/CTideCore/tide_shm_descriptors.h"
#include "check.h"
#include "database_faults.h"

#if !defined(F_OFD_SETLK) && defined(__APPLE__)
#define F_OFD_SETLK 90
#define F_OFD_GETLK 92
#endif

enum { region_size = 32768, write_byte = 120, read_0_byte = 123, dead_man_byte = 128 };

static char folder[] = "/tmp/tidemark-index-XXXXXX", database[60], path[70];
/// Another connection's descriptor of the file; -1: none is open.
static int keeper = -1;
static tide_wal_index index_;
static void volatile *mapped;

/// What an index is made of.
typedef struct made {
    uint32_t last, moved, mark;
    bool is_begun, is_torn, is_wrong;
    off_t size;
} made;

static const made whole = {.last = 5, .moved = 2, .mark = 5, .is_begun = true, .size = region_size};

static void keeper_end(void) {
    if (keeper >= 0) close(keeper);
    keeper = -1;
}

/// Writes the file in place.
static void file_fill(made made) {
    uint32_t words[34] = {3007000, 0, 7, made.is_begun, made.last, 9, 1, 2, 0x01020304, 0x05060708};
    for (int i = 0; i < 10; i += 2) {
        words[10] += words[i] + words[11];
        words[11] += words[i + 1] + words[10];
    }
    if (made.is_wrong) words[11]++;
    memcpy(words + 12, words, 48);
    if (made.is_torn) words[14]++;
    words[24] = made.moved;
    words[25] = 0;
    for (int i = 26; i < 30; i++) words[i] = i == 28 ? made.mark : UINT32_MAX;
    check(pwrite(keeper, words, sizeof words, 0) == sizeof words && ftruncate(keeper, made.size) == 0, "%s", path);
}

/// Makes a new file, which nobody keeps up.
static void file_make(made made) {
    keeper_end();
    unlink(path);
    keeper = open(path, O_RDWR | O_CREAT, 0600);
    check(keeper >= 0, "%s", path);
    file_fill(made);
}

/// Takes or releases the keeper's lock on a byte.
static void keeper_lock(int byte, int type) {
    struct flock lock = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    check(fcntl(keeper, F_OFD_SETLK, &lock) == 0, "lock %d of byte %d", type, byte);
}

/// The lock that others than the keeper have on a byte.
static int lock_of_others(int byte) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    check(fcntl(keeper, F_OFD_GETLK, &lock) == 0, "byte %d", byte);
    return lock.l_type;
}

static void begin(void) { check(tide_wal_index_begin(&index_, database) == SQLITE_OK, "begun"); }

static int map(int region) { return tide_wal_index_map(&index_, region, region_size, &mapped); }
static int lock_shared(int offset) { return tide_wal_index_lock(&index_, offset, 1, SQLITE_SHM_LOCK | SQLITE_SHM_SHARED); }
static int lock_exclusive(int offset) { return tide_wal_index_lock(&index_, offset, 1, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE); }
static int unlock(int offset) { return tide_wal_index_lock(&index_, offset, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED); }

static void end(void) {
    tide_wal_index_end(&index_);
    keeper_end();
    unlink(path);
}

/// Makes an index that another connection keeps up, and attaches to it.
static void live_begin(void) {
    file_make(whole);
    keeper_lock(dead_man_byte, F_RDLCK);
    begin();
    check(map(0) == SQLITE_OK && index_.state == TIDE_WAL_INDEX_LIVE && mapped, "live");
}

static void test_absent(void) {
    begin();
    check(tide_wal_index_is_undisturbed(&index_), "not looked for");
    check(tide_wal_index_map(&index_, 0, 4096, &mapped) == SQLITE_IOERR_SHMMAP, "other regions than SQLite's");
    check(lock_shared(3) == SQLITE_IOERR_SHMLOCK, "a lock before the file was looked for");
    check(map(0) == SQLITE_READONLY_CANTINIT && !mapped && index_.state == TIDE_WAL_INDEX_ABSENT, "there is no file");
    // There is nothing to lock; and no file to repair.
    check(lock_shared(3) == SQLITE_OK && lock_exclusive(0) == SQLITE_BUSY, "locks");
    check(map(0) == SQLITE_READONLY_CANTINIT && tide_wal_index_is_undisturbed(&index_), "still not there");
    // A writer has come. What was read while there was no file is void, and SQLite's locks are on no file.
    file_make(whole);
    check(!tide_wal_index_is_undisturbed(&index_), "a file");
    check(map(0) == SQLITE_READONLY, "begin again");
    check(unlock(3) == SQLITE_OK, "unlocked");
    check(map(0) == SQLITE_READONLY_CANTINIT && index_.state == TIDE_WAL_INDEX_LEFT, "nobody keeps it up");
    end();
    // A path that can't be looked at is not one that is not there.
    begin();
    check(map(0) == SQLITE_READONLY_CANTINIT, "absent");
    system_faults_begin("lstat", EACCES, 0);
    check(!tide_wal_index_is_undisturbed(&index_) && system_faults_end(), "not known");
    system_faults_begin("lstat", EACCES, 0);
    check(map(0) == SQLITE_CANTOPEN && system_faults_end(), "not known");
    // The file goes between the look and its opening.
    file_make(whole);
    system_faults_begin("open", ENOENT, 0);
    check(map(0) == SQLITE_READONLY_CANTINIT && system_faults_end() && index_.state == TIDE_WAL_INDEX_ABSENT, "gone");
    end();
}

static void test_left(void) {
    file_make(whole);
    begin();
    check(map(0) == SQLITE_READONLY_CANTINIT && !mapped && index_.state == TIDE_WAL_INDEX_LEFT, "nobody keeps it up");
    // A later writer respects the locks.
    check(lock_shared(3) == SQLITE_OK && lock_of_others(read_0_byte) == F_RDLCK, "locked");
    check(unlock(3) == SQLITE_OK && lock_of_others(read_0_byte) == F_UNLCK, "unlocked");
    check(lock_shared(4) == SQLITE_OK && tide_wal_index_is_undisturbed(&index_), "undisturbed");
    keeper_lock(read_0_byte, F_WRLCK);
    check(lock_shared(3) == SQLITE_BUSY, "a writer's lock");
    // Another file in its place.
    file_make(whole);
    check(!tide_wal_index_is_undisturbed(&index_) && map(0) == SQLITE_READONLY, "another file");
    check(unlock(4) == SQLITE_OK && map(0) == SQLITE_READONLY_CANTINIT && tide_wal_index_is_undisturbed(&index_), "the other file");
    unlink(path);
    check(!tide_wal_index_is_undisturbed(&index_), "no file");
    // Once SQLite has an index of its own, it must not go on with this one as with one that it may write.
    file_make(whole);
    keeper_lock(dead_man_byte, F_RDLCK);
    check(map(0) == SQLITE_READONLY && index_.state == TIDE_WAL_INDEX_LIVE && mapped, "live by now");
    end();
}

static void test_live(void) {
    live_begin();
    check(((const uint32_t volatile *)mapped)[4] == whole.last, "the header");
    check(lock_of_others(dead_man_byte) == F_RDLCK, "this connection keeps the index up, too");
    void volatile *first = mapped;
    check(map(1) == SQLITE_IOERR_SHMSIZE && !mapped, "the file is too short");
    check(ftruncate(keeper, 3 * region_size) == 0, "longer");
    check(map(2) == SQLITE_OK && mapped && map(1) == SQLITE_OK && mapped && map(0) == SQLITE_OK && mapped == first, "three regions");
    check(lock_shared(3) == SQLITE_OK && lock_shared(4) == SQLITE_OK && lock_of_others(read_0_byte) == F_RDLCK, "locked");
    check(tide_wal_index_lock(&index_, 3, 5, SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED) == SQLITE_OK && lock_of_others(read_0_byte) == F_UNLCK,
          "unlocked");
    // The locks of those who write and repair are looked at, and never taken.
    for (int offset = 1; offset < 3; offset++) {
        check(lock_shared(offset) == SQLITE_OK && lock_of_others(write_byte + offset) == F_UNLCK, "offset %d", offset);
        keeper_lock(write_byte + offset, F_WRLCK);
        check(lock_shared(offset) == SQLITE_BUSY, "offset %d", offset);
        keeper_lock(write_byte + offset, F_UNLCK);
    }
    check(tide_wal_index_is_undisturbed(&index_), "locks keep others away");
    // The file is removed: its locks keep nobody away.
    unlink(path);
    check(lock_shared(3) == SQLITE_READONLY_RECOVERY, "removed");
    tide_wal_index_release(&index_);
    check(lock_of_others(dead_man_byte) == F_UNLCK, "released");
    end();
}

/// A request to repair the index waits for a writer, and ends when none comes.
static void test_repairs(void) {
    live_begin();
    for (int i = 0; i < 80; i++) check(lock_exclusive(3 + i % 5) == SQLITE_BUSY, "request %d", i);
    keeper_lock(write_byte, F_WRLCK);
    check(lock_exclusive(3) == SQLITE_BUSY, "a writer is at work");
    keeper_lock(write_byte, F_UNLCK);
    check(lock_exclusive(3) == SQLITE_READONLY_RECOVERY, "no writer comes");
    // A lock to read under begins the count again. A torn header counts as often as SQLite asks for marks.
    check(lock_shared(3) == SQLITE_OK, "readable");
    for (int i = 0; i < 20; i++) check((i % 2 ? lock_shared(0) : lock_exclusive(0)) == SQLITE_BUSY, "request %d", i);
    check(lock_exclusive(0) == SQLITE_READONLY_RECOVERY && lock_shared(0) == SQLITE_READONLY_RECOVERY, "no writer comes");
    end();
}

/// An index is used if it is whole, and there is a mark to read under, or no need for the log.
static void test_usable_indexes(void) {
    const made cases[] = {
        {.last = 5, .moved = 5, .mark = UINT32_MAX, .is_begun = true, .size = region_size},
        {.last = 5, .mark = 4, .is_begun = true, .size = region_size},
        {.last = 5, .mark = 6, .is_begun = true, .size = region_size},
        {.last = 5, .mark = 5, .size = region_size},
        {.last = 5, .mark = 5, .is_begun = true, .is_torn = true, .size = region_size},
        {.last = 5, .mark = 5, .is_begun = true, .is_wrong = true, .size = region_size},
        {.last = 5, .mark = 5, .is_begun = true, .size = region_size - 1},
        {.last = 5, .mark = 5, .is_begun = true},
    };
    for (int i = 0; i < 8; i++) {
        file_make(cases[i]);
        keeper_lock(dead_man_byte, F_RDLCK);
        begin();
        if (i < 2) {
            check(map(0) == SQLITE_OK && index_.state == TIDE_WAL_INDEX_LIVE, "case %d", i);
        } else {
            check(map(0) == SQLITE_READONLY_CANTINIT && index_.state == TIDE_WAL_INDEX_LEFT, "case %d", i);
            check(lock_of_others(dead_man_byte) == F_UNLCK, "an index that is not used is not kept up");
            // A writer that is changing it will be ready soon.
            keeper_lock(write_byte, F_WRLCK);
            int code = map(0);
            check(code == SQLITE_BUSY && lock_of_others(dead_man_byte) == F_UNLCK, "case %d: %d", i, code);
            keeper_lock(write_byte, F_UNLCK);
            file_fill(whole);
            check(map(0) == SQLITE_READONLY && mapped, "case %d", i);
        }
        end();
    }
    // A connection that is making the index.
    file_make(whole);
    keeper_lock(dead_man_byte, F_WRLCK);
    begin();
    check(map(0) == SQLITE_BUSY, "it is being made");
    keeper_lock(dead_man_byte, F_RDLCK);
    check(map(0) == SQLITE_OK, "made");
    end();
}

static void file_repair(void) { file_fill(whole); }

/// A writer finishes while the reader waits.
static void test_waiting(void) {
    made torn = whole;
    torn.is_torn = true;
    file_make(torn);
    keeper_lock(dead_man_byte, F_RDLCK);
    begin();
    // The third call is the look for a writer.
    system_event_begin("fcntl", file_repair, 2);
    check(map(0) == SQLITE_OK && system_faults_end() && mapped, "repaired meanwhile");
    end();
}

static void test_other_files(void) {
    begin();
    check(mkdir(path, 0700) == 0 && map(0) == SQLITE_CANTOPEN, "a folder");
    rmdir(path);
    check(symlink(database, path) == 0 && map(0) == SQLITE_CANTOPEN, "a link");
    end();
}

/// Each call that fails is an error, or a reason to wait; never a lock or a mapping that is not there.
static void test_failing_calls(void) {
    static const struct {
        const char *call;
        int failure, number, code;
    } cases[] = {
        {"lstat", EACCES, 0, SQLITE_CANTOPEN},       {"open", EACCES, 0, SQLITE_CANTOPEN},     {"open", ENOMEM, 0, SQLITE_NOMEM},
        {"fstat", EIO, 0, SQLITE_CANTOPEN},          {"fcntl", EIO, 0, SQLITE_IOERR_LOCK},     {"fcntl", EAGAIN, 1, SQLITE_BUSY},
        {"fstat", EIO, 1, SQLITE_IOERR_SHMSIZE},     {"mmap", ENOMEM, 0, SQLITE_IOERR_SHMMAP},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file_make(whole);
        keeper_lock(dead_man_byte, F_RDLCK);
        begin();
        system_faults_begin(cases[i].call, cases[i].failure, cases[i].number);
        int code = map(0);
        check(system_faults_end(), "%s, %d is not called", cases[i].call, cases[i].number);
        check(code == cases[i].code && !mapped && index_.state != TIDE_WAL_INDEX_LIVE, "%s, %d: %d", cases[i].call, cases[i].number, code);
        check(lock_of_others(dead_man_byte) == F_UNLCK, "%s, %d: no lock is left", cases[i].call, cases[i].number);
        check(map(0) == SQLITE_OK && mapped, "%s, %d: then it works", cases[i].call, cases[i].number);
        system_faults_begin("fcntl", EIO, 0);
        check(lock_shared(3) == SQLITE_BUSY && system_faults_end() && !index_.held, "no lock");
        system_faults_begin("fstat", EIO, 0);
        check(lock_shared(3) == SQLITE_READONLY_RECOVERY && system_faults_end() && !index_.held, "not known to be in place");
        end();
    }
}

// Descriptors

static bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

static int descriptor_open(void) {
    int descriptor = -1;
    dev_t device;
    ino_t inode;
    struct stat status;
    check(tide_shm_descriptor_open(path, &descriptor, &device, &inode) == 0 && fstat(descriptor, &status) == 0, "%s", path);
    check(status.st_dev == device && status.st_ino == inode, "the open file");
    return descriptor;
}

static void test_descriptors(void) {
    file_make(whole);
    // The process has the file open elsewhere: what is not used any more stays open, and is used again.
    int one = descriptor_open(), other = descriptor_open();
    check(one != other, "one for each use");
    tide_shm_descriptor_close(one);
    check(is_open(one) && descriptor_open() == one, "used again");
    tide_shm_descriptor_close(other);
    tide_shm_descriptor_close(one);
    check(is_open(one) && is_open(other), "not closed");
    // Another file has descriptors of its own.
    int first_keeper = keeper;
    keeper = -1;
    file_make(whole);
    int third = descriptor_open();
    check(third != one && third != other, "another file");
    // A process that can't list its descriptors closes none.
    close(first_keeper);
    system_faults_begin("opendir", EMFILE, 0);
    tide_shm_descriptor_close(third);
    check(system_faults_end() && is_open(one) && is_open(other) && is_open(third), "not known");
    check(descriptor_open() == third, "used again");
    // A descriptor whose file is not known may be one of the first file.
    int unknown = dup2(0, 900);
    check(unknown == 900, "a descriptor far above the others");
    system_faults_begin("fstat", EIO, 0);
    tide_shm_descriptor_close(third);
    check(system_faults_end() && is_open(one) && is_open(other) && is_open(third), "not known");
    check(descriptor_open() == third, "used again");
    close(unknown);
    // With the file open nowhere else, they are closed; the one whose file is open stays.
    system_faults_begin("fstat", EBADF, 0);
    tide_shm_descriptor_close(third);
    check(system_faults_end(), "a descriptor that is closed meanwhile");
    check(!is_open(one) && !is_open(other) && is_open(third), "closed");
    keeper_end();
    int fourth = descriptor_open();
    check(fourth == third, "used again");
    tide_shm_descriptor_close(fourth);
    check(!is_open(fourth), "closed");
    // What is no regular file; what can't be known to be one stays open.
    dev_t device;
    ino_t inode;
    unlink(path);
    check(tide_shm_descriptor_open(path, &one, &device, &inode) == ENOENT, "no file");
    check(mkfifo(path, 0600) == 0 && tide_shm_descriptor_open(path, &one, &device, &inode) == EINVAL, "a pipe");
    unlink(path);
    file_make(whole);
    int next = dup(0);
    close(next);
    system_faults_begin("fstat", EIO, 0);
    check(tide_shm_descriptor_open(path, &one, &device, &inode) == EIO && system_faults_end() && is_open(next), "it may be a -shm file");
    close(next);
    keeper_end();
    // Many files at a time, each of which has a descriptor of its own.
    enum { files = 600 };
    static int of_file[files];
    for (int i = 0; i < files; i++) {
        char name[100];
        snprintf(name, sizeof name, "%s%d", path, i);
        int made = open(name, O_RDWR | O_CREAT, 0600);
        close(made);
        dev_t made_device;
        ino_t made_inode;
        check(made >= 0 && tide_shm_descriptor_open(name, &of_file[i], &made_device, &made_inode) == 0, "%s", name);
        struct stat status;
        check(fstat(of_file[i], &status) == 0 && status.st_ino == made_inode && stat(name, &status) == 0 && status.st_ino == made_inode, "%s", name);
        unlink(name);
        // Between these, one is open that nobody uses.
        if (i == 0) one = descriptor_open(), keeper = open(path, O_RDONLY), tide_shm_descriptor_close(one);
    }
    keeper_end();
    for (int i = 0; i < files; i++) tide_shm_descriptor_close(of_file[i]);
    for (int i = 0; i < files; i++) check(!is_open(of_file[i]), "descriptor %d", of_file[i]);
    check(!is_open(one), "descriptor %d", one);
    // More descriptors than there was room for; all are closed in the end.
    enum { count = 300 };
    int many[count];
    for (int i = 0; i < count; i++) many[i] = descriptor_open();
    check(many[count - 1] > 256, "descriptor %d", many[count - 1]);
    for (int i = 0; i < count; i++) tide_shm_descriptor_close(many[(i * 7) % count]);
    for (int i = 0; i < count; i++) check(!is_open(many[i]), "descriptor %d", many[i]);
    unlink(path);
}

int main(void) {
    struct rlimit limit;
    check(getrlimit(RLIMIT_NOFILE, &limit) == 0, "the limit of descriptors");
    limit.rlim_cur = limit.rlim_max < 2000 ? limit.rlim_max : 2000;
    check(setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 1000, "%d descriptors", (int)limit.rlim_cur);
    check(mkdtemp(folder), "%s", folder);
    snprintf(database, sizeof database, "%s/a.sqlite", folder);
    snprintf(path, sizeof path, "%s-shm", database);
    test_absent();
    test_left();
    test_live();
    test_repairs();
    test_usable_indexes();
    test_waiting();
    test_other_files();
    test_failing_calls();
    test_descriptors();
    check(rmdir(folder) == 0, "%s", folder);
    puts("wal_index: passed");
    return 0;
}

#include "tide_shm_descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if !defined(F_OFD_SETLK) && defined(__APPLE__)
#define F_OFD_SETLK 90
#endif

enum {
    BUCKETS = 256,
    MIN_SLOTS = 64,
};

typedef struct entry {
    struct entry *next;
    int descriptor;
    dev_t device;
    ino_t inode;
    bool is_in_use;
    /// Used during a sweep: whether the process has the file open by another descriptor.
    bool is_open_elsewhere;
} entry;

/// All entries, by inode.
static entry *buckets[BUCKETS];
/// The same entries, by descriptor.
static entry **slots;
static size_t slot_count;
/// Entries that are not in use.
static size_t idle_count;

/// SQLite opens, locks and closes -shm files under the same mutex.
static sqlite3_mutex *enter_mutex(void) {
    sqlite3_mutex *mutex = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_VFS1);
    sqlite3_mutex_enter(mutex);
    return mutex;
}

static entry **bucket_of(dev_t device, ino_t inode) { return &buckets[(size_t)(inode ^ device) % BUCKETS]; }

static bool is_of(const entry *known, dev_t device, ino_t inode) { return known->device == device && known->inode == inode; }

static entry *entry_of(int descriptor) { return (size_t)descriptor < slot_count ? slots[descriptor] : NULL; }

/// Makes room for a descriptor in `slots`.
static bool grow(int descriptor) {
    if ((size_t)descriptor < slot_count) return true;
    size_t count = slot_count ? slot_count : MIN_SLOTS;
    while (count <= (size_t)descriptor) count *= 2;
    entry **grown = realloc(slots, count * sizeof *grown);
    if (!grown) return false;
    memset(grown + slot_count, 0, (count - slot_count) * sizeof *grown);
    slots = grown;
    slot_count = count;
    return true;
}

/// Opens a file into a new entry. Returns 0, or errno.
static int add(const char *path, entry **added) {
    entry *made = sqlite3_malloc(sizeof *made);
    if (!made) return ENOMEM;
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int failure = descriptor < 0 ? errno : 0;
    // Where it fails from here on, the descriptor stays open, and no entry remembers it: closing it could release locks.
    if (!failure && fstat(descriptor, &status) != 0) failure = errno;
    if (!failure && !S_ISREG(status.st_mode)) {
        // SQLite has locks on regular files only, so this descriptor may be closed.
        close(descriptor);
        failure = EINVAL;
    }
    if (!failure && !grow(descriptor)) failure = ENOMEM;
    if (failure) {
        sqlite3_free(made);
        return failure;
    }
    entry **bucket = bucket_of(status.st_dev, status.st_ino);
    *made = (entry){*bucket, descriptor, status.st_dev, status.st_ino, false, false};
    *added = *bucket = slots[descriptor] = made;
    idle_count++;
    return 0;
}

/// Finds the entries whose files the process has open by descriptors other than those here.
///
/// - Returns: Whether the process's descriptors, and their files, could be found out.
static bool mark_open_elsewhere(void) {
    DIR *descriptors = opendir("/dev/fd");
    if (!descriptors) return false;
    bool is_known = true;
    for (struct dirent *listed; (listed = readdir(descriptors));) {
        char *end;
        long number = strtol(listed->d_name, &end, 10);
        struct stat status;
        if (end == listed->d_name || entry_of((int)number)) continue;
        if (fstat((int)number, &status) != 0) {
            // Another thread may have closed it meanwhile.
            if (errno != EBADF) is_known = false;
            continue;
        }
        for (entry *known = *bucket_of(status.st_dev, status.st_ino); known; known = known->next) {
            if (is_of(known, status.st_dev, status.st_ino)) known->is_open_elsewhere = true;
        }
    }
    closedir(descriptors);
    return is_known;
}

/// Closes the descriptors that are not in use and whose files the process has not open by other descriptors.
static void close_idle(void) {
    for (size_t i = 0; i < slot_count; i++) {
        if (slots[i]) slots[i]->is_open_elsewhere = false;
    }
    if (!mark_open_elsewhere()) return;
    for (size_t bucket = 0; bucket < BUCKETS; bucket++) {
        for (entry **link = &buckets[bucket]; *link;) {
            entry *known = *link;
            if (known->is_in_use || known->is_open_elsewhere) {
                link = &known->next;
                continue;
            }
            *link = known->next;
            slots[known->descriptor] = NULL;
            close(known->descriptor);
            sqlite3_free(known);
            idle_count--;
        }
    }
}

int tide_shm_descriptor_open(const char *path, int *descriptor, dev_t *device, ino_t *inode) {
    sqlite3_mutex *mutex = enter_mutex();
    entry *found = NULL;
    int failure = 0;
    struct stat status;
    if (idle_count && lstat(path, &status) == 0) {
        found = *bucket_of(status.st_dev, status.st_ino);
        while (found && (found->is_in_use || !is_of(found, status.st_dev, status.st_ino))) found = found->next;
    }
    if (!found) failure = add(path, &found);
    if (!failure) {
        found->is_in_use = true;
        idle_count--;
        *descriptor = found->descriptor;
        *device = found->device;
        *inode = found->inode;
    }
    sqlite3_mutex_leave(mutex);
    return failure;
}

void tide_shm_descriptor_close(int descriptor) {
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    fcntl(descriptor, F_OFD_SETLK, &all);
    sqlite3_mutex *mutex = enter_mutex();
    entry_of(descriptor)->is_in_use = false;
    idle_count++;
    close_idle();
    sqlite3_mutex_leave(mutex);
}

#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// Calls of the system are made by number here: the functions are this library's own.

static const char *const names[CALL_CLASSES] = {
    "write", "sync", "truncate", "rename", "open", "mmap", "copy", "link", "unlink", "mkdir", "mode", "read"};

static struct {
    bool is_on, skips_sync, is_sticky, halves, lies, kills;
    char root[path_size];
    size_t root_length;
    uint64_t at;
    int error;
    bool counts[CALL_CLASSES];
    struct preload_state *state;
    int log;
} told = {.log = -1};

enum { most_maps = 64, page = 4096 };

/// A file that is mapped for writing, and what it was when it was logged last.
static struct {
    unsigned char *address;
    unsigned char *logged;
    size_t length;
    uint64_t inode;
    int64_t offset;
} maps[most_maps];

pthread_mutex_t preload_lock = PTHREAD_MUTEX_INITIALIZER;

static void stop(const char *why) {
    dprintf(2, "preload: %s: %s\n", why, strerror(errno));
    _exit(99);
}

__attribute__((constructor)) static void begin(void) {
    const char *root = getenv("PRELOAD_ROOT"), *state = getenv("PRELOAD_STATE"), *at = getenv("PRELOAD_AT"), *kind = getenv("PRELOAD_KIND");
    const char *sticky = getenv("PRELOAD_STICKY"), *classes = getenv("PRELOAD_CLASSES"), *sync = getenv("PRELOAD_SYNC"), *log = getenv("PRELOAD_LOG");
    if (!root || strlen(root) >= path_size) return;
    strcpy(told.root, root);
    told.root_length = strlen(root);
    told.at = at ? strtoull(at, NULL, 10) : 0;
    told.is_sticky = sticky && *sticky == '1';
    told.skips_sync = sync && strcmp(sync, "skip") == 0;
    told.error = EIO;
    if (kind && strcmp(kind, "ENOSPC") == 0) told.error = ENOSPC;
    if (kind && strcmp(kind, "EDQUOT") == 0) told.error = EDQUOT;
    if (kind && (strcmp(kind, "SHORT") == 0 || strcmp(kind, "LIE") == 0)) told.error = 0;
    told.lies = kind && strcmp(kind, "LIE") == 0;
    told.kills = kind && strcmp(kind, "KILL") == 0;
    told.halves = kind && (strcmp(kind, "SHORT") == 0 || strcmp(kind, "TORN") == 0 || told.lies);
    for (int index = 0; index < CALL_CLASSES; index++) {
        told.counts[index] = classes ? strstr(classes, names[index]) != NULL : index != CALL_READ;
    }
    if (state) {
        int file = (int)syscall(SYS_openat, AT_FDCWD, state, O_RDWR | O_CLOEXEC, 0);
        if (file < 0) stop(state);
        void *mapped = (void *)syscall(SYS_mmap, NULL, sizeof *told.state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped == MAP_FAILED) stop(state);
        told.state = mapped;
        syscall(SYS_close, file);
    }
    if (log) {
        int file = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0) stop(log);
        // High, where no program expects one of its own.
        told.log = (int)syscall(SYS_fcntl, file, F_DUPFD_CLOEXEC, 900);
        if (told.log < 0) told.log = file;
    }
    told.is_on = true;
}

bool preload_is_on(void) { return told.is_on; }
bool preload_skips_sync(void) { return told.skips_sync; }
bool preload_lies(void) { return told.lies; }
bool preload_is_logged(void) { return told.log >= 0; }

static bool is_below(const char *path) {
    return strncmp(path, told.root, told.root_length) == 0 && (path[told.root_length] == '/' || path[told.root_length] == 0);
}

bool preload_path_of(int file, char path[static path_size]) {
    if (!told.is_on || file < 0) return false;
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    long length = syscall(SYS_readlink, link, path, path_size - 1);
    if (length <= 0) return false;
    path[length] = 0;
    return is_below(path);
}

bool preload_path_at(int folder, const char *name, char path[static path_size]) {
    if (!told.is_on || !name) return false;
    if (*name == '/') {
        snprintf(path, path_size, "%s", name);
        return is_below(path);
    }
    if (folder == AT_FDCWD) {
        if (syscall(SYS_getcwd, path, path_size) <= 0) return false;
    } else {
        char link[40];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        long length = syscall(SYS_readlink, link, path, path_size - 1);
        if (length <= 0) return false;
        path[length] = 0;
    }
    size_t length = strlen(path);
    snprintf(path + length, path_size - length, "/%s", name);
    return is_below(path);
}

int preload_count(preload_class class, const char *call, const char *path, bool *half) {
    if (half) *half = false;
    if (!told.state || !told.counts[class]) return 0;
    __atomic_fetch_add(&told.state->counts[class], 1, __ATOMIC_RELAXED);
    uint64_t number = __atomic_add_fetch(&told.state->count, 1, __ATOMIC_RELAXED);
    if (told.at == 0 || number < told.at || (number > told.at && !told.is_sticky)) return 0;
    // What is not written can't be written by half.
    if (told.halves && !half) return 0;
    if (__atomic_fetch_add(&told.state->failed, 1, __ATOMIC_RELAXED) == 0) {
        told.state->failed_class = class;
        snprintf(told.state->call, sizeof told.state->call, "%s", call);
        snprintf(told.state->path, sizeof told.state->path, "%s", path);
    }
    if (told.kills) {
        syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
        for (;;) syscall(SYS_pause);
    }
    if (half && told.halves) *half = true;
    return told.error;
}

static void append(struct preload_record *record, const char *name, const char *other, const void *data) {
    record->name_length = name ? (uint32_t)strlen(name) : 0;
    record->other_length = other ? (uint32_t)strlen(other) : 0;
    if (!data) record->length = 0;
    struct iovec parts[] = {{record, sizeof *record},
                            {(void *)name, record->name_length},
                            {(void *)other, record->other_length},
                            {(void *)data, record->length}};
    long wanted = (long)(sizeof *record + record->name_length + record->other_length + record->length);
    if (syscall(SYS_writev, told.log, parts, 4) != wanted) stop("the log");
}

/// What programs have written into mapped files since the last entry: nobody is told of these writes, so they come before what is.
static void log_maps(void) {
    for (int index = 0; index < most_maps; index++) {
        if (!maps[index].address) continue;
        for (size_t at = 0; at < maps[index].length; at += page) {
            size_t size = maps[index].length - at < page ? maps[index].length - at : page;
            if (memcmp(maps[index].address + at, maps[index].logged + at, size) == 0) continue;
            memcpy(maps[index].logged + at, maps[index].address + at, size);
            struct preload_record record = {
                .entry = ENTRY_MAPPED, .inode = maps[index].inode, .offset = maps[index].offset + (int64_t)at, .length = size};
            append(&record, NULL, NULL, maps[index].logged + at);
        }
    }
}

void preload_log(struct preload_record record, const char *name, const char *other, const void *data) {
    if (told.log < 0) return;
    int error = errno;
    log_maps();
    append(&record, name, other, data);
    errno = error;
}

uint64_t preload_inode(int file) {
    struct stat found;
    return syscall(SYS_fstat, file, &found) == 0 ? found.st_ino : 0;
}

uint64_t preload_inode_at(const char *path) {
    struct stat found;
    return syscall(SYS_newfstatat, AT_FDCWD, path, &found, AT_SYMLINK_NOFOLLOW) == 0 ? found.st_ino : 0;
}

uint64_t preload_folder(const char *path, const char **name) {
    char folder[path_size];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    *name = slash + 1;
    struct stat found;
    return syscall(SYS_newfstatat, AT_FDCWD, folder, &found, 0) == 0 ? found.st_ino : 0;
}

void preload_map(void *address, size_t length, uint64_t inode, int64_t offset) {
    if (told.log < 0) return;
    for (int index = 0; index < most_maps; index++) {
        if (maps[index].address) continue;
        unsigned char *copy = malloc(length);
        if (!copy) stop("memory");
        memcpy(copy, address, length);
        maps[index].address = address;
        maps[index].logged = copy;
        maps[index].length = length;
        maps[index].inode = inode;
        maps[index].offset = offset;
        return;
    }
    stop("more mapped files than the library follows");
}

void preload_unmap(void *address, size_t length) {
    unsigned char *first = address, *end = first + length;
    log_maps();
    for (int index = 0; index < most_maps; index++) {
        if (!maps[index].address || maps[index].address < first || maps[index].address >= end) continue;
        free(maps[index].logged);
        memset(&maps[index], 0, sizeof maps[index]);
    }
}

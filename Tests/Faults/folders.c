// The functions of the C library that change folders; see calls.c.

#include "preload.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/// A name in a folder, for the log.
struct place {
    char path[path_size];
    uint64_t folder;
    const char *last;
};

/// Finds a name; whether it is below the folder that is watched.
static bool find(struct place *place, int folder, const char *name) {
    if (!preload_path_at(folder, name, place->path)) return false;
    place->folder = preload_folder(place->path, &place->last);
    return true;
}

static int rename_at(int from, const char *old, int to, const char *new, unsigned flags, const char *call) {
    struct place source, target;
    bool is_source = find(&source, from, old), is_target = find(&target, to, new);
    if (!is_source && !is_target) return (int)syscall(SYS_renameat2, from, old, to, new, flags);
    int error = preload_count(CALL_RENAME, call, is_target ? target.path : source.path, NULL);
    if (error) return failed(error);
    lock();
    uint64_t inode = preload_inode_at(source.path);
    int done = (int)syscall(SYS_renameat2, from, old, to, new, flags);
    if (done == 0) {
        struct preload_record record = {
            .entry = ENTRY_RENAME, .flags = flags, .inode = inode, .folder = source.folder, .other_folder = target.folder};
        preload_log(record, source.last, target.last, NULL);
    }
    unlock();
    return done;
}

OWN int rename(const char *old, const char *new) { return rename_at(AT_FDCWD, old, AT_FDCWD, new, 0, "rename"); }
OWN int renameat(int from, const char *old, int to, const char *new) { return rename_at(from, old, to, new, 0, "renameat"); }

OWN int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    return rename_at(from, old, to, new, flags, "renameat2");
}

static int link_at(int from, const char *old, int to, const char *new, int flags, const char *call) {
    struct place target;
    if (!find(&target, to, new)) return (int)syscall(SYS_linkat, from, old, to, new, flags);
    int error = preload_count(CALL_LINK, call, target.path, NULL);
    if (error) return failed(error);
    lock();
    int done = (int)syscall(SYS_linkat, from, old, to, new, flags);
    if (done == 0) {
        struct preload_record record = {.entry = ENTRY_LINK, .inode = preload_inode_at(target.path), .folder = target.folder};
        preload_log(record, target.last, NULL, NULL);
    }
    unlock();
    return done;
}

OWN int link(const char *old, const char *new) { return link_at(AT_FDCWD, old, AT_FDCWD, new, 0, "link"); }
OWN int linkat(int from, const char *old, int to, const char *new, int flags) { return link_at(from, old, to, new, flags, "linkat"); }

static int unlink_at(int folder, const char *name, int flags, const char *call) {
    struct place place;
    if (!find(&place, folder, name)) return (int)syscall(SYS_unlinkat, folder, name, flags);
    // What isn't there is not removed, and not counted.
    uint64_t inode = preload_inode_at(place.path);
    int error = inode ? preload_count(CALL_UNLINK, call, place.path, NULL) : 0;
    if (error) return failed(error);
    lock();
    int done = (int)syscall(SYS_unlinkat, folder, name, flags);
    if (done == 0) preload_log((struct preload_record){.entry = ENTRY_UNLINK, .inode = inode, .folder = place.folder}, place.last, NULL, NULL);
    unlock();
    return done;
}

OWN int unlink(const char *name) { return unlink_at(AT_FDCWD, name, 0, "unlink"); }
OWN int unlinkat(int folder, const char *name, int flags) { return unlink_at(folder, name, flags, "unlinkat"); }
OWN int rmdir(const char *name) { return unlink_at(AT_FDCWD, name, AT_REMOVEDIR, "rmdir"); }

OWN int remove(const char *name) {
    int done = unlink_at(AT_FDCWD, name, 0, "remove");
    return done != 0 && (errno == EISDIR || errno == EPERM) ? unlink_at(AT_FDCWD, name, AT_REMOVEDIR, "remove") : done;
}

static int make_folder(int folder, const char *name, mode_t mode, const char *call) {
    struct place place;
    if (!find(&place, folder, name)) return (int)syscall(SYS_mkdirat, folder, name, mode);
    int error = preload_count(CALL_MKDIR, call, place.path, NULL);
    if (error) return failed(error);
    lock();
    int done = (int)syscall(SYS_mkdirat, folder, name, mode);
    if (done == 0) {
        struct preload_record record = {.entry = ENTRY_MKDIR, .inode = preload_inode_at(place.path), .folder = place.folder};
        preload_log(record, place.last, NULL, NULL);
    }
    unlock();
    return done;
}

OWN int mkdir(const char *name, mode_t mode) { return make_folder(AT_FDCWD, name, mode, "mkdir"); }
OWN int mkdirat(int folder, const char *name, mode_t mode) { return make_folder(folder, name, mode, "mkdirat"); }

// Modes are counted, and not logged: whether a mode is durable is nobody's promise.

OWN int fchmod(int file, mode_t mode) {
    char path[path_size];
    int error = preload_path_of(file, path) ? preload_count(CALL_MODE, "fchmod", path, NULL) : 0;
    return error ? failed(error) : (int)syscall(SYS_fchmod, file, mode);
}

OWN int chmod(const char *name, mode_t mode) {
    char path[path_size];
    int error = preload_path_at(AT_FDCWD, name, path) ? preload_count(CALL_MODE, "chmod", path, NULL) : 0;
    return error ? failed(error) : (int)syscall(SYS_fchmodat, AT_FDCWD, name, mode);
}

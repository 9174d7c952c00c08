// The functions of the C library that change files, in places of their own: each looks whether it is about the folder that is watched, counts,
// fails where it is to fail, and else does by number what the C library's does. While a log is written, calls take turns, so that the log has
// their order; a sync doesn't keep others from writing, and has a beginning and an end there.

#include "preload.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// Two names of one function: with 64-bit offsets they are the same.
#define ALSO(name, as) extern __typeof__(name) as __attribute__((alias(#name), visibility("default")))

/// What a process says to others, by a pipe or a socket, is in the log before it is sent.
static void log_sent(int file, const void *data, size_t length) {
    struct stat found;
    if (!preload_is_logged() || syscall(SYS_fstat, file, &found) != 0 || !(S_ISSOCK(found.st_mode) || (S_ISFIFO(found.st_mode) && file <= 2))) return;
    lock();
    preload_log((struct preload_record){.entry = ENTRY_SENT, .flags = (uint32_t)file, .length = length < 200 ? length : 200}, NULL, NULL, data);
    unlock();
}

// Writing

/// Writes at an offset, or where the file is if it is negative.
static ssize_t write_at(int file, const void *data, size_t length, int64_t offset, const char *call) {
    char path[path_size];
    if (!preload_path_of(file, path)) {
        log_sent(file, data, length);
        return offset < 0 ? syscall(SYS_write, file, data, length) : syscall(SYS_pwrite64, file, data, length, offset);
    }
    bool half;
    int error = preload_count(CALL_WRITE, call, path, &half);
    if (error && !half) return failed(error);
    // An index that is shorter than it seems would only have the process trap.
    if (half && preload_lies()) return strstr(path, "-shm") ? syscall(SYS_pwrite64, file, data, length, offset) : (ssize_t)length;
    // Files that are open for direct writing want whole blocks.
    bool is_direct = half && (syscall(SYS_fcntl, file, F_GETFL) & O_DIRECT);
    size_t wanted = !half ? length : is_direct ? length / 2 & ~(size_t)4095 : length / 2;
    if (half && !error && wanted == 0) return failed(ENOSPC);
    lock();
    int64_t start = offset;
    if (offset < 0) {
        bool appends = syscall(SYS_fcntl, file, F_GETFL) & O_APPEND;
        start = syscall(SYS_lseek, file, 0, appends ? SEEK_END : SEEK_CUR);
    }
    ssize_t done = offset < 0 ? syscall(SYS_write, file, data, wanted) : syscall(SYS_pwrite64, file, data, wanted, offset);
    if (done > 0) {
        struct preload_record record = {.entry = ENTRY_WRITE, .inode = preload_inode(file), .offset = start, .length = (uint64_t)done};
        preload_log(record, path, NULL, data);
    }
    unlock();
    return half && error ? failed(error) : done;
}

static ssize_t write_parts(int file, const struct iovec *parts, int count, int64_t offset, const char *call) {
    char path[path_size];
    if (!preload_path_of(file, path)) {
        if (count > 0) log_sent(file, parts[0].iov_base, parts[0].iov_len);
        return offset < 0 ? syscall(SYS_writev, file, parts, count) : syscall(SYS_pwritev, file, parts, count, offset, 0);
    }
    ssize_t whole = 0;
    for (int index = 0; index < count; index++) {
        if (parts[index].iov_len == 0) continue;
        ssize_t done = write_at(file, parts[index].iov_base, parts[index].iov_len, offset < 0 ? offset : offset + whole, call);
        if (done < 0) return whole ? whole : done;
        whole += done;
        if ((size_t)done < parts[index].iov_len) break;
    }
    return whole;
}

OWN ssize_t write(int file, const void *data, size_t length) { return write_at(file, data, length, -1, "write"); }
OWN ssize_t pwrite(int file, const void *data, size_t length, off_t offset) { return write_at(file, data, length, offset, "pwrite"); }
OWN ssize_t writev(int file, const struct iovec *parts, int count) { return write_parts(file, parts, count, -1, "writev"); }
OWN ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) { return write_parts(file, parts, count, offset, "pwritev"); }
ALSO(pwrite, pwrite64);
ALSO(pwritev, pwritev64);

OWN ssize_t send(int file, const void *data, size_t length, int flags) {
    if (preload_is_on()) log_sent(file, data, length);
    return syscall(SYS_sendto, file, data, length, flags, NULL, 0);
}

OWN ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
    if (preload_is_on() && message->msg_iovlen > 0) log_sent(file, message->msg_iov[0].iov_base, message->msg_iov[0].iov_len);
    return syscall(SYS_sendmsg, file, message, flags);
}

/// Appends to the log what a call of the system has written by itself.
static void log_copied(int file, const char *path, int64_t start, int64_t length) {
    char data[1 << 16];
    while (length > 0) {
        // The file may be open for writing only.
        int reader = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
        ssize_t got = syscall(SYS_pread64, reader, data, length < (int64_t)sizeof data ? (size_t)length : sizeof data, start);
        syscall(SYS_close, reader);
        if (got <= 0) return;
        struct preload_record record = {.entry = ENTRY_WRITE, .inode = preload_inode(file), .offset = start, .length = (uint64_t)got};
        preload_log(record, path, NULL, data);
        start += got;
        length -= got;
    }
}

OWN ssize_t sendfile(int target, int source, off_t *offset, size_t length) {
    char path[path_size];
    if (!preload_path_of(target, path)) {
        log_sent(target, "", 1);
        return syscall(SYS_sendfile, target, source, offset, length);
    }
    int error = preload_count(CALL_COPY, "sendfile", path, NULL);
    if (error) return failed(error);
    lock();
    int64_t start = syscall(SYS_lseek, target, 0, SEEK_CUR);
    ssize_t done = syscall(SYS_sendfile, target, source, offset, length);
    if (preload_is_logged()) log_copied(target, path, start, done);
    unlock();
    return done;
}
ALSO(sendfile, sendfile64);

OWN ssize_t copy_file_range(int source, off64_t *from, int target, off64_t *to, size_t length, unsigned flags) {
    char path[path_size];
    if (!preload_path_of(target, path)) return syscall(SYS_copy_file_range, source, from, target, to, length, flags);
    int error = preload_count(CALL_COPY, "copy_file_range", path, NULL);
    if (error) return failed(error);
    lock();
    int64_t start = to ? *to : syscall(SYS_lseek, target, 0, SEEK_CUR);
    ssize_t done = syscall(SYS_copy_file_range, source, from, target, to, length, flags);
    if (preload_is_logged()) log_copied(target, path, start, done);
    unlock();
    return done;
}

OWN int ioctl(int target, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    char path[path_size];
    if (request != FICLONE || !preload_path_of(target, path)) return (int)syscall(SYS_ioctl, target, request, argument);
    int error = preload_count(CALL_COPY, "ioctl", path, NULL);
    if (error) return failed(error);
    lock();
    int done = (int)syscall(SYS_ioctl, target, request, argument);
    struct stat found;
    if (done == 0 && preload_is_logged() && syscall(SYS_fstat, target, &found) == 0) log_copied(target, path, 0, found.st_size);
    unlock();
    return done;
}

// Durability

/// Makes a file durable, or with `whole` its file system.
static int make_durable(int file, int number, bool whole, const char *call) {
    char path[path_size];
    if (!preload_path_of(file, path)) return (int)syscall(number, file);
    int error = preload_count(CALL_SYNC, call, path, NULL);
    if (error) return failed(error);
    uint64_t inode = preload_inode(file);
    lock();
    preload_log((struct preload_record){.entry = whole ? ENTRY_SYNC_ALL_BEGIN : ENTRY_SYNC_BEGIN, .inode = inode}, path, NULL, NULL);
    unlock();
    int done = preload_skips_sync() ? 0 : (int)syscall(number, file);
    lock();
    if (done == 0) preload_log((struct preload_record){.entry = whole ? ENTRY_SYNC_ALL_END : ENTRY_SYNC_END, .inode = inode}, path, NULL, NULL);
    unlock();
    return done;
}

OWN int fsync(int file) { return make_durable(file, SYS_fsync, false, "fsync"); }
OWN int fdatasync(int file) { return make_durable(file, SYS_fdatasync, false, "fdatasync"); }
OWN int syncfs(int file) { return make_durable(file, SYS_syncfs, true, "syncfs"); }

/// Begins to write a file back, and promises nothing.
OWN int sync_file_range(int file, off64_t offset, off64_t length, unsigned flags) {
    char path[path_size];
    if (!preload_path_of(file, path)) return (int)syscall(SYS_sync_file_range, file, offset, length, flags);
    int error = preload_count(CALL_SYNC, "sync_file_range", path, NULL);
    if (error) return failed(error);
    return preload_skips_sync() ? 0 : (int)syscall(SYS_sync_file_range, file, offset, length, flags);
}

// Lengths

static int make_length(int file, int64_t length, const char *call) {
    char path[path_size];
    if (!preload_path_of(file, path)) return (int)syscall(SYS_ftruncate, file, length);
    int error = preload_count(CALL_TRUNCATE, call, path, NULL);
    if (error) return failed(error);
    lock();
    int done = (int)syscall(SYS_ftruncate, file, length);
    if (done == 0) preload_log((struct preload_record){.entry = ENTRY_TRUNCATE, .inode = preload_inode(file), .offset = length}, path, NULL, NULL);
    unlock();
    return done;
}

OWN int ftruncate(int file, off_t length) { return make_length(file, length, "ftruncate"); }
ALSO(ftruncate, ftruncate64);

static int reserve(int file, int mode, int64_t offset, int64_t length, const char *call) {
    char path[path_size];
    if (!preload_path_of(file, path)) return (int)syscall(SYS_fallocate, file, mode, offset, length);
    int error = preload_count(CALL_TRUNCATE, call, path, NULL);
    if (error) return failed(error);
    lock();
    struct stat before, after;
    syscall(SYS_fstat, file, &before);
    int done = (int)syscall(SYS_fallocate, file, mode, offset, length);
    syscall(SYS_fstat, file, &after);
    if (done == 0 && after.st_size != before.st_size) {
        preload_log((struct preload_record){.entry = ENTRY_TRUNCATE, .inode = before.st_ino, .offset = after.st_size}, path, NULL, NULL);
    }
    unlock();
    return done;
}

OWN int fallocate(int file, int mode, off_t offset, off_t length) { return reserve(file, mode, offset, length, "fallocate"); }
OWN int posix_fallocate(int file, off_t offset, off_t length) { return reserve(file, 0, offset, length, "posix_fallocate") == 0 ? 0 : errno; }
ALSO(fallocate, fallocate64);
ALSO(posix_fallocate, posix_fallocate64);

// Opening

static int open_at(int folder, const char *name, int flags, mode_t mode, const char *call) {
    char path[path_size];
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
    if (!preload_path_at(folder, name, path)) return (int)syscall(SYS_openat, folder, name, flags, mode);
    int error = preload_count(writes ? CALL_OPEN : CALL_READ, call, path, NULL);
    if (error) return failed(error);
    if (!writes) return (int)syscall(SYS_openat, folder, name, flags, mode);
    lock();
    bool was_there = preload_inode_at(path) != 0;
    int file = (int)syscall(SYS_openat, folder, name, flags, mode);
    if (file >= 0 && preload_is_logged()) {
        if (!was_there && (flags & O_CREAT)) {
            const char *last;
            uint64_t above = preload_folder(path, &last);
            preload_log((struct preload_record){.entry = ENTRY_CREATE, .inode = preload_inode(file), .folder = above}, last, NULL, NULL);
        } else if (flags & O_TRUNC) {
            preload_log((struct preload_record){.entry = ENTRY_TRUNCATE, .inode = preload_inode(file)}, path, NULL, NULL);
        }
    }
    unlock();
    return file;
}

static mode_t mode_of(int flags, va_list rest) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0; }

OWN int open(const char *name, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return open_at(AT_FDCWD, name, flags, mode, "open");
}

OWN int openat(int folder, const char *name, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return open_at(folder, name, flags, mode, "openat");
}
ALSO(open, open64);
ALSO(openat, openat64);

OWN int creat(const char *name, mode_t mode) { return open_at(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode, "creat"); }
OWN int __open_2(const char *name, int flags) { return open_at(AT_FDCWD, name, flags, 0, "open"); }
OWN int __openat_2(int folder, const char *name, int flags) { return open_at(folder, name, flags, 0, "openat"); }
ALSO(__open_2, __open64_2);
ALSO(__openat_2, __openat64_2);

OWN int mkstemp(char *name) {
    char path[path_size];
    int (*real)(char *) = (int (*)(char *))dlsym(RTLD_NEXT, "mkstemp");
    if (!preload_path_at(AT_FDCWD, name, path)) return real(name);
    int error = preload_count(CALL_OPEN, "mkstemp", path, NULL);
    if (error) return failed(error);
    lock();
    int file = real(name);
    if (file >= 0 && preload_path_at(AT_FDCWD, name, path)) {
        const char *last;
        uint64_t above = preload_folder(path, &last);
        preload_log((struct preload_record){.entry = ENTRY_CREATE, .inode = preload_inode(file), .folder = above}, last, NULL, NULL);
    }
    unlock();
    return file;
}

// Mapping

OWN void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset) {
    char path[path_size];
    bool is_own = (flags & MAP_ANONYMOUS) == 0 && preload_path_of(file, path);
    int error = is_own ? preload_count(CALL_MMAP, "mmap", path, NULL) : 0;
    if (error) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *mapped = (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
    if (is_own && mapped != MAP_FAILED && (flags & MAP_SHARED) && (protection & PROT_WRITE)) {
        lock();
        preload_map(mapped, length, preload_inode(file), offset);
        unlock();
    }
    return mapped;
}
ALSO(mmap, mmap64);

OWN int munmap(void *address, size_t length) {
    if (preload_is_on() && preload_is_logged()) {
        lock();
        preload_unmap(address, length);
        unlock();
    }
    return (int)syscall(SYS_munmap, address, length);
}

// Reading

static ssize_t read_at(int file, void *data, size_t length, int64_t offset, const char *call) {
    char path[path_size];
    if (preload_is_on() && preload_path_of(file, path)) {
        int error = preload_count(CALL_READ, call, path, NULL);
        if (error) return failed(error);
    }
    return offset < 0 ? syscall(SYS_read, file, data, length) : syscall(SYS_pread64, file, data, length, offset);
}

OWN ssize_t read(int file, void *data, size_t length) { return read_at(file, data, length, -1, "read"); }
OWN ssize_t pread(int file, void *data, size_t length, off_t offset) { return read_at(file, data, length, offset, "pread"); }
ALSO(pread, pread64);

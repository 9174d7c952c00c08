// System calls that fail, end early, or are preceded by what another program does. Definitions of the program's own come before those of the C
// library and of the sanitizers. For Linux: they pass on to the kernel. Included once in a program; for one thread.

#ifndef SYSTEM_FAULTS_H
#define SYSTEM_FAULTS_H

#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include "blob_fixture.h"

typedef enum fault_call {
    call_open, call_openat, call_mkdir, call_mkdirat, call_unlinkat, call_linkat, call_renameat2, call_fstat, call_fstatat, call_pread, call_write,
    call_fcntl, call_close, call_syncfs, call_ioctl, call_getentropy, call_memalign, call_count,
} fault_call;

static const char *const fault_names[call_count] = {
    "open",  "openat", "mkdir", "mkdirat", "unlinkat", "linkat", "renameat2", "fstat", "fstatat", "pread", "write",
    "fcntl", "close",  "syncfs", "ioctl", "getentropy", "posix_memalign",
};

typedef enum fault_kind {
    /// The call fails with the number of an error; `hook` runs before.
    fault_error,
    /// The call fails, and works when it is made again.
    fault_interruption,
    /// A read or a write does half of its work.
    fault_half,
    /// A read finds the end of the file.
    fault_end,
    /// `hook` runs, and then the call, which works.
    fault_hook,
} fault_kind;

/// Which call fails, and how. `counts` are the calls since `faults_begin`.
static struct {
    bool is_armed, has_hit;
    fault_call call;
    long at;
    fault_kind kind;
    int number;
    void (*hook)(void);
    long counts[call_count];
    /// The clone of a file's blocks succeeds, as on a file system that has it.
    bool clones;
    /// The seconds that files were modified and changed at; 0: as it is.
    time_t modified, changed;
} faults;

static void faults_begin(fault_call call, long at, fault_kind kind, int number) {
    memset(faults.counts, 0, sizeof faults.counts);
    faults.call = call, faults.at = at, faults.kind = kind, faults.number = number;
    faults.has_hit = false;
    faults.is_armed = true;
}

/// Counts calls, of which none fails.
static void faults_count(void) { faults_begin(call_count, 0, fault_error, 0); }

/// Whether the fault has occurred.
static bool faults_end(void) {
    faults.is_armed = false;
    return faults.has_hit;
}

/// Whether this call fails. A hook has run then.
static bool fails(fault_call call) {
    if (!faults.is_armed || ++faults.counts[call] != faults.at || call != faults.call) return false;
    faults.has_hit = true;
    if (faults.hook) {
        faults.is_armed = false;
        faults.hook();
        faults.is_armed = true;
    }
    if (faults.kind == fault_hook) return false;
    errno = faults.kind == fault_interruption ? EINTR : faults.number;
    return true;
}

static int mode_of(int flags, va_list arguments) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0; }

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int mode = mode_of(flags, arguments);
    va_end(arguments);
    return fails(call_open) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int mode = mode_of(flags, arguments);
    va_end(arguments);
    return fails(call_openat) ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}

int mkdir(const char *path, mode_t mode) { return fails(call_mkdir) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) { return fails(call_mkdirat) ? -1 : (int)syscall(SYS_mkdirat, folder, path, mode); }
int unlinkat(int folder, const char *path, int flags) { return fails(call_unlinkat) ? -1 : (int)syscall(SYS_unlinkat, folder, path, flags); }

int linkat(int from, const char *old, int to, const char *new, int flags) {
    return fails(call_linkat) ? -1 : (int)syscall(SYS_linkat, from, old, to, new, flags);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned int flags) {
    return fails(call_renameat2) ? -1 : (int)syscall(SYS_renameat2, from, old, to, new, flags);
}

static int status_change(int result, struct stat *status) {
    if (result == 0 && faults.modified) status->st_mtim = (struct timespec){.tv_sec = faults.modified, .tv_nsec = 999999999};
    if (result == 0 && faults.changed) status->st_ctim = (struct timespec){.tv_sec = faults.changed};
    return result;
}

int fstat(int descriptor, struct stat *status) {
    return fails(call_fstat) ? -1 : status_change((int)syscall(SYS_fstat, descriptor, status), status);
}

int fstatat(int folder, const char *path, struct stat *status, int flags) {
    return fails(call_fstatat) ? -1 : status_change((int)syscall(SYS_newfstatat, folder, path, status, flags), status);
}

ssize_t pread(int descriptor, void *bytes, size_t length, off_t offset) {
    if (fails(call_pread)) {
        if (faults.kind == fault_end) return 0;
        if (faults.kind != fault_half) return -1;
        length = length / 2 + 1;
    }
    return syscall(SYS_pread64, descriptor, bytes, length, offset);
}

ssize_t write(int descriptor, const void *bytes, size_t length) {
    if (fails(call_write)) {
        if (faults.kind != fault_half) return -1;
        // Whole blocks, as where a file is written past the cache.
        length = length >= 8192 ? length / 2 / 4096 * 4096 : length >= 4096 ? 4096 : length / 2 + 1;
    }
    return syscall(SYS_write, descriptor, bytes, length);
}

int fcntl(int descriptor, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    long argument = va_arg(arguments, long);
    va_end(arguments);
    return fails(call_fcntl) ? -1 : (int)syscall(SYS_fcntl, descriptor, command, argument);
}

/// The descriptor is closed in any case, as Linux does.
int close(int descriptor) {
    int result = (int)syscall(SYS_close, descriptor);
    return fails(call_close) ? -1 : result;
}

/// Nothing that a test writes has to outlast a power cut, and flushing the file system may take seconds.
int syncfs(int descriptor) {
    (void)descriptor;
    return fails(call_syncfs) ? -1 : 0;
}

int ioctl(int descriptor, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    long argument = va_arg(arguments, long);
    va_end(arguments);
    if (fails(call_ioctl)) return -1;
    if (!faults.clones) return (int)syscall(SYS_ioctl, descriptor, request, argument);
    char bytes[4096];
    ssize_t count;
    for (off_t at = 0; (count = syscall(SYS_pread64, (int)argument, bytes, sizeof bytes, at)) > 0; at += count) {
        check(syscall(SYS_pwrite64, descriptor, bytes, count, at) == count, "%s", strerror(errno));
    }
    return 0;
}

int getentropy(void *bytes, size_t length) {
    return fails(call_getentropy) ? -1 : syscall(SYS_getrandom, bytes, length, 0) == (ssize_t)length ? 0 : -1;
}

int posix_memalign(void **memory, size_t alignment, size_t length) {
    *memory = fails(call_memalign) ? NULL : aligned_alloc(alignment, length);
    return *memory ? 0 : ENOMEM;
}

#endif

// Calls of a database's reader and of SQLite that fail, each in its turn, or before which something happens: the test's own functions stand before
// those of the C library, and pass all other calls on. For assets, see system_faults.h.
// Include it once in a program.

#ifndef DATABASE_FAULTS_H
#define DATABASE_FAULTS_H

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/// The number of calls that succeed before a call fails; -1: every call succeeds.
static int system_calls_left = -1;
/// The errno of the call that fails, the name of the only kind of call that does (NULL: any of them), and the call that has failed (NULL: none).
static int system_failure = EIO;
static const char *system_only, *system_failed;
/// What happens in the turn of a call, instead of its failure, just before it; NULL: it fails.
static void (*system_event)(void);

static bool system_call_fails(const char *name) {
    if (system_calls_left < 0 || (system_only && strcmp(system_only, name)) || system_calls_left-- > 0) return false;
    system_failed = name;
    if (system_event) return system_event(), false;
    errno = system_failure;
    return true;
}

static void system_faults_begin(const char *only, int failure, int calls) {
    system_only = only, system_failure = failure, system_calls_left = calls, system_failed = NULL;
}

/// As `system_faults_begin`, with an event before the call instead of its failure.
__attribute__((unused)) static void system_event_begin(const char *only, void (*event)(void), int calls) {
    system_faults_begin(only, 0, calls);
    system_event = event;
}

/// Returns whether a call's turn has come since the beginning.
static bool system_faults_end(void) {
    system_calls_left = -1;
    system_event = NULL;
    return system_failed;
}

#define SYSTEM_CALL(type, name, failed, parameters, ...) \
    type name parameters { \
        static type(*real) parameters; \
        if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #name); \
        return system_call_fails(#name) ? failed : real(__VA_ARGS__); \
    }

SYSTEM_CALL(ssize_t, pread, -1, (int descriptor, void *bytes, size_t count, off_t offset), descriptor, bytes, count, offset)
SYSTEM_CALL(int, fstat, -1, (int descriptor, struct stat *status), descriptor, status)
SYSTEM_CALL(int, lstat, -1, (const char *path, struct stat *status), path, status)
SYSTEM_CALL(int, flock, -1, (int descriptor, int operation), descriptor, operation)
SYSTEM_CALL(DIR *, opendir, NULL, (const char *path), path)
SYSTEM_CALL(void *, mmap, MAP_FAILED, (void *at, size_t size, int protection, int flags, int descriptor, off_t offset),
            at, size, protection, flags, descriptor, offset)

int open(const char *path, int flags, ...) {
    static int (*real)(const char *, int, ...);
    if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    va_list arguments;
    va_start(arguments, flags);
    int mode = flags & O_CREAT ? va_arg(arguments, int) : 0;
    va_end(arguments);
    return system_call_fails("open") ? -1 : real(path, flags, mode);
}

int fcntl(int descriptor, int command, ...) {
    static int (*real)(int, int, ...);
    if (!real) real = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl");
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return system_call_fails("fcntl") ? -1 : real(descriptor, command, argument);
}

static sqlite3_mem_methods system_allocator;

static void *system_allocate(int size) { return system_call_fails("sqlite3_malloc") ? NULL : system_allocator.xMalloc(size); }

static void *system_reallocate(void *memory, int size) {
    return system_call_fails("sqlite3_malloc") ? NULL : system_allocator.xRealloc(memory, size);
}

/// Lets allocations of SQLite fail, too, as "sqlite3_malloc". Comes before any other use of SQLite.
__attribute__((unused)) static void system_allocations_include(void) {
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &system_allocator);
    sqlite3_mem_methods methods = system_allocator;
    methods.xMalloc = system_allocate, methods.xRealloc = system_reallocate;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
    // Without a store of small blocks of its own, SQLite asks for each of them.
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
}

#endif

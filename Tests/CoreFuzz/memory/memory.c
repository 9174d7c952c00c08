// Goal: whichever allocation of the core fails, or of a library that it calls, nothing crashes, nothing leaks, the caller is told that memory
// ran out, or gets the same result all the same; and the next call works.
// Method: malloc and its kin are ours, above the address sanitizer's. Each use of the core runs in a process of its own, once for each
// of its allocations, which fails once, or from then on; then the same use runs again in the same process, and the leak sanitizer looks.
//
// usage: memory_test CORPUS PICTURES [--points N] [--seed N] [--use NAME] [--one N [--sticky]]

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"

// The allocator

void *__interceptor_malloc(size_t size);
void *__interceptor_calloc(size_t count, size_t size);
void *__interceptor_realloc(void *memory, size_t size);

static atomic_bool is_armed;
static atomic_long allocation_count;
/// The allocation that fails, from 1; 0: none.
static long failing;
static bool is_sticky, is_traced;
static atomic_long failures;

static bool fails(void) {
    if (!atomic_load(&is_armed)) return false;
    long number = atomic_fetch_add(&allocation_count, 1) + 1;
    if (failing == 0 || (is_sticky ? number < failing : number != failing)) return false;
    if (is_traced && atomic_load(&failures) == 0) {
        atomic_store(&is_armed, false);
        fprintf(stderr, "allocation %ld fails:\n", number);
        __sanitizer_print_stack_trace();
        atomic_store(&is_armed, true);
    }
    atomic_fetch_add(&failures, 1);
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size) { return fails() ? NULL : __interceptor_malloc(size); }
void *calloc(size_t count, size_t size) { return fails() ? NULL : __interceptor_calloc(count, size); }
void *realloc(void *memory, size_t size) { return fails() ? NULL : __interceptor_realloc(memory, size); }

char *strdup(const char *text) {
    size_t length = strlen(text) + 1;
    char *copy = malloc(length);
    return copy ? memcpy(copy, text, length) : NULL;
}

char *strndup(const char *text, size_t most) {
    size_t length = strnlen(text, most);
    char *copy = malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

/// Without memory, glibc forgets a few bytes of the name of a locale, and libarchive what it reads an archive with.
const char *__lsan_default_suppressions(void) { return "leak:_nl_normalize_codeset\nleak:archive_read_open_fd\n"; }
const char *__asan_default_options(void) { return "allocator_may_return_null=1:print_suppressions=0"; }

/// Pauses within each other.
static int pauses;
static bool was_armed;

void faults_pause(void) {
    if (pauses++ == 0) was_armed = atomic_exchange(&is_armed, false);
}

void faults_resume(void) {
    if (--pauses == 0) atomic_store(&is_armed, was_armed);
}

// Outcomes

void harness_fail(const char *format, ...) {
    atomic_store(&is_armed, false);
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "memory_test: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    _exit(70);
}

void outcome_add(outcome *out, const void *bytes, size_t length) {
    const uint8_t *at = bytes;
    // FNV-1a; with the length, so that no two lists of texts run into each other.
    for (size_t i = 0; i < sizeof length; i++) out->digest = (out->digest ^ (length >> (8 * i) & 255)) * 1099511628211u;
    for (size_t i = 0; i < length; i++) out->digest = (out->digest ^ at[i]) * 1099511628211u;
}

void outcome_add_text(outcome *out, const char *text) { outcome_add(out, text, strlen(text)); }
void outcome_add_number(outcome *out, int64_t number) { outcome_add(out, &number, sizeof number); }

bool outcome_note(outcome *out, tide_status status) {
    if (out->status == TIDE_OK && status != TIDE_OK) {
        out->status = status;
        tide_error_set(&out->error, status, 0, "of a call without an error");
    }
    return out->status == TIDE_OK;
}

// Runs

char work_folder[200], shared_folder[200];

static void folder_remove(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char inner[600];
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (unlink(inner) != 0) folder_remove(inner);
    }
    closedir(folder);
    rmdir(path);
}

static outcome use_run(const use *use) {
    outcome out = {.digest = 14695981039346656037u};
    if (mkdir(work_folder, 0700) != 0) harness_fail("cannot make %s: %s", work_folder, strerror(errno));
    atomic_store(&allocation_count, 0);
    atomic_store(&is_armed, true);
    use->run(use, &out);
    atomic_store(&is_armed, false);
    folder_remove(work_folder);
    return out;
}

/// What a process tells the one that has started it.
typedef struct told {
    outcome out;
    long count, failures;
    bool is_done, is_by_library;
} told;

static told *shared;

/// libarchive and glibc do not say that these are for want of memory: they are told as damage of the source.
static bool is_of_library(const outcome *out) {
    static const char *const sentences[] = {
        "Can't initialize ZIP decompression", "Zstd decompression failed", "is not known; others are utf-8"};
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        if (out->error.status == TIDE_REJECTED && strstr(out->error.message, sentences[i])) return true;
    }
    return false;
}

/// Is there where the coverage is counted.
int __llvm_profile_write_file(void) __attribute__((weak));

static void child(const use *use, const outcome *expected) {
    outcome out = use_run(use);
    shared->count = allocation_count;
    shared->failures = failures;
    shared->out = out;
    if (expected) {
        bool is_other = out.digest != expected->digest;
        if (is_other && is_of_library(&out)) {
            shared->is_by_library = true;
        } else if (out.status == TIDE_OK) {
            if (is_other) harness_fail("it said that all was well, and yielded something else");
        } else if (out.status != TIDE_NO_MEMORY || out.error.status != TIDE_NO_MEMORY || out.error.reject || !out.error.message[0]) {
            harness_fail("it ended with %d (reject %d): %s", out.status, out.error.reject, out.error.message);
        }
        if (failures == 0 && out.status) harness_fail("it ended with %d without a fault: %s", out.status, out.error.message);
        failing = 0;
        out = use_run(use);
        if (out.status || out.digest != expected->digest) harness_fail("the next run ended with %d: %s", out.status, out.error.message);
    }
    sqlite3_shutdown();
    if (__lsan_do_recoverable_leak_check()) harness_fail("it leaks");
    if (__llvm_profile_write_file) __llvm_profile_write_file();
    shared->is_done = true;
    _exit(0);
}

static bool file_has(const char *path, const char *text) {
    FILE *file = fopen(path, "r");
    char line[1000];
    bool has = false;
    while (file && !has && fgets(line, sizeof line, file)) has = strstr(line, text);
    if (file) fclose(file);
    return has;
}

/// Whether the innermost function of a crash is one of a library.
static bool fails_within(const char *path, const char *library) {
    FILE *file = fopen(path, "r");
    char line[1000];
    bool has_crashed = false, is_within = false;
    while (file && fgets(line, sizeof line, file)) {
        if (strstr(line, "ERROR: AddressSanitizer: ")) has_crashed = true;
        if (!has_crashed || !strstr(line, "#0 ")) continue;
        is_within = strstr(line, library);
        break;
    }
    if (file) fclose(file);
    return is_within;
}

/// Runs a use in a process of its own; false when that went wrong. What it printed is in the file `log`.
static bool point_run(const use *use, const outcome *expected, long number, bool sticky, const char *log) {
    memset(shared, 0, sizeof *shared);
    pid_t process = fork();
    if (process < 0) harness_fail("cannot fork: %s", strerror(errno));
    if (process == 0) {
        int descriptor = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(descriptor, 2);
        failing = number;
        is_sticky = sticky;
        alarm(60);
        child(use, expected);
    }
    int status;
    waitpid(process, &status, 0);
    if (WIFSIGNALED(status)) folder_remove(work_folder);
    else if (WEXITSTATUS(status) != 0) folder_remove(work_folder);
    if (!shared->is_done && (file_has(log, "Fatal Internal Error in libarchive") || fails_within(log, "/libarchive."))) {
        // Where libarchive has no memory, it ends the process, or reads through a null pointer.
        shared->is_by_library = true;
        return true;
    }
    return shared->is_done && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void file_print(const char *path, int lines) {
    FILE *file = fopen(path, "r");
    char line[1000];
    for (int i = 0; file && i < lines && fgets(line, sizeof line, file); i++) fprintf(stderr, "    %s", line);
    if (file) fclose(file);
}

static uint64_t random_state;

static uint64_t random_next(void) {
    random_state += 0x9e3779b97f4a7c15u;
    uint64_t value = random_state;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

int main(int count, char **arguments) {
    if (count < 3) harness_fail("usage: memory_test CORPUS PICTURES [--points N] [--seed N] [--use NAME] [--one N [--sticky]]");
    const char *only = NULL;
    long points = 0, one = 0;
    bool one_is_sticky = false;
    random_state = 1;
    for (int i = 3; i < count; i++) {
        const char *value = i + 1 < count ? arguments[i + 1] : "";
        if (!strcmp(arguments[i], "--sticky")) one_is_sticky = true;
        else if (!strcmp(arguments[i], "--points")) points = atol(value), i++;
        else if (!strcmp(arguments[i], "--seed")) random_state = strtoull(value, NULL, 10), i++;
        else if (!strcmp(arguments[i], "--use")) only = value, i++;
        else if (!strcmp(arguments[i], "--one")) one = atol(value), i++;
        else harness_fail("'%s' is no option", arguments[i]);
    }
    // Without a store of small blocks of its own, SQLite asks for each of them.
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
    sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(shared_folder, sizeof shared_folder, "%s/tidemark-memory-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(shared_folder)) harness_fail("cannot make %s", shared_folder);
    snprintf(work_folder, sizeof work_folder, "%s/work", shared_folder);
    char log[250];
    snprintf(log, sizeof log, "%s/log", shared_folder);

    static use uses[200];
    size_t use_count = uses_of_readers(uses, 200, arguments[1], arguments[2]);
    use_count += uses_of_files(uses + use_count, 200 - use_count, arguments[1], arguments[2]);
    use_count += uses_of_stores(uses + use_count, 200 - use_count);

    long allocations[200] = {0}, total = 0, done = 0, told_count = 0, by_library = 0, wrong = 0;
    static outcome expected[200];
    for (size_t i = 0; i < use_count; i++) {
        if (only && !strstr(uses[i].name, only)) continue;
        if (!point_run(&uses[i], NULL, 0, false, log) || shared->out.status) {
            fprintf(stderr, "memory_test: %s fails by itself: %d, %s\n", uses[i].name, shared->out.status, shared->out.error.message);
            file_print(log, 40);
            return 70;
        }
        expected[i] = shared->out;
        allocations[i] = shared->count;
        total += shared->count;
    }
    for (size_t i = 0; i < use_count; i++) {
        if (!allocations[i]) continue;
        long wrong_before = wrong, told_before = told_count, done_before = done;
        for (long number = 1; number <= allocations[i]; number++) {
            for (int sticky = 0; sticky < 2; sticky++) {
                if (one ? number != one || (sticky != 0) != one_is_sticky
                        : points && random_next() % (uint64_t)(2 * total) >= (uint64_t)points) continue;
                is_traced = one;
                bool is_right = point_run(&uses[i], &expected[i], number, sticky, log);
                done++;
                if (one) file_print(log, 200);
                if (is_right) {
                    if (shared->is_by_library) by_library++;
                    else if (shared->out.status) told_count++;
                    continue;
                }
                wrong++;
                if (!one && wrong - wrong_before <= 8) {
                    // Once more, with the place of the allocation.
                    is_traced = true;
                    point_run(&uses[i], &expected[i], number, sticky, log);
                    is_traced = false;
                    fprintf(stderr, "WRONG --use %s --one %ld%s\n", uses[i].name, number, sticky ? " --sticky" : "");
                    file_print(log, 40);
                }
            }
        }
        if (wrong > wrong_before || !points) {
            printf("%-28s %6ld allocations, %6ld points, %6ld told, %ld wrong\n", uses[i].name, allocations[i], done - done_before,
                   told_count - told_before, wrong - wrong_before);
            fflush(stdout);
        }
    }
    folder_remove(shared_folder);
    printf("memory_test: %ld points of %ld, %ld told, %ld ended or told otherwise by libraries, %ld wrong\n", done, 2 * total, told_count,
           by_library, wrong);
    return wrong ? 1 : 0;
}

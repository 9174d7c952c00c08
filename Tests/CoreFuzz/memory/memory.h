/// What a use of the core is, for `memory.c`, which lets each of its allocations fail.

#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide_status.h"

/// How a use has ended, and a digest of all that it yielded.
typedef struct outcome {
    tide_status status;
    tide_error error;
    uint64_t digest;
} outcome;

/// A use of the core. `run` frees what it makes, whether or not it fails.
typedef struct use {
    const char *name;
    void (*run)(const struct use *use, outcome *out);
    /// A file that the use reads, and its bytes; NULL: none.
    const char *path;
    const uint8_t *bytes;
    size_t length;
} use;

/// Folders for the run at hand: an empty one, which is removed afterwards, and one with the files that all runs read.
extern char work_folder[200], shared_folder[200];

/// Adds bytes, or a text, to the digest.
void outcome_add(outcome *out, const void *bytes, size_t length);
void outcome_add_text(outcome *out, const char *text);
void outcome_add_number(outcome *out, int64_t number);
/// Notes a status, unless there is a failure already; of a call that has no `tide_error`. Returns whether all is well so far.
bool outcome_note(outcome *out, tide_status status);

/// Ends the program: the harness itself is wrong.
__attribute__((format(printf, 1, 2), noreturn))
void harness_fail(const char *format, ...);

/// The harness's own allocations, which don't fail.
void faults_pause(void);
void faults_resume(void);

/// Fills in uses, at most `capacity`; returns how many. `pictures` is a folder of pictures that picture_test has made.
size_t uses_of_readers(use *uses, size_t capacity, const char *corpus, const char *pictures);
size_t uses_of_files(use *uses, size_t capacity, const char *corpus, const char *pictures);
size_t uses_of_stores(use *uses, size_t capacity);

#endif

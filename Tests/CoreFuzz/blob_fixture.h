// A folder of its own for a test of assets, with files and a store of blobs.

#ifndef BLOB_FIXTURE_H
#define BLOB_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "tide_blob.h"

/// The folder of the test at hand; `test_begin` makes it, `test_end` removes it.
static char test_folder[100];

/// A path below the folder of the test. It is valid until the eighth call from now.
__attribute__((format(printf, 1, 2)))
static inline const char *place(const char *format, ...) {
    static char paths[8][600];
    static int next;
    char *path = paths[next++ % 8];
    size_t length = (size_t)snprintf(path, sizeof *paths, "%s/", test_folder);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + length, sizeof *paths - length, format, arguments);
    va_end(arguments);
    return path;
}

static inline void folder_make(const char *path) { check(mkdir(path, 0700) == 0, "%s: %s", path, strerror(errno)); }

static inline void folder_remove(const char *path) {
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char inner[700];
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (unlink(inner) != 0) folder_remove(inner);
    }
    if (folder) closedir(folder);
    rmdir(path);
}

/// The number of files below a folder; 0 if it is missing.
static inline int files_count(const char *path) {
    DIR *folder = opendir(path);
    int count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char inner[700];
        struct stat status;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        count += lstat(inner, &status) == 0 && S_ISDIR(status.st_mode) ? files_count(inner) : 1;
    }
    if (folder) closedir(folder);
    return count;
}

static inline void file_write(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    check(file && fwrite(bytes, 1, length, file) == length && fclose(file) == 0, "%s: %s", path, strerror(errno));
}

/// Returns whether a file has these bytes and no others.
static inline bool file_is(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "rb");
    char *read = malloc(length + 1);
    bool is_same = file && fread(read, 1, length + 1, file) == length && (length == 0 || memcmp(read, bytes, length) == 0);
    if (file) fclose(file);
    free(read);
    return is_same;
}

/// Bytes that look random, and are the same for the same seed. The caller frees them.
static inline uint8_t *bytes_make(size_t length, uint64_t seed) {
    uint8_t *bytes = malloc(length);
    for (size_t i = 0; i < length; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(seed >> 56);
    }
    return bytes;
}

static inline void test_begin(void) {
    snprintf(test_folder, sizeof test_folder, "%s/tidemark-blobs-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    check(mkdtemp(test_folder), "%s: %s", test_folder, strerror(errno));
    folder_make(place("files"));
    folder_make(place("store"));
}

static inline void test_end(void) { folder_remove(test_folder); }

/// A store of blobs in `store/`, with a worker that reads below `files/`.
typedef struct blobs {
    tide_blob_store *store;
    tide_intake *worker;
} blobs;

static inline blobs blobs_open(bool dry_run) {
    blobs it;
    tide_error error = {0};
    check(tide_blob_store_create(place("store"), dry_run, &it.store, &error) == TIDE_OK, "%s", error.message);
    check(tide_intake_create(it.store, place("files"), &it.worker, &error) == TIDE_OK, "%s", error.message);
    return it;
}

static inline void blobs_close(blobs it) {
    tide_intake_destroy(it.worker);
    tide_blob_store_destroy(it.store);
}

/// Ingests bytes.
static inline tide_blob blob_of(blobs it, const void *bytes, size_t length) {
    tide_blob blob;
    tide_error error = {0};
    check(tide_intake_bytes(it.worker, bytes, length, "bytes", &blob, &error) == TIDE_OK, "%s", error.message);
    return blob;
}

/// Ingests a file.
static inline tide_blob blob_of_file(blobs it, const char *name) {
    tide_blob blob;
    tide_error error = {0};
    check(tide_intake_file(it.worker, name, &blob, NULL, NULL, &error) == TIDE_OK, "%s: %s", name, error.message);
    return blob;
}

/// The path of a blob in a folder of assets of the test.
static inline const char *blob_place(const char *assets, const char *id) { return place("%s/%.2s/%s", assets, id, id); }

/// Checks a refusal, and a part of its sentence.
#define check_refusal(status, error, expected, part) \
    check((status) == TIDE_REJECTED && (error).reject == (expected) && strstr((error).message, part), \
          "%d %s: %s", status, tide_reject_name((error).reject), (error).message)

#endif

/// Pictures: reading, hashing, and taking in durably by temporary file, rename and one `syncfs` for all.

#define _GNU_SOURCE
#include "floor.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 4096 };

// MARK: - One file

void floor_read_file(int folder, const char *path, floor_buffer *buffer) {
    int file = openat(folder, path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) floor_fail(errno, "%s", path);
    if (!S_ISREG(status.st_mode)) floor_fail(0, "%s is not a file", path);
    size_t size = (size_t)status.st_size;
    if (size > buffer->capacity) {
        free(buffer->bytes);
        buffer->capacity = size + size / 2 + 4096;
        void *bytes;
        int code = posix_memalign(&bytes, BLOCK_BYTES, buffer->capacity);
        if (code != 0) floor_fail(code, "%zu bytes", buffer->capacity);
        buffer->bytes = bytes;
    }
    for (buffer->length = 0; buffer->length < size;) {
        ssize_t count = read(file, buffer->bytes + buffer->length, size - buffer->length);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) floor_fail(errno, "%s", path);
        if (count == 0) floor_fail(0, "%s became shorter while it was read", path);
        buffer->length += (size_t)count;
    }
    close(file);
}

void floor_hash_buffer(const floor_buffer *buffer, uint8_t hash[16]) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(buffer->bytes, buffer->length));
    memcpy(hash, canonical.digest, sizeof(canonical.digest));
}

static void write_all(int file, const char *path, const uint8_t *bytes, size_t length) {
    while (length > 0) {
        ssize_t count = write(file, bytes, length);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) floor_fail(errno, "%s", path);
        bytes += count;
        length -= (size_t)count;
    }
}

/// Writes the whole blocks past the page cache where `direct` asks for it and the file system can, the rest through it.
static void write_file(int folder, const char *path, const floor_buffer *buffer, bool direct) {
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    int file = openat(folder, path, direct ? flags | O_DIRECT : flags, 0444);
    if (file < 0 && direct && errno == EINVAL) {
        direct = false;
        // The refused flag may have left an empty file behind.
        if (unlinkat(folder, path, 0) != 0 && errno != ENOENT) floor_fail(errno, "%s", path);
        file = openat(folder, path, flags, 0444);
    }
    if (file < 0) floor_fail(errno, "%s", path);
    size_t blocks = direct ? buffer->length / BLOCK_BYTES * BLOCK_BYTES : 0;
    write_all(file, path, buffer->bytes, blocks);
    if (direct && fcntl(file, F_SETFL, 0) != 0) floor_fail(errno, "%s", path);
    write_all(file, path, buffer->bytes + blocks, buffer->length - blocks);
    if (close(file) != 0) floor_fail(errno, "%s", path);
}

void floor_take_in(const floor_place *place, uint64_t number, const floor_buffer *buffer, const uint8_t hash[16]) {
    char temporary[32], name[64];
    snprintf(temporary, sizeof(temporary), "%llu", (unsigned long long)number);
    char *end = name + sprintf(name, "%02x/", hash[0]);
    for (int index = 0; index < 16; index++) {
        *end++ = "0123456789abcdef"[hash[index] >> 4];
        *end++ = "0123456789abcdef"[hash[index] & 15];
    }
    sprintf(end, "-%zu", buffer->length);

    write_file(place->staging, temporary, buffer, place->direct);
    if (renameat2(place->staging, temporary, place->assets, name, RENAME_NOREPLACE) == 0) return;
    if (errno != EEXIST) floor_fail(errno, "%s", name);
    floor_buffer there = {0};
    floor_read_file(place->assets, name, &there);
    if (there.length != buffer->length || memcmp(there.bytes, buffer->bytes, there.length) != 0) {
        floor_fail(0, "%s holds other bytes of the same hash", name);
    }
    free(there.bytes);
    if (unlinkat(place->staging, temporary, 0) != 0) floor_fail(errno, "%s", temporary);
}

static int open_folder(const char *folder, const char *name, void (*make)(const char *)) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    make(path);
    int opened = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0) floor_fail(errno, "%s", path);
    return opened;
}

floor_place floor_place_open(const char *folder, bool direct) {
    floor_place place = {.direct = direct};
    floor_make_folder(folder);
    place.assets = open_folder(folder, "assets", floor_make_fan);
    place.staging = open_folder(folder, "staging", floor_make_folder);
    return place;
}

void floor_place_synchronize(const floor_place *place) {
    if (syncfs(place->assets) != 0) floor_fail(errno, "syncfs");
}

void floor_place_close(const floor_place *place) {
    close(place->assets);
    close(place->staging);
}

// MARK: - All files of a folder

typedef struct file_work {
    const floor_files *files;
    atomic_size_t next;
    atomic_uint_least64_t bytes;
    /// NULL where files are only hashed.
    const floor_place *place;
    /// So that no compiler can leave out the hashing.
    atomic_uchar hashes;
} file_work;

static void *work_on_files(void *argument) {
    file_work *work = argument;
    floor_buffer buffer = {0};
    uint64_t bytes = 0;
    for (size_t index; (index = atomic_fetch_add(&work->next, 1)) < work->files->count;) {
        uint8_t hash[16];
        floor_read_file(AT_FDCWD, work->files->paths[index], &buffer);
        floor_hash_buffer(&buffer, hash);
        atomic_fetch_xor(&work->hashes, hash[0]);
        if (work->place != NULL) floor_take_in(work->place, index, &buffer, hash);
        bytes += buffer.length;
    }
    atomic_fetch_add(&work->bytes, bytes);
    free(buffer.bytes);
    return NULL;
}

static void work_with_threads(file_work *work, uint64_t threads) {
    pthread_t second;
    if (threads == 2) {
        int code = pthread_create(&second, NULL, work_on_files, work);
        if (code != 0) floor_fail(code, "pthread_create");
    }
    work_on_files(work);
    if (threads == 2) pthread_join(second, NULL);
}

void floor_hash(const floor_options *options) {
    floor_files files = floor_files_list(options->path);
    for (uint64_t threads = 1; threads <= 2; threads++) {
        if (options->threads != 0 && options->threads != threads) continue;
        file_work work = {.files = &files};
        double start = floor_clock();
        work_with_threads(&work, threads);
        floor_report(threads == 1 ? "hash-1" : "hash-2", floor_clock() - start, files.count, work.bytes);
    }
    floor_files_free(&files);
}

static void take_in_all(const char *source, const char *destination, uint64_t threads, bool direct) {
    double start = floor_clock();
    floor_files files = floor_files_list(source);
    floor_place place = floor_place_open(destination, direct);
    file_work work = {.files = &files, .place = &place};
    work_with_threads(&work, threads);
    floor_place_synchronize(&place);
    floor_report(threads == 1 ? "intake-1" : "intake-2", floor_clock() - start, files.count, work.bytes);
    floor_place_close(&place);
    floor_files_free(&files);
}

void floor_intake(const floor_options *options) {
    if (options->threads != 0) return take_in_all(options->source, options->path, options->threads, options->direct);
    floor_make_folder(options->path);
    for (uint64_t threads = 1; threads <= 2; threads++) {
        char destination[4096];
        snprintf(destination, sizeof(destination), "%s/%d", options->path, (int)threads);
        sync();
        take_in_all(options->source, destination, threads, options->direct);
    }
}

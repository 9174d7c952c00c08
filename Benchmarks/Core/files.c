/// Pictures through the core: taken in durably, and the same as a dry run, which reads, probes and hashes without writing.
///
/// The core has no call that only hashes. A dry run also opens each file component by component, and tells whether an image is whole.

#define _GNU_SOURCE
#include "core.h"

#include "tide_blob.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_MAX = 2 };

typedef struct file_work {
    const floor_files *files;
    size_t root_length;
    struct {
        _Alignas(64) tide_intake *intake;
        uint64_t bytes;
    } workers[THREADS_MAX];
} file_work;

static tide_status take_in(void *context, uint32_t worker, uint32_t index, tide_error *error) {
    file_work *work = context;
    const char *path = work->files->paths[index] + work->root_length;
    tide_blob blob;
    tide_status status = tide_intake_file(work->workers[worker].intake, path + strspn(path, "/"), &blob, NULL, NULL, error);
    work->workers[worker].bytes += blob.size;
    return status;
}

/// Takes in all files of a folder; `container` is NULL for a dry run, which then has nothing to look into.
static uint64_t take_in_all(const char *folder, const floor_files *files, const char *container, uint64_t threads) {
    file_work work = {.files = files, .root_length = strlen(folder)};
    tide_blob_store *store;
    tide_error error;
    uint64_t bytes = 0;
    core_check(tide_blob_store_create(container != NULL ? container : "", container == NULL, &store, &error), &error);
    for (uint64_t worker = 0; worker < threads; worker++) {
        core_check(tide_intake_create(store, folder, &work.workers[worker].intake, &error), &error);
    }
    core_check(tide_intake_run((uint32_t)threads, (uint32_t)files->count, take_in, &work, &error), &error);
    core_check(tide_blob_store_sync(store, &error), &error);
    for (uint64_t worker = 0; worker < threads; worker++) {
        tide_intake_destroy(work.workers[worker].intake);
        bytes += work.workers[worker].bytes;
    }
    tide_blob_store_destroy(store);
    return bytes;
}

void core_hash(const floor_options *options) {
    floor_files files = floor_files_list(options->path);
    for (uint64_t threads = 1; threads <= THREADS_MAX; threads++) {
        if (options->threads != 0 && options->threads != threads) continue;
        double start = floor_clock();
        uint64_t bytes = take_in_all(options->path, &files, NULL, threads);
        floor_report(threads == 1 ? "hash-1" : "hash-2", floor_clock() - start, files.count, bytes);
    }
    floor_files_free(&files);
}

static void intake(const char *source, const char *destination, uint64_t threads) {
    double start = floor_clock();
    floor_files files = floor_files_list(source);
    floor_make_folder(destination);
    uint64_t bytes = take_in_all(source, &files, destination, threads);
    floor_report(threads == 1 ? "intake-1" : "intake-2", floor_clock() - start, files.count, bytes);
    floor_files_free(&files);
}

void core_intake(const floor_options *options) {
    if (options->threads != 0) return intake(options->source, options->path, options->threads);
    floor_make_folder(options->path);
    for (uint64_t threads = 1; threads <= THREADS_MAX; threads++) {
        char destination[4096];
        snprintf(destination, sizeof(destination), "%s/%d", options->path, (int)threads);
        sync();
        intake(options->source, destination, threads);
    }
}

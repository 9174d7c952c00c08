#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tide_blob_layout.h"

enum {
    discriminator_limit = 64,
    /// A blob younger than this may have been put there by a process that has not made it durable yet.
    unsynced_seconds = 120,
};

static bool write_all(int descriptor, const void *buffer, size_t length) {
    size_t done = 0;
    while (done < length) {
        ssize_t count = write(descriptor, (const char *)buffer + done, length - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return false;
        done += (size_t)count;
    }
    return true;
}

/// Writes to a staged file. If the file was opened with O_DIRECT, whole blocks go past the page cache, and the rest goes through it. That
/// halves the time that a batch of pictures takes to become durable.
bool tide_stage_write(int descriptor, const uint8_t *buffer, size_t length) {
#if defined(O_DIRECT)
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0) return false;
    if (flags & O_DIRECT) {
        size_t blocks = length / tide_direct_block * tide_direct_block;
        if (blocks > 0 && !write_all(descriptor, buffer, blocks)) return false;
        if (blocks == length) return true;
        if (fcntl(descriptor, F_SETFL, flags & ~O_DIRECT) != 0) return false;
        buffer += blocks;
        length -= blocks;
    }
#endif
    return write_all(descriptor, buffer, length);
}

tide_status tide_stage_open(tide_blob_store *store, tide_content *content, int *descriptor, tide_error *error) {
    snprintf(
        content->staged, sizeof content->staged, "%016llx-%u.tmp", (unsigned long long)store->staging_tag,
        atomic_fetch_add(&store->next_staged, 1));
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
#if defined(O_DIRECT)
    *descriptor = openat(store->staging, content->staged, flags | O_DIRECT, 0600);
    if (*descriptor < 0 && errno == EINVAL) {
        // A file system without O_DIRECT may have made the file all the same.
        unlinkat(store->staging, content->staged, 0);
        *descriptor = openat(store->staging, content->staged, flags, 0600);
    }
#else
    *descriptor = openat(store->staging, content->staged, flags, 0600);
#endif
    if (*descriptor >= 0) return TIDE_OK;
    tide_status status = tide_error_errno(error, "make the staged file", content->staged);
    content->staged[0] = 0;
    return status;
}

void tide_stage_drop(tide_blob_store *store, tide_content *content) {
    if (content->staged[0]) unlinkat(store->staging, content->staged, 0);
    content->staged[0] = 0;
}

/// Refuses a content that could not be read again, with the system's reason, or that has become shorter (0). In a dry run that is the file at
/// fault; else it is the staged file.
static tide_status refuse_unread(const tide_intake *intake, int number, const char *id, tide_error *error) {
    if (intake->store->dry_run && number) {
        return tide_error_reject(error, TIDE_REJECT_ASSET_UNREADABLE, "the file cannot be compared with the asset %s: %s", id, strerror(number));
    }
    if (number) return tide_error_set(error, TIDE_IO_ERROR, number, "cannot compare with the asset %s: %s", id, strerror(number));
    return tide_error_reject(
        error, TIDE_REJECT_ASSET_CHANGED, "the file became shorter while it was compared with the asset %s; import it again when it is at rest", id);
}

static tide_status content_equals(
    tide_intake *intake, const tide_content *content, int blob, const char *id, bool *is_same, tide_error *error
) {
#if defined(POSIX_FADV_WILLNEED)
    // The blob may have to come from the disk: this asks for all of it at once.
    posix_fadvise(blob, 0, 0, POSIX_FADV_WILLNEED);
#endif
    *is_same = true;
    size_t half = tide_compare_chunk / 2;
    for (uint64_t offset = 0; offset < content->size && *is_same; offset += half) {
        size_t length = content->size - offset < half ? (size_t)(content->size - offset) : half;
        const uint8_t *mine = content->memory ? content->memory + offset : intake->compare + half;
        ssize_t count = tide_read_fully(blob, intake->compare, length, (off_t)offset);
        if (count < 0) return tide_error_errno(error, "compare with the asset", id);
        // A blob that has become shorter is another content.
        *is_same = (size_t)count == length;
        if (!content->memory) {
            count = tide_read_fully(content->descriptor, intake->compare + half, length, (off_t)offset);
            if ((size_t)count != length) return refuse_unread(intake, count < 0 ? errno : 0, id, error);
        }
        *is_same = *is_same && memcmp(intake->compare, mine, length) == 0;
    }
    return TIDE_OK;
}

/// Compares a content with the blob of that identifier. `*exists` is false when there is none.
static tide_status blob_compare(
    tide_intake *intake, const tide_content *content, int folder, const char *id, bool *exists, bool *is_same, tide_error *error
) {
    *exists = *is_same = false;
    if (folder < 0) return TIDE_OK;
    int blob = openat(folder, id, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (blob < 0) return errno == ENOENT ? TIDE_OK : tide_error_errno(error, "open the asset", id);
    *exists = true;
    struct stat status;
    tide_status result = TIDE_OK;
    if (fstat(blob, &status) != 0) {
        result = tide_error_errno(error, "examine the asset", id);
    } else if (S_ISREG(status.st_mode) && (uint64_t)status.st_size == content->size) {
        result = content_equals(intake, content, blob, id, is_same, error);
        bool may_be_unsynced = time(NULL) - TIDE_CHANGED(status).tv_sec < unsynced_seconds;
        if (!result && *is_same && may_be_unsynced && !intake->store->dry_run) result = tide_blob_note_unsynced(intake->store, id);
    }
    close(blob);
    return result;
}

/// Renames a staged file without replacing another one. `*is_taken` says whether the name is taken.
static tide_status blob_move_in(tide_blob_store *store, const char *staged, int folder, const char *id, bool *is_taken, tide_error *error) {
    *is_taken = false;
#if defined(__APPLE__)
    int result = renameatx_np(store->staging, staged, folder, id, RENAME_EXCL);
#else
    int result = renameat2(store->staging, staged, folder, id, RENAME_NOREPLACE);
#endif
    if (result != 0 && (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP)) {
        // The file system lacks that flag: the file gets its second name, then the first one is removed.
        result = linkat(store->staging, staged, folder, id, 0);
        if (result == 0) unlinkat(store->staging, staged, 0);
    }
    if (result == 0) return TIDE_OK;
    *is_taken = errno == EEXIST;
    return *is_taken ? TIDE_OK : tide_error_errno(error, "move to its place the asset", id);
}

static tide_status content_stage(tide_intake *intake, tide_content *content, tide_error *error) {
    int descriptor;
    tide_status status = tide_stage_open(intake->store, content, &descriptor, error);
    if (status) return status;
    if (!tide_stage_write(descriptor, content->memory, (size_t)content->size)) {
        status = tide_error_errno(error, "write the staged file", content->staged);
    }
    if (close(descriptor) != 0 && !status) status = tide_error_errno(error, "write the staged file", content->staged);
    if (status) tide_stage_drop(intake->store, content);
    return status;
}

/// Counts a content that a dry run would store, under the identifier that it would get.
static tide_status dry_run_note(tide_blob_store *store, tide_blob *blob, tide_error *error) {
    pthread_mutex_lock(&store->mutex);
    blob->is_new = tide_fingerprints_add(store->seen, XXH3_64bits(blob->id, strlen(blob->id)));
    bool is_lost = tide_fingerprints_memory_ran_out(store->seen);
    pthread_mutex_unlock(&store->mutex);
    return is_lost ? tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory") : TIDE_OK;
}

/// Tries one identifier. `*is_done` says whether the content is in the store under it.
static tide_status content_put_as(
    tide_intake *intake, tide_content *content, int folder, tide_blob *blob, bool *is_done, tide_error *error
) {
    tide_blob_store *store = intake->store;
    bool exists;
    tide_status status = blob_compare(intake, content, folder, blob->id, &exists, is_done, error);
    if (status || exists) return status;
    if (store->dry_run) {
        *is_done = true;
        return dry_run_note(store, blob, error);
    }
    if (!content->staged[0] && (status = content_stage(intake, content, error))) return status;
    if ((status = blob_move_in(store, content->staged, folder, blob->id, &exists, error))) return status;
    // Another process was faster: compare with its blob.
    if (exists) return blob_compare(intake, content, folder, blob->id, &exists, is_done, error);
    content->staged[0] = 0;
    blob->is_new = *is_done = true;
    return tide_blob_note_unsynced(store, blob->id);
}

tide_status tide_content_put(tide_intake *intake, tide_content *content, tide_blob *blob, tide_error *error) {
    tide_blob_store *store = intake->store;
    tide_content_id(content, 0, blob->id);
    int folder = store->assets < 0 ? -1 : tide_blob_folder_open(store->assets, blob->id, !store->dry_run);
    tide_status status = TIDE_OK;
    if (folder < 0 && !(store->dry_run && (store->assets < 0 || errno == ENOENT))) {
        status = tide_error_errno(error, "open the folder of the asset", blob->id);
    }
    bool is_done = false;
    for (unsigned discriminator = 0; discriminator < discriminator_limit && !status && !is_done; discriminator++) {
        tide_content_id(content, discriminator, blob->id);
        status = content_put_as(intake, content, folder, blob, &is_done, error);
    }
    if (folder >= 0) close(folder);
    tide_stage_drop(store, content);
    if (status || is_done) return status;
    return tide_error_reject(
        error, TIDE_REJECT_ASSET_COLLISIONS, "there are %d different contents with this digest already; the file is forged",
        discriminator_limit);
}

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tide_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#if defined(__linux__)
#include <linux/fs.h>
#include <sys/ioctl.h>
#endif

#include "tide_blob_layout.h"

enum { copy_chunk = 4 << 20, digest_text = 32 };

struct tide_copier {
    int from, to;
    bool may_link;
    uint8_t *buffer;
    XXH3_state_t *hash;
};

tide_status tide_copier_create(const char *from, const char *to, bool may_link, tide_copier **copier, tide_error *error) {
    *copier = NULL;
    tide_copier *created = calloc(1, sizeof *created);
    if (!created) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    created->from = created->to = -1;
    created->may_link = may_link;
    void *aligned = NULL;
    if (posix_memalign(&aligned, tide_direct_block, copy_chunk) == 0) created->buffer = aligned;
    created->hash = XXH3_createState();
    tide_status status = TIDE_OK;
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
    if (!created->buffer || !created->hash) {
        status = tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    } else if ((created->from = open(from, flags)) < 0) {
        status = tide_error_errno(error, "open the folder", from);
    } else if (mkdir(to, 0700) != 0 && errno != EEXIST) {
        status = tide_error_errno(error, "make the folder", to);
    } else if ((created->to = open(to, flags)) < 0) {
        status = tide_error_errno(error, "open the folder", to);
    }
    if (status) {
        tide_copier_destroy(created);
        return status;
    }
    *copier = created;
    return TIDE_OK;
}

void tide_copier_destroy(tide_copier *copier) {
    if (!copier) return;
    if (copier->from >= 0) close(copier->from);
    if (copier->to >= 0) close(copier->to);
    free(copier->buffer);
    XXH3_freeState(copier->hash);
    free(copier);
}

static uint64_t size_of(const char *id) { return strtoull(id + digest_text + 1, NULL, 10); }

/// Opens a blob and checks that it is a file of the size that its identifier says.
static tide_status blob_open(int assets, const char *id, int *descriptor, tide_error *error) {
    int folder = tide_blob_folder_open(assets, id, false);
    *descriptor = folder < 0 ? -1 : openat(folder, id, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int number = errno;
    if (folder >= 0) close(folder);
    if (*descriptor < 0) {
        if (number == ENOENT) return tide_error_reject(error, TIDE_REJECT_ASSET_MISSING, "the asset %s is missing", id);
        return tide_error_reject(
            error, TIDE_REJECT_ASSET_UNREADABLE, "the asset %s cannot be opened: %s", id, strerror(number));
    }
    struct stat status;
    tide_status result = TIDE_OK;
    if (fstat(*descriptor, &status) != 0) {
        result = tide_error_reject(error, TIDE_REJECT_ASSET_UNREADABLE, "the asset %s cannot be examined: %s", id, strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        result = tide_error_reject(error, TIDE_REJECT_ASSET_NOT_A_FILE, "the asset %s is not a file", id);
    } else if ((uint64_t)status.st_size != size_of(id)) {
        result = tide_error_reject(
            error, TIDE_REJECT_ASSET_CHANGED, "the asset %s is damaged: it has %llu bytes", id,
            (unsigned long long)status.st_size);
    }
    if (result) {
        close(*descriptor);
        *descriptor = -1;
    }
    return result;
}

/// Compares the digest of the hashed bytes with the identifier. TIDE_REJECTED when they differ.
static tide_status digest_check(tide_copier *copier, const char *id, tide_error *error) {
    // The caller compares the SHA-256.
    if (tide_blob_id_is_of_sha256(id)) return TIDE_OK;
    tide_content content = {.size = size_of(id), .digest = XXH3_128bits_digest(copier->hash)};
    char actual[TIDE_BLOB_ID_SIZE];
    tide_content_id(&content, 0, actual);
    if (strncmp(id, actual, digest_text) == 0) return TIDE_OK;
    return tide_error_reject(
        error, TIDE_REJECT_ASSET_CHANGED, "the asset %s is damaged: its content is not what its name says", id);
}

/// Hashes a blob's bytes on their way from `source`, and writes them to `target` unless that is -1.
static tide_status blob_pass(tide_copier *copier, const char *id, int source, int target, tide_error *error) {
    XXH3_128bits_reset(copier->hash);
    uint64_t size = size_of(id);
    for (uint64_t offset = 0; offset < size;) {
        size_t length = size - offset < copy_chunk ? (size_t)(size - offset) : copy_chunk;
        ssize_t count = tide_read_fully(source, copier->buffer, length, (off_t)offset);
        if (count < 0) {
            return tide_error_reject(
                error, TIDE_REJECT_ASSET_UNREADABLE, "the asset %s cannot be read: %s", id, strerror(errno));
        }
        if ((size_t)count != length) {
            return tide_error_reject(error, TIDE_REJECT_ASSET_CHANGED, "the asset %s changed while it was read", id);
        }
        XXH3_128bits_update(copier->hash, copier->buffer, length);
        if (target >= 0 && !tide_stage_write(target, copier->buffer, length)) {
            return tide_error_errno(error, "write the copy of the asset", id);
        }
        offset += length;
    }
    return digest_check(copier, id, error);
}

/// Shares the source's blocks with the copy, where that is possible.
static bool blocks_share(int source, int target) {
#if defined(__linux__) && defined(FICLONE)
    return ioctl(target, FICLONE, source) == 0;
#else
    (void)source;
    (void)target;
    return false;
#endif
}

/// Gives the blob a second name; false where that is not possible.
static bool blob_link(tide_copier *copier, const char *id, int folder) {
    if (!copier->may_link) return false;
    int source = tide_blob_folder_open(copier->from, id, false);
    if (source < 0) return false;
    bool is_linked = linkat(source, id, folder, id, 0) == 0;
    close(source);
    return is_linked;
}

static tide_status blob_copy(tide_copier *copier, const char *id, int source, int folder, tide_error *error) {
    if (unlinkat(folder, id, 0) != 0 && errno != ENOENT) return tide_error_errno(error, "replace the asset", id);
    if (blob_link(copier, id, folder)) return TIDE_OK;
    int target = openat(folder, id, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (target < 0) return tide_error_errno(error, "make the copy of the asset", id);
    tide_status status =
        blocks_share(source, target) ? blob_pass(copier, id, target, -1, error) : blob_pass(copier, id, source, target, error);
#if !defined(__linux__)
    if (!status && fsync(target) != 0) status = tide_error_errno(error, "make durable the asset", id);
#endif
    if (close(target) != 0 && !status) status = tide_error_errno(error, "write the copy of the asset", id);
    if (status) unlinkat(folder, id, 0);
    return status;
}

/// Whether a blob of the target is the very file that the source has.
static bool is_same_file(int one, int other) {
    struct stat first, second;
    return fstat(one, &first) == 0 && fstat(other, &second) == 0 && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/// Whether the target has the blob already, whole.
static bool is_there(tide_copier *copier, const char *id, int source) {
    int descriptor;
    if (blob_open(copier->to, id, &descriptor, NULL) != TIDE_OK) return false;
    bool is_whole =
        copier->may_link && is_same_file(source, descriptor) ? true : blob_pass(copier, id, descriptor, -1, NULL) == TIDE_OK;
#if !defined(__linux__)
    if (is_whole) is_whole = fsync(descriptor) == 0;
#endif
    close(descriptor);
    return is_whole;
}

tide_status tide_copier_copy(tide_copier *copier, const char *id, tide_error *error) {
    if (!tide_blob_id_is_valid(id, strlen(id))) {
        return tide_error_reject(error, TIDE_REJECT_ASSET_MISSING, "'%.100s' is no identifier of an asset", id);
    }
    int source;
    tide_status status = blob_open(copier->from, id, &source, error);
    if (status) return status;
    if (is_there(copier, id, source)) {
        close(source);
        return TIDE_OK;
    }
    int folder = tide_blob_folder_open(copier->to, id, true);
    if (folder < 0) {
        status = tide_error_errno(error, "make the folder of the asset", id);
    } else {
        status = blob_copy(copier, id, source, folder, error);
#if !defined(__linux__)
        if (!status && fsync(folder) != 0) status = tide_error_errno(error, "make durable the folder of the asset", id);
#endif
        close(folder);
    }
    close(source);
    return status;
}

tide_status tide_copier_verify(tide_copier *copier, const char *id, tide_error *error) {
    if (!tide_blob_id_is_valid(id, strlen(id))) {
        return tide_error_reject(error, TIDE_REJECT_ASSET_MISSING, "'%.100s' is no identifier of an asset", id);
    }
    int descriptor, source;
    tide_status status = blob_open(copier->to, id, &descriptor, error);
    if (status) return status;
    bool was_written = true;
    if (blob_open(copier->from, id, &source, NULL) == TIDE_OK) {
        was_written = !is_same_file(source, descriptor);
        close(source);
    }
#if defined(POSIX_FADV_DONTNEED)
    if (was_written) posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_WILLNEED);
#endif
    status = blob_pass(copier, id, descriptor, -1, error);
    close(descriptor);
    return status;
}

tide_status tide_copier_sync(tide_copier *copier, tide_error *error) {
#if defined(__linux__)
    if (syncfs(copier->to) == 0) return TIDE_OK;
#elif defined(F_FULLFSYNC)
    if (fcntl(copier->to, F_FULLFSYNC) == 0 || fsync(copier->to) == 0) return TIDE_OK;
#else
    if (fsync(copier->to) == 0) return TIDE_OK;
#endif
    return tide_error_errno(error, "make durable", "assets");
}

tide_status tide_folders_exchange(const char *one, const char *other, tide_error *error) {
#if defined(__APPLE__)
    int result = renamex_np(one, other, RENAME_SWAP);
#else
    int result = renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
#endif
    if (result == 0) return TIDE_OK;
    if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) {
        return tide_error_set(error, TIDE_MISUSE, errno, "the file system can't exchange %s and %s", one, other);
    }
    return tide_error_errno(error, "put the copy in the place of", other);
}

void tide_file_forget(const char *path) {
#if defined(POSIX_FADV_DONTNEED)
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0) return;
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_WILLNEED);
    close(descriptor);
#else
    (void)path;
#endif
}

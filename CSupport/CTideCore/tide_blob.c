#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tide_blob.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "tide_blob_layout.h"
#include "tide_fingerprints.h"

#if defined(__APPLE__)
#define MODIFIED(status) ((status).st_mtimespec)
#define CHANGED(status) ((status).st_ctimespec)
#else
#define MODIFIED(status) ((status).st_mtim)
#define CHANGED(status) ((status).st_ctim)
#endif

enum {
    small_file = 4 << 20,
    stream_chunk = 1 << 20,
    compare_chunk = 256 << 10,
    digest_text = 32,
    discriminator_limit = 64,
    /// What direct writing asks of addresses and lengths.
    direct_block = 4096,
    /// A blob younger than this may have been put there by a process that has not made it durable yet.
    unsettled_seconds = 120,
};

struct tide_blob_store {
    int assets, staging;
    bool dry_run;
    atomic_bool is_dirty;
    atomic_uint next_staged;
    pthread_mutex_t mutex;
    /// Of a dry run: contents that would be new.
    tide_fingerprints *seen;
#if !defined(__linux__)
    /// Blobs not yet durable, where there is no call that flushes a whole file system.
    char (*unsynced)[TIDE_BLOB_ID_SIZE];
    size_t unsynced_count, unsynced_capacity;
#endif
};

// Store

static tide_status folder_open(int parent, const char *path, const char *shown, bool create, int *descriptor, tide_error *error) {
    if (create && mkdirat(parent, path, 0700) != 0 && errno != EEXIST) return tide_error_errno(error, "make the folder", shown);
    *descriptor = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (*descriptor < 0 && !(errno == ENOENT && !create)) return tide_error_errno(error, "open the folder", shown);
    return TIDE_OK;
}

tide_status tide_blob_store_create(const char *container, bool dry_run, tide_blob_store **store, tide_error *error) {
    *store = NULL;
    tide_blob_store *created = calloc(1, sizeof *created);
    if (!created) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    created->assets = created->staging = -1;
    created->dry_run = dry_run;
    pthread_mutex_init(&created->mutex, NULL);
    tide_status status = TIDE_OK;
    int folder = open(container, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 && !(dry_run && errno == ENOENT)) status = tide_error_errno(error, "open the container", container);
    if (dry_run && !status && !(created->seen = tide_fingerprints_create())) status = TIDE_NO_MEMORY;
    if (folder >= 0) {
        if (!status) status = folder_open(folder, "assets", "assets", !dry_run, &created->assets, error);
        if (!status && !dry_run) status = folder_open(folder, "staging", "staging", true, &created->staging, error);
        close(folder);
    }
    if (status) {
        tide_blob_store_destroy(created);
        return status;
    }
    *store = created;
    return TIDE_OK;
}

void tide_blob_store_destroy(tide_blob_store *store) {
    if (!store) return;
    if (store->assets >= 0) close(store->assets);
    if (store->staging >= 0) close(store->staging);
    tide_fingerprints_destroy(store->seen);
    pthread_mutex_destroy(&store->mutex);
#if !defined(__linux__)
    free(store->unsynced);
#endif
    free(store);
}

#if defined(__linux__)

static tide_status unsynced_note(tide_blob_store *store, const char *id) {
    (void)id;
    atomic_store(&store->is_dirty, true);
    return TIDE_OK;
}

tide_status tide_blob_store_sync(tide_blob_store *store, tide_error *error) {
    if (!atomic_exchange(&store->is_dirty, false)) return TIDE_OK;
    if (syncfs(store->assets) == 0) return TIDE_OK;
    atomic_store(&store->is_dirty, true);
    return tide_error_errno(error, "make durable", "assets");
}

#else

static tide_status unsynced_note(tide_blob_store *store, const char *id) {
    tide_status status = TIDE_OK;
    pthread_mutex_lock(&store->mutex);
    if (store->unsynced_count == store->unsynced_capacity) {
        size_t larger = store->unsynced_capacity ? store->unsynced_capacity * 2 : 64;
        void *moved = realloc(store->unsynced, larger * TIDE_BLOB_ID_SIZE);
        if (moved) {
            store->unsynced = moved;
            store->unsynced_capacity = larger;
        } else {
            status = TIDE_NO_MEMORY;
        }
    }
    if (!status) memcpy(store->unsynced[store->unsynced_count++], id, TIDE_BLOB_ID_SIZE);
    pthread_mutex_unlock(&store->mutex);
    return status;
}

static int descriptor_sync(int folder, const char *path) {
    int descriptor = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return -1;
#if defined(F_FULLFSYNC)
    int result = fcntl(descriptor, F_FULLFSYNC);
    if (result != 0) result = fsync(descriptor);
#else
    int result = fsync(descriptor);
#endif
    int number = errno;
    close(descriptor);
    errno = number;
    return result;
}

tide_status tide_blob_store_sync(tide_blob_store *store, tide_error *error) {
    pthread_mutex_lock(&store->mutex);
    tide_status status = TIDE_OK;
    for (size_t i = 0; i < store->unsynced_count && !status; i++) {
        const char *id = store->unsynced[i];
        char path[TIDE_BLOB_ID_SIZE + 4], folder[3] = {id[0], id[1], 0};
        snprintf(path, sizeof path, "%.2s/%s", id, id);
        if (descriptor_sync(store->assets, path) != 0) status = tide_error_errno(error, "make durable", path);
        if (!status && descriptor_sync(store->assets, folder) != 0) status = tide_error_errno(error, "make durable", folder);
    }
    if (!status && store->unsynced_count && descriptor_sync(store->assets, ".") != 0) {
        status = tide_error_errno(error, "make durable", "assets");
    }
    if (!status) store->unsynced_count = 0;
    pthread_mutex_unlock(&store->mutex);
    return status;
}

#endif

// Reading below the root


tide_status tide_intake_create(tide_blob_store *store, const char *root, tide_intake **intake, tide_error *error) {
    *intake = NULL;
    tide_intake *created = calloc(1, sizeof *created);
    if (!created) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    created->store = store;
    created->root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tide_status status = TIDE_OK;
    if (created->root < 0) status = tide_error_errno(error, "open the assets root", root);
    void *aligned = NULL;
    if (posix_memalign(&aligned, direct_block, small_file) == 0) created->buffer = aligned;
    created->compare = malloc(compare_chunk);
    created->hash = XXH3_createState();
    if (!status && (!created->buffer || !created->compare || !created->hash)) {
        status = tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    }
    if (status) {
        tide_intake_destroy(created);
        return status;
    }
    *intake = created;
    return TIDE_OK;
}

void tide_intake_destroy(tide_intake *intake) {
    if (!intake) return;
    if (intake->root >= 0) close(intake->root);
    free(intake->buffer);
    free(intake->compare);
    XXH3_freeState(intake->hash);
    tide_paths_destroy(intake->paths);
    free(intake);
}

static tide_status refuse_open(int folder, const char *name, const char *path, tide_error *error) {
    int number = errno;
    struct stat status;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISLNK(status.st_mode)) {
            return tide_error_reject(error, TIDE_REJECT_ASSET_OUTSIDE_ROOT, "'%.300s' goes through a symbolic link", path);
        }
        if (number == ENOTDIR) {
            return tide_error_reject(error, TIDE_REJECT_ASSET_MISSING, "there is no file '%.300s' below the assets root", path);
        }
    }
    if (number == ENOENT) {
        return tide_error_reject(error, TIDE_REJECT_ASSET_MISSING, "there is no file '%.300s' below the assets root", path);
    }
    return tide_error_reject(
        error, TIDE_REJECT_ASSET_UNREADABLE, "'%.300s' cannot be opened: %s", path, strerror(number));
}

/// Opens a regular file below the root, following no symbolic link anywhere on the way.
static tide_status file_open(int root, const char *path, int *descriptor, struct stat *status, tide_error *error) {
    if (path[0] == 0) return tide_error_reject(error, TIDE_REJECT_ASSET_MISSING, "the path of the asset is empty");
    if (path[0] == '/') {
        return tide_error_reject(
            error, TIDE_REJECT_ASSET_OUTSIDE_ROOT, "'%.300s' is an absolute path; give it relative to the assets root", path);
    }
    int folder = root;
    tide_status result = TIDE_OK;
    *descriptor = -1;
    for (const char *at = path; !result;) {
        size_t length = strcspn(at, "/");
        bool is_last = at[length] == 0;
        char name[256];
        if (length >= sizeof name) {
            result = tide_error_reject(error, TIDE_REJECT_ASSET_MISSING, "a part of the path is over 255 bytes long");
            break;
        }
        memcpy(name, at, length);
        name[length] = 0;
        at += length + (is_last ? 0 : 1);
        if (strcmp(name, "..") == 0) {
            result = tide_error_reject(error, TIDE_REJECT_ASSET_OUTSIDE_ROOT, "'%.300s' climbs with '..'", path);
        } else if (!is_last && (length == 0 || strcmp(name, ".") == 0)) {
            continue;
        } else if (!is_last) {
            int next = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (next < 0) result = refuse_open(folder, name, path, error);
            if (folder != root) close(folder);
            folder = next;
        } else if (length == 0 || fstatat(folder, name, status, AT_SYMLINK_NOFOLLOW) == 0) {
            if (length > 0 && S_ISLNK(status->st_mode)) {
                result = tide_error_reject(error, TIDE_REJECT_ASSET_OUTSIDE_ROOT, "'%.300s' is a symbolic link", path);
            } else if (length == 0 || !S_ISREG(status->st_mode)) {
                result = tide_error_reject(
                    error, TIDE_REJECT_ASSET_NOT_A_FILE, "'%.300s' is not a file but a %s", path,
                    length == 0 || S_ISDIR(status->st_mode) ? "folder"
                    : S_ISFIFO(status->st_mode)             ? "FIFO"
                    : S_ISSOCK(status->st_mode)             ? "socket"
                                                            : "device");
            } else {
                // Non-blocking, should the file have been exchanged for a FIFO just now.
                *descriptor = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
                if (*descriptor < 0) result = refuse_open(folder, name, path, error);
            }
            break;
        } else {
            result = refuse_open(folder, name, path, error);
        }
    }
    if (folder != root && folder >= 0) close(folder);
    if (!result && (fstat(*descriptor, status) != 0 || !S_ISREG(status->st_mode))) {
        result = tide_error_reject(error, TIDE_REJECT_ASSET_NOT_A_FILE, "'%.300s' is not a file", path);
    }
    if (result && *descriptor >= 0) {
        close(*descriptor);
        *descriptor = -1;
    }
    return result;
}

/// Reads exactly `length` bytes unless the file ends: returns how many, or -1.
static ssize_t read_fully(int descriptor, void *buffer, size_t length, off_t offset) {
    size_t done = 0;
    while (done < length) {
        ssize_t count = pread(descriptor, (char *)buffer + done, length - done, offset + (off_t)done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return -1;
        if (count == 0) break;
        done += (size_t)count;
    }
    return (ssize_t)done;
}

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

/// Writes to a staged file: whole blocks past the page cache if it was opened so, which halves the time that a batch of pictures
/// takes to become durable, and what is left after them through it.
static bool write_staged(int descriptor, const uint8_t *buffer, size_t length) {
#if defined(O_DIRECT)
    int flags = fcntl(descriptor, F_GETFL);
    if (flags >= 0 && (flags & O_DIRECT)) {
        size_t blocks = length / direct_block * direct_block;
        if (blocks > 0 && !write_all(descriptor, buffer, blocks)) return false;
        if (blocks == length) return true;
        if (fcntl(descriptor, F_SETFL, flags & ~O_DIRECT) != 0) return false;
        buffer += blocks;
        length -= blocks;
    }
#endif
    return write_all(descriptor, buffer, length);
}

static bool is_unchanged(int descriptor, const struct stat *before) {
    struct stat after;
    return fstat(descriptor, &after) == 0 && after.st_size == before->st_size &&
           MODIFIED(after).tv_sec == MODIFIED(*before).tv_sec && MODIFIED(after).tv_nsec == MODIFIED(*before).tv_nsec &&
           CHANGED(after).tv_sec == CHANGED(*before).tv_sec && CHANGED(after).tv_nsec == CHANGED(*before).tv_nsec;
}

static tide_status refuse_changed(const char *path, tide_error *error) {
    return tide_error_reject(
        error, TIDE_REJECT_ASSET_CHANGED, "'%.300s' changed while it was read; import it again when it is at rest", path);
}

// Putting into the store

/// A content on its way into the store: in memory, or staged under a temporary name.
typedef struct content {
    const uint8_t *memory;
    int descriptor;
    uint64_t size;
    XXH128_hash_t digest;
    char staged[48];
} content;

static void blob_id(const content *content, unsigned discriminator, char id[TIDE_BLOB_ID_SIZE]) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, content->digest);
    for (int i = 0; i < 16; i++) snprintf(id + 2 * i, 3, "%02x", canonical.digest[i]);
    int length = snprintf(id + digest_text, TIDE_BLOB_ID_SIZE - digest_text, "-%llu", (unsigned long long)content->size);
    if (discriminator > 0) {
        snprintf(
            id + digest_text + length, (size_t)(TIDE_BLOB_ID_SIZE - digest_text - length), "-%u", discriminator);
    }
}

static tide_status stage_open(tide_blob_store *store, content *content, int *descriptor, tide_error *error) {
    snprintf(
        content->staged, sizeof content->staged, "%ld-%u.tmp", (long)getpid(), atomic_fetch_add(&store->next_staged, 1));
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
#if defined(O_DIRECT)
    flags |= O_DIRECT;
#endif
    *descriptor = openat(store->staging, content->staged, flags, 0600);
#if defined(O_DIRECT)
    if (*descriptor < 0 && errno == EINVAL) {
        // A file system without it may have made the file all the same.
        unlinkat(store->staging, content->staged, 0);
        *descriptor = openat(store->staging, content->staged, flags & ~O_DIRECT, 0600);
    }
#endif
    if (*descriptor < 0 && errno == EEXIST) {
        // Left over from a process that had this id: it is dead, or it would hold the name.
        unlinkat(store->staging, content->staged, 0);
        *descriptor = openat(store->staging, content->staged, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    if (*descriptor < 0) {
        tide_status status = tide_error_errno(error, "make the file staging/", content->staged);
        content->staged[0] = 0;
        return status;
    }
    return TIDE_OK;
}

static void stage_drop(tide_blob_store *store, content *content) {
    if (content->staged[0]) unlinkat(store->staging, content->staged, 0);
    content->staged[0] = 0;
}

/// Compares a content with the blob at `path`. `*exists` is false when there is none.
static tide_status blob_compare(
    tide_intake *intake, const content *content, const char *path, bool *exists, bool *is_same, tide_error *error
) {
    *exists = *is_same = false;
    if (intake->store->assets < 0) return TIDE_OK;
    int descriptor = openat(intake->store->assets, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) return errno == ENOENT ? TIDE_OK : tide_error_errno(error, "open the blob", path);
    *exists = true;
    struct stat status;
    tide_status result = TIDE_OK;
    if (fstat(descriptor, &status) != 0) {
        result = tide_error_errno(error, "examine the blob", path);
    } else if (S_ISREG(status.st_mode) && (uint64_t)status.st_size == content->size) {
        *is_same = true;
        size_t half = compare_chunk / 2;
        for (uint64_t offset = 0; offset < content->size && *is_same && !result; offset += half) {
            size_t length = content->size - offset < half ? (size_t)(content->size - offset) : half;
            const uint8_t *mine = content->memory ? content->memory + offset : intake->compare + half;
            if (read_fully(descriptor, intake->compare, length, (off_t)offset) != (ssize_t)length ||
                (!content->memory &&
                 read_fully(content->descriptor, intake->compare + half, length, (off_t)offset) != (ssize_t)length)) {
                result = tide_error_errno(error, "compare with the blob", path);
            } else {
                *is_same = memcmp(intake->compare, mine, length) == 0;
            }
        }
        if (*is_same && time(NULL) - CHANGED(status).tv_sec < unsettled_seconds) {
            const char *name = strrchr(path, '/');
            char id[TIDE_BLOB_ID_SIZE] = {0};
            snprintf(id, sizeof id, "%s", name ? name + 1 : path);
            if (!intake->store->dry_run) result = unsynced_note(intake->store, id);
        }
    }
    close(descriptor);
    return result;
}

/// Renames without replacing. 1 when the name is taken.
static int rename_new(tide_blob_store *store, const char *staged, const char *path) {
#if defined(__APPLE__)
    int result = renameatx_np(store->staging, staged, store->assets, path, RENAME_EXCL);
#else
    int result = renameat2(store->staging, staged, store->assets, path, RENAME_NOREPLACE);
#endif
    if (result == 0) return 0;
    if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) {
        // A file system without that flag: a second name, then the first goes.
        if (linkat(store->staging, staged, store->assets, path, 0) == 0) {
            unlinkat(store->staging, staged, 0);
            return 0;
        }
    }
    return errno == EEXIST ? 1 : -1;
}

static tide_status blob_move_in(tide_blob_store *store, const content *content, const char *path, bool *is_taken, tide_error *error) {
    *is_taken = false;
    for (int attempt = 0; attempt < 2; attempt++) {
        int result = rename_new(store, content->staged, path);
        if (result == 0) return TIDE_OK;
        if (result == 1) {
            *is_taken = true;
            return TIDE_OK;
        }
        char folder[3] = {path[0], path[1], 0};
        if (errno != ENOENT || (mkdirat(store->assets, folder, 0700) != 0 && errno != EEXIST)) break;
    }
    return tide_error_errno(error, "move a blob to assets/", path);
}

static tide_status content_stage(tide_intake *intake, content *content, tide_error *error) {
    int descriptor;
    tide_status status = stage_open(intake->store, content, &descriptor, error);
    if (status) return status;
    if (!write_staged(descriptor, content->memory, (size_t)content->size)) {
        status = tide_error_errno(error, "write the file staging/", content->staged);
    }
    if (close(descriptor) != 0 && !status) status = tide_error_errno(error, "write the file staging/", content->staged);
    if (status) stage_drop(intake->store, content);
    return status;
}

static tide_status dry_run_put(tide_blob_store *store, const content *content, tide_blob *blob) {
    blob_id(content, 0, blob->id);
    pthread_mutex_lock(&store->mutex);
    blob->is_new = tide_fingerprints_add(store->seen, content->digest.low64 ^ content->size);
    pthread_mutex_unlock(&store->mutex);
    return TIDE_OK;
}

static tide_status content_put(tide_intake *intake, content *content, tide_blob *blob, tide_error *error) {
    tide_blob_store *store = intake->store;
    for (unsigned discriminator = 0; discriminator < discriminator_limit; discriminator++) {
        blob_id(content, discriminator, blob->id);
        char path[TIDE_BLOB_ID_SIZE + 4];
        snprintf(path, sizeof path, "%.2s/%s", blob->id, blob->id);
        bool exists, is_same;
        tide_status status = blob_compare(intake, content, path, &exists, &is_same, error);
        if (!status && !exists && store->dry_run) return dry_run_put(store, content, blob);
        if (!status && !exists && !content->staged[0]) status = content_stage(intake, content, error);
        if (!status && !exists) {
            status = blob_move_in(store, content, path, &exists, error);
            if (!status && !exists) {
                content->staged[0] = 0;
                blob->is_new = true;
                return unsynced_note(store, blob->id);
            }
            // Somebody was faster: compare with what they put there.
            if (!status) status = blob_compare(intake, content, path, &exists, &is_same, error);
        }
        if (status || is_same) {
            stage_drop(store, content);
            return status;
        }
    }
    stage_drop(store, content);
    return tide_error_reject(
        error, TIDE_REJECT_ASSET_COLLISIONS, "there are %d different contents with this digest already; the file is forged",
        discriminator_limit);
}

static tide_status stream(tide_intake *intake, int source, const char *path, content *content, tide_error *error) {
    int staged = -1;
    if (!intake->store->dry_run) {
        tide_status status = stage_open(intake->store, content, &staged, error);
        if (status) return status;
    }
    XXH3_128bits_reset(intake->hash);
    tide_status result = TIDE_OK;
    for (uint64_t offset = 0; offset < content->size && !result;) {
        size_t length = content->size - offset < stream_chunk ? (size_t)(content->size - offset) : stream_chunk;
        ssize_t count = read_fully(source, intake->buffer, length, (off_t)offset);
        if (count < 0) {
            result = tide_error_reject(
                error, TIDE_REJECT_ASSET_UNREADABLE, "'%.300s' cannot be read: %s", path, strerror(errno));
        } else if ((size_t)count != length) {
            result = refuse_changed(path, error);
        } else {
            XXH3_128bits_update(intake->hash, intake->buffer, length);
            if (staged >= 0 && !write_staged(staged, intake->buffer, length)) {
                result = tide_error_errno(error, "write the file staging/", content->staged);
            }
            offset += length;
        }
    }
#if defined(O_DIRECT)
    // It will be read in pieces of any size.
    int flags = staged >= 0 ? fcntl(staged, F_GETFL) : 0;
    if (flags > 0 && (flags & O_DIRECT) && fcntl(staged, F_SETFL, flags & ~O_DIRECT) != 0 && !result) {
        result = tide_error_errno(error, "set the flags of staging/", content->staged);
    }
#endif
    content->digest = XXH3_128bits_digest(intake->hash);
    // From here on the staged copy is what counts: nobody else can change it.
    content->descriptor = staged >= 0 ? staged : source;
    return result;
}

static tide_status read_small(tide_intake *intake, int source, const char *path, content *content, tide_error *error) {
    ssize_t count = read_fully(source, intake->buffer, (size_t)content->size, 0);
    if (count < 0) {
        return tide_error_reject(
            error, TIDE_REJECT_ASSET_UNREADABLE, "'%.300s' cannot be read: %s", path, strerror(errno));
    }
    if ((uint64_t)count != content->size) return refuse_changed(path, error);
    content->memory = intake->buffer;
    content->digest = XXH3_128bits(intake->buffer, (size_t)content->size);
    return TIDE_OK;
}

static tide_status image_check(
    const content *content, const char *path, bool images_only, tide_image *image, tide_error *error
) {
    tide_bytes bytes = {.memory = content->memory, .descriptor = content->descriptor, .size = content->size};
    tide_error detail;
    tide_status status = tide_image_probe(bytes, image, &detail);
    if (status == TIDE_REJECTED) {
        return tide_error_reject(error, detail.reject, "'%.200s' is not whole: %.250s", path, detail.message);
    }
    if (status) {
        if (error) *error = detail;
        return status;
    }
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (image->media == TIDE_MEDIA_UNKNOWN && (images_only || tide_media_claimed(name, strlen(name)))) {
        return tide_error_reject(
            error, TIDE_REJECT_ASSET_NOT_AN_IMAGE, "'%.300s' has the name of an image and the content of none", path);
    }
    return TIDE_OK;
}

static void exif_take(const content *content, const tide_image *image, tide_exif_block *exif) {
    size_t length = image->exif_length < exif->capacity ? image->exif_length : exif->capacity;
    if (length == 0) return;
    if (content->memory) {
        memcpy(exif->bytes, content->memory + image->exif_offset, length);
    } else if (read_fully(content->descriptor, exif->bytes, length, (off_t)image->exif_offset) != (ssize_t)length) {
        return;
    }
    exif->length = length;
}

tide_status tide_intake_file(
    tide_intake *intake, const char *path, tide_blob *blob, tide_exif_block *exif, tide_error *error
) {
    *blob = (tide_blob){0};
    if (exif) exif->length = 0;
    int source;
    struct stat before;
    tide_status status = file_open(intake->root, path, &source, &before, error);
    if (status) return status;
    content content = {.descriptor = source, .size = (uint64_t)before.st_size};
    if (content.size == 0) {
        status = tide_error_reject(error, TIDE_REJECT_ASSET_EMPTY, "'%.300s' is empty", path);
    } else if (content.size <= small_file) {
        status = read_small(intake, source, path, &content, error);
    } else {
        // A film among the photos is not copied to find out that it is none.
        if (exif) status = image_check(&content, path, true, &blob->image, error);
        if (!status) status = stream(intake, source, path, &content, error);
    }
    if (!status && !is_unchanged(source, &before)) status = refuse_changed(path, error);
    if (!status) status = image_check(&content, path, exif != NULL, &blob->image, error);
    if (!status && exif) exif_take(&content, &blob->image, exif);
    if (!status) status = content_put(intake, &content, blob, error);
    if (status) stage_drop(intake->store, &content);
    if (content.descriptor != source) close(content.descriptor);
    close(source);
    blob->size = content.size;
    blob->modified = (int64_t)MODIFIED(before).tv_sec * 1000000 + MODIFIED(before).tv_nsec / 1000;
    return status;
}

// Verification

bool tide_blob_id_is_valid(const char *id, size_t length) {
    if (length < digest_text + 2 || length >= TIDE_BLOB_ID_SIZE) return false;
    for (int i = 0; i < digest_text; i++) {
        if (!((id[i] >= '0' && id[i] <= '9') || (id[i] >= 'a' && id[i] <= 'f'))) return false;
    }
    int dashes = 0;
    for (size_t i = digest_text; i < length; i++) {
        if (id[i] == '-') {
            if (++dashes > 2 || i + 1 == length || id[i + 1] == '-') return false;
        } else if (id[i] < '0' || id[i] > '9') {
            return false;
        }
    }
    return id[digest_text] == '-';
}

tide_status tide_blob_verify(const char *assets, const char *id, tide_error *error) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%.2s/%s", assets, id, id) >= (int)sizeof path) {
        return tide_error_set(error, TIDE_MISUSE, 0, "the path of the assets is too long");
    }
    int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) {
        if (errno == ENOENT) return tide_error_reject(error, TIDE_REJECT_ASSET_MISSING, "the asset %s is missing", id);
        return tide_error_reject(
            error, TIDE_REJECT_ASSET_UNREADABLE, "the asset %s cannot be opened: %s", id, strerror(errno));
    }
    uint8_t *buffer = malloc(stream_chunk);
    XXH3_state_t *hash = XXH3_createState();
    tide_status status = buffer && hash ? TIDE_OK : tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    content content = {0};
    if (!status) XXH3_128bits_reset(hash);
    while (!status) {
        ssize_t count = read_fully(descriptor, buffer, stream_chunk, (off_t)content.size);
        if (count < 0) {
            status = tide_error_reject(
                error, TIDE_REJECT_ASSET_UNREADABLE, "the asset %s cannot be read: %s", id, strerror(errno));
        }
        if (count <= 0) break;
        XXH3_128bits_update(hash, buffer, (size_t)count);
        content.size += (uint64_t)count;
    }
    if (!status) {
        char actual[TIDE_BLOB_ID_SIZE];
        content.digest = XXH3_128bits_digest(hash);
        blob_id(&content, 0, actual);
        size_t length = strlen(actual);
        if (strncmp(id, actual, length) != 0 || (id[length] != 0 && id[length] != '-')) {
            status = tide_error_reject(
                error, TIDE_REJECT_ASSET_CHANGED, "the content of the asset %s is not what its name says: it has %s", id, actual);
        }
    }
    XXH3_freeState(hash);
    free(buffer);
    close(descriptor);
    return status;
}

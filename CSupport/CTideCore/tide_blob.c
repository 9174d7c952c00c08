#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tide_blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "tide_blob_layout.h"

enum { digest_text = 32, verify_chunk = 1 << 20 };

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
    // Other stores, of this process and of others, stage in the same folder; a process id would not tell them apart.
    if (getentropy(&created->staging_tag, sizeof created->staging_tag) != 0) {
        tide_status status = tide_error_errno(error, "draw a random number for", "staging/");
        free(created);
        return status;
    }
    pthread_mutex_init(&created->mutex, NULL);
    tide_status status = TIDE_OK;
    int folder = open(container, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 && !(dry_run && errno == ENOENT)) status = tide_error_errno(error, "open the container", container);
    if (dry_run && !status && !(created->seen = tide_fingerprints_create())) {
        status = tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    }
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

int tide_blob_folder_open(int assets, const char *id, bool create) {
    char name[3] = {id[0], id[1], 0};
    int folder = openat(assets, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0 || errno != ENOENT || !create) return folder;
    if (mkdirat(assets, name, 0700) != 0 && errno != EEXIST) return -1;
    return openat(assets, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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

tide_status tide_blob_note_unsynced(tide_blob_store *store, const char *id) {
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

tide_status tide_blob_note_unsynced(tide_blob_store *store, const char *id) {
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

void tide_content_id(const tide_content *content, unsigned discriminator, char id[TIDE_BLOB_ID_SIZE]) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, content->digest);
    for (int i = 0; i < 16; i++) snprintf(id + 2 * i, 3, "%02x", canonical.digest[i]);
    int length = snprintf(id + digest_text, TIDE_BLOB_ID_SIZE - digest_text, "-%llu", (unsigned long long)content->size);
    if (discriminator > 0) {
        snprintf(
            id + digest_text + length, (size_t)(TIDE_BLOB_ID_SIZE - digest_text - length), "-%u", discriminator);
    }
}

ssize_t tide_read_fully(int descriptor, void *buffer, size_t length, off_t offset) {
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

/// Opens a blob and checks that it is a file of the size that its identifier says.
static tide_status blob_open(const char *assets, const char *id, int *descriptor, tide_error *error) {
    *descriptor = -1;
    if (!tide_blob_id_is_valid(id, strlen(id))) {
        return tide_error_reject(error, TIDE_REJECT_ASSET_MISSING, "'%.100s' is no identifier of an asset", id);
    }
    int root = open(assets, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int folder = root < 0 ? -1 : tide_blob_folder_open(root, id, false);
    if (folder >= 0) *descriptor = openat(folder, id, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int number = errno;
    if (folder >= 0) close(folder);
    if (root >= 0) close(root);
    if (*descriptor < 0) {
        if (number == ENOENT) {
            return tide_error_reject(
                error, TIDE_REJECT_ASSET_MISSING, "the asset %s is missing; to have it back, import its source again", id);
        }
        return tide_error_reject(
            error, TIDE_REJECT_ASSET_UNREADABLE, "the asset %s cannot be opened: %s", id, strerror(number));
    }
    struct stat status;
    if (fstat(*descriptor, &status) != 0) {
        return tide_error_reject(error, TIDE_REJECT_ASSET_UNREADABLE, "the asset %s cannot be examined: %s", id, strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return tide_error_reject(error, TIDE_REJECT_ASSET_NOT_A_FILE, "the asset %s is not a file", id);
    }
    if ((uint64_t)status.st_size != strtoull(id + digest_text + 1, NULL, 10)) {
        return tide_error_reject(
            error, TIDE_REJECT_ASSET_CHANGED,
            "the asset %s has %llu bytes; to have it back, delete the file and import its source again", id,
            (unsigned long long)status.st_size);
    }
    return TIDE_OK;
}

bool tide_blob_id_is_of_sha256(const char *id) {
    const char *size = strchr(id, '-');
    const char *discriminator = size ? strchr(size + 1, '-') : NULL;
    return discriminator && strcmp(discriminator, "-256") == 0;
}

tide_status tide_blob_verify_file(int descriptor, const char *id, tide_error *error) {
    uint8_t *buffer = malloc(verify_chunk);
    XXH3_state_t *hash = XXH3_createState();
    tide_status status = buffer && hash ? TIDE_OK : tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    tide_content content = {0};
    if (!status) XXH3_128bits_reset(hash);
    while (!status) {
        ssize_t count = tide_read_fully(descriptor, buffer, verify_chunk, (off_t)content.size);
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
        tide_content_id(&content, 0, actual);
        size_t length = strlen(actual);
        if (strncmp(id, actual, length) != 0 || (id[length] != 0 && id[length] != '-')) {
            status = tide_error_reject(
                error, TIDE_REJECT_ASSET_CHANGED,
                "the content of the asset %s is not what its name says; to have it back, delete the file and import its source again",
                id);
        }
    }
    XXH3_freeState(hash);
    free(buffer);
    return status;
}

tide_status tide_blob_verify(const char *assets, const char *id, tide_error *error) {
    int descriptor;
    tide_status status = blob_open(assets, id, &descriptor, error);
    if (!status) status = tide_blob_verify_file(descriptor, id, error);
    if (descriptor >= 0) close(descriptor);
    return status;
}

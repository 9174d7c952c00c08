/// The fields of a blob store and of its intakes, for the core.

#ifndef TIDE_BLOB_LAYOUT_H
#define TIDE_BLOB_LAYOUT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <xxhash.h>

#include "tide_blob.h"
#include "tide_fingerprints.h"

#if defined(__APPLE__)
#define TIDE_MODIFIED(status) ((status).st_mtimespec)
#define TIDE_CHANGED(status) ((status).st_ctimespec)
#else
#define TIDE_MODIFIED(status) ((status).st_mtim)
#define TIDE_CHANGED(status) ((status).st_ctim)
#endif

enum {
    /// The alignment of addresses and lengths that direct writing needs.
    tide_direct_block = 4096,
    tide_compare_chunk = 256 << 10,
};

struct tide_blob_store {
    int assets, staging;
    bool dry_run;
    atomic_bool is_dirty;
    /// The two parts of a staged file's name: a tag of this store, and a number.
    uint64_t staging_tag;
    atomic_uint next_staged;
    pthread_mutex_t mutex;
    /// In a dry run, the contents that would be new.
    tide_fingerprints *seen;
#if !defined(__linux__)
    /// Blobs not yet durable, where there is no call that flushes a whole file system.
    char (*unsynced)[TIDE_BLOB_ID_SIZE];
    size_t unsynced_count, unsynced_capacity;
#endif
};

/// The outcomes of the paths that a run has met.
typedef struct tide_paths tide_paths;
void tide_paths_destroy(tide_paths *paths);

struct tide_intake {
    tide_blob_store *store;
    int root;
    uint8_t *buffer;
    uint8_t *compare;
    XXH3_state_t *hash;
    struct tide_paths *paths;
    tide_conversion conversion;
};

/// A content on its way into the store: in memory, or staged under a temporary name.
typedef struct tide_content {
    const uint8_t *memory;
    int descriptor;
    uint64_t size;
    XXH128_hash_t digest;
    char staged[48];
} tide_content;

/// Reads exactly `length` bytes unless the file ends. Returns the number of bytes, or -1.
ssize_t tide_read_fully(int descriptor, void *buffer, size_t length, off_t offset);

/// The identifier of a content; from the second content of the same digest and size on, with a discriminator.
void tide_content_id(const tide_content *content, unsigned discriminator, char id[TIDE_BLOB_ID_SIZE]);

/// Opens the folder of `assets/` in which a blob lies, making it if need be, and never through a link; -1 with errno.
int tide_blob_folder_open(int assets, const char *id, bool create);

/// Notes that a blob is not durable yet.
tide_status tide_blob_note_unsynced(tide_blob_store *store, const char *id);

/// Makes a staged file for a content that is too large for memory, to be written with `tide_stage_write` from aligned memory.
tide_status tide_stage_open(tide_blob_store *store, tide_content *content, int *descriptor, tide_error *error);
bool tide_stage_write(int descriptor, const uint8_t *bytes, size_t length);
/// Removes the staged file, if there is one.
void tide_stage_drop(tide_blob_store *store, tide_content *content);

/// Moves a content to its place in the store, or finds it there; `blob` gets its identifier. The staged file is gone afterwards.
tide_status tide_content_put(tide_intake *intake, tide_content *content, tide_blob *blob, tide_error *error);

#endif

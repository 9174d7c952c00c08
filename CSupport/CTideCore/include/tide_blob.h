/// Ingests files into a content-addressed store: `assets/ab/<32 hex digits>-<size>`, immutable, each content once.
///
/// How a file is ingested: it is opened below the assets root, component by component and without following a symbolic link; read once
/// while it is hashed (XXH3-128, canonical byte order); checked for change during the reading and, if it is an image, for being
/// whole; written to `staging/`; renamed to its place without replacing anything. Nothing may name a blob in a committed row before
/// `tide_blob_store_sync` has made it durable, once for a whole batch.
///
/// XXH3 detects accident, not malice: two different files with one digest are easy to make. So on a digest that is there already the
/// bytes are compared, and a different content of the same digest and size gets an identifier of its own, `<32 hex>-<size>-<n>`.
///
/// Limits: files up to `small_file` bytes are held in memory, larger ones are streamed; memory is bounded per worker.
/// Threads: a store may be used by several threads at once, an intake by a single thread.
///
/// Why C: hashing, comparing and copying hundreds of megabytes; and system calls (openat, renameat2, syncfs) that Foundation hides.

#ifndef TIDE_BLOB_H
#define TIDE_BLOB_H

#include "tide_batch.h"
#include "tide_image.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// "<32 hex>-<size up to 20 digits>-<discriminator up to 3 digits>" and NUL.
#define TIDE_BLOB_ID_SIZE 64

/// A blob that is in the store.
typedef struct tide_blob {
    char id[TIDE_BLOB_ID_SIZE];
    uint64_t size;
    tide_image image;
    /// Modification time of the file it came from, microseconds since 1970 UTC.
    int64_t modified;
    /// The content was not there before.
    bool is_new;
    /// It was made of the file by a conversion, and is not the file's own content.
    bool is_converted;
    /// It is a preview that a conversion made; then it has no source.
    bool is_preview;
    /// Size of the file, and the identifier that its own content has or would have.
    uint64_t source_size;
    char source_id[TIDE_BLOB_ID_SIZE];
} tide_blob;

/// An open store of blobs; made by `tide_blob_store_create`.
typedef struct tide_blob_store tide_blob_store;

/// Opens `assets/` and `staging/` of a container, making them if need be. With `dry_run`, files are read, checked and looked up, and
/// nothing is written; then the folders need not exist. The caller ends it with `tide_blob_store_destroy`, after all its intakes.
tide_status tide_blob_store_create(
    const char *container, bool dry_run, tide_blob_store *TIDE_NULLABLE *_Nonnull store, tide_error *TIDE_NULLABLE error);
/// Closes a store and frees it. NULL does nothing.
void tide_blob_store_destroy(tide_blob_store *TIDE_NULLABLE store);

/// Makes all blobs that were ingested so far durable, with their names. Does nothing when there were none since the last call.
tide_status tide_blob_store_sync(tide_blob_store *store, tide_error *TIDE_NULLABLE error);

/// A worker with its buffers.
typedef struct tide_intake tide_intake;

/// `root` is the folder below which files are read; a symbolic link as the root itself is followed. The caller ends it with
/// `tide_intake_destroy`.
tide_status tide_intake_create(
    tide_blob_store *store, const char *root, tide_intake *TIDE_NULLABLE *_Nonnull intake, tide_error *TIDE_NULLABLE error);
/// Frees a worker. NULL does nothing.
void tide_intake_destroy(tide_intake *TIDE_NULLABLE intake);

/// The result of converting a file. Its bytes are allocated with malloc; the caller frees them.
typedef struct tide_converted {
    /// The content that is ingested in place of the file; NULL: the file itself is.
    uint8_t *TIDE_NULLABLE bytes;
    size_t length;
    /// A preview, which is ingested besides; NULL: none.
    uint8_t *TIDE_NULLABLE preview;
    size_t preview_length;
} tide_converted;

/// Converts files on their way into a store.
typedef struct tide_conversion {
    /// Called on the worker's thread for a file that is a whole image; `converted` is empty before, and after a failure.
    tide_status (*TIDE_NULLABLE convert)(
        const void *TIDE_NULLABLE context, tide_bytes bytes, const tide_image *image, tide_converted *converted,
        tide_error *TIDE_NULLABLE error);
    /// Must live as long as the intake.
    const void *TIDE_NULLABLE context;
} tide_conversion;

/// Has the files that `tide_intake_file` and `tide_intake_batch` read converted from now on.
void tide_intake_set_conversion(tide_intake *intake, tide_conversion conversion);

/// The suffix of a preview's field: its name is that of the asset's field with this suffix.
#define TIDE_PREVIEW_SUFFIX "Thumbnail"

/// Whether the field of that name has previews.
bool tide_preview_is_field(const char *name, size_t length);

/// The memory for the EXIF block of an image. A call with such a block accepts images only.
typedef struct tide_exif_block {
    uint8_t *bytes;
    size_t capacity;
    /// Set by the call; 0 when there is none.
    size_t length;
} tide_exif_block;

/// Ingests a file. TIDE_REJECTED with the reason when the file is at fault.
///
/// With a conversion, `preview` (if not NULL) gets the blob of the preview; its `id` is empty when there is none.
///
/// With `exif`, only images are ingested (TIDE_REJECT_ASSET_NOT_AN_IMAGE otherwise), and the block receives the beginning of their
/// EXIF data.
tide_status tide_intake_file(
    tide_intake *intake, const char *path, tide_blob *blob, tide_blob *TIDE_NULLABLE preview, tide_exif_block *TIDE_NULLABLE exif,
    tide_error *TIDE_NULLABLE error);

/// Ingests bytes that the caller holds; `name` names them in errors.
tide_status tide_intake_bytes(
    tide_intake *intake, const void *TIDE_NULLABLE bytes, size_t length, const char *name, tide_blob *blob,
    tide_error *TIDE_NULLABLE error);

/// A piece of work; `worker` is below the number of workers, and no two calls at the same time have the same worker.
typedef tide_status (*tide_intake_task)(void *TIDE_NULLABLE context, uint32_t worker, uint32_t index, tide_error *error);
/// Runs `task(context, worker, index)` for each index below `count`, on up to `worker_count` threads, the caller's among them.
/// Stops handing out indices after the first call that returns another status than TIDE_OK, and returns that.
tide_status tide_intake_run(
    uint32_t worker_count, uint32_t count, tide_intake_task task, void *TIDE_NULLABLE context, tide_error *TIDE_NULLABLE error);

/// A blob that rows name; `is_new` only at the first visit.
typedef void (*tide_blob_visitor)(void *TIDE_NULLABLE context, const tide_blob *blob);

/// Ingests every file that a batch's live rows name (cells of kind PATH and PATHS), on all the workers given at once, and puts the
/// blobs' identifiers in their place; a row with a file at fault is refused, with the field and the reason. A path that several rows
/// name is read once. `visitor` is called on the calling thread for each blob that the rows name.
///
/// With a conversion that makes previews, a row's field of one asset gets its preview in the field named with TIDE_PREVIEW_SUFFIX, unless
/// the row has a value there itself; an asset without a preview, and NULL, make that field NULL. Lists of assets get no previews.
tide_status tide_intake_batch(
    tide_intake *_Nonnull const *_Nonnull workers, uint32_t worker_count, tide_batch *batch, bool has_previews, tide_blob_visitor visitor,
    void *TIDE_NULLABLE context, tide_error *TIDE_NULLABLE error);

/// Reads a blob again and compares its content with its identifier. TIDE_REJECTED with the reason when they differ. The identifier must
/// not be one of a SHA-256 (`tide_blob_id_is_of_sha256`).
tide_status tide_blob_verify(const char *assets, const char *id, tide_error *TIDE_NULLABLE error);
/// As `tide_blob_verify`, for a file that is not at its place yet. The descriptor stays open, and its offset does not change.
tide_status tide_blob_verify_file(int descriptor, const char *id, tide_error *TIDE_NULLABLE error);
/// Whether a text has the form of a blob identifier.
bool tide_blob_id_is_valid(const char *id, size_t length);
/// Returns whether an identifier is `<first 32 digits of the SHA-256>-<size>-256`. Such a blob was downloaded from a cloud: the record named
/// it before its content arrived. The core has no SHA-256: a copier compares the size alone, and its caller compares the content.
bool tide_blob_id_is_of_sha256(const char *id);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

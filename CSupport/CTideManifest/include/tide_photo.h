/// Turns photos into records: ingests the files, reads their EXIF, and fills a batch.
///
/// Fields: `caption` (the file's name without its extension), `createdAt` (EXIF's time, else the file's modification time), `image`,
/// `width` and `height` (as seen, after the rotation that EXIF asks for), `position` (where EXIF has one).
/// With `has_previews` also `imageThumbnail`, the preview that the workers' conversion makes.
/// The record name is derived from the type, the path below the folder and the identifier of the file's own content, not of its conversion.
/// So the same photo at the same place is the same record, and an edited photo is another.
///
/// Why C: one pass per file over bytes that are in memory, on all workers at once.

#ifndef TIDE_PHOTO_H
#define TIDE_PHOTO_H

#include "tide_blob.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// Ingests the files at `paths` (relative to the workers' root) and adds a row for each, in their order; `first_line` is the number of the
/// first. A path that is no image, no file or a symbolic link is passed over. If its name claims an image, its row is refused instead, as
/// for every other fault of a file.
/// `passed_over` gets, for each path, whether it was passed over.
/// `visitor` is called on the calling thread for each blob that the rows name.
tide_status tide_photos_take_in(
    tide_intake *_Nonnull const *_Nonnull workers, uint32_t worker_count, const char *_Nonnull const *_Nonnull paths, uint32_t count,
    uint64_t first_line, const char *type_name, bool has_previews, tide_batch *batch, bool *passed_over,
    tide_blob_visitor visitor, void *TIDE_NULLABLE context, tide_error *TIDE_NULLABLE error);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

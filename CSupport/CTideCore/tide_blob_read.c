#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tide_blob_layout.h"

enum { small_file = 4 << 20, stream_chunk = 1 << 20 };

// Workers

tide_status tide_intake_create(tide_blob_store *store, const char *root, tide_intake **intake, tide_error *error) {
    *intake = NULL;
    tide_intake *created = calloc(1, sizeof *created);
    if (!created) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    created->store = store;
    created->root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tide_status status = TIDE_OK;
    if (created->root < 0) status = tide_error_errno(error, "open the assets root", root);
    void *aligned = NULL;
    if (posix_memalign(&aligned, tide_direct_block, small_file) == 0) created->buffer = aligned;
    created->compare = malloc(tide_compare_chunk);
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

void tide_intake_set_conversion(tide_intake *intake, tide_conversion conversion) { intake->conversion = conversion; }

// Reading below the root

static tide_status refuse_unreadable(const char *path, tide_error *error) {
    return tide_error_reject(error, TIDE_REJECT_ASSET_UNREADABLE, "'%.300s' cannot be read: %s", path, strerror(errno));
}

static tide_status refuse_changed(const char *path, tide_error *error) {
    return tide_error_reject(
        error, TIDE_REJECT_ASSET_CHANGED, "'%.300s' changed while it was read; import it again when it is at rest", path);
}

static tide_status refuse_open(int folder, const char *name, const char *path, tide_error *error) {
    int number = errno;
    struct stat status;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISLNK(status.st_mode)) {
            return tide_error_reject(error, TIDE_REJECT_ASSET_OUTSIDE_ROOT, "'%.300s' goes through a symbolic link", path);
        }
        if (number == ENOTDIR) {
            return tide_error_reject(error, TIDE_REJECT_ASSET_MISSING, "there is no file '%.300s' in the folder of the assets", path);
        }
    }
    if (number == ENOENT) {
        return tide_error_reject(error, TIDE_REJECT_ASSET_MISSING, "there is no file '%.300s' in the folder of the assets", path);
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
                // Non-blocking, because the file may have been exchanged for a FIFO just now.
                *descriptor = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
                if (*descriptor < 0) result = refuse_open(folder, name, path, error);
            }
            break;
        } else {
            result = refuse_open(folder, name, path, error);
        }
    }
    if (folder != root && folder >= 0) close(folder);
    if (!result && fstat(*descriptor, status) != 0) {
        result = refuse_unreadable(path, error);
    } else if (!result && !S_ISREG(status->st_mode)) {
        result = tide_error_reject(error, TIDE_REJECT_ASSET_NOT_A_FILE, "'%.300s' is not a file", path);
    }
    if (result && *descriptor >= 0) {
        close(*descriptor);
        *descriptor = -1;
    }
    return result;
}

static bool is_same_time(struct timespec one, struct timespec other) { return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec; }

/// Refuses a file that is no longer as it was before it was read.
static tide_status unchanged_check(int descriptor, const struct stat *before, const char *path, tide_error *error) {
    struct stat after;
    if (fstat(descriptor, &after) != 0) return refuse_unreadable(path, error);
    bool is_unchanged = after.st_size == before->st_size && is_same_time(TIDE_MODIFIED(after), TIDE_MODIFIED(*before)) &&
                        is_same_time(TIDE_CHANGED(after), TIDE_CHANGED(*before));
    return is_unchanged ? TIDE_OK : refuse_changed(path, error);
}

/// Where a content comes from: an open file, or memory.
typedef struct tide_origin {
    int descriptor;
    const uint8_t *bytes;
} tide_origin;

static ssize_t origin_read(tide_origin origin, uint8_t *buffer, size_t length, uint64_t offset) {
    if (!origin.bytes) return tide_read_fully(origin.descriptor, buffer, length, (off_t)offset);
    memcpy(buffer, origin.bytes + offset, length);
    return (ssize_t)length;
}

static tide_status stream(tide_intake *intake, tide_origin origin, const char *path, tide_content *content, tide_error *error) {
    int staged = -1;
    if (!intake->store->dry_run) {
        tide_status status = tide_stage_open(intake->store, content, &staged, error);
        if (status) return status;
    }
    XXH3_128bits_reset(intake->hash);
    tide_status result = TIDE_OK;
    for (uint64_t offset = 0; offset < content->size && !result;) {
        size_t length = content->size - offset < stream_chunk ? (size_t)(content->size - offset) : stream_chunk;
        ssize_t count = origin_read(origin, intake->buffer, length, offset);
        if (count < 0) {
            result = refuse_unreadable(path, error);
        } else if ((size_t)count != length) {
            result = refuse_changed(path, error);
        } else {
            XXH3_128bits_update(intake->hash, intake->buffer, length);
            if (staged >= 0 && !tide_stage_write(staged, intake->buffer, length)) {
                result = tide_error_errno(error, "write the staged file", content->staged);
            }
            offset += length;
        }
    }
#if defined(O_DIRECT)
    // The staged file will be read in pieces of any size, which O_DIRECT does not allow.
    int flags = staged >= 0 ? fcntl(staged, F_GETFL) : 0;
    bool is_set = flags >= 0 && (!(flags & O_DIRECT) || fcntl(staged, F_SETFL, flags & ~O_DIRECT) == 0);
    if (!is_set && !result) {
        result = tide_error_errno(error, "set the flags of the staged file", content->staged);
    }
#endif
    content->digest = XXH3_128bits_digest(intake->hash);
    // From here on the staged copy counts: no other program can change it.
    content->descriptor = staged >= 0 ? staged : origin.descriptor;
    return result;
}

static tide_status read_small(tide_intake *intake, tide_origin origin, const char *path, tide_content *content, tide_error *error) {
    ssize_t count = origin_read(origin, intake->buffer, (size_t)content->size, 0);
    if (count < 0) return refuse_unreadable(path, error);
    if ((uint64_t)count != content->size) return refuse_changed(path, error);
    content->memory = intake->buffer;
    content->digest = XXH3_128bits(intake->buffer, (size_t)content->size);
    return TIDE_OK;
}

static tide_status image_check(
    const tide_content *content, const char *path, bool images_only, tide_image *image, tide_error *error
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

static tide_status exif_take(const tide_content *content, const char *path, const tide_image *image, tide_exif_block *exif, tide_error *error) {
    size_t length = image->exif_length < exif->capacity ? image->exif_length : exif->capacity;
    if (length == 0) return TIDE_OK;
    if (content->memory) {
        memcpy(exif->bytes, content->memory + image->exif_offset, length);
    } else {
        ssize_t count = tide_read_fully(content->descriptor, exif->bytes, length, (off_t)image->exif_offset);
        if (count < 0) return refuse_unreadable(path, error);
        if ((size_t)count != length) return refuse_changed(path, error);
    }
    exif->length = length;
    return TIDE_OK;
}

/// A file's time in microseconds since 1970 UTC, limited to the range of a timestamp: the years 0 to 9999.
static int64_t microseconds(struct timespec time) {
    const int64_t first = -62167219200, last = 253402300799;
    if (time.tv_sec < first) return first * 1000000;
    if (time.tv_sec > last) return last * 1000000;
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/// Hashes an open file that is too large for the buffer.
static tide_status file_hash(tide_intake *intake, const char *path, tide_content *content, tide_error *error) {
    XXH3_128bits_reset(intake->hash);
    for (uint64_t offset = 0; offset < content->size;) {
        size_t length = content->size - offset < stream_chunk ? (size_t)(content->size - offset) : stream_chunk;
        ssize_t count = tide_read_fully(content->descriptor, intake->buffer, length, (off_t)offset);
        if (count < 0) return refuse_unreadable(path, error);
        if ((size_t)count != length) return refuse_changed(path, error);
        XXH3_128bits_update(intake->hash, intake->buffer, length);
        offset += length;
    }
    content->digest = XXH3_128bits_digest(intake->hash);
    return TIDE_OK;
}

/// Converts a file's content, in memory or open, if it is an image. A refusal gets the path before its reason.
static tide_status content_convert(
    const tide_intake *intake, const tide_content *content, const char *path, const tide_image *image, tide_converted *converted,
    tide_error *error
) {
    if (image->media == TIDE_MEDIA_UNKNOWN) return TIDE_OK;
    tide_bytes bytes = {.memory = content->memory, .descriptor = content->descriptor, .size = content->size};
    tide_error detail = {0};
    tide_status status = intake->conversion.convert(intake->conversion.context, bytes, image, converted, &detail);
    if (status == TIDE_REJECTED) return tide_error_reject(error, detail.reject, "'%.150s': %.340s", path, detail.message);
    // A file that can't be read is refused, as without a conversion, and the others go on.
    if (status == TIDE_IO_ERROR) {
        return tide_error_reject(error, TIDE_REJECT_ASSET_UNREADABLE, "'%.150s' cannot be read: %.340s", path, detail.message);
    }
    if (status && error) *error = detail;
    return status;
}

tide_status tide_intake_file(
    tide_intake *intake, const char *path, tide_blob *blob, tide_blob *preview, tide_exif_block *exif, tide_error *error
) {
    *blob = (tide_blob){0};
    if (preview) *preview = (tide_blob){0};
    if (exif) exif->length = 0;
    int source = -1;
    struct stat before;
    tide_status status = file_open(intake->root, path, &source, &before, error);
    if (status) return status;
    tide_content content = {.descriptor = source, .size = (uint64_t)before.st_size};
    tide_converted converted = {0};
    bool is_large = content.size > small_file;
    if (content.size == 0) {
        status = tide_error_reject(error, TIDE_REJECT_ASSET_EMPTY, "'%.300s' is empty", path);
    } else if (!is_large) {
        status = read_small(intake, (tide_origin){.descriptor = source}, path, &content, error);
    }
    if (!status && intake->conversion.convert) {
        status = image_check(&content, path, exif != NULL, &blob->image, error);
        if (!status) status = content_convert(intake, &content, path, &blob->image, &converted, error);
    }
    if (!status && converted.bytes && is_large) {
        status = file_hash(intake, path, &content, error);
    } else if (!status && is_large) {
        // A large file that is no image, such as a film, is refused before it is copied.
        if (exif) status = image_check(&content, path, true, &blob->image, error);
        if (!status) status = stream(intake, (tide_origin){.descriptor = source}, path, &content, error);
    }
    if (!status) status = unchanged_check(source, &before, path, error);
    if (!status && !converted.bytes) status = image_check(&content, path, exif != NULL, &blob->image, error);
    if (!status && exif) status = exif_take(&content, path, &blob->image, exif, error);
    char source_id[TIDE_BLOB_ID_SIZE] = "";
    if (!status) tide_content_id(&content, 0, source_id);
    if (!status && !converted.bytes) {
        status = tide_content_put(intake, &content, blob, error);
    } else if (!status) {
        status = tide_intake_bytes(intake, converted.bytes, converted.length, path, blob, error);
        blob->is_converted = true;
    }
    if (!status && converted.preview && preview) {
        status = tide_intake_bytes(intake, converted.preview, converted.preview_length, path, preview, error);
        preview->is_preview = true;
    }
    if (status) tide_stage_drop(intake->store, &content);
    if (content.descriptor != source) close(content.descriptor);
    close(source);
    free(converted.bytes);
    free(converted.preview);
    if (!blob->is_converted) {
        blob->size = content.size;
        memcpy(source_id, blob->id, sizeof source_id);
    }
    memcpy(blob->source_id, source_id, sizeof source_id);
    blob->source_size = content.size;
    blob->modified = microseconds(TIDE_MODIFIED(before));
    return status;
}

tide_status tide_intake_bytes(
    tide_intake *intake, const void *bytes, size_t length, const char *name, tide_blob *blob, tide_error *error
) {
    *blob = (tide_blob){.size = length};
    if (length == 0) return tide_error_reject(error, TIDE_REJECT_ASSET_EMPTY, "'%.300s' is empty", name);
    tide_origin origin = {.descriptor = -1, .bytes = bytes};
    tide_content content = {.descriptor = -1, .size = length};
    tide_status status = TIDE_OK;
    if (length <= small_file) {
        status = read_small(intake, origin, name, &content, error);
    } else if (intake->store->dry_run) {
        // A dry run stages nothing.
        content.memory = bytes;
        content.digest = XXH3_128bits(bytes, length);
    } else {
        status = stream(intake, origin, name, &content, error);
    }
    if (!status) status = image_check(&content, name, false, &blob->image, error);
    if (!status) status = tide_content_put(intake, &content, blob, error);
    if (status) tide_stage_drop(intake->store, &content);
    if (content.descriptor >= 0) close(content.descriptor);
    return status;
}

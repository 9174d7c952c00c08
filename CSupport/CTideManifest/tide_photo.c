#include "tide_photo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tide_exif.h"
#include "tide_manifest.h"
#include "tide_number.h"
#include "tide_text.h"
#include "tide_utf8.h"

enum { exif_capacity = 256 << 10 };

typedef struct photo {
    tide_status status;
    tide_error error;
    tide_blob blob, preview;
    tide_exif exif;
} photo;

typedef struct photo_round {
    tide_intake *const *workers;
    uint8_t **exif_buffers;
    const char *const *paths;
    photo *photos;
} photo_round;

static tide_status photo_take_in(void *context, uint32_t worker, uint32_t index, tide_error *error) {
    photo_round *round = context;
    photo *photo = &round->photos[index];
    tide_exif_block block = {.bytes = round->exif_buffers[worker], .capacity = exif_capacity};
    photo->status = tide_intake_file(round->workers[worker], round->paths[index], &photo->blob, &photo->preview, &block, &photo->error);
    if (photo->status && photo->status != TIDE_REJECTED) {
        *error = photo->error;
        return photo->status;
    }
    if (photo->status || !block.length) return TIDE_OK;
    tide_status status = tide_exif_read(block.bytes, block.length, &photo->exif);
    return status ? tide_error_set(error, status, 0, "out of memory") : TIDE_OK;
}

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static tide_status set_text(tide_batch *batch, uint32_t column, const char *text, size_t length) {
    tide_span span;
    tide_status status = tide_batch_text_add(batch, text, length, &span);
    if (status) return status;
    return tide_batch_row_set(batch, column, (tide_cell){.kind = TIDE_KIND_TEXT, .offset = span.offset, .length = span.length});
}

static tide_status set_integer(tide_batch *batch, uint32_t column, int64_t value) {
    return tide_batch_row_set(batch, column, (tide_cell){.kind = TIDE_KIND_INTEGER, .integer = value});
}

static tide_status set_position(tide_batch *batch, uint32_t column, const tide_exif *exif) {
    char latitude[TIDE_NUMBER_SIZE], longitude[TIDE_NUMBER_SIZE], text[120];
    tide_number_print(exif->latitude == 0 ? 0 : exif->latitude, 15, latitude);
    tide_number_print(exif->longitude == 0 ? 0 : exif->longitude, 15, longitude);
    int length = snprintf(text, sizeof text, "{\"latitude\":%s,\"longitude\":%s}", latitude, longitude);
    return set_text(batch, column, text, (size_t)length);
}

enum photo_column {
    column_caption,
    column_created,
    column_image,
    column_width,
    column_height,
    column_position,
    column_preview,
    column_count,
};

static tide_status columns_declare(tide_batch *batch, bool has_previews, uint32_t columns[column_count]) {
    static const struct {
        const char *name;
        tide_type type;
    } declared[column_count] = {
        {"caption", TIDE_TYPE_STRING}, {"createdAt", TIDE_TYPE_TIMESTAMP}, {"image", TIDE_TYPE_ASSET},
        {"width", TIDE_TYPE_INT64},    {"height", TIDE_TYPE_INT64},        {"position", TIDE_TYPE_LOCATION},
        {"image" TIDE_PREVIEW_SUFFIX, TIDE_TYPE_ASSET},
    };
    for (int i = 0; i < (has_previews ? column_count : column_preview); i++) {
        tide_status status = tide_batch_column(batch, declared[i].name, strlen(declared[i].name), &columns[i], NULL);
        if (status) return status;
        tide_batch_column_set_type(batch, columns[i], declared[i].type);
    }
    return TIDE_OK;
}

static tide_status name_row(tide_batch *batch, uint32_t row, const char *type_name, const char *path, const char *blob) {
    static const char prefix[] = "tidemark photo name 1";
    tide_text content = {0};
    tide_text_append(&content, prefix, sizeof prefix);
    tide_text_append(&content, type_name, strlen(type_name) + 1);
    tide_text_append(&content, path, strlen(path) + 1);
    tide_text_append(&content, blob, strlen(blob));
    char name[36];
    tide_status status = content.failed ? TIDE_NO_MEMORY : tide_name_derive(content.bytes, content.length, name);
    tide_text_free(&content);
    return status ? status : tide_batch_row_name(batch, row, name, sizeof name, NULL);
}

static tide_status row_fill(
    tide_batch *batch, uint32_t row, const uint32_t columns[column_count], const photo *photo, const char *path,
    const char *type_name, bool has_previews
) {
    const char *name = file_name(path);
    const char *dot = strrchr(name, '.');
    size_t stem = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    // A converted picture is upright.
    bool is_turned = photo->exif.orientation >= 5 && photo->exif.orientation <= 8 && !photo->blob.is_converted;
    const tide_image *image = &photo->blob.image;
    tide_status status = set_text(batch, columns[column_caption], name, stem);
    if (!status) {
        status = set_integer(batch, columns[column_created], photo->exif.has_time ? photo->exif.time : photo->blob.modified);
    }
    if (!status) status = set_text(batch, columns[column_image], photo->blob.id, strlen(photo->blob.id));
    if (!status && image->width && image->height) {
        status = set_integer(batch, columns[column_width], is_turned ? image->height : image->width);
        if (!status) status = set_integer(batch, columns[column_height], is_turned ? image->width : image->height);
    }
    if (!status && photo->exif.has_position) status = set_position(batch, columns[column_position], &photo->exif);
    if (!status && has_previews) {
        size_t length = strlen(photo->preview.id);
        status = length ? set_text(batch, columns[column_preview], photo->preview.id, length)
                        : tide_batch_row_set(batch, columns[column_preview], (tide_cell){.kind = TIDE_KIND_NULL});
    }
    // The record is named by the file's own content, however the picture is scaled.
    return status ? status : name_row(batch, row, type_name, path, photo->blob.source_id);
}

/// Whether a file is no photo, by its content and by its name.
static bool is_beside_the_point(const photo *photo, const char *name) {
    if (!photo->status || tide_media_claimed(name, strlen(name))) return false;
    switch (photo->error.reject) {
    case TIDE_REJECT_ASSET_NOT_AN_IMAGE:
    case TIDE_REJECT_ASSET_EMPTY:
    case TIDE_REJECT_ASSET_NOT_A_FILE:
    case TIDE_REJECT_ASSET_OUTSIDE_ROOT: return true;
    default: return false;
    }
}

static tide_status rows_add(
    const photo *photos, const char *const *paths, uint32_t count, uint64_t first_line, const char *type_name, bool has_previews,
    tide_batch *batch, bool *passed_over, tide_blob_visitor visitor, void *context
) {
    uint32_t columns[column_count];
    tide_status status = columns_declare(batch, has_previews, columns);
    for (uint32_t i = 0; i < count && !status; i++) {
        const photo *photo = &photos[i];
        passed_over[i] = is_beside_the_point(photo, file_name(paths[i]));
        if (passed_over[i]) continue;
        tide_span source;
        uint32_t row;
        status = tide_batch_text_add(batch, paths[i], strlen(paths[i]), &source);
        if (!status) status = tide_batch_row_add(batch, first_line + i, source, &row);
        if (status) break;
        if (!tide_utf8_is_valid(paths[i], strlen(paths[i]))) {
            status = tide_batch_row_reject(
                batch, row, "caption", 7, TIDE_REJECT_INVALID_UTF8, "the file's name is not valid UTF-8; give it another");
            continue;
        }
        if (photo->status) {
            status = tide_batch_row_reject(batch, row, "image", 5, photo->error.reject, photo->error.message);
            continue;
        }
        if ((status = row_fill(batch, row, columns, photo, paths[i], type_name, has_previews))) break;
        visitor(context, &photo->blob);
        if (photo->preview.id[0]) visitor(context, &photo->preview);
    }
    return status;
}

tide_status tide_photos_take_in(
    tide_intake *const *workers, uint32_t worker_count, const char *const *paths, uint32_t count, uint64_t first_line,
    const char *type_name, bool has_previews, tide_batch *batch, bool *passed_over, tide_blob_visitor visitor, void *context,
    tide_error *error
) {
    photo_round round = {
        .workers = workers, .paths = paths, .photos = calloc(count + 1, sizeof(photo)),
        .exif_buffers = calloc(worker_count, sizeof(uint8_t *))};
    tide_status status = round.photos && round.exif_buffers ? TIDE_OK : TIDE_NO_MEMORY;
    for (uint32_t i = 0; i < worker_count && !status; i++) {
        if (!(round.exif_buffers[i] = malloc(exif_capacity))) status = TIDE_NO_MEMORY;
    }
    if (status) tide_error_set(error, status, 0, "out of memory");
    if (!status) status = tide_intake_run(worker_count, count, photo_take_in, &round, error);
    if (!status) {
        status = rows_add(round.photos, paths, count, first_line, type_name, has_previews, batch, passed_over, visitor, context);
        if (status) tide_error_set(error, status, 0, "out of memory");
    }
    for (uint32_t i = 0; i < worker_count && round.exif_buffers; i++) free(round.exif_buffers[i]);
    free(round.exif_buffers);
    free(round.photos);
    return status;
}

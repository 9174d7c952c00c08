// pread is POSIX, which -std=c17 alone hides.
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tide_picture_layout.h"

enum { window_size = 64 << 10, exif_limit = 64 << 10 };

// Bytes

bool tide_growing_add(tide_growing *into, const void *bytes, size_t length) {
    if (length > into->capacity - into->length) {
        size_t capacity = into->capacity ? into->capacity : window_size;
        while (capacity - into->length < length) capacity *= 2;
        uint8_t *moved = realloc(into->bytes, capacity);
        if (!moved) return false;
        into->bytes = moved;
        into->capacity = capacity;
    }
    if (length) memcpy(into->bytes + into->length, bytes, length);
    into->length += length;
    return true;
}

bool tide_picture_input_read(tide_picture_input *input, uint64_t offset, void *bytes, size_t length) {
    if (offset > input->bytes.size || length > input->bytes.size - offset) return false;
    if (input->bytes.memory) {
        memcpy(bytes, input->bytes.memory + offset, length);
        return true;
    }
    for (size_t done = 0; done < length;) {
        ssize_t count = pread(input->bytes.descriptor, (uint8_t *)bytes + done, length - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            input->failure = count < 0 ? errno : tide_picture_cut_off;
            return false;
        }
        done += (size_t)count;
    }
    return true;
}

bool tide_picture_input_next(tide_picture_input *input, const uint8_t **bytes, size_t *length) {
    uint64_t rest = input->offset < input->bytes.size ? input->bytes.size - input->offset : 0;
    if (input->bytes.memory) {
        *bytes = input->bytes.memory + (input->bytes.size - rest);
        *length = (size_t)rest;
    } else {
        *bytes = input->window;
        *length = rest < input->window_size ? (size_t)rest : input->window_size;
        if (!tide_picture_input_read(input, input->offset, input->window, *length)) return false;
    }
    input->offset += *length;
    return true;
}

// The job

uint32_t tide_picture_concurrency(uint64_t cores, uint64_t memory) {
    enum { most = 16 };
    uint64_t count = memory / 2 / TIDE_PICTURE_MEMORY_LIMIT;
    if (count > cores) count = cores;
    if (count > most) count = most;
    return count > 0 ? (uint32_t)count : 1;
}

void tide_picture_stop(int32_t *stop, bool stops) { __atomic_store_n(stop, stops ? 1 : 0, __ATOMIC_RELAXED); }

bool tide_picture_job_is_stopped(const tide_picture_job *job) {
    return job->options->stop && __atomic_load_n(job->options->stop, __ATOMIC_RELAXED) != 0;
}

tide_status tide_picture_job_stop(tide_picture_job *job) {
    return tide_error_set(&job->error, TIDE_CANCELLED, 0, "the picture was cancelled");
}

void tide_picture_fit(uint32_t max_pixel_size, uint32_t *width, uint32_t *height) {
    uint32_t longest = *width > *height ? *width : *height;
    if (max_pixel_size == 0 || longest <= max_pixel_size) return;
    uint32_t *edges[] = {width, height};
    for (int i = 0; i < 2; i++) {
        uint64_t edge = ((uint64_t)*edges[i] * max_pixel_size * 2 + longest) / (2ull * longest);
        *edges[i] = edge > 0 ? (uint32_t)edge : 1;
    }
}

tide_status tide_picture_job_admit(tide_picture_job *job, uint32_t width, uint32_t height) {
    if (width == 0 || height == 0) {
        return tide_error_reject(&job->error, TIDE_REJECT_PICTURE_DAMAGED, "the picture has no pixels");
    }
    if (width > tide_edge_limit || height > tide_edge_limit || (uint64_t)width * height > TIDE_PICTURE_PIXEL_LIMIT) {
        return tide_error_reject(
            &job->error, TIDE_REJECT_PICTURE_TOO_LARGE,
            "the picture has %" PRIu32 " x %" PRIu32 " pixels; at most %u million, and edges of %d, can be scaled. Make it smaller with "
            "another program, or store it as it is",
            width, height, TIDE_PICTURE_PIXEL_LIMIT / 1000000, tide_edge_limit);
    }
    job->width = job->out_width = width;
    job->height = job->out_height = height;
    const tide_picture_options *options = job->options;
    uint32_t max = options->thumbnail_only ? options->thumbnail_pixel_size : options->max_pixel_size;
    tide_picture_fit(max, &job->out_width, &job->out_height);
    job->fits = job->out_width == width && job->out_height == height && job->exif.orientation == 1;
    return TIDE_OK;
}

tide_status tide_picture_job_begin(
    tide_picture_job *job, uint32_t width, uint32_t height, tide_pixels pixels, uint32_t row_count, uint64_t decoder_size
) {
    bool is_turned = job->exif.orientation >= 5;
    job->canvas = (tide_canvas){
        .width = is_turned ? job->out_height : job->out_width,
        .height = is_turned ? job->out_width : job->out_height,
        .pixels = pixels,
    };
    size_t size = tide_pixels_size(pixels);
    uint64_t canvas_size = (uint64_t)job->out_width * job->out_height * size;
    uint64_t rows_size = (uint64_t)width * row_count * size;
    // An encoder holds the coefficients, of two bytes each, and its output, in a buffer that doubles as it grows.
    uint64_t encoder_size = (uint64_t)job->out_width * job->out_height * (job->options->quality < 90 ? 4 : 8);
    if (tide_pixels_are_transparent(pixels) && encoder_size < 2 * canvas_size) encoder_size = 2 * canvas_size;
    uint64_t sum = decoder_size + rows_size + canvas_size + encoder_size + tide_scaler_size(width, height, job->out_width, job->out_height);
    if (sum > TIDE_PICTURE_MEMORY_LIMIT) {
        return tide_error_reject(
            &job->error, TIDE_REJECT_PICTURE_TOO_LARGE,
            "the picture has %" PRIu32 " x %" PRIu32 " pixels, and scaling it would take %" PRIu64 " MiB of memory; the limit is %llu. Ask "
            "for fewer pixels, make it smaller with another program, or store it as it is",
            job->width, job->height, sum >> 20, TIDE_PICTURE_MEMORY_LIMIT >> 20);
    }
    job->canvas.bytes = malloc((size_t)canvas_size);
    job->rows = malloc((size_t)rows_size);
    if (job->canvas.bytes && job->rows) {
        job->scaler = tide_scaler_create(width, height, job->out_width, job->out_height, job->exif.orientation, &job->canvas);
    }
    return job->scaler ? TIDE_OK : tide_error_set(&job->error, TIDE_NO_MEMORY, 0, "out of memory");
}

tide_status tide_picture_job_take_profile(tide_picture_job *job, const uint8_t *profile, size_t length, bool is_grey) {
    if (length > tide_profile_limit) {
        return tide_error_reject(
            &job->error, TIDE_REJECT_PICTURE_TOO_LARGE, "the colour profile of the picture is %zu bytes long; at most %d are kept", length,
            tide_profile_limit);
    }
    // A profile of other colours than the picture's says nothing about them.
    if (length < 128 || memcmp(profile + 36, "acsp", 4) != 0 || memcmp(profile + 16, is_grey ? "GRAY" : "RGB ", 4) != 0) return TIDE_OK;
    free(job->profile);
    job->profile = malloc(length);
    if (!job->profile) return tide_error_set(&job->error, TIDE_NO_MEMORY, 0, "out of memory");
    memcpy(job->profile, profile, length);
    job->profile_length = length;
    return TIDE_OK;
}

// Making

/// Removes the alpha of a canvas whose pixels are all opaque.
static void canvas_drop_opaque_alpha(tide_canvas *canvas) {
    if (!tide_pixels_are_transparent(canvas->pixels)) return;
    size_t size = tide_pixels_size(canvas->pixels), count = (size_t)canvas->width * canvas->height;
    for (size_t i = 0; i < count; i++) {
        if (canvas->bytes[i * size + size - 1] != 255) return;
    }
    if (canvas->pixels == TIDE_PIXELS_RGBA) {
        canvas->pixels = TIDE_PIXELS_RGBX;
        return;
    }
    for (size_t i = 0; i < count; i++) canvas->bytes[i] = canvas->bytes[2 * i];
    canvas->pixels = TIDE_PIXELS_GREY;
}

static tide_status canvas_encode(tide_picture_job *job, const tide_canvas *canvas, bool exif, tide_growing *file, tide_media *media) {
    bool is_transparent = tide_pixels_are_transparent(canvas->pixels);
    *media = is_transparent ? TIDE_MEDIA_PNG : TIDE_MEDIA_JPEG;
    return is_transparent ? tide_png_encode(job, canvas, exif, file) : tide_jpeg_encode(job, canvas, exif, file);
}

static tide_status image_encode(tide_picture_job *job, tide_growing *file, tide_media *media) {
    *media = job->image.media;
    bool is_transparent = tide_pixels_are_transparent(job->canvas.pixels);
    if (job->fits && *media == TIDE_MEDIA_JPEG && job->is_coarse) return tide_jpeg_copy(job, file);
    bool is_longer;
    if (job->fits && *media == TIDE_MEDIA_PNG && is_transparent) {
        tide_status status = tide_png_copy(job, TIDE_PICTURE_MEMORY_LIMIT, file, &is_longer);
        if (status || !is_longer) return status;
        return tide_error_reject(
            &job->error, TIDE_REJECT_PICTURE_TOO_LARGE, "the PNG has more than %llu MB, which no picture of its size needs",
            TIDE_PICTURE_MEMORY_LIMIT >> 20);
    }
    tide_status status = canvas_encode(job, &job->canvas, true, file, media);
    if (status || !job->fits || job->image.media != TIDE_MEDIA_PNG) return status;
    // A drawing is often smaller as a PNG.
    tide_growing copy = {0};
    status = tide_png_copy(job, file->length, &copy, &is_longer);
    if (!status && !is_longer) {
        tide_growing larger = *file;
        *file = copy;
        copy = larger;
        *media = TIDE_MEDIA_PNG;
    }
    free(copy.bytes);
    return status;
}

static tide_status thumbnail_encode(tide_picture_job *job, tide_canvas *small, tide_growing *file, tide_media *media) {
    const tide_canvas *canvas = &job->canvas;
    size_t size = tide_pixels_size(canvas->pixels), stride = canvas->width * size;
    small->pixels = canvas->pixels;
    small->bytes = malloc((size_t)small->width * small->height * size);
    tide_scaler *scaler = tide_scaler_create(canvas->width, canvas->height, small->width, small->height, 1, small);
    tide_status status = TIDE_OK;
    if (!small->bytes || !scaler) status = tide_error_set(&job->error, TIDE_NO_MEMORY, 0, "out of memory");
    for (uint32_t y = 0; y < canvas->height && !status; y++) {
        if (tide_picture_job_is_stopped(job)) status = tide_picture_job_stop(job);
        else tide_scaler_put(scaler, canvas->bytes + y * stride);
    }
    tide_scaler_destroy(scaler);
    if (!status) status = canvas_encode(job, small, false, file, media);
    free(small->bytes);
    small->bytes = NULL;
    return status;
}

static tide_picture_file file_take(tide_growing *growing, uint32_t width, uint32_t height, tide_media media) {
    // Gives back unused memory, because a picture stays in memory until it is stored.
    uint8_t *bytes = realloc(growing->bytes, growing->length);
    tide_picture_file file = {bytes ? bytes : growing->bytes, growing->length, width, height, media};
    *growing = (tide_growing){0};
    return file;
}

static tide_status files_make(tide_picture_job *job, tide_picture *picture) {
    tide_growing file = {0};
    tide_media media;
    if (job->options->thumbnail_only) {
        tide_status status = canvas_encode(job, &job->canvas, false, &file, &media);
        if (!status) picture->thumbnail = file_take(&file, job->canvas.width, job->canvas.height, media);
        free(file.bytes);
        return status;
    }
    tide_status status = image_encode(job, &file, &media);
    if (!status) picture->image = file_take(&file, job->canvas.width, job->canvas.height, media);
    uint32_t width = job->canvas.width, height = job->canvas.height;
    tide_picture_fit(job->options->thumbnail_pixel_size, &width, &height);
    if (!status && job->options->thumbnail_pixel_size > 0) {
        bool is_small = width == job->canvas.width && height == job->canvas.height;
        if (is_small && job->exif_length > 0) {
            // A thumbnail has no metadata.
            status = canvas_encode(job, &job->canvas, false, &file, &media);
        } else if (is_small) {
            if (!tide_growing_add(&file, picture->image.bytes, picture->image.length)) {
                status = tide_error_set(&job->error, TIDE_NO_MEMORY, 0, "out of memory");
            }
        } else {
            tide_canvas small = {.width = width, .height = height};
            status = thumbnail_encode(job, &small, &file, &media);
        }
        if (!status) picture->thumbnail = file_take(&file, width, height, media);
    }
    free(file.bytes);
    return status;
}

static tide_status exif_read(tide_picture_job *job) {
    job->exif = (tide_exif){.orientation = 1};
    size_t length = job->image.exif_length < exif_limit ? job->image.exif_length : exif_limit;
    if (length == 0) return TIDE_OK;
    uint8_t *block = malloc(length);
    if (!block) return tide_error_set(&job->error, TIDE_NO_MEMORY, 0, "out of memory");
    tide_status status = TIDE_OK;
    if (tide_picture_input_read(&job->input, job->image.exif_offset, block, length)) status = tide_exif_read(block, length, &job->exif);
    free(block);
    if (status) return tide_error_set(&job->error, status, 0, "out of memory");
    tide_exif kept = job->exif;
    kept.has_position = kept.has_position && job->options->keeps_position;
    job->exif_length = tide_exif_write(&kept, job->exif_block);
    return TIDE_OK;
}

static tide_status job_run(tide_picture_job *job, tide_picture *picture) {
    const tide_picture_options *options = job->options;
    if (options->quality < 1 || options->quality > 100 || options->max_pixel_size > tide_edge_limit
        || options->thumbnail_pixel_size > tide_edge_limit || (options->thumbnail_only && options->thumbnail_pixel_size == 0)) {
        return tide_error_set(
            &job->error, TIDE_MISUSE, 0, "a picture's quality is 1 to 100, and its edges have at most %d pixels", tide_edge_limit);
    }
    tide_status status = tide_image_probe(job->input.bytes, &job->image, &job->error);
    if (status) return status;
    if (job->image.media != TIDE_MEDIA_JPEG && job->image.media != TIDE_MEDIA_PNG) {
        return tide_error_reject(
            &job->error, TIDE_REJECT_PICTURE_UNSUPPORTED, "the content is neither a JPEG nor a PNG, which are the pictures that can be scaled");
    }
    if (!job->input.bytes.memory) {
        job->input.window = malloc(window_size);
        job->input.window_size = window_size;
        if (!job->input.window) return tide_error_set(&job->error, TIDE_NO_MEMORY, 0, "out of memory");
    }
    status = exif_read(job);
    if (!status) status = job->image.media == TIDE_MEDIA_JPEG ? tide_jpeg_decode(job) : tide_png_decode(job);
    tide_scaler_destroy(job->scaler);
    free(job->rows);
    job->scaler = NULL;
    job->rows = NULL;
    if (status) return status;
    canvas_drop_opaque_alpha(&job->canvas);
    return files_make(job, picture);
}

/// The status of a job whose input could not be read, of which its steps know nothing, or not the reason: they may have left out metadata.
static tide_status input_failure(tide_picture_job *job) {
    int number = job->input.failure;
    if (number == tide_picture_cut_off) {
        return tide_error_reject(&job->error, TIDE_REJECT_ASSET_TRUNCATED, "the picture became shorter while it was read");
    }
    return tide_error_set(&job->error, TIDE_IO_ERROR, number, "cannot read the picture: %s", strerror(number));
}

tide_status tide_picture_create(tide_bytes bytes, const tide_picture_options *options, tide_picture *picture, tide_error *error) {
    *picture = (tide_picture){0};
    tide_picture_job job = {.options = options, .input = {.bytes = bytes}};
    tide_status status = job_run(&job, picture);
    if (job.input.failure) status = input_failure(&job);
    picture->exif = job.exif;
    bool is_turned = job.exif.orientation >= 5, is_source = options->thumbnail_only;
    picture->width = is_source ? (is_turned ? job.height : job.width) : job.canvas.width;
    picture->height = is_source ? (is_turned ? job.width : job.height) : job.canvas.height;
    free(job.input.window);
    free(job.profile);
    free(job.canvas.bytes);
    if (!status) return TIDE_OK;
    tide_picture_destroy(picture);
    if (error) *error = job.error;
    return status;
}

void tide_picture_destroy(tide_picture *picture) {
    free(picture->image.bytes);
    free(picture->thumbnail.bytes);
    *picture = (tide_picture){0};
}

tide_status tide_picture_convert(
    const void *context, tide_bytes bytes, const tide_image *image, tide_converted *converted, tide_error *error
) {
    if (image->media != TIDE_MEDIA_JPEG && image->media != TIDE_MEDIA_PNG) return TIDE_OK;
    tide_picture picture;
    tide_error detail = {0};
    tide_status status = tide_picture_create(bytes, context, &picture, &detail);
    // Such a file is stored as it is, without a thumbnail, like pictures of other formats.
    bool is_kept = ((const tide_picture_options *)context)->thumbnail_only
        && (detail.reject == TIDE_REJECT_PICTURE_TOO_LARGE || detail.reject == TIDE_REJECT_PICTURE_UNSUPPORTED);
    if (status == TIDE_REJECTED && is_kept) return TIDE_OK;
    if (status && error) *error = detail;
    if (status) return status;
    converted->bytes = picture.image.bytes;
    converted->length = picture.image.length;
    converted->preview = picture.thumbnail.bytes;
    converted->preview_length = picture.thumbnail.length;
    return TIDE_OK;
}

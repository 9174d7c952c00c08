#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tide_picture_layout.h"

enum {
    signature_size = 8,
    chunk_frame = 12,
    cached_chunk_limit = 64,
    chunk_limit = 16 << 20,
    compression_level = 6,
};

// Errors

static _Noreturn void fail(png_structp png, png_const_charp message) {
    tide_picture_job *job = png_get_error_ptr(png);
    // Our own callbacks set the error before they call png_error.
    if (job->error.status == TIDE_OK) {
        if (strstr(message, "memory")) {
            tide_error_set(&job->error, TIDE_NO_MEMORY, 0, "out of memory");
        } else {
            tide_error_reject(&job->error, TIDE_REJECT_PICTURE_DAMAGED, "the PNG is damaged: %.200s", message);
        }
    }
    png_longjmp(png, 1);
}

/// Allocates memory, and remembers that it ran out: libpng then leaves something out, or reports damage.
static png_voidp memory_get(png_structp png, png_alloc_size_t size) {
    void *memory = malloc(size);
    if (!memory) *(bool *)png_get_mem_ptr(png) = true;
    return memory;
}

static void memory_free(png_structp png, png_voidp memory) {
    (void)png;
    free(memory);
}

static tide_status out_of_memory(tide_picture_job *job) { return tide_error_set(&job->error, TIDE_NO_MEMORY, 0, "out of memory"); }

/// Ignores libpng's warnings: damage that matters is an error.
static void pass_over(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

// Reading

typedef struct reader {
    png_structp png;
    png_infop info;
    const uint8_t *bytes;
    size_t held;
    tide_picture_job *job;
} reader;

static void source_read(png_structp png, png_bytep to, size_t length) {
    reader *it = png_get_io_ptr(png);
    while (length > 0) {
        if (it->held == 0) {
            if (!tide_picture_input_next(&it->job->input, &it->bytes, &it->held) || it->held == 0) {
                // Where reading has failed, `tide_picture_create` says so.
                tide_error_reject(&it->job->error, TIDE_REJECT_ASSET_TRUNCATED, "the PNG ends before its picture does");
                png_error(png, "truncated");
            }
        }
        size_t count = length < it->held ? length : it->held;
        memcpy(to, it->bytes, count);
        to += count;
        it->bytes += count;
        it->held -= count;
        length -= count;
    }
}

/// Converts colours of another gamma than sRGB's to sRGB, unless a profile describes them.
static void gamma_apply(reader *it, bool has_profile) {
    double gamma = 0;
    int intent;
    if (has_profile || png_get_sRGB(it->png, it->info, &intent) || !png_get_gAMA(it->png, it->info, &gamma)) return;
    if (gamma > 0.01 && fabs(gamma * 2.2 - 1) > 0.02) png_set_gamma(it->png, 2.2, gamma);
}

static tide_status profile_read(reader *it, bool is_grey) {
    png_charp name;
    int method;
    png_bytep profile;
    png_uint_32 length;
    if (!png_get_iCCP(it->png, it->info, &name, &method, &profile, &length)) return TIDE_OK;
    return tide_picture_job_take_profile(it->job, profile, length, is_grey);
}

/// Asks for 8 bits, for colours in place of a palette, and for alpha in place of a transparent colour.
static tide_pixels rows_request(reader *it, int kind, int depth) {
    png_structp png = it->png;
    bool is_transparent = (kind & PNG_COLOR_MASK_ALPHA) || png_get_valid(png, it->info, PNG_INFO_tRNS);
    bool is_grey = !(kind & PNG_COLOR_MASK_COLOR);
    if (kind == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (is_grey && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (png_get_valid(png, it->info, PNG_INFO_tRNS)) png_set_tRNS_to_alpha(png);
    if (depth == 16) png_set_scale_16(png);
    if (is_grey) return is_transparent ? TIDE_PIXELS_GREY_ALPHA : TIDE_PIXELS_GREY;
    if (!is_transparent) png_set_filler(png, 0xff, PNG_FILLER_AFTER);
    return is_transparent ? TIDE_PIXELS_RGBA : TIDE_PIXELS_RGBX;
}

static tide_status rows_read(reader *it, uint32_t height, size_t stride, int passes) {
    tide_picture_job *job = it->job;
    for (int pass = 0; pass < passes; pass++) {
        for (uint32_t y = 0; y < height; y++) {
            if (tide_picture_job_is_stopped(job)) return tide_picture_job_stop(job);
            uint8_t *row = job->rows + (passes > 1 ? y * stride : 0);
            png_read_row(it->png, row, NULL);
            if (passes == 1) tide_scaler_put(job->scaler, row);
        }
    }
    for (uint32_t y = 0; y < height && passes > 1; y++) tide_scaler_put(job->scaler, job->rows + y * stride);
    return TIDE_OK;
}

static tide_status pixels_read(reader *it) {
    static const uint8_t unread[] = "bKGD\0hIST\0pHYs\0sBIT\0sPLT\0tEXt\0tIME\0zTXt\0iTXt\0eXIf\0oFFs\0pCAL\0sCAL";
    tide_picture_job *job = it->job;
    png_structp png = it->png;
    if (setjmp(png_jmpbuf(png))) return job->error.status;
    png_set_read_fn(png, it, source_read);
    png_set_user_limits(png, tide_edge_limit, tide_edge_limit);
    // libpng would leave out a profile that is too long. With this limit it is read, and refused.
    png_set_chunk_malloc_max(png, chunk_limit);
    // Otherwise libpng would leave out damaged chunks that it can do without, such as the one for transparency.
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_chunk_cache_max(png, cached_chunk_limit);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, unread, (int)(sizeof unread / 5));

    tide_status status = tide_picture_job_admit(job, job->image.width, job->image.height);
    if (status) return status;
    png_read_info(png, it->info);
    png_uint_32 width, height;
    int depth, kind, interlacing;
    png_get_IHDR(png, it->info, &width, &height, &depth, &kind, &interlacing, NULL, NULL);
    status = profile_read(it, !(kind & PNG_COLOR_MASK_COLOR));
    if (status) return status;
    gamma_apply(it, job->profile_length > 0);
    tide_pixels pixels = rows_request(it, kind, depth);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, it->info);
    size_t stride = width * tide_pixels_size(pixels);
    if (width != job->width || height != job->height || png_get_rowbytes(png, it->info) != stride) {
        return tide_error_reject(&job->error, TIDE_REJECT_PICTURE_DAMAGED, "the PNG is damaged: its header contradicts itself");
    }
    // libpng holds two rows of its own, of up to 8 bytes a pixel.
    status = tide_picture_job_begin(job, width, height, pixels, passes > 1 ? height : 1, (uint64_t)width * 16);
    if (!status) status = rows_read(it, height, stride, passes);
    if (!status) png_read_end(png, NULL);
    return status;
}

tide_status tide_png_decode(tide_picture_job *job) {
    job->input.offset = 0;
    reader it = {.job = job};
    bool memory_ran_out = false;
    it.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, job, fail, pass_over, &memory_ran_out, memory_get, memory_free);
    if (it.png) it.info = png_create_info_struct(it.png);
    tide_status status = it.info ? pixels_read(&it) : out_of_memory(job);
    png_destroy_read_struct(&it.png, &it.info, NULL);
    return memory_ran_out ? out_of_memory(job) : status;
}

// Chunks

static void put_be32(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static uint32_t be32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static bool exif_add(const tide_picture_job *job, tide_growing *file) {
    uint8_t chunk[8 + TIDE_EXIF_WRITE_SIZE + 4];
    size_t length = job->exif_length;
    put_be32(chunk, (uint32_t)length);
    memcpy(chunk + 4, "eXIf", 4);
    memcpy(chunk + 8, job->exif_block, length);
    put_be32(chunk + 8 + length, (uint32_t)crc32(crc32(0, Z_NULL, 0), chunk + 4, (uInt)(4 + length)));
    return tide_growing_add(file, chunk, length + chunk_frame);
}

static bool is_kept(const uint8_t *name) {
    static const char kept[] = "IHDR PLTE tRNS gAMA cHRM sRGB iCCP cICP IDAT IEND";
    for (const char *at = kept; at < kept + sizeof kept; at += 5) {
        if (memcmp(at, name, 4) == 0) return true;
    }
    return false;
}

tide_status tide_png_copy(tide_picture_job *job, size_t most, tide_growing *file, bool *is_longer) {
    tide_picture_input *from = &job->input;
    uint8_t head[8];
    *is_longer = false;
    bool is_added = job->exif_length == 0, is_whole = tide_picture_input_read(from, 0, head, signature_size);
    bool has_room = is_whole && tide_growing_add(file, head, signature_size);
    for (uint64_t at = signature_size; is_whole && has_room;) {
        is_whole = tide_picture_input_read(from, at, head, 8);
        uint32_t length = be32(head);
        if (!is_whole) break;
        if (!is_added && memcmp(head + 4, "IDAT", 4) == 0) {
            has_room = exif_add(job, file);
            is_added = true;
        }
        size_t size = (size_t)length + chunk_frame;
        if (tide_picture_job_is_stopped(job)) return tide_picture_job_stop(job);
        if (has_room && is_kept(head + 4)) {
            // The length is limited because chunks behind the last pixel, which no decoder reads, may be as long as the file.
            *is_longer = file->length > most || size > most - file->length;
            if (*is_longer) return TIDE_OK;
            uint8_t piece[4096];
            for (size_t done = 0; done < size && is_whole && has_room;) {
                size_t count = size - done < sizeof piece ? size - done : sizeof piece;
                is_whole = tide_picture_input_read(from, at + done, piece, count);
                has_room = is_whole && tide_growing_add(file, piece, count);
                done += count;
            }
        }
        if (memcmp(head + 4, "IEND", 4) == 0) break;
        at += size;
    }
    if (!is_whole) return tide_error_reject(&job->error, TIDE_REJECT_ASSET_TRUNCATED, "the PNG ends before its picture does");
    return has_room ? TIDE_OK : out_of_memory(job);
}

// Writing

typedef struct writer {
    png_structp png;
    png_infop info;
    tide_growing *file;
} writer;

static void piece_add(png_structp png, png_bytep bytes, size_t length) {
    writer *it = png_get_io_ptr(png);
    if (tide_growing_add(it->file, bytes, length)) return;
    tide_picture_job *job = png_get_error_ptr(png);
    tide_error_set(&job->error, TIDE_NO_MEMORY, 0, "out of memory");
    png_error(png, "out of memory");
}

static void flush_nothing(png_structp png) { (void)png; }

static tide_status canvas_write(writer *it, tide_picture_job *job, const tide_canvas *canvas, bool exif) {
    png_structp png = it->png;
    if (setjmp(png_jmpbuf(png))) return job->error.status;
    png_set_write_fn(png, it, piece_add, flush_nothing);
    png_set_user_limits(png, tide_edge_limit, tide_edge_limit);
    int kind = canvas->pixels == TIDE_PIXELS_GREY_ALPHA ? PNG_COLOR_TYPE_GRAY_ALPHA : PNG_COLOR_TYPE_RGB_ALPHA;
    png_set_IHDR(
        png, it->info, canvas->width, canvas->height, 8, kind, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, compression_level);
    if (job->profile_length > 0) {
        png_set_iCCP(png, it->info, "icc", PNG_COMPRESSION_TYPE_BASE, job->profile, (png_uint_32)job->profile_length);
    }
    png_write_info(png, it->info);
    if (exif && job->exif_length > 0) png_write_chunk(png, (png_const_bytep) "eXIf", job->exif_block, job->exif_length);
    size_t stride = canvas->width * tide_pixels_size(canvas->pixels);
    for (uint32_t y = 0; y < canvas->height; y++) {
        if (tide_picture_job_is_stopped(job)) return tide_picture_job_stop(job);
        png_write_row(png, canvas->bytes + y * stride);
    }
    png_write_end(png, NULL);
    return TIDE_OK;
}

tide_status tide_png_encode(tide_picture_job *job, const tide_canvas *canvas, bool exif, tide_growing *file) {
    writer it = {.file = file};
    bool memory_ran_out = false;
    it.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, job, fail, pass_over, &memory_ran_out, memory_get, memory_free);
    if (it.png) it.info = png_create_info_struct(it.png);
    tide_status status = it.info ? canvas_write(&it, job, canvas, exif) : out_of_memory(job);
    png_destroy_write_struct(&it.png, &it.info);
    return memory_ran_out ? out_of_memory(job) : status;
}

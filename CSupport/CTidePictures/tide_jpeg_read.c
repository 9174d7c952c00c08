#include <stdlib.h>
#include <string.h>

#include "tide_jpeg.h"

enum {
    /// The most scans of a picture. libjpeg writes 10, and no encoder more than some 20.
    scan_limit = 64,
    profile_header = 14,
    profile_part_limit = 255,
};

/// The most pixels, counted in each scan, that are decoded.
static const uint64_t work_limit = 12ull * TIDE_PICTURE_PIXEL_LIMIT;

typedef struct reader {
    struct jpeg_decompress_struct info;
    struct jpeg_compress_struct copy;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    tide_jpeg_failure failure;
} reader;

static tide_picture_job *job_of(j_common_ptr info) { return ((tide_jpeg_failure *)info->err)->job; }

// The source

static void source_begin(j_decompress_ptr info) { (void)info; }

static boolean source_fill(j_decompress_ptr info) {
    tide_picture_job *job = job_of((j_common_ptr)info);
    const uint8_t *bytes;
    size_t length;
    if (!tide_picture_input_next(&job->input, &bytes, &length)) {
        tide_error_set(&job->error, TIDE_IO_ERROR, 0, "cannot read the picture");
        tide_jpeg_leave((j_common_ptr)info);
    }
    if (length == 0) {
        tide_error_reject(&job->error, TIDE_REJECT_ASSET_TRUNCATED, "the JPEG ends before its picture does");
        tide_jpeg_leave((j_common_ptr)info);
    }
    info->src->next_input_byte = bytes;
    info->src->bytes_in_buffer = length;
    return TRUE;
}

static void source_skip(j_decompress_ptr info, long count) {
    if (count <= 0) return;
    size_t length = (size_t)count, held = info->src->bytes_in_buffer;
    if (length > held) {
        job_of((j_common_ptr)info)->input.offset += length - held;
        length = held;
    }
    info->src->next_input_byte += length;
    info->src->bytes_in_buffer -= length;
}

static void source_end(j_decompress_ptr info) { (void)info; }

/// Checks limits and cancellation. libjpeg calls it for each row of blocks, in each scan.
static void progress_check(j_common_ptr common) {
    tide_picture_job *job = job_of(common);
    if (common->is_decompressor) {
        j_decompress_ptr info = (j_decompress_ptr)common;
        uint64_t work = (uint64_t)info->image_width * info->image_height * (uint64_t)info->input_scan_number;
        if (info->input_scan_number > scan_limit || work > work_limit) {
            tide_error_reject(
                &job->error, TIDE_REJECT_PICTURE_TOO_LARGE, "the JPEG has more scans than a picture of its size needs; save it anew");
            tide_jpeg_leave(common);
        }
    }
    if (!tide_picture_job_is_stopped(job)) return;
    tide_picture_job_stop(job);
    tide_jpeg_leave(common);
}

static void reader_open(reader *it, tide_picture_job *job) {
    it->source = (struct jpeg_source_mgr){
        .init_source = source_begin, .fill_input_buffer = source_fill, .skip_input_data = source_skip,
        .resync_to_restart = jpeg_resync_to_restart, .term_source = source_end};
    it->progress.progress_monitor = progress_check;
    jpeg_create_decompress(&it->info);
    it->info.src = &it->source;
    it->info.progress = &it->progress;
    it->info.mem->max_memory_to_use = (long)TIDE_PICTURE_MEMORY_LIMIT;
    job->input.offset = 0;
    jpeg_read_header(&it->info, TRUE);
}

// The profile

static uint32_t be16(const uint8_t *bytes) { return (uint32_t)bytes[0] << 8 | bytes[1]; }

/// Gathers the parts of an ICC profile, which lie in segments before the first scan, in the order of their numbers.
static tide_status profile_read(tide_picture_job *job, bool is_grey) {
    struct {
        uint64_t offset;
        size_t length;
    } parts[profile_part_limit] = {0};
    uint32_t count = 0;
    size_t sum = 0;
    uint8_t head[4 + profile_header];
    for (uint64_t at = 2; tide_picture_input_read(&job->input, at, head, 4) && head[0] == 0xff && head[1] != 0xda;) {
        // Fill bytes, and markers without a segment.
        if (head[1] == 0xff || head[1] == 0x01 || (head[1] >= 0xd0 && head[1] <= 0xd7)) {
            at += head[1] == 0xff ? 1 : 2;
            continue;
        }
        uint32_t length = be16(head + 2);
        if (length < 2) break;
        if (head[1] == 0xe2 && length >= 2 + profile_header && tide_picture_input_read(&job->input, at + 4, head + 4, profile_header)
            && memcmp(head + 4, "ICC_PROFILE", 12) == 0) {
            uint32_t number = head[16];
            count = head[17];
            if (number == 0 || number > count || parts[number - 1].offset) return TIDE_OK;
            parts[number - 1].offset = at + 4 + profile_header;
            parts[number - 1].length = length - 2 - profile_header;
            sum += parts[number - 1].length;
        }
        at += 2 + length;
    }
    if (count == 0) return TIDE_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (!parts[i].offset) return TIDE_OK;
    }
    if (sum > tide_profile_limit) return tide_picture_job_take_profile(job, NULL, sum, is_grey);
    uint8_t *profile = malloc(sum + 1);
    if (!profile) return tide_error_set(&job->error, TIDE_NO_MEMORY, 0, "out of memory");
    size_t at = 0;
    bool is_read = true;
    for (uint32_t i = 0; i < count && is_read; i++) {
        is_read = tide_picture_input_read(&job->input, parts[i].offset, profile + at, parts[i].length);
        at += parts[i].length;
    }
    tide_status status = is_read ? tide_picture_job_take_profile(job, profile, sum, is_grey) : TIDE_OK;
    free(profile);
    return status;
}

// Decoding

/// Whether the first quantisation table is as coarse as the one of the quality asked for, or coarser.
static bool is_coarse(reader *it, const tide_picture_job *job) {
    // The number comes from the file, and libjpeg checks it only when the decoding starts.
    int number = it->info.comp_info[0].quant_tbl_no;
    const JQUANT_TBL *own = number >= 0 && number < NUM_QUANT_TBLS ? it->info.quant_tbl_ptrs[number] : NULL;
    if (!own) return false;
    it->copy.err = it->info.err;
    jpeg_create_compress(&it->copy);
    it->copy.in_color_space = JCS_GRAYSCALE;
    it->copy.input_components = 1;
    jpeg_set_defaults(&it->copy);
    jpeg_set_quality(&it->copy, (int)job->options->quality, TRUE);
    uint32_t own_sum = 0, asked_sum = 0;
    for (int i = 0; i < DCTSIZE2; i++) {
        own_sum += own->quantval[i];
        asked_sum += it->copy.quant_tbl_ptrs[0]->quantval[i];
    }
    jpeg_destroy_compress(&it->copy);
    return own_sum >= asked_sum;
}

static uint64_t coefficients_size(const struct jpeg_decompress_struct *info) {
    uint64_t sum = 0;
    for (int i = 0; i < info->num_components; i++) {
        const jpeg_component_info *component = &info->comp_info[i];
        // libjpeg rounds the blocks up to whole units of the scan.
        sum += ((uint64_t)component->width_in_blocks + 4) * (component->height_in_blocks + 4) * sizeof(JBLOCK);
    }
    return sum;
}

/// Turns CMYK into RGB by the simple formula, without a profile of the inks. Adobe writes CMYK inverted.
static void row_from_inks(uint8_t *row, uint32_t width, bool is_inverted) {
    for (uint8_t *at = row; at < row + (size_t)width * 4; at += 4) {
        uint32_t black = is_inverted ? at[3] : 255u - at[3];
        for (int i = 0; i < 3; i++) at[i] = (uint8_t)(((is_inverted ? at[i] : 255u - at[i]) * black + 127) / 255);
        at[3] = 255;
    }
}

static tide_status pixels_read(reader *it, tide_picture_job *job) {
    if (setjmp(it->failure.escape)) return job->error.status;
    j_decompress_ptr info = &it->info;
    reader_open(it, job);
    tide_status status = tide_picture_job_admit(job, info->image_width, info->image_height);
    if (status) return status;
    bool is_grey = info->jpeg_color_space == JCS_GRAYSCALE;
    bool has_inks = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
    if (info->data_precision != 8 || info->jpeg_color_space == JCS_UNKNOWN) {
        return tide_error_reject(
            &job->error, TIDE_REJECT_PICTURE_UNSUPPORTED, "a JPEG of %d components with %d bits can't be decoded; save it as a usual JPEG",
            info->num_components, info->data_precision);
    }
    status = profile_read(job, is_grey);
    if (status) return status;

    // libjpeg reduces fast, but not in linear light. So it reduces to twice the final size at least, and the filter does the rest.
    info->scale_denom = 8;
    for (info->scale_num = 1; info->scale_num < 8; info->scale_num *= 2) {
        if (info->image_width * info->scale_num / 8 >= 2 * job->out_width && info->image_height * info->scale_num / 8 >= 2 * job->out_height) {
            break;
        }
    }
    info->out_color_space = is_grey ? JCS_GRAYSCALE : has_inks ? JCS_CMYK : JCS_EXT_RGBX;
    jpeg_calc_output_dimensions(info);
    bool is_buffered = jpeg_has_multiple_scans(info) || job->fits;
    uint64_t decoder_size = (is_buffered ? coefficients_size(info) : 0) + (uint64_t)info->output_width * 64;
    status = tide_picture_job_begin(
        job, info->output_width, info->output_height, is_grey ? TIDE_PIXELS_GREY : TIDE_PIXELS_RGBX, 1, decoder_size);
    if (status) return status;
    job->is_coarse = job->fits && !has_inks && is_coarse(it, job);

    jpeg_start_decompress(info);
    while (info->output_scanline < info->output_height) {
        if (tide_picture_job_is_stopped(job)) return tide_picture_job_stop(job);
        JSAMPROW row = job->rows;
        jpeg_read_scanlines(info, &row, 1);
        if (has_inks) row_from_inks(job->rows, info->output_width, info->saw_Adobe_marker);
        tide_scaler_put(job->scaler, job->rows);
    }
    jpeg_finish_decompress(info);
    return TIDE_OK;
}

static tide_status coefficients_copy(reader *it, tide_picture_job *job, tide_growing *file) {
    if (setjmp(it->failure.escape)) return job->error.status;
    reader_open(it, job);
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&it->info);
    it->copy.err = it->info.err;
    jpeg_create_compress(&it->copy);
    it->copy.progress = &it->progress;
    tide_jpeg_write_to(&it->copy, file);
    jpeg_copy_critical_parameters(&it->info, &it->copy);
    // The density is metadata, too.
    it->copy.density_unit = 0;
    it->copy.X_density = it->copy.Y_density = 1;
    tide_jpeg_set_form(&it->copy);
    jpeg_write_coefficients(&it->copy, coefficients);
    tide_jpeg_write_markers(&it->copy, job, true);
    jpeg_finish_compress(&it->copy);
    jpeg_finish_decompress(&it->info);
    return TIDE_OK;
}

static tide_status read_with(
    tide_picture_job *job, tide_status (*body)(reader *, tide_picture_job *, tide_growing *), tide_growing *file
) {
    reader *it = calloc(1, sizeof *it);
    if (!it) return tide_error_set(&job->error, TIDE_NO_MEMORY, 0, "out of memory");
    it->info.err = tide_jpeg_failure_begin(&it->failure, job);
    tide_status status = body(it, job, file);
    // Destroying a struct that was never created does nothing.
    jpeg_destroy_compress(&it->copy);
    jpeg_destroy_decompress(&it->info);
    free(it);
    return status;
}

static tide_status decode(reader *it, tide_picture_job *job, tide_growing *file) {
    (void)file;
    return pixels_read(it, job);
}

tide_status tide_jpeg_decode(tide_picture_job *job) { return read_with(job, decode, NULL); }
tide_status tide_jpeg_copy(tide_picture_job *job, tide_growing *file) { return read_with(job, coefficients_copy, file); }

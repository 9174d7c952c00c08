#include <stdlib.h>
#include <string.h>

#include "tide_jpeg.h"

// jerror.h is included after jpeglib.h.
#include <jerror.h>

// Errors

_Noreturn void tide_jpeg_leave(j_common_ptr info) { longjmp(((tide_jpeg_failure *)info->err)->escape, 1); }

static tide_reject reject_of(int code) {
    switch (code) {
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_COMPONENT_COUNT: return TIDE_REJECT_PICTURE_UNSUPPORTED;
    case JERR_IMAGE_TOO_BIG:
    case JERR_NO_BACKING_STORE: return TIDE_REJECT_PICTURE_TOO_LARGE;
    default: return TIDE_REJECT_PICTURE_DAMAGED;
    }
}

static _Noreturn void error_exit(j_common_ptr info) {
    tide_jpeg_failure *failure = (tide_jpeg_failure *)info->err;
    tide_error *error = &failure->job->error;
    char text[JMSG_LENGTH_MAX];
    failure->base.format_message(info, text);
    if (failure->base.msg_code == JERR_OUT_OF_MEMORY) {
        tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    } else if (reject_of(failure->base.msg_code) == TIDE_REJECT_PICTURE_UNSUPPORTED) {
        tide_error_reject(error, TIDE_REJECT_PICTURE_UNSUPPORTED, "this kind of JPEG can't be decoded: %s; save it as a usual JPEG", text);
    } else if (reject_of(failure->base.msg_code) == TIDE_REJECT_PICTURE_TOO_LARGE) {
        tide_error_reject(error, TIDE_REJECT_PICTURE_TOO_LARGE, "the JPEG is too large: %s", text);
    } else {
        tide_error_reject(error, TIDE_REJECT_PICTURE_DAMAGED, "the JPEG is damaged: %s", text);
    }
    tide_jpeg_leave(info);
}

/// Whether the pixels of a JPEG of one scan are being read. There libjpeg would go on at the next restart marker, and leave lost pixels grey.
static bool is_within_scan(j_decompress_ptr reading) {
    return reading->output_height > 0 && reading->output_scanline < reading->output_height && !jpeg_has_multiple_scans(reading);
}

/// Makes errors of libjpeg's warnings: it would show damaged parts grey. The warnings below only mean that the writer was careless.
static void emit_message(j_common_ptr info, int level) {
    if (level >= 0) return;
    switch (info->err->msg_code) {
    // A compressor has no such data.
    case JWRN_EXTRANEOUS_DATA:
        if (is_within_scan((j_decompress_ptr)info)) error_exit(info);
        return;
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM: return;
    default: error_exit(info);
    }
}

struct jpeg_error_mgr *tide_jpeg_failure_begin(tide_jpeg_failure *failure, tide_picture_job *job) {
    failure->job = job;
    jpeg_std_error(&failure->base);
    failure->base.error_exit = error_exit;
    failure->base.emit_message = emit_message;
    return &failure->base;
}

// Writing

enum { piece_size = 32 << 10 };

typedef struct destination {
    struct jpeg_destination_mgr base;
    tide_growing *file;
    JOCTET piece[piece_size];
} destination;

static void piece_begin(j_compress_ptr info) {
    destination *to = (destination *)info->dest;
    to->base.next_output_byte = to->piece;
    to->base.free_in_buffer = piece_size;
}

static void piece_add(j_compress_ptr info, size_t length) {
    destination *to = (destination *)info->dest;
    if (tide_growing_add(to->file, to->piece, length)) return;
    tide_error_set(&((tide_jpeg_failure *)info->err)->job->error, TIDE_NO_MEMORY, 0, "out of memory");
    tide_jpeg_leave((j_common_ptr)info);
}

static boolean piece_end(j_compress_ptr info) {
    piece_add(info, piece_size);
    piece_begin(info);
    return TRUE;
}

static void file_end(j_compress_ptr info) { piece_add(info, piece_size - info->dest->free_in_buffer); }

void tide_jpeg_write_to(j_compress_ptr info, tide_growing *file) {
    destination *to = (*info->mem->alloc_small)((j_common_ptr)info, JPOOL_PERMANENT, sizeof *to);
    *to = (destination){
        .base = {.init_destination = piece_begin, .empty_output_buffer = piece_end, .term_destination = file_end}, .file = file};
    info->dest = &to->base;
}

void tide_jpeg_set_form(j_compress_ptr info) {
    // One scan: several would save some 2% of the bytes, and take a tenth longer to write and twice as long to read.
    info->optimize_coding = TRUE;
}

void tide_jpeg_write_markers(j_compress_ptr info, const tide_picture_job *job, bool exif) {
    if (exif && job->exif_length > 0) {
        uint8_t marker[6 + TIDE_EXIF_WRITE_SIZE] = "Exif\0";
        memcpy(marker + 6, job->exif_block, job->exif_length);
        jpeg_write_marker(info, JPEG_APP0 + 1, marker, (unsigned int)(6 + job->exif_length));
    }
    if (job->profile_length > 0) jpeg_write_icc_profile(info, job->profile, (unsigned int)job->profile_length);
}

typedef struct writer {
    struct jpeg_compress_struct info;
    tide_jpeg_failure failure;
} writer;

static tide_status canvas_write(writer *it, tide_picture_job *job, const tide_canvas *canvas, bool exif, tide_growing *file) {
    if (setjmp(it->failure.escape)) return job->error.status;
    j_compress_ptr info = &it->info;
    jpeg_create_compress(info);
    tide_jpeg_write_to(info, file);
    info->image_width = canvas->width;
    info->image_height = canvas->height;
    bool is_grey = canvas->pixels == TIDE_PIXELS_GREY;
    info->input_components = is_grey ? 1 : 4;
    info->in_color_space = is_grey ? JCS_GRAYSCALE : JCS_EXT_RGBX;
    jpeg_set_defaults(info);
    jpeg_set_quality(info, (int)job->options->quality, TRUE);
    // In photos, nobody sees that colours have half the resolution. A higher quality than usual may be asked for drawings, where it shows.
    if (!is_grey && job->options->quality >= 90) info->comp_info[0].h_samp_factor = info->comp_info[0].v_samp_factor = 1;
    tide_jpeg_set_form(info);
    jpeg_start_compress(info, TRUE);
    tide_jpeg_write_markers(info, job, exif);
    size_t stride = canvas->width * tide_pixels_size(canvas->pixels);
    while (info->next_scanline < info->image_height) {
        if (tide_picture_job_is_stopped(job)) return tide_picture_job_stop(job);
        JSAMPROW row = canvas->bytes + info->next_scanline * stride;
        jpeg_write_scanlines(info, &row, 1);
    }
    jpeg_finish_compress(info);
    return TIDE_OK;
}

tide_status tide_jpeg_encode(tide_picture_job *job, const tide_canvas *canvas, bool exif, tide_growing *file) {
    writer *it = calloc(1, sizeof *it);
    if (!it) return tide_error_set(&job->error, TIDE_NO_MEMORY, 0, "out of memory");
    it->info.err = tide_jpeg_failure_begin(&it->failure, job);
    tide_status status = canvas_write(it, job, canvas, exif, file);
    jpeg_destroy_compress(&it->info);
    free(it);
    return status;
}

// Pictures that libjpeg and libpng write, for tests of what is made of them.

#ifndef PICTURE_MAKING_H
#define PICTURE_MAKING_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

#include "check.h"

typedef struct buffer {
    uint8_t *bytes;
    size_t length;
} buffer;

static inline buffer buffer_copy(const void *bytes, size_t length) {
    buffer made = {malloc(length ? length : 1), length};
    if (length) memcpy(made.bytes, bytes, length);
    return made;
}

static inline void put(buffer *into, const void *bytes, size_t length) {
    into->bytes = realloc(into->bytes, into->length + length + 1);
    memcpy(into->bytes + into->length, bytes, length);
    into->length += length;
}

/// Pixels of `channels` bytes: 1 grey, 2 grey and alpha, 3 colours, 4 colours and alpha or four inks.
typedef struct pixels {
    uint32_t width, height, channels;
    uint8_t *bytes;
} pixels;

static inline pixels pixels_make(uint32_t width, uint32_t height, uint32_t channels) {
    return (pixels){width, height, channels, calloc((size_t)width * height, channels)};
}

static inline uint8_t *at(pixels of, uint32_t x, uint32_t y) { return of.bytes + ((size_t)y * of.width + x) * of.channels; }

typedef struct jpeg_form {
    int quality;
    bool is_progressive, has_inks, is_plain_inks;
    buffer exif, profile;
} jpeg_form;

/// Where libjpeg writes a JPEG to. It must not move between the two calls.
typedef struct jpeg_output {
    struct jpeg_error_mgr errors;
    unsigned char *bytes;
    unsigned long length;
} jpeg_output;

static inline void jpeg_begin(struct jpeg_compress_struct *info, jpeg_output *output) {
    *output = (jpeg_output){0};
    info->err = jpeg_std_error(&output->errors);
    jpeg_create_compress(info);
    jpeg_mem_dest(info, &output->bytes, &output->length);
}

/// Returns the JPEG, whose rows were written. The caller frees its bytes.
static inline buffer jpeg_end(struct jpeg_compress_struct *info, const jpeg_output *output) {
    jpeg_finish_compress(info);
    jpeg_destroy_compress(info);
    return (buffer){output->bytes, output->length};
}

static inline buffer jpeg_write(pixels of, jpeg_form form) {
    struct jpeg_compress_struct info;
    jpeg_output output;
    jpeg_begin(&info, &output);
    info.image_width = of.width;
    info.image_height = of.height;
    info.input_components = (int)of.channels;
    info.in_color_space = of.channels == 1 ? JCS_GRAYSCALE : form.has_inks ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(&info);
    if (form.is_plain_inks) info.write_Adobe_marker = FALSE;
    jpeg_set_quality(&info, form.quality ? form.quality : 100, TRUE);
    info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
    if (form.is_progressive) jpeg_simple_progression(&info);
    jpeg_start_compress(&info, TRUE);
    if (form.exif.length) {
        buffer marker = buffer_copy("Exif\0", 6);
        put(&marker, form.exif.bytes, form.exif.length);
        jpeg_write_marker(&info, JPEG_APP0 + 1, marker.bytes, (unsigned)marker.length);
        free(marker.bytes);
    }
    if (form.profile.length) jpeg_write_icc_profile(&info, form.profile.bytes, (unsigned)form.profile.length);
    while (info.next_scanline < info.image_height) {
        JSAMPROW row = at(of, 0, info.next_scanline);
        jpeg_write_scanlines(&info, &row, 1);
    }
    return jpeg_end(&info, &output);
}

static inline void png_add(png_structp png, png_bytep bytes, size_t length) { put(png_get_io_ptr(png), bytes, length); }
static inline void png_flush_nothing(png_structp png) { (void)png; }

typedef struct png_form {
    int depth, kind;
    bool is_interlaced;
    /// Of a palette of 4: red, green, blue, a clear white.
    bool is_clear;
    double gamma;
    buffer profile;
} png_form;

/// The rows are as the file has them.
static inline buffer png_write(uint32_t width, uint32_t height, uint8_t **rows, png_form form) {
    buffer file = {0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    if (setjmp(png_jmpbuf(png))) check(false, "libpng");
    png_set_write_fn(png, &file, png_add, png_flush_nothing);
    png_set_IHDR(
        png, info, width, height, form.depth, form.kind, form.is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
        PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    static const png_color colours[] = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {255, 255, 255}};
    if (form.kind == PNG_COLOR_TYPE_PALETTE) {
        png_set_PLTE(png, info, colours, form.depth == 1 ? 2 : 4);
        static const png_byte alphas[] = {255, 255, 255, 0};
        if (form.is_clear) png_set_tRNS(png, info, alphas, 4, NULL);
    }
    if (form.gamma > 0) png_set_gAMA(png, info, form.gamma);
    if (form.profile.length) {
        png_set_benign_errors(png, 1);
        png_set_iCCP(png, info, "icc", PNG_COMPRESSION_TYPE_BASE, form.profile.bytes, (png_uint_32)form.profile.length);
    }
    png_text text = {.compression = PNG_TEXT_COMPRESSION_NONE, .key = "Author", .text = "somebody", .text_length = 8};
    png_set_text(png, info, &text, 1);
    png_write_info(png, info);
    png_write_image(png, rows);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return file;
}

static inline buffer png_of(pixels of, png_form form) {
    uint8_t **rows = malloc(of.height * sizeof *rows);
    for (uint32_t y = 0; y < of.height; y++) rows[y] = at(of, 0, y);
    form.depth = 8;
    form.kind = (int[]){0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGBA}[of.channels];
    buffer file = png_write(of.width, of.height, rows, form);
    free(rows);
    return file;
}

static const uint8_t corners[4][3] = {{220, 30, 30}, {30, 200, 30}, {40, 40, 220}, {230, 220, 40}};

/// A picture with a colour in each corner: upper left, upper right, lower left, lower right.
static inline pixels corners_make(uint32_t width, uint32_t height, const uint8_t colours[4][3]) {
    pixels made = pixels_make(width, height, 3);
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) memcpy(at(made, x, y), colours[2 * (y >= height / 2) + (x >= width / 2)], 3);
    }
    return made;
}

/// A header that passes for a profile.
static inline buffer profile_make(size_t length, const char *space) {
    buffer made = {calloc(1, length), length};
    for (size_t i = 132; i < length; i++) made.bytes[i] = (uint8_t)(i * 31 >> 3);
    for (int i = 0; i < 4; i++) made.bytes[i] = (uint8_t)(length >> (24 - 8 * i));
    made.bytes[8] = 2;
    memcpy(made.bytes + 12, "mntr", 4);
    memcpy(made.bytes + 16, space, 4);
    memcpy(made.bytes + 20, "XYZ ", 4);
    memcpy(made.bytes + 36, "acsp", 4);
    // The illuminant D50, which libpng looks at.
    memcpy(made.bytes + 68, "\0\0\xf6\xd6\0\x01\0\0\0\0\xd3\x2d", 12);
    memset(made.bytes + 128, 0, 4);
    return made;
}

#endif

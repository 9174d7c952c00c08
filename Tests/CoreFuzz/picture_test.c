// Goal: pictures become what their makers meant, smaller; what is hostile, damaged or too large is refused; nothing else happens.
// Method: libjpeg and libpng write pictures whose pixels are known, the core makes pictures of them, and libjpeg and libpng read these
// back. Copies are made to the byte, so that the address sanitizer sees an overrun.
//
// usage: picture_test [directory to write seeds for picture_fuzz to]

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "picture_making.h"
#include "../../CSupport/CTidePictures/tide_picture_layout.h"
#include "tide_picture.h"

static const char *seeds;

static void seed_write(const char *name, buffer file) {
    if (!seeds) return;
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", seeds, name);
    FILE *out = fopen(path, "wb");
    // The byte chooses options: a small picture with a thumbnail.
    check(out && fputc(0x5f, out) >= 0 && fwrite(file.bytes, 1, file.length, out) == file.length, "%s", path);
    fclose(out);
}

// Reading what was made

static pixels jpeg_read(buffer file) {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, file.bytes, file.length);
    jpeg_read_header(&info, TRUE);
    jpeg_start_decompress(&info);
    pixels made = pixels_make(info.output_width, info.output_height, (uint32_t)info.output_components);
    while (info.output_scanline < info.output_height) {
        JSAMPROW row = at(made, 0, info.output_scanline);
        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return made;
}

static pixels png_read(buffer file) {
    png_image image = {.version = PNG_IMAGE_VERSION};
    check(png_image_begin_read_from_memory(&image, file.bytes, file.length), "%s", image.message);
    // Without it libpng takes 16 bits for linear light.
    image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
    image.format = PNG_FORMAT_RGBA;
    pixels made = pixels_make(image.width, image.height, 4);
    check(png_image_finish_read(&image, NULL, made.bytes, 0, NULL), "%s", image.message);
    return made;
}

static buffer file_of(const tide_picture_file *file) { return (buffer){file->bytes, file->length}; }

static pixels file_read(const tide_picture_file *file) {
    pixels made = file->media == TIDE_MEDIA_PNG ? png_read(file_of(file)) : jpeg_read(file_of(file));
    check(made.width == file->width && made.height == file->height, "%u x %u", made.width, made.height);
    return made;
}

static tide_status make_of(buffer file, tide_picture_options options, tide_picture *picture, tide_error *error) {
    if (!options.quality) options.quality = 95;
    buffer copy = buffer_copy(file.bytes, file.length);
    tide_status status =
        tide_picture_create((tide_bytes){.memory = copy.bytes, .descriptor = -1, .size = copy.length}, &options, picture, error);
    free(copy.bytes);

    // Through a descriptor it is the same.
    FILE *out = tmpfile();
    check(out && (file.length == 0 || fwrite(file.bytes, file.length, 1, out) == 1) && fflush(out) == 0, "a temporary file");
    tide_picture other;
    tide_error detail;
    tide_status again =
        tide_picture_create((tide_bytes){.descriptor = fileno(out), .size = file.length}, &options, &other, &detail);
    fclose(out);
    check(status == again, "%d and %d: %s", status, again, status ? error->message : detail.message);
    check(status == TIDE_OK || !other.image.bytes, "bytes after a failure");
    check(picture->image.length == other.image.length && picture->thumbnail.length == other.thumbnail.length, "lengths");
    if (!status && picture->image.bytes) check(!memcmp(picture->image.bytes, other.image.bytes, other.image.length), "bytes");
    tide_picture_destroy(&other);
    return status;
}

static tide_picture make(buffer file, tide_picture_options options) {
    tide_picture picture;
    tide_error error = {0};
    tide_status status = make_of(file, options, &picture, &error);
    check(status == TIDE_OK, "%d: %s", status, error.message);
    return picture;
}

static void check_refused(buffer file, tide_picture_options options, tide_reject reject, const char *words) {
    tide_picture picture;
    tide_error error = {0};
    tide_status status = make_of(file, options, &picture, &error);
    check(status == TIDE_REJECTED && error.reject == reject, "%d %s: %s", status, tide_reject_name(error.reject), error.message);
    check(strstr(error.message, words), "%s", error.message);
    check(!picture.image.bytes && !picture.thumbnail.bytes, "bytes after a refusal");
}

static bool is_near(const uint8_t *pixel, const uint8_t *expected, uint32_t channels, int tolerance) {
    for (uint32_t i = 0; i < channels; i++) {
        if (abs((int)pixel[i] - (int)expected[i]) > tolerance) return false;
    }
    return true;
}

// Tests

static buffer orientation_block(int orientation) {
    uint8_t block[26] = "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0";
    block[19] = (uint8_t)orientation;
    return buffer_copy(block, sizeof block);
}

static void test_orientations(void) {
    // Where EXIF says that the stored row 0 and column 0 are seen: of the upper left, upper right, lower left, lower right corner.
    static const int seen[8][4] = {{0, 1, 2, 3}, {1, 0, 3, 2}, {3, 2, 1, 0}, {2, 3, 0, 1},
                                   {0, 2, 1, 3}, {1, 3, 0, 2}, {3, 1, 2, 0}, {2, 0, 3, 1}};
    for (int orientation = 1; orientation <= 8; orientation++) {
        for (int scaled = 0; scaled < 2; scaled++) {
            pixels stored = corners_make(96, 64, corners);
            buffer exif = orientation_block(orientation), file = jpeg_write(stored, (jpeg_form){.exif = exif});
            if (orientation == 6 && !scaled) seed_write("orientation.jpg", file);
            tide_picture picture = make(file, (tide_picture_options){.max_pixel_size = scaled ? 48 : 0, .thumbnail_pixel_size = 24});
            check(picture.exif.orientation == orientation, "%d", picture.exif.orientation);
            const tide_picture_file *files[] = {&picture.image, &picture.thumbnail};
            for (int i = 0; i < 2; i++) {
                pixels upright = file_read(files[i]);
                uint32_t longest = i ? 24 : scaled ? 48 : 96, shortest = longest / 3 * 2;
                check(upright.width == (orientation < 5 ? longest : shortest), "%d: %u", orientation, upright.width);
                check(upright.height == (orientation < 5 ? shortest : longest), "%d: %u", orientation, upright.height);
                for (int corner = 0; corner < 4; corner++) {
                    int place = seen[orientation - 1][corner];
                    const uint8_t *pixel = at(
                        upright, upright.width * (place % 2 ? 3 : 1) / 4, upright.height * (place / 2 ? 3 : 1) / 4);
                    check(is_near(pixel, corners[corner], 3, 8), "orientation %d, corner %d", orientation, corner);
                }
                // The result is upright, whatever a viewer makes of EXIF.
                tide_image image;
                check(!tide_image_probe((tide_bytes){.memory = files[i]->bytes, .size = files[i]->length}, &image, NULL), "probe");
                check(image.exif_length == 0, "EXIF is left");
                free(upright.bytes);
            }
            tide_picture_destroy(&picture);
            free(file.bytes);
            free(exif.bytes);
            free(stored.bytes);
        }
    }
}

static tide_exif exif_of(const tide_picture_file *file) {
    tide_image image;
    tide_exif exif = {.orientation = 1};
    check(!tide_image_probe((tide_bytes){.memory = file->bytes, .size = file->length}, &image, NULL), "probe");
    if (image.exif_length) tide_exif_read(file->bytes + image.exif_offset, image.exif_length, &exif);
    return exif;
}

static bool contains(buffer file, const void *bytes, size_t length) {
    for (size_t i = 0; i + length <= file.length; i++) {
        if (memcmp(file.bytes + i, bytes, length) == 0) return true;
    }
    return false;
}

static uint32_t number_at(const uint8_t *bytes, size_t width) {
    uint32_t number = 0;
    for (size_t i = 0; i < width; i++) number = number << 8 | bytes[i];
    return number;
}

/// Checks that the entries of a directory are in the order of their tags, and that their values lie in the block.
static void directory_check(buffer block, size_t place) {
    static const uint32_t sizes[] = {0, 1, 1, 2, 4, 8, 0, 1};
    check(place + 2 <= block.length, "a directory at %zu", place);
    uint32_t count = number_at(block.bytes + place, 2), last = 0;
    check(place + 2 + 12 * count + 4 <= block.length, "%u entries", count);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *entry = block.bytes + place + 2 + 12 * i;
        uint32_t tag = number_at(entry, 2), type = number_at(entry + 2, 2), value = number_at(entry + 8, 4);
        check(i == 0 || tag > last, "tag %x behind %x", tag, last);
        last = tag;
        check(type < 8 && sizes[type] > 0, "tag %x has the type %u", tag, type);
        uint64_t length = (uint64_t)sizes[type] * number_at(entry + 4, 4);
        check(length <= 4 || value + length <= block.length, "tag %x has its value outside of the block", tag);
        if (tag == 0x8769 || tag == 0x8825) directory_check(block, value);
    }
}

static void test_exif(void) {
    static const tide_exif cases[] = {
        {.has_time = true, .time = 1718383200000000, .has_offset = true, .offset = 7200},
        {.has_time = true, .time = 1718383200123456, .has_offset = true, .offset = -12600, .has_position = true, .latitude = -33.8568,
         .longitude = -70.6483},
        {.has_time = true, .time = -1000000000000, .has_position = true, .latitude = 63.5321, .longitude = 179.9999},
        {.has_position = true, .latitude = 90, .longitude = -180},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t block[TIDE_EXIF_WRITE_SIZE];
        size_t length = tide_exif_write(&cases[i], block);
        buffer exif = buffer_copy(block, length);
        directory_check(exif, 8);
        // Tag, type, count and value of the version of EXIF, and of that of GPS.
        check(contains(exif, "\x90\0\0\7\0\0\0\4" "0232", 12) == cases[i].has_time, "%zu: the version", i);
        check(contains(exif, "\0\0\0\1\0\0\0\4\2\3\0\0", 12) == cases[i].has_position, "%zu: the version of GPS", i);
        tide_exif read;
        tide_exif_read(exif.bytes, exif.length, &read);
        check(read.has_time == cases[i].has_time && read.time == cases[i].time, "%zu: %lld", i, (long long)read.time);
        check(read.offset == cases[i].offset && read.has_offset == cases[i].has_offset, "%zu: %d", i, read.offset);
        check(read.has_position == cases[i].has_position && fabs(read.latitude - cases[i].latitude) < 1e-7, "%zu", i);
        check(fabs(read.longitude - cases[i].longitude) < 1e-7, "%zu", i);

        pixels stored = corners_make(64, 64, corners);
        buffer file = jpeg_write(stored, (jpeg_form){.exif = exif});
        for (int keeps = 0; keeps < 2; keeps++) {
            // Scaled, and copied without a loss.
            for (int scaled = 0; scaled < 2; scaled++) {
                tide_picture picture = make(
                    file, (tide_picture_options){.max_pixel_size = scaled ? 32 : 0, .thumbnail_pixel_size = 16, .quality = 100,
                                                 .keeps_position = keeps});
                tide_exif kept = exif_of(&picture.image), thumb = exif_of(&picture.thumbnail);
                check(kept.has_time == cases[i].has_time && kept.time == cases[i].time, "%zu", i);
                check(kept.has_position == (keeps && cases[i].has_position), "%zu: the position", i);
                check(!thumb.has_time && !thumb.has_position, "the thumbnail has EXIF data");
                check(picture.exif.has_position == cases[i].has_position, "what was read");
                tide_picture_destroy(&picture);
            }
        }
        free(file.bytes);
        free(stored.bytes);
        free(exif.bytes);
    }

    // The field has a year of four digits.
    for (int i = 0; i < 2; i++) {
        tide_exif end = {.has_time = true, .has_offset = true, .offset = i ? 7200 : -7200};
        end.time = i ? 253402300799000000 : -62135596800000000;
        uint8_t block[TIDE_EXIF_WRITE_SIZE];
        check(tide_exif_write(&end, block) == 0, "%d: a year that is not in 1 to 9999 is written", i);
        end.offset = -end.offset;
        buffer exif = buffer_copy(block, tide_exif_write(&end, block));
        tide_exif read;
        tide_exif_read(exif.bytes, exif.length, &read);
        check(read.has_time && read.time == end.time, "%d: %lld", i, (long long)read.time);
        free(exif.bytes);
    }
}

static void test_profiles(void) {
    pixels stored = corners_make(64, 48, corners);
    // Of one part, of several, of the wrong colours, and longer than is kept.
    buffer small = profile_make(600, "RGB "), large = profile_make(200000, "RGB "), grey = profile_make(600, "GRAY");
    for (int scaled = 0; scaled < 2; scaled++) {
        tide_picture_options options = {.max_pixel_size = scaled ? 32 : 0, .thumbnail_pixel_size = 16, .quality = 100};
        buffer file = jpeg_write(stored, (jpeg_form){.profile = small});
        tide_picture picture = make(file, options);
        check(contains(file_of(&picture.image), small.bytes, small.length), "the profile is gone");
        check(contains(file_of(&picture.thumbnail), small.bytes, small.length), "the profile of the thumbnail is gone");
        tide_picture_destroy(&picture);
        free(file.bytes);

        file = jpeg_write(stored, (jpeg_form){.profile = large});
        picture = make(file, options);
        check(contains(file_of(&picture.image), large.bytes + 100000, 20000), "a part of the profile is gone");
        tide_picture_destroy(&picture);
        free(file.bytes);

        file = jpeg_write(stored, (jpeg_form){.profile = grey});
        picture = make(file, options);
        check(!contains(file_of(&picture.image), grey.bytes + 132, 200), "a profile of grey is kept with colours");
        tide_picture_destroy(&picture);
        free(file.bytes);
    }
    buffer huge = profile_make(5 << 20, "RGB "), file = jpeg_write(stored, (jpeg_form){.profile = huge});
    check_refused(file, (tide_picture_options){0}, TIDE_REJECT_PICTURE_TOO_LARGE, "colour profile");
    free(file.bytes);

    file = png_of(stored, (png_form){.profile = small});
    tide_picture picture = make(file, (tide_picture_options){.max_pixel_size = 32});
    check(contains(file_of(&picture.image), small.bytes, small.length), "the profile of the PNG is gone");
    tide_picture_destroy(&picture);
    free(file.bytes);
    buffer all[] = {small, large, grey, huge};
    for (int i = 0; i < 4; i++) free(all[i].bytes);
    free(stored.bytes);
}

static void test_inks(void) {
    // Stored as Adobe does, inverted: 255 is no ink.
    static const uint8_t inks[4] = {200, 100, 50, 230}, expected[3] = {200 * 230 / 255, 100 * 230 / 255, 50 * 230 / 255};
    pixels stored = pixels_make(40, 40, 4);
    for (uint32_t i = 0; i < 40 * 40; i++) memcpy(stored.bytes + 4 * i, inks, 4);
    for (int plain = 0; plain < 2; plain++) {
        buffer file = jpeg_write(stored, (jpeg_form){.has_inks = true, .is_plain_inks = plain});
        if (!plain) seed_write("inks.jpg", file);
        tide_picture picture = make(file, (tide_picture_options){.max_pixel_size = 20});
        pixels made = file_read(&picture.image);
        check(made.channels == 3, "%u channels", made.channels);
        uint8_t other[3];
        for (int i = 0; i < 3; i++) other[i] = (uint8_t)((255 - inks[i]) * (255 - inks[3]) / 255);
        check(is_near(at(made, 9, 9), plain ? other : expected, 3, 5), "%d, %d, %d", *at(made, 9, 9), at(made, 9, 9)[1], at(made, 9, 9)[2]);
        tide_picture_destroy(&picture);
        free(made.bytes);
        free(file.bytes);
    }
    free(stored.bytes);
}

/// Every kind of PNG shows the same grey or colour, whatever its depth, interlaced or not, scaled or not.
static void test_kinds_of_png(void) {
    static const struct {
        int kind, depth, samples;
    } kinds[] = {
        {PNG_COLOR_TYPE_GRAY, 1, 1},    {PNG_COLOR_TYPE_GRAY, 2, 1},       {PNG_COLOR_TYPE_GRAY, 4, 1},        {PNG_COLOR_TYPE_GRAY, 8, 1},
        {PNG_COLOR_TYPE_GRAY, 16, 1},   {PNG_COLOR_TYPE_GRAY_ALPHA, 8, 2}, {PNG_COLOR_TYPE_GRAY_ALPHA, 16, 2}, {PNG_COLOR_TYPE_RGB, 8, 3},
        {PNG_COLOR_TYPE_RGB, 16, 3},    {PNG_COLOR_TYPE_RGBA, 8, 4},       {PNG_COLOR_TYPE_RGBA, 16, 4},       {PNG_COLOR_TYPE_PALETTE, 1, 1},
        {PNG_COLOR_TYPE_PALETTE, 2, 1}, {PNG_COLOR_TYPE_PALETTE, 4, 1},    {PNG_COLOR_TYPE_PALETTE, 8, 1},
    };
    enum { width = 37, height = 29 };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (int variant = 0; variant < 8; variant++) {
            bool is_interlaced = variant & 1, is_scaled = variant & 2, is_clear = variant & 4;
            bool has_alpha = kinds[i].kind & PNG_COLOR_MASK_ALPHA, has_palette = kinds[i].kind == PNG_COLOR_TYPE_PALETTE;
            // A palette of two has no clear colour.
            if (is_clear && (has_palette ? kinds[i].depth == 1 : !has_alpha)) continue;
            uint8_t sample = kinds[i].depth >= 8 ? 0xb4 : has_palette ? (is_clear ? 3 : 1) : (uint8_t)((1 << kinds[i].depth) - 1);
            if (has_palette) sample = is_clear ? 3 : 1;
            uint8_t alpha = is_clear ? 0x80 : 0xff, row[width * 8] = {0}, *rows[height];
            for (int x = 0; x < width; x++) {
                for (int s = 0; s < kinds[i].samples; s++) {
                    uint8_t value = has_alpha && s == kinds[i].samples - 1 ? alpha : sample;
                    int bit = (x * kinds[i].samples + s) * kinds[i].depth;
                    if (kinds[i].depth == 16) row[bit / 8] = row[bit / 8 + 1] = value;
                    else row[bit / 8] |= (uint8_t)(value << (8 - kinds[i].depth - bit % 8));
                }
            }
            for (int y = 0; y < height; y++) rows[y] = row;
            png_form form = {.kind = kinds[i].kind, .depth = kinds[i].depth, .is_interlaced = is_interlaced, .is_clear = is_clear};
            buffer file = png_write(width, height, rows, form);
            if (variant == 1 || variant == 4) {
                char name[100];
                snprintf(name, sizeof name, "kind-%d-%d-%d.png", kinds[i].kind, kinds[i].depth, variant);
                seed_write(name, file);
            }
            tide_picture picture = make(file, (tide_picture_options){.max_pixel_size = is_scaled ? 19 : 0, .thumbnail_pixel_size = 8});
            bool is_copy = !is_scaled;
            check(is_copy || picture.image.media == (is_clear ? TIDE_MEDIA_PNG : TIDE_MEDIA_JPEG), "%zu, %d", i, variant);
            check(picture.image.width == (is_scaled ? 19 : width), "%u", picture.image.width);
            check(!contains(file_of(&picture.image), "somebody", 8), "the text of the PNG is kept");
            pixels made = file_read(&picture.image), small = file_read(&picture.thumbnail);
            uint8_t expected[4] = {0xb4, 0xb4, 0xb4, alpha};
            if (has_palette && is_clear) expected[3] = 0;
            else if (has_palette) memcpy(expected, "\0\xff\0", 3);
            else if (kinds[i].depth < 8) memset(expected, 0xff, 3);
            for (int k = 0; k < 2; k++) {
                pixels of = k ? small : made;
                const uint8_t *pixel = at(of, of.width / 2, of.height / 2);
                bool is_gone = of.channels == 4 && expected[3] == 0;
                check(is_gone ? pixel[3] == 0 : is_near(pixel, expected, of.channels, 3), "kind %zu, variant %d, %d: %d", i, variant, k, pixel[0]);
            }
            free(made.bytes);
            free(small.bytes);
            tide_picture_destroy(&picture);
            free(file.bytes);
        }
    }
}

static void test_alpha(void) {
    // A red disc on clear blue: no blue comes into its edge.
    pixels stored = pixels_make(64, 64, 4);
    for (int y = 0; y < 64; y++) {
        for (int x = 0; x < 64; x++) {
            bool is_in = (x - 32) * (x - 32) + (y - 32) * (y - 32) < 20 * 20;
            memcpy(at(stored, (uint32_t)x, (uint32_t)y), is_in ? "\xff\0\0\xff" : "\0\0\xff\0", 4);
        }
    }
    buffer file = png_of(stored, (png_form){0});
    tide_picture picture = make(file, (tide_picture_options){.max_pixel_size = 16, .thumbnail_pixel_size = 8});
    check(picture.image.media == TIDE_MEDIA_PNG && picture.thumbnail.media == TIDE_MEDIA_PNG, "%d", picture.image.media);
    pixels made = file_read(&picture.image);
    bool has_edge = false;
    for (uint32_t i = 0; i < 16 * 16; i++) {
        const uint8_t *pixel = made.bytes + 4 * i;
        has_edge = has_edge || (pixel[3] > 50 && pixel[3] < 200);
        check(pixel[3] < 8 || pixel[2] < 8, "%u: blue %u, alpha %u", i, pixel[2], pixel[3]);
    }
    check(has_edge, "no edge is half clear");
    free(made.bytes);
    tide_picture_destroy(&picture);
    free(file.bytes);

    // Alpha that says nothing is none: a JPEG.
    for (uint32_t i = 0; i < 64 * 64; i++) stored.bytes[4 * i + 3] = 255;
    file = png_of(stored, (png_form){0});
    picture = make(file, (tide_picture_options){.max_pixel_size = 16});
    check(picture.image.media == TIDE_MEDIA_JPEG, "%d", picture.image.media);
    tide_picture_destroy(&picture);
    free(file.bytes);
    free(stored.bytes);
}

static double to_linear(double value) { return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4); }
static double to_encoded(double value) { return value <= 0.0031308 ? value * 12.92 : 1.055 * pow(value, 1 / 2.4) - 0.055; }

/// Against means of the areas in linear light, computed here: dB of the error.
static double reference_error(pixels stored, pixels made) {
    uint32_t step = stored.width / made.width;
    double sum = 0;
    for (uint32_t y = 0; y < made.height; y++) {
        for (uint32_t x = 0; x < made.width; x++) {
            for (uint32_t c = 0; c < 3; c++) {
                double mean = 0;
                for (uint32_t i = 0; i < step * step; i++)
                    mean += to_linear(at(stored, x * step + i % step, y * step + i / step)[c] / 255.0);
                double error = at(made, x, y)[c] - 255 * to_encoded(mean / (step * step));
                sum += error * error;
            }
        }
    }
    return 10 * log10(255 * 255 / (sum / (made.width * made.height * 3)));
}

static void test_scaling(void) {
    enum { size = 512 };
    pixels stored = pixels_make(size, size, 3);
    for (int y = 0; y < size; y++) {
        for (int x = 0; x < size; x++) {
            for (int c = 0; c < 3; c++) {
                double wave = sin(x * (0.02 + 0.01 * c)) * cos(y * 0.03) + 0.4 * sin((x + y) * 0.05 * (c + 1));
                at(stored, (uint32_t)x, (uint32_t)y)[c] = (uint8_t)(127.5 + 85 * wave);
            }
        }
    }
    buffer png = png_of(stored, (png_form){0}), jpeg = jpeg_write(stored, (jpeg_form){0});
    uint32_t sizes[] = {256, 128, 64, 32};
    size_t before = SIZE_MAX;
    for (int i = 0; i < 4; i++) {
        // From a JPEG libjpeg reduces first.
        for (int kind = 0; kind < 2; kind++) {
            tide_picture picture = make(kind ? jpeg : png, (tide_picture_options){.max_pixel_size = sizes[i], .quality = 97});
            pixels made = file_read(&picture.image);
            check(made.width == sizes[i] && made.height == sizes[i], "%u", made.width);
            double error = reference_error(stored, made);
            check(error > 33, "%u from %s: %.1f dB", sizes[i], kind ? "JPEG" : "PNG", error);
            free(made.bytes);
            tide_picture_destroy(&picture);
        }
    }
    for (int quality = 100; quality > 0; quality -= 33) {
        tide_picture picture = make(png, (tide_picture_options){.max_pixel_size = 256, .quality = (uint32_t)quality});
        check(picture.image.length < before, "quality %d has %zu bytes", quality, picture.image.length);
        before = picture.image.length;
        tide_picture_destroy(&picture);
    }
    free(png.bytes);
    free(jpeg.bytes);
    free(stored.bytes);

    // One grey stays what it is, up to the edges.
    pixels flat = pixels_make(60, 60, 1);
    memset(flat.bytes, 180, 60 * 60);
    png = png_of(flat, (png_form){0});
    static const uint32_t flat_sizes[] = {59, 41, 30, 7};
    for (int i = 0; i < 4; i++) {
        tide_picture picture = make(png, (tide_picture_options){.max_pixel_size = flat_sizes[i]});
        pixels made = file_read(&picture.image);
        for (uint32_t k = 0; k < made.width * made.height; k++) {
            check(is_near(made.bytes + k, (const uint8_t[]){180}, 1, 2), "%u of %u: %u", k, flat_sizes[i], made.bytes[k]);
        }
        free(made.bytes);
        tide_picture_destroy(&picture);
    }
    free(png.bytes);
    free(flat.bytes);

    // Black and white in turn are half the light, which is 188 and not 128.
    pixels lines = pixels_make(128, 128, 1);
    for (uint32_t y = 0; y < 128; y++) memset(at(lines, 0, y), y % 2 ? 255 : 0, 128);
    png = png_of(lines, (png_form){0});
    tide_picture picture = make(png, (tide_picture_options){.max_pixel_size = 32});
    pixels made = file_read(&picture.image);
    check(made.channels == 1 && is_near(at(made, 16, 16), (const uint8_t[]){188}, 1, 3), "%u", *at(made, 16, 16));
    free(made.bytes);
    tide_picture_destroy(&picture);
    free(png.bytes);
    free(lines.bytes);

    // Of a gamma of 1 the stored number is the light: 55 is 128 in sRGB.
    pixels grey = pixels_make(64, 64, 1);
    memset(grey.bytes, 55, 64 * 64);
    png = png_of(grey, (png_form){.gamma = 1});
    picture = make(png, (tide_picture_options){.max_pixel_size = 32});
    made = file_read(&picture.image);
    check(is_near(at(made, 16, 16), (const uint8_t[]){127}, 1, 3), "%u", *at(made, 16, 16));
    free(made.bytes);
    tide_picture_destroy(&picture);
    free(png.bytes);
    free(grey.bytes);
}

static void test_sizes(void) {
    static const uint32_t sizes[][4] = {
        {100, 50, 40, 20}, {50, 100, 20, 40}, {1000, 1, 10, 1}, {1, 1000, 1, 10}, {3, 3, 2, 2}, {40, 40, 40, 40}, {10, 20, 10, 20}, {8000, 4, 40, 1},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pixels stored = corners_make(sizes[i][0], sizes[i][1], corners);
        buffer files[] = {png_of(stored, (png_form){0}), jpeg_write(stored, (jpeg_form){0})};
        for (int k = 0; k < 2; k++) {
            uint32_t longest = sizes[i][2] > sizes[i][3] ? sizes[i][2] : sizes[i][3];
            tide_picture picture = make(files[k], (tide_picture_options){.max_pixel_size = longest, .thumbnail_pixel_size = 2000});
            check(picture.image.width == sizes[i][2] && picture.image.height == sizes[i][3], "%u", picture.image.width);
            // A picture that is no larger than its thumbnail is its own.
            check(picture.thumbnail.length == picture.image.length, "thumbnail");
            check(!memcmp(picture.thumbnail.bytes, picture.image.bytes, picture.image.length), "thumbnail");
            free(file_read(&picture.image).bytes);
            tide_picture_destroy(&picture);
            free(files[k].bytes);
        }
        free(stored.bytes);
    }
}

static void test_repetition(void) {
    pixels opaque = corners_make(80, 60, corners), clear = pixels_make(80, 60, 4);
    for (uint32_t i = 0; i < 80 * 60 * 4; i++) clear.bytes[i] = (uint8_t)(i * 7);
    uint8_t block[TIDE_EXIF_WRITE_SIZE];
    tide_exif time = {.has_time = true, .time = 1718383200123456};
    buffer exif = buffer_copy(block, tide_exif_write(&time, block)), profile = profile_make(600, "RGB ");
    buffer files[] = {
        jpeg_write(opaque, (jpeg_form){.exif = exif, .profile = profile, .is_progressive = true}), png_of(opaque, (png_form){0}),
        png_of(clear, (png_form){.profile = profile}),
    };
    seed_write("progressive.jpg", files[0]);
    seed_write("colours.png", files[1]);
    seed_write("clear.png", files[2]);
    for (int i = 0; i < 3; i++) {
        tide_picture_options options = {.max_pixel_size = 40, .thumbnail_pixel_size = 20, .quality = 80};
        tide_picture one = make(files[i], options), two = make(files[i], options);
        check(one.image.length == two.image.length && !memcmp(one.image.bytes, two.image.bytes, two.image.length), "not the same: %d", i);
        tide_picture again = make(file_of(&one.image), options);
        check(again.image.length == one.image.length, "%d: %zu, and again %zu", i, one.image.length, again.image.length);
        check(!memcmp(again.image.bytes, one.image.bytes, one.image.length), "made again it is not the same: %d", i);
        // Only the thumbnail.
        options.thumbnail_only = true;
        tide_picture thumb = make(files[i], options);
        check(!thumb.image.bytes && thumb.thumbnail.width == 20 && thumb.width == 80 && thumb.height == 60, "%u", thumb.width);
        tide_picture *all[] = {&one, &two, &again, &thumb};
        for (int k = 0; k < 4; k++) tide_picture_destroy(all[k]);
        free(files[i].bytes);
    }
    free(exif.bytes);
    free(profile.bytes);
    free(opaque.bytes);
    free(clear.bytes);
}

// Hostile files

static void put_be(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/// Writes another size into the header of a PNG.
static void png_resize(buffer file, uint32_t width, uint32_t height, int interlacing) {
    put_be(file.bytes + 16, width);
    put_be(file.bytes + 20, height);
    file.bytes[28] = (uint8_t)interlacing;
    put_be(file.bytes + 29, (uint32_t)crc32(0, file.bytes + 12, 17));
}

static void test_hostile(void) {
    pixels stored = corners_make(48, 32, corners);
    buffer png = png_of(stored, (png_form){0}), jpeg = jpeg_write(stored, (jpeg_form){.quality = 90});
    buffer progressive = jpeg_write(stored, (jpeg_form){.quality = 90, .is_progressive = true});
    buffer files[] = {png, jpeg, progressive};
    tide_picture_options options = {.max_pixel_size = 20, .thumbnail_pixel_size = 10};

    for (int i = 0; i < 3; i++) {
        for (size_t length = 0; length < files[i].length; length++) {
            tide_picture picture;
            tide_error error = {0};
            tide_status status = make_of((buffer){files[i].bytes, length}, options, &picture, &error);
            check(status == TIDE_REJECTED, "%d cut at %zu: %d", i, length, status);
        }
        // Cut, and ended again: what a viewer would show in part.
        for (size_t length = i == 0 ? SIZE_MAX : files[i].length / 2; length < files[i].length - 2; length += 7) {
            buffer cut = buffer_copy(files[i].bytes, length);
            put(&cut, "\xff\xd9", 2);
            tide_picture picture;
            tide_error error = {0};
            tide_status status = make_of(cut, options, &picture, &error);
            // A progressive one that ends between its scans is a whole picture, of less detail.
            check(status == TIDE_REJECTED || (i == 2 && status == TIDE_OK), "%d cut and ended at %zu", i, length);
            tide_picture_destroy(&picture);
            free(cut.bytes);
        }
        // Scaled, of the size that they have, and as a thumbnail alone.
        tide_picture_options forms[] = {options, {.quality = 80}, {.quality = 80, .thumbnail_pixel_size = 64, .thumbnail_only = true}};
        for (size_t at_byte = 0; at_byte < files[i].length; at_byte++) {
            for (int bit = 0; bit < 8; bit++) {
                buffer broken = buffer_copy(files[i].bytes, files[i].length);
                broken.bytes[at_byte] ^= (uint8_t)(1 << bit);
                tide_picture picture;
                tide_error error = {0};
                tide_status status = make_of(broken, forms[(at_byte + (size_t)bit) % 3], &picture, &error);
                // Each chunk of a PNG has a check sum; a JPEG has none, so that other colours may come of it.
                bool is_seen = status == TIDE_REJECTED || (i > 0 && status == TIDE_OK);
                check(is_seen, "%d, bit %d of %zu: %d %s", i, bit, at_byte, status, error.message);
                if (status == TIDE_OK) tide_picture_destroy(&picture);
                free(broken.bytes);
            }
        }
    }

    png_resize(png, 60000, 60000, 0);
    check_refused(png, options, TIDE_REJECT_PICTURE_TOO_LARGE, "60000 x 60000");
    png_resize(png, 0x7fffffff, 1, 0);
    check_refused(png, options, TIDE_REJECT_PICTURE_TOO_LARGE, "edges of 65500");
    // Interlaced, all of its pixels would be in memory.
    png_resize(png, 15000, 15000, 1);
    check_refused(png, options, TIDE_REJECT_PICTURE_TOO_LARGE, "MiB of memory");
    // Not interlaced its pixels are missing.
    png_resize(png, 15000, 15000, 0);
    check_refused(png, options, TIDE_REJECT_PICTURE_DAMAGED, "damaged");

    for (int i = 1; i < 3; i++) {
        buffer file = files[i];
        for (size_t k = 0; k + 9 < file.length; k++) {
            if (file.bytes[k] != 0xff || (file.bytes[k + 1] != 0xc0 && file.bytes[k + 1] != 0xc2)) continue;
            buffer large = buffer_copy(file.bytes, file.length);
            memcpy(large.bytes + k + 5, i == 1 ? "\xff\xdc\xff\xdc" : "\x3a\x98\x3a\x98", 4);
            check_refused(large, options, TIDE_REJECT_PICTURE_TOO_LARGE, i == 1 ? "65500 x 65500" : "MiB of memory");
            // Of 12 bits.
            memcpy(large.bytes, file.bytes, file.length);
            large.bytes[k + 4] = 12;
            large.bytes[k + 1] = 0xc1 + (i == 2);
            check_refused(large, options, TIDE_REJECT_PICTURE_UNSUPPORTED, "save it as a usual JPEG");
            free(large.bytes);
            break;
        }
    }

    // A scan again and again.
    size_t scan = 0, next = 0;
    for (size_t k = 0; k + 1 < progressive.length && !next; k++) {
        if (progressive.bytes[k] != 0xff || progressive.bytes[k + 1] != 0xda) continue;
        if (scan) next = k;
        else scan = k;
    }
    buffer many = buffer_copy(progressive.bytes, scan);
    for (int i = 0; i < 300; i++) put(&many, progressive.bytes + scan, next - scan);
    put(&many, "\xff\xd9", 2);
    tide_picture picture;
    tide_error error = {0};
    check(make_of(many, options, &picture, &error) == TIDE_REJECTED, "many scans");
    seed_write("scans.jpg", many);
    free(many.bytes);

    check_refused((buffer){(uint8_t *)"GIF89a\1\0\1\0\0\0\0;", 14}, options, TIDE_REJECT_PICTURE_UNSUPPORTED, "neither a JPEG nor a PNG");
    check_refused((buffer){(uint8_t *)"text", 4}, options, TIDE_REJECT_PICTURE_UNSUPPORTED, "neither a JPEG nor a PNG");
    check_refused((buffer){(uint8_t *)"", 0}, options, TIDE_REJECT_PICTURE_UNSUPPORTED, "neither a JPEG nor a PNG");

    int32_t stop = 0;
    tide_picture_stop(&stop, true);
    options.stop = &stop;
    for (int i = 1; i < 3; i++) {
        check(make_of(files[i], options, &picture, &error) == TIDE_CANCELLED, "%s", error.message);
    }
    tide_picture_stop(&stop, false);
    picture = make(jpeg, options);
    tide_picture_destroy(&picture);
    static const tide_picture_options senseless[] = {
        {.quality = 101}, {.quality = 50, .max_pixel_size = 70000}, {.quality = 50, .thumbnail_only = true}};
    for (int i = 0; i < 3; i++) check(make_of(jpeg, senseless[i], &picture, &error) == TIDE_MISUSE, "%d", i);
    for (int i = 0; i < 3; i++) free(files[i].bytes);
    free(stored.bytes);
}

static tide_status convert(buffer file, tide_picture_options options, tide_converted *converted, tide_error *error) {
    tide_bytes bytes = {.memory = file.bytes, .descriptor = -1, .size = file.length};
    tide_image image;
    check(!tide_image_probe(bytes, &image, NULL), "probe");
    *converted = (tide_converted){0};
    *error = (tide_error){0};
    return tide_picture_convert(&options, bytes, &image, converted, error);
}

/// A picture that is too large is stored as it is where only its thumbnail was asked for; a damaged one is refused either way.
static void test_conversions(void) {
    static const tide_picture_options options[] = {
        {.quality = 80, .max_pixel_size = 20}, {.quality = 80, .thumbnail_pixel_size = 16, .thumbnail_only = true}};
    pixels stored = corners_make(48, 32, corners);
    buffer whole = png_of(stored, (png_form){0}), large = png_of(stored, (png_form){0}), damaged = png_of(stored, (png_form){0});
    png_resize(large, 60000, 60000, 0);
    // The last byte of the pixels, before their check sum and IEND.
    damaged.bytes[damaged.length - 17] ^= 1;
    for (int only = 0; only < 2; only++) {
        tide_converted converted;
        tide_error error;
        tide_status status = convert(whole, options[only], &converted, &error);
        check(status == TIDE_OK && (converted.bytes == NULL) == only && (converted.preview != NULL) == only, "%d: %s", only, error.message);
        free(converted.bytes);
        free(converted.preview);
        status = convert(large, options[only], &converted, &error);
        check(status == (only ? TIDE_OK : TIDE_REJECTED), "%d: %d", only, status);
        check(only || error.reject == TIDE_REJECT_PICTURE_TOO_LARGE, "%s", error.message);
        check(!converted.bytes && !converted.preview, "%d: bytes of a picture that is too large", only);
        status = convert(damaged, options[only], &converted, &error);
        check(status == TIDE_REJECTED && error.reject == TIDE_REJECT_PICTURE_DAMAGED, "%d: %d %s", only, status, error.message);
        check(!converted.bytes && !converted.preview, "%d: bytes of a damaged picture", only);
    }
    buffer all[] = {whole, large, damaged};
    for (int i = 0; i < 3; i++) free(all[i].bytes);
    free(stored.bytes);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)

enum { allocation_limit = 64 };

/// The address sanitizer's allocator has no more than this at once, and says so by NULL.
const char *__asan_default_options(void) { return "allocator_may_return_null=1:max_allocation_size_mb=64"; }

#define HAS_ALLOCATION_LIMIT
#endif
#endif

/// A scaler whose weights find no memory is none.
static void test_scaler_without_memory(void) {
#if defined(HAS_ALLOCATION_LIMIT)
    enum { width = 3000000 };
    // Six weights for each column are past the limit; all else is below it.
    _Static_assert((width - 1) * 6ull * sizeof(float) > (uint64_t)allocation_limit << 20, "the weights");
    _Static_assert(width * 16ull < (uint64_t)allocation_limit << 20, "a row");
    tide_canvas canvas = {.pixels = TIDE_PIXELS_GREY};
    tide_scaler *scaler = tide_scaler_create(width, 1, width - 1, 1, 1, &canvas);
    check(!scaler, "a scaler without weights");
#endif
}

int main(int count, char **arguments) {
    if (count > 1) seeds = arguments[1];
    test_orientations();
    test_exif();
    test_profiles();
    test_inks();
    test_kinds_of_png();
    test_alpha();
    test_scaling();
    test_sizes();
    test_repetition();
    test_hostile();
    test_conversions();
    test_scaler_without_memory();
    puts("picture_test: passed");
    return 0;
}

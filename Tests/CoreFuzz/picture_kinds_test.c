// Goal: rare kinds of images are told for what they are, and pictures of them are made, or refused with the reason that the header names.
// Method: files of usual kinds, whose parts are exchanged, repeated and damaged at places that are known.

#include <zlib.h>

#include "picture_making.h"
#include "tide_picture.h"

static tide_status make_of(buffer file, tide_picture_options options, tide_picture *picture, tide_error *error) {
    if (!options.quality) options.quality = 90;
    *error = (tide_error){0};
    buffer exact = buffer_copy(file.bytes, file.length);
    tide_status status = tide_picture_create((tide_bytes){.memory = exact.bytes, .descriptor = -1, .size = exact.length}, &options, picture, error);
    free(exact.bytes);
    return status;
}

static tide_picture make(buffer file, tide_picture_options options) {
    tide_picture picture;
    tide_error error;
    tide_status status = make_of(file, options, &picture, &error);
    check(status == TIDE_OK, "%d: %s", status, error.message);
    return picture;
}

static void check_refused(int line, buffer file, tide_picture_options options, tide_reject reject, const char *words) {
    tide_picture picture;
    tide_error error;
    tide_status status = make_of(file, options, &picture, &error);
    check(status == TIDE_REJECTED && error.reject == reject, "line %d: %d %s: %s", line, status, tide_reject_name(error.reject), error.message);
    check(strstr(error.message, words) && !picture.image.bytes && !picture.thumbnail.bytes, "line %d: %s", line, error.message);
}

static bool contains(const tide_picture_file *file, const void *bytes, size_t length) {
    for (size_t i = 0; i + length <= file->length; i++) {
        if (memcmp(file->bytes + i, bytes, length) == 0) return true;
    }
    return false;
}

/// How often a file has a chunk, or what looks like its name.
static int count_of(const tide_picture_file *file, const char *name) {
    int count = 0;
    for (size_t i = 0; i + 4 <= file->length; i++) count += memcmp(file->bytes + i, name, 4) == 0;
    return count;
}

/// The place of bytes in a file.
static size_t find(buffer file, const void *bytes, size_t length) {
    for (size_t i = 0; i + length <= file.length; i++) {
        if (memcmp(file.bytes + i, bytes, length) == 0) return i;
    }
    check(false, "there are no such bytes");
    return 0;
}

/// A file with more bytes at a place.
static buffer insert(buffer file, size_t place, const void *bytes, size_t length) {
    buffer made = buffer_copy(file.bytes, place);
    put(&made, bytes, length);
    put(&made, file.bytes + place, file.length - place);
    return made;
}

static tide_exif exif_of(const tide_picture_file *file) {
    tide_image image;
    tide_exif exif = {.orientation = 1};
    check(!tide_image_probe((tide_bytes){.memory = file->bytes, .size = file->length}, &image, NULL), "probe");
    if (image.exif_length) check(!tide_exif_read(file->bytes + image.exif_offset, image.exif_length, &exif), "EXIF");
    return exif;
}

/// A chunk of a PNG.
static buffer chunk_make(const char *name, const void *bytes, size_t length) {
    buffer made = {0};
    uint8_t number[4];
    for (int i = 0; i < 4; i++) number[i] = (uint8_t)(length >> (24 - 8 * i));
    put(&made, number, 4);
    put(&made, name, 4);
    put(&made, length ? bytes : "", length);
    uint32_t sum = (uint32_t)crc32(0, made.bytes + 4, (uInt)(4 + length));
    for (int i = 0; i < 4; i++) number[i] = (uint8_t)(sum >> (24 - 8 * i));
    put(&made, number, 4);
    return made;
}

static buffer png_insert(buffer png, const char *name, const void *bytes, size_t length) {
    buffer chunk = chunk_make(name, bytes, length), made = insert(png, 33, chunk.bytes, chunk.length);
    free(chunk.bytes);
    return made;
}

// Pictures

static void test_concurrency(void) {
    static const uint64_t gibibyte = 1ull << 30;
    const struct {
        uint64_t cores, memory;
        uint32_t count;
    } cases[] = {{8, 16 * gibibyte, 8}, {8, 4 * gibibyte, 4}, {8, gibibyte, 1}, {8, 0, 1}, {0, 16 * gibibyte, 1}, {64, 1024 * gibibyte, 16},
                 {1, 16 * gibibyte, 1}, {16, 15 * gibibyte, 15}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t count = tide_picture_concurrency(cases[i].cores, cases[i].memory);
        check(count == cases[i].count, "%zu: %u", i, count);
    }
}

/// The EXIF data of a PNG is kept once, before the pixels, whether the PNG is copied or encoded; its thumbnail has none.
static void test_exif_of_png(void) {
    uint8_t block[TIDE_EXIF_WRITE_SIZE];
    const tide_exif exif = {.has_time = true, .time = 1718383200123456, .has_position = true, .latitude = 60, .longitude = 5};
    size_t length = tide_exif_write(&exif, block);
    for (uint32_t channels = 1; channels <= 4; channels++) {
        pixels stored = pixels_make(64, 48, channels);
        // Noise, which takes several chunks; some of it is clear, so that the alpha stays.
        uint32_t noise = 1;
        for (uint32_t i = 0; i < 64 * 48 * channels; i++) stored.bytes[i] = (uint8_t)((noise = noise * 1664525 + 1013904223) >> 24);
        buffer plain = png_of(stored, (png_form){0}), file = png_insert(plain, "eXIf", block, length);
        tide_picture_file written = {.bytes = plain.bytes, .length = plain.length};
        check(channels < 3 || count_of(&written, "IDAT") > 1, "%d", count_of(&written, "IDAT"));
        for (int form = 0; form < 4; form++) {
            bool keeps = form & 1, scaled = form & 2;
            tide_picture_options options = {.max_pixel_size = scaled ? 32 : 0, .thumbnail_pixel_size = form == 3 ? 16 : 100, .keeps_position = keeps};
            tide_picture picture = make(file, options);
            tide_exif kept = exif_of(&picture.image), thumb = exif_of(&picture.thumbnail);
            check(kept.has_time && kept.time == exif.time && kept.has_position == keeps, "%u channels, form %d", channels, form);
            check(!thumb.has_time && !thumb.has_position, "the thumbnail has EXIF data");
            check(picture.exif.has_position && !contains(&picture.image, "somebody", 8), "%u channels, form %d", channels, form);
            check(picture.image.media != TIDE_MEDIA_PNG || count_of(&picture.image, "eXIf") == 1, "%d", count_of(&picture.image, "eXIf"));
            bool is_clear = channels % 2 == 0;
            // What is encoded as a PNG may be smaller as it was; what is clear is one in any case.
            check(!is_clear || picture.image.media == TIDE_MEDIA_PNG, "%d", picture.image.media);
            check(picture.thumbnail.bytes && picture.thumbnail.width == (form == 3 ? 16 : scaled ? 32 : 64), "%u", picture.thumbnail.width);
            tide_picture_destroy(&picture);
        }
        free(plain.bytes), free(file.bytes), free(stored.bytes);
    }
}

/// A profile whose parts are in another order is kept; one that lacks a part, or has one twice, is not.
static void test_parts_of_profiles(void) {
    pixels stored = corners_make(64, 48, corners);
    buffer profile = profile_make(100000, "RGB "), file = jpeg_write(stored, (jpeg_form){.profile = profile});
    size_t first = find(file, "\xff\xe2", 2), length = 2 + ((size_t)file.bytes[first + 2] << 8 | file.bytes[first + 3]), second = first + length;
    check(file.bytes[second + 1] == 0xe2, "two parts");
    size_t second_length = 2 + ((size_t)file.bytes[second + 2] << 8 | file.bytes[second + 3]);
    const struct {
        const char *name;
        uint8_t number, count;
        bool is_kept;
        /// Behind both parts, the second comes again.
        bool is_repeated;
    } cases[] = {
        {"one more", 1, 2, false, true},
        {"as it was", 1, 2, true, false},      {"number 0", 0, 2, false, false}, {"number 3 of 2", 3, 2, false, false},
        {"2 twice", 2, 2, false, false},       {"1 of 3", 1, 3, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int is_exchanged = 0; is_exchanged < 2; is_exchanged++) {
            buffer changed = buffer_copy(file.bytes, first);
            // Fill bytes, and markers without a segment, come between segments.
            put(&changed, "\xff\xff\1\xff\xd0\xff\xd7", 7);
            // Segments of the same marker that are no profile.
            put(&changed, "\xff\xe2\0\x05" "ICC\xff\xe2\0\x10" "ICC_PROFILX\0\1\2", 25);
            size_t parts[] = {first, length, second, second_length};
            for (int k = 0; k < 2; k++) {
                int part = 2 * (k ^ is_exchanged);
                put(&changed, file.bytes + parts[part], parts[part + 1]);
                uint8_t *head = changed.bytes + changed.length - parts[part + 1] + 16;
                head[1] = cases[i].count;
                if (part == 0) head[0] = cases[i].number;
            }
            if (cases[i].is_repeated) put(&changed, file.bytes + second, second_length);
            put(&changed, file.bytes + second + second_length, file.length - second - second_length);
            tide_picture picture = make(changed, (tide_picture_options){.max_pixel_size = 32});
            check(contains(&picture.image, profile.bytes + 70000, 20000) == cases[i].is_kept, "%s, exchanged: %d", cases[i].name, is_exchanged);
            tide_picture_destroy(&picture);
            free(changed.bytes);
        }
    }
    free(file.bytes), free(profile.bytes);
    // What is too short for a profile, has no signature, or is of other colours, is none.
    static const size_t lengths[] = {100, 600, 600, 600};
    for (int i = 0; i < 4; i++) {
        profile = profile_make(600, i == 2 ? "CMYK" : "RGB ");
        profile.length = lengths[i];
        if (i == 1) memcpy(profile.bytes + 36, "none", 4);
        file = jpeg_write(stored, (jpeg_form){.profile = profile});
        tide_picture picture = make(file, (tide_picture_options){.max_pixel_size = 32});
        check(contains(&picture.image, "mntr", 4) == (i == 3), "%d", i);
        tide_picture_destroy(&picture);
        free(file.bytes), free(profile.bytes);
    }
    free(stored.bytes);
}

static void frame_replace(buffer *file, uint8_t marker, uint8_t sampling, uint8_t other_sampling) {
    size_t frame = find(*file, "\xff\xc0", 2);
    file->bytes[frame + 1] = marker;
    if (sampling) file->bytes[frame + 11] = sampling, file->bytes[frame + 14] = other_sampling;
}

static void test_kinds_of_jpeg(void) {
    pixels stored = corners_make(64, 48, corners), pair = pixels_make(64, 48, 2);
    buffer usual = jpeg_write(stored, (jpeg_form){0});
    static const char words[] = "save it as a usual JPEG";
    buffer file = buffer_copy(usual.bytes, usual.length);
    // Differential, which no decoder has; sampled at a broken ratio.
    frame_replace(&file, 0xc5, 0, 0);
    check_refused(__LINE__, file, (tide_picture_options){0}, TIDE_REJECT_PICTURE_UNSUPPORTED, words);
    memcpy(file.bytes, usual.bytes, usual.length);
    frame_replace(&file, 0xc0, 0x31, 0x21);
    check_refused(__LINE__, file, (tide_picture_options){0}, TIDE_REJECT_PICTURE_UNSUPPORTED, words);
    // Of eleven components.
    memcpy(file.bytes, usual.bytes, usual.length);
    size_t frame = find(file, "\xff\xc0", 2);
    uint8_t components[24];
    for (int i = 0; i < 8; i++) memcpy(components + 3 * i, (uint8_t[]){(uint8_t)(10 + i), 0x11, 0}, 3);
    buffer many = insert(file, frame + 2 + 17, components, sizeof components);
    many.bytes[frame + 3] += sizeof components;
    many.bytes[frame + 9] = 11;
    check_refused(__LINE__, many, (tide_picture_options){0}, TIDE_REJECT_PICTURE_UNSUPPORTED, words);
    free(many.bytes);
    // Longer than libjpeg reads.
    memcpy(file.bytes + frame + 5, "\xff\xff\0\x10", 4);
    check_refused(__LINE__, file, (tide_picture_options){0}, TIDE_REJECT_PICTURE_TOO_LARGE, "the JPEG is too large: ");
    memcpy(file.bytes + frame + 5, "\0\0\0\x10", 4);
    check_refused(__LINE__, file, (tide_picture_options){0}, TIDE_REJECT_PICTURE_DAMAGED, "the JPEG is damaged: ");
    free(file.bytes);
    // Of two components, as grey with alpha, which JPEG has no meaning for.
    struct jpeg_compress_struct info;
    jpeg_output output;
    jpeg_begin(&info, &output);
    info.image_width = 64, info.image_height = 48, info.input_components = 2, info.in_color_space = JCS_UNKNOWN;
    jpeg_set_defaults(&info);
    jpeg_start_compress(&info, TRUE);
    for (uint32_t y = 0; y < 48; y++) jpeg_write_scanlines(&info, (JSAMPROW[]){at(pair, 0, y)}, 1);
    buffer two = jpeg_end(&info, &output);
    check_refused(__LINE__, two, (tide_picture_options){0}, TIDE_REJECT_PICTURE_UNSUPPORTED, "a JPEG of 2 components with 8 bits");
    // As a thumbnail alone it is left out, and the file is stored as it is.
    tide_picture_options only = {.quality = 80, .thumbnail_pixel_size = 16, .thumbnail_only = true};
    tide_converted converted = {0};
    tide_bytes source = {.memory = two.bytes, .descriptor = -1, .size = two.length};
    tide_image image = {.media = TIDE_MEDIA_JPEG};
    check(tide_picture_convert(&only, source, &image, &converted, NULL) == TIDE_OK && !converted.bytes && !converted.preview, "a thumbnail of none");
    only.thumbnail_only = false;
    check(tide_picture_convert(&only, source, &image, &converted, NULL) == TIDE_REJECTED, "no place for the error");
    image.media = TIDE_MEDIA_GIF;
    check(tide_picture_convert(&only, source, &image, &converted, NULL) == TIDE_OK && !converted.bytes, "neither a JPEG nor a PNG");
    free(two.bytes), free(usual.bytes), free(stored.bytes), free(pair.bytes);
}

/// A JPEG of one scan with restart markers, or of one scan for each component.
static buffer scans_write(pixels of, bool has_restarts) {
    static const jpeg_scan_info script[] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    struct jpeg_compress_struct info;
    jpeg_output output;
    jpeg_begin(&info, &output);
    info.image_width = of.width, info.image_height = of.height, info.input_components = 3, info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info);
    if (has_restarts) info.restart_interval = 2;
    else info.scan_info = script, info.num_scans = 3;
    jpeg_start_compress(&info, TRUE);
    for (uint32_t y = 0; y < of.height; y++) jpeg_write_scanlines(&info, (JSAMPROW[]){at(of, 0, y)}, 1);
    return jpeg_end(&info, &output);
}

/// Bytes that belong to nothing are passed over between scans and behind the last, and refused within one. So are scans without end.
static void test_scans(void) {
    pixels stored = corners_make(64, 48, corners);
    tide_picture_options options = {.max_pixel_size = 32, .quality = 90};
    buffer files[] = {scans_write(stored, false), scans_write(stored, true)};
    for (int i = 0; i < 2; i++) {
        tide_picture usual = make(files[i], options);
        // More than libjpeg has read ahead.
        static const char rubbish[40] = "rubbish";
        buffer behind = insert(files[i], files[i].length - 2, rubbish, sizeof rubbish);
        // Before the second scan begins, or before the second piece of the only one.
        size_t first = find(files[i], "\xff\xda", 2) + 2;
        size_t place = first + find((buffer){files[i].bytes + first, files[i].length - first}, i == 0 ? "\xff\xda" : "\xff\xd1", 2);
        buffer within = insert(files[i], place, rubbish, sizeof rubbish);
        tide_picture picture = make(behind, options);
        check(picture.image.length == usual.image.length && !memcmp(picture.image.bytes, usual.image.bytes, usual.image.length), "%d: behind", i);
        tide_picture_destroy(&picture);
        if (i == 0) {
            picture = make(within, options);
            check(picture.image.length == usual.image.length && !memcmp(picture.image.bytes, usual.image.bytes, usual.image.length), "between");
            tide_picture_destroy(&picture);
        } else {
            check_refused(__LINE__, within, options, TIDE_REJECT_PICTURE_DAMAGED, "the JPEG is damaged: ");
        }
        tide_picture_destroy(&usual);
        free(behind.bytes), free(within.bytes);
    }
    // The last scan, again and again, which adds nothing.
    size_t last = files[0].length;
    while (memcmp(files[0].bytes + last - 2, "\xff\xda", 2) != 0) last--;
    last -= 2;
    for (int more = 60; more < 63; more++) {
        buffer many = buffer_copy(files[0].bytes, last);
        for (int i = 0; i <= more; i++) put(&many, files[0].bytes + last, files[0].length - 2 - last);
        put(&many, "\xff\xd9", 2);
        if (more < 62) {
            tide_picture picture = make(many, options);
            tide_picture_destroy(&picture);
        } else {
            check_refused(__LINE__, many, options, TIDE_REJECT_PICTURE_TOO_LARGE, "the JPEG has more scans than a picture of its size needs");
        }
        free(many.bytes);
    }
    free(files[0].bytes), free(files[1].bytes), free(stored.bytes);
}

static void test_kinds_of_png(void) {
    pixels stored = corners_make(64, 48, corners);
    buffer plain = png_of(stored, (png_form){0});
    buffer profile = profile_make(5 << 20, "RGB "), file = png_of(stored, (png_form){.profile = profile});
    check_refused(__LINE__, file, (tide_picture_options){0}, TIDE_REJECT_PICTURE_TOO_LARGE, "the colour profile of the picture is");
    free(file.bytes), free(profile.bytes);
    // Without pixels, in either direction.
    for (int edge = 0; edge < 2; edge++) {
        file = buffer_copy(plain.bytes, plain.length);
        memset(file.bytes + 16 + 4 * edge, 0, 4);
        check_refused(__LINE__, file, (tide_picture_options){0}, TIDE_REJECT_PICTURE_DAMAGED, "the picture has no pixels");
        free(file.bytes);
    }
    // A gamma counts only without a profile and without the mark of sRGB, and only if it makes sense.
    static const char white_intent[] = "\0";
    const struct {
        uint8_t gamma[4];
        bool is_srgb, is_converted;
    } cases[] = {
        {{0, 0, 0xff, 0xff}, false, true}, {{0, 0, 0xff, 0xff}, true, false}, {{0, 0, 0, 5}, false, false}, {{0, 0, 0xb1, 0x8f}, false, false},
    };
    tide_picture usual = make(plain, (tide_picture_options){.max_pixel_size = 32});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer once = png_insert(plain, "gAMA", cases[i].gamma, 4), twice = cases[i].is_srgb ? png_insert(once, "sRGB", white_intent, 1) : once;
        tide_picture picture = make(twice, (tide_picture_options){.max_pixel_size = 32});
        bool is_same = picture.image.length == usual.image.length && !memcmp(picture.image.bytes, usual.image.bytes, usual.image.length);
        check(is_same == !cases[i].is_converted, "gamma %zu", i);
        tide_picture_destroy(&picture);
        if (twice.bytes != once.bytes) free(twice.bytes);
        free(once.bytes);
    }
    tide_picture_destroy(&usual);
    static const tide_picture_options senseless[] = {
        {.quality = 50, .thumbnail_pixel_size = 70000}, {.quality = 50, .max_pixel_size = 65501}, {.quality = 1000}};
    for (int i = 0; i < 3; i++) {
        tide_picture picture;
        tide_error error;
        check(make_of(plain, senseless[i], &picture, &error) == TIDE_MISUSE, "%d: %s", i, error.message);
        check(tide_picture_create((tide_bytes){.memory = plain.bytes, .size = plain.length}, &senseless[i], &picture, NULL) == TIDE_MISUSE, "%d", i);
    }
    free(plain.bytes), free(stored.bytes);
}

int main(void) {
    test_concurrency();
    test_exif_of_png();
    test_parts_of_profiles();
    test_kinds_of_jpeg();
    test_scans();
    test_kinds_of_png();
    puts("picture_kinds_test: passed");
    return 0;
}

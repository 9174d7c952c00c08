// Goal: whichever read of a picture fails, the caller is told the system's reason, and gets no picture that lacks its profile or its EXIF data; a
// read that is interrupted, or yields half, changes nothing; a picture that becomes shorter is one that is cut off; work that is stopped ends.
// Method: pictures of each kind are made through a descriptor, once for each read, which fails in each way that it can. They are stopped before each
// read, and while libjpeg and libpng write.

#include <stdio.h>

#if defined(__linux__) && __SIZEOF_LONG__ == 8

#include <dlfcn.h>

#include "picture_making.h"
#include "system_faults.h"
#include "tide_exif.h"
#include "tide_picture.h"

typedef struct source {
    const char *name;
    buffer file;
} source;

static const tide_picture_options forms[] = {
    {.max_pixel_size = 32, .thumbnail_pixel_size = 16, .quality = 80, .keeps_position = true},
    // They fit: they are copied, or encoded and copied.
    {.thumbnail_pixel_size = 200, .quality = 100, .keeps_position = true},
    {.thumbnail_pixel_size = 20, .quality = 60, .thumbnail_only = true},
};

static tide_status picture_create(int descriptor, buffer file, const tide_picture_options *options, tide_picture *picture, tide_error *error) {
    *error = (tide_error){0};
    return tide_picture_create((tide_bytes){.descriptor = descriptor, .size = file.length}, options, picture, error);
}

static bool is_same(const tide_picture_file *one, const tide_picture_file *other) {
    return one->length == other->length && (one->length == 0 || memcmp(one->bytes, other->bytes, one->length) == 0);
}

static bool is_empty(const tide_picture *picture) { return !picture->image.bytes && !picture->thumbnail.bytes && picture->width == 0; }

static void fault_run(source source, int descriptor, const tide_picture_options *options, const tide_picture *expected, long at, fault_kind kind) {
    tide_picture picture;
    tide_error error;
    faults_begin(call_pread, at, kind, EIO);
    tide_status status = picture_create(descriptor, source.file, options, &picture, &error);
    check(faults_end(), "%s: there is no read %ld", source.name, at);
    if (kind == fault_error) {
        check(status == TIDE_IO_ERROR && error.system == EIO && is_empty(&picture), "%s, read %ld: %d %s", source.name, at, status, error.message);
        check(strstr(error.message, "cannot read the ") && strstr(error.message, strerror(EIO)), "%s, read %ld: %s", source.name, at, error.message);
    } else if (kind == fault_end) {
        check_refusal(status, error, TIDE_REJECT_ASSET_TRUNCATED, "");
        check(is_empty(&picture), "%s, read %ld", source.name, at);
    } else {
        check(status == TIDE_OK, "%s, read %ld: %s", source.name, at, error.message);
        check(is_same(&picture.image, &expected->image) && is_same(&picture.thumbnail, &expected->thumbnail), "%s, read %ld", source.name, at);
    }
    tide_picture_destroy(&picture);
}

// Stopping

static int32_t stop;

static void work_stop(void) { tide_picture_stop(&stop, true); }

/// The row at which libjpeg or libpng, as it writes, is stopped; 0: none.
static long stopping_row;
static long row_count;

static void row_count_up(void) {
    if (++row_count == stopping_row) work_stop();
}

JDIMENSION jpeg_write_scanlines(j_compress_ptr info, JSAMPARRAY rows, JDIMENSION count) {
    static JDIMENSION (*real)(j_compress_ptr, JSAMPARRAY, JDIMENSION);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "jpeg_write_scanlines");
    row_count_up();
    return real(info, rows, count);
}

void png_write_row(png_structrp png, png_const_bytep row) {
    static void (*real)(png_structrp, png_const_bytep);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "png_write_row");
    row_count_up();
    real(png, row);
}

static void test_stopping(source source, int descriptor, tide_picture_options options, long reads) {
    tide_picture picture;
    tide_error error;
    options.stop = &stop;
    long stopped = 0;
    for (long at = 1; at <= reads; at++) {
        tide_picture_stop(&stop, false);
        faults.hook = work_stop;
        faults_begin(call_pread, at, fault_hook, 0);
        tide_status status = picture_create(descriptor, source.file, &options, &picture, &error);
        faults_end();
        faults.hook = NULL;
        // After the last look at the mark, the work is done.
        check(status == TIDE_CANCELLED || (status == TIDE_OK && at > 1), "%s, read %ld: %d %s", source.name, at, status, error.message);
        check(status == TIDE_OK || is_empty(&picture), "%s, read %ld", source.name, at);
        stopped += status == TIDE_CANCELLED;
        tide_picture_destroy(&picture);
    }
    check(stopped > 0, "%s is never stopped", source.name);
    row_count = stopping_row = 0;
    tide_picture_stop(&stop, false);
    check(picture_create(descriptor, source.file, &options, &picture, &error) == TIDE_OK, "%s: %s", source.name, error.message);
    tide_picture_destroy(&picture);
    long rows = row_count;
    for (stopping_row = 1; stopping_row < rows; stopping_row += 1 + rows / 9) {
        row_count = 0;
        tide_picture_stop(&stop, false);
        tide_status status = picture_create(descriptor, source.file, &options, &picture, &error);
        check(status == TIDE_CANCELLED && is_empty(&picture), "%s, row %ld of %ld: %d", source.name, stopping_row, rows, status);
        check(row_count == stopping_row, "%s, row %ld: %ld rows", source.name, stopping_row, row_count);
        tide_picture_destroy(&picture);
    }
    stopping_row = 0;
    tide_picture_stop(&stop, false);
}

static void test_source(source source) {
    FILE *file = tmpfile();
    check(file && fwrite(source.file.bytes, 1, source.file.length, file) == source.file.length && fflush(file) == 0, "%s", strerror(errno));
    int descriptor = fileno(file);
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++) {
        tide_picture expected;
        tide_error error;
        faults_count();
        tide_status status = picture_create(descriptor, source.file, &forms[form], &expected, &error);
        faults_end();
        check(status == TIDE_OK, "%s: %s", source.name, error.message);
        long reads = faults.counts[call_pread];
        for (long at = 1; at <= reads; at++) {
            for (fault_kind kind = fault_error; kind <= fault_end; kind++) fault_run(source, descriptor, &forms[form], &expected, at, kind);
        }
        test_stopping(source, descriptor, forms[form], reads);
        tide_picture_destroy(&expected);
    }
    fclose(file);
    free(source.file.bytes);
}

// Changing

static int changed_descriptor;
static buffer other_header;

/// Another program gives the PNG the header of a narrower one.
static void header_change(void) {
    check(pwrite(changed_descriptor, other_header.bytes + 8, 25, 8) == 25, "%s", strerror(errno));
}

/// A PNG whose header is another one when it is read again is damaged, and never written past the rows that there is room for.
static void test_changing_header(void) {
    pixels wide = corners_make(64, 48, corners), narrow = corners_make(32, 48, corners);
    buffer png = png_of(wide, (png_form){0});
    other_header = png_of(narrow, (png_form){0});
    FILE *file = tmpfile();
    changed_descriptor = fileno(file);
    int contradictions = 0;
    bool is_reached = true;
    for (long at = 1; is_reached; at++) {
        check(pwrite(changed_descriptor, png.bytes, png.length, 0) == (ssize_t)png.length, "%s", strerror(errno));
        tide_picture picture;
        tide_error error;
        faults.hook = header_change;
        faults_begin(call_pread, at, fault_hook, 0);
        tide_status status = picture_create(changed_descriptor, png, &forms[0], &picture, &error);
        is_reached = faults_end();
        faults.hook = NULL;
        contradictions += strstr(error.message, "its header contradicts itself") != NULL;
        check(status == TIDE_OK || (status == TIDE_REJECTED && error.reject == TIDE_REJECT_PICTURE_DAMAGED), "read %ld: %s", at, error.message);
        tide_picture_destroy(&picture);
    }
    check(contradictions > 0, "the header was never read again");
    fclose(file);
    free(png.bytes), free(other_header.bytes), free(wide.bytes), free(narrow.bytes);
}

int main(void) {
    uint8_t block[TIDE_EXIF_WRITE_SIZE];
    const tide_exif exif = {.has_time = true, .time = 1718383200123456, .has_position = true, .latitude = 60, .longitude = 5, .orientation = 1};
    buffer metadata = buffer_copy(block, tide_exif_write(&exif, block)), profile = profile_make(100000, "RGB "), small = profile_make(600, "RGB ");
    pixels colours = corners_make(64, 48, corners), clear = pixels_make(64, 48, 4), grey = pixels_make(64, 48, 1);
    pixels large = corners_make(240, 160, corners);
    // So many colours that the files are longer than a window.
    uint8_t *noise = bytes_make(240 * 160 * 3, 1);
    for (size_t i = 0; i < 240 * 160 * 3; i++) large.bytes[i] ^= noise[i] & 127;
    free(noise);
    const source sources[] = {
        {"a JPEG", jpeg_write(colours, (jpeg_form){.exif = metadata, .profile = profile})},
        {"a JPEG of scans", jpeg_write(colours, (jpeg_form){.exif = metadata, .is_progressive = true})},
        {"a grey JPEG", jpeg_write(grey, (jpeg_form){.quality = 50})},
        {"a large JPEG", jpeg_write(large, (jpeg_form){.quality = 98, .profile = small})},
        {"a PNG", png_of(colours, (png_form){.profile = small})},
        {"a clear PNG", png_of(clear, (png_form){.is_interlaced = true})},
        {"a large PNG", png_of(large, (png_form){.is_interlaced = false})},
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) test_source(sources[i]);
    test_changing_header();
    pixels all[] = {colours, clear, grey, large};
    for (int i = 0; i < 4; i++) free(all[i].bytes);
    free(metadata.bytes), free(profile.bytes), free(small.bytes);
    puts("picture_faults_test: passed");
    return 0;
}

#else

int main(void) {
    puts("picture_faults_test: needs Linux");
    return 0;
}

#endif

// Goal: rare parts of images are read as their formats have them: tiles, directories of copies, prefixes of EXIF data, the second of what may occur
// once; files of nothing but parts end.
// Method: files built byte by byte, read from memory of just their length, and through a descriptor, which must agree.

#include <string.h>
#include <unistd.h>

#include "check.h"
#include "tide_image.h"

typedef struct bytes {
    uint8_t *at;
    size_t length, capacity;
} bytes;

static void put(bytes *into, const void *from, size_t length) {
    if (into->length + length > into->capacity) {
        into->capacity = 2 * (into->length + length);
        into->at = realloc(into->at, into->capacity);
    }
    if (length && from) memcpy(into->at + into->length, from, length);
    if (!from) memset(into->at + into->length, 0, length);
    into->length += length;
}

static void put_little(bytes *into, uint64_t number, size_t width) {
    for (size_t i = 0; i < width; i++) put(into, (uint8_t[]){(uint8_t)(number >> 8 * i)}, 1);
}

static void put_big(bytes *into, uint64_t number, size_t width) {
    for (size_t i = width; i-- > 0;) put(into, (uint8_t[]){(uint8_t)(number >> 8 * i)}, 1);
}

/// Probes a file, checks that both ways agree, and frees it. The error is empty when it is whole.
static tide_image probe(bytes *file, tide_error *error) {
    uint8_t *exact = malloc(file->length);
    memcpy(exact, file->at, file->length);
    FILE *out = tmpfile();
    check(out && fwrite(exact, 1, file->length, out) == file->length && fflush(out) == 0, "a temporary file");
    tide_image image, other;
    tide_error detail = {0};
    *error = (tide_error){0};
    tide_status status = tide_image_probe((tide_bytes){.memory = exact, .descriptor = -1, .size = file->length}, &image, error);
    tide_status again = tide_image_probe((tide_bytes){.descriptor = fileno(out), .size = file->length}, &other, &detail);
    check(status == again && !strcmp(error->message, detail.message), "%s, %s", error->message, detail.message);
    check(image.width == other.width && image.height == other.height && image.exif_offset == other.exif_offset, "%u", other.width);
    check(status == (error->message[0] ? TIDE_REJECTED : TIDE_OK), "%d", status);
    fclose(out);
    free(exact);
    free(file->at);
    *file = (bytes){0};
    return image;
}

static tide_image whole(bytes *file) {
    tide_error error;
    tide_image image = probe(file, &error);
    check(!error.message[0], "%s", error.message);
    return image;
}

static void check_broken(bytes *file, const char *what) {
    tide_error error;
    probe(file, &error);
    check(error.reject == TIDE_REJECT_ASSET_TRUNCATED && strstr(error.message, what), "%s, not %s", error.message, what);
}

// TIFF

typedef struct entry {
    uint16_t tag, type;
    uint32_t count, value;
} entry;

/// A directory with its link to the next one; without the link where it is UINT32_MAX.
static void directory_put(bytes *into, const entry *entries, size_t count, uint32_t next) {
    put_little(into, count, 2);
    for (size_t i = 0; i < count; i++) {
        put_little(into, entries[i].tag, 2), put_little(into, entries[i].type, 2);
        put_little(into, entries[i].count, 4), put_little(into, entries[i].value, 4);
    }
    if (next != UINT32_MAX) put_little(into, next, 4);
}

static bytes tiff_make(const entry *entries, size_t count, uint32_t next) {
    bytes file = {0};
    put(&file, "II*\0\x08\0\0\0", 8);
    directory_put(&file, entries, count, next);
    return file;
}

enum { type_ascii = 2, type_short = 3, type_long = 4, type_directory = 13 };

static void test_tiff(void) {
    const entry tiles[] = {{256, type_short, 1, 80}, {257, type_short, 1, 60}, {324, type_long, 1, 8}, {325, type_short, 1, 50}};
    bytes file = tiff_make(tiles, 4, 0);
    tide_image image = whole(&file);
    check(image.media == TIDE_MEDIA_TIFF && image.width == 80 && image.height == 60, "%u x %u", image.width, image.height);
    entry beyond[4];
    memcpy(beyond, tiles, sizeof tiles);
    beyond[3].value = 60;
    file = tiff_make(beyond, 4, 0);
    check_broken(&file, "the end of a strip is expected at byte 68");
    // Of two tiles, whose places are in a table behind the directory.
    for (int i = 0; i < 4; i++) {
        beyond[2] = (entry){324, type_long, 2, i == 2 ? 67 : 62};
        beyond[3] = i == 3 ? (entry){325, type_long, 2, 4000} : (entry){325, type_short, 2, 10 << 16 | 10};
        file = tiff_make(beyond, 4, 0);
        put_little(&file, 8, 4), put_little(&file, i == 1 ? 61 : 60, 4);
        if (i == 0) whole(&file);
        else check_broken(&file, (const char *[]){"the end of a strip", "the place of a strip", "the length of a strip"}[i - 1]);
    }

    // Some writers leave out the last link. A value of a type that no size has is passed over, and so is one outside of the file.
    const entry odd[] = {
        {256, type_short, 1, 80}, {257, type_short, 1, 60}, {256, type_ascii, 1, 7}, {257, type_long, 2, 9000}, {254, type_long, 2, 9000}};
    file = tiff_make(odd, 5, UINT32_MAX);
    image = whole(&file);
    check(image.width == 80 && image.height == 60, "%u x %u", image.width, image.height);
    // A smaller copy does not count, wherever it is; of several pages the largest does.
    for (int kind = 0; kind < 2; kind++) {
        const entry first[] = {
            {256, type_long, 1, 500}, {257, type_long, 1, 400}, {254, type_long, 1, (uint32_t)kind}, {330, type_directory, 1, 8 + 2 + 48 + 4}};
        const entry second[] = {{256, type_long, 1, 80}, {257, type_long, 1, 60}};
        file = tiff_make(first, 4, 0);
        directory_put(&file, second, 2, 0);
        image = whole(&file);
        check(image.width == (kind ? 80 : 500), "%u x %u", image.width, image.height);
    }
    // More directories than are looked at, and more strips than are checked, end.
    entry many = {330, type_long, 100, 8 + 2 + 12 + 4};
    file = tiff_make(&many, 1, 0);
    for (int i = 0; i < 100; i++) put_little(&file, 8, 4);
    whole(&file);
    entry strips[] = {
        {273, type_long, 20000, 8 + 2 + 48 + 4}, {279, type_long, 20000, 8 + 2 + 48 + 4 + 80000},
        {324, type_long, 1, 0xffffffff}, {325, type_long, 1, 5}};
    file = tiff_make(strips, 4, 0);
    // The strips that are not checked, and the tile, lie outside of the file.
    for (int i = 0; i < 40000; i++) put_little(&file, i % 20000 < 16384 ? 1 : 0xffffffff, 4);
    whole(&file);
    put(&file, "II*\0\0\0\0\0", 8);
    check_broken(&file, "a directory is expected at byte 4");
    put(&file, "II*\0\x09\0\0\0", 8);
    check_broken(&file, "a directory is expected at byte 9");
    put(&file, "II*\0\x08\0\0\0\xff\xff", 10);
    check_broken(&file, "a directory of a sensible length");
    const entry one = {256, type_long, 1, 80};
    file = tiff_make(&one, 1, 0);
    file.at[8] = 9;
    check_broken(&file, "an entry of a directory");
}

// EXIF data

static void segment_put(bytes *into, uint8_t marker, const void *from, size_t length) {
    put(into, (uint8_t[]){0xff, marker}, 2);
    put_big(into, length + 2, 2);
    put(into, from, length);
}

static void test_exif_of_jpeg(void) {
    static const struct {
        const char *segments[2];
        size_t lengths[2];
        uint64_t offset;
        uint32_t length;
    } cases[] = {
        {{"Exif\0\0II*\0\x08\0\0\0"}, {14}, 12, 8},
        // Only the first block counts, and what is none, or too short, is passed over.
        {{"Exif\0\0II*\0\x08\0\0\0", "Exif\0\0MM\0*\0\0\0\x08"}, {14, 14}, 12, 8},
        {{"http://ns.adobe.com/xap", "Exif\0\0MM\0*\0\0\0\x08"}, {23, 14}, 39, 8},
        {{"Exif\0\0II*\0\x08\0\0", "Exif\0\0MM\0*\0\0\0\x08"}, {13, 14}, 29, 8},
        {{"Exif\0\0IM*\0\x08\0\0\0", "Exif\0\0MM\0*\0\0\0\x08"}, {14, 14}, 30, 8},
        {{"Exif\0\1MM\0*\0\0\0\x08", "Exif"}, {14, 4}, 0, 0},
        // The prefix twice.
        {{"Exif\0\0Exif\0\0II*\0\x08\0\0\0"}, {20}, 18, 8},
        {{"Exif\0\0Exif\0\0II*\0\x08"}, {17}, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes file = {0};
        put(&file, "\xff\xd8", 2);
        for (int k = 0; k < 2 && cases[i].segments[k]; k++) segment_put(&file, 0xe1, cases[i].segments[k], cases[i].lengths[k]);
        segment_put(&file, 0xc0, "\x08\0\x3c\0\x50\1\1\x11\0", 9);
        // The second frame header does not count.
        segment_put(&file, 0xc1, "\x08\0\x01\0\x02\1\1\x11\0", 9);
        segment_put(&file, 0xda, "\1\1\0\0\x3f\0", 6);
        put(&file, "\xff\xd9", 2);
        tide_image image = whole(&file);
        check(image.width == 80 && image.height == 60, "%zu: %u x %u", i, image.width, image.height);
        check(image.exif_offset == cases[i].offset && image.exif_length == cases[i].length, "%zu: %u at %llu", i, image.exif_length,
              (unsigned long long)image.exif_offset);
    }
}

// Files of nothing but parts

static void test_many_parts(void) {
    bytes file = {0};
    put(&file, "GIF89a\3\0\2\0\0\0\0", 13);
    put(&file, NULL, 17 << 20);
    put(&file, ";", 1);
    check_broken(&file, "a trailer");
    put(&file, "RIFF", 4);
    put_little(&file, 4 + 18 + 300000 * 8, 4);
    put(&file, "WEBPVP8X\x0a\0\0\0\0\0\0\0\x4f\0\0\x3b\0\0", 22);
    for (int i = 0; i < 300000; i++) put(&file, "ABCD\0\0\0\0", 8);
    check_broken(&file, "the last chunk");
    // Its size, and a chunk of one byte, which is padded, are read.
    put(&file, "RIFF", 4);
    put_little(&file, 4 + 18 + 10 + 18, 4);
    put(&file, "WEBPVP8X\x0a\0\0\0\0\0\0\0\x4f\0\0\x3b\0\0ABCD\1\0\0\0xxEXIF\x0a\0\0\0MM\0*\0\0\0\x08\0\0", 22 + 10 + 18);
    tide_image image = whole(&file);
    check(image.width == 80 && image.height == 60 && image.exif_offset == 48 && image.exif_length == 10, "%u", image.exif_length);
    check(strcmp(tide_media_extension((tide_media)7), "bin") == 0, "a format that there is none of");
}

int main(void) {
    test_tiff();
    test_exif_of_jpeg();
    test_many_parts();
    puts("image_kinds_test: passed");
    return 0;
}

// Goal: a whole image is told for what it is, a broken one is refused, and nothing else happens, whatever the bytes.
// Method: small files of each format are built here, then read whole, cut at every length and with every bit flipped, from memory
// (copied to the byte, so that the address sanitiser sees an overrun) and through a descriptor, which must agree.
//
// usage: image_test [directory to write the files to, as seeds for image_fuzz]

#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "tide_exif.h"
#include "tide_image.h"

// Building

typedef struct buffer {
    uint8_t *bytes;
    size_t length, capacity;
} buffer;

static void buffer_destroy(buffer *into) {
    free(into->bytes);
    *into = (buffer){0};
}

static void put_zeros(buffer *into, size_t length) {
    if (into->length + length > into->capacity) {
        into->capacity = 2 * (into->length + length);
        into->bytes = realloc(into->bytes, into->capacity);
        check(into->bytes, "no memory");
    }
    if (length) memset(into->bytes + into->length, 0, length);
    into->length += length;
}

static void put(buffer *into, const void *bytes, size_t length) {
    put_zeros(into, length);
    if (length) memcpy(into->bytes + into->length - length, bytes, length);
}

static void put_text(buffer *into, const char *text) { put(into, text, strlen(text)); }

static void set_number(buffer *into, size_t at, uint64_t number, size_t width, bool big) {
    for (size_t i = 0; i < width; i++) into->bytes[at + i] = (uint8_t)(number >> 8 * (big ? width - 1 - i : i));
}

static void put_number(buffer *into, uint64_t number, size_t width, bool big) {
    put_zeros(into, width);
    set_number(into, into->length - width, number, width, big);
}

static void put_big(buffer *into, uint64_t number, size_t width) { put_number(into, number, width, true); }
static void put_little(buffer *into, uint64_t number, size_t width) { put_number(into, number, width, false); }

// EXIF

enum { format_ascii = 2, format_short = 3, format_long = 4, format_rational = 5, format_undefined = 7, field_limit = 16 };

/// An entry of a directory: text, or numbers of its format's width.
typedef struct field {
    uint16_t tag, format;
    const char *text;
    uint32_t count;
    uint32_t numbers[6];
} field;

typedef struct photo {
    bool big;
    field main[field_limit], exif[field_limit], gps[field_limit];
} photo;

static size_t field_count(const field *fields) {
    size_t count = 0;
    while (count < field_limit && fields[count].format) count++;
    return count;
}

static void field_value_put(buffer *into, const field *it, bool big) {
    if (it->text) put(into, it->text, it->count);
    size_t width = it->format == format_short ? 2 : 4, parts = it->format == format_rational ? 2 : 1;
    for (size_t i = 0; !it->text && i < it->count * parts; i++) put_number(into, it->numbers[i], width, big);
}

static size_t directory_put(buffer *into, size_t base, const field *fields, size_t count, bool big) {
    size_t start = into->length, table = start + 2;
    put_number(into, count, 2, big);
    put_zeros(into, 12 * count + 4);
    for (size_t i = 0; i < count; i++) {
        size_t at = table + 12 * i;
        set_number(into, at, fields[i].tag, 2, big);
        set_number(into, at + 2, fields[i].format, 2, big);
        set_number(into, at + 4, fields[i].count, 4, big);
        buffer value = {0};
        field_value_put(&value, &fields[i], big);
        if (value.length <= 4) {
            if (value.length) memcpy(into->bytes + at + 8, value.bytes, value.length);
        } else {
            set_number(into, at + 8, into->length - base, 4, big);
            put(into, value.bytes, value.length);
        }
        buffer_destroy(&value);
    }
    return start - base;
}

static void photo_put(buffer *into, const photo *it) {
    size_t base = into->length, count = field_count(it->main);
    put_text(into, it->big ? "MM" : "II");
    put_number(into, 42, 2, it->big);
    put_zeros(into, 4);
    field main[field_limit + 2];
    memcpy(main, it->main, sizeof it->main);
    const field *directories[] = {it->exif, it->gps};
    const uint16_t pointers[] = {0x8769, 0x8825};
    for (size_t i = 0; i < 2; i++) {
        size_t fields = field_count(directories[i]);
        if (!fields) continue;
        size_t offset = directory_put(into, base, directories[i], fields, it->big);
        main[count++] = (field){.tag = pointers[i], .format = format_long, .count = 1, .numbers = {(uint32_t)offset}};
    }
    set_number(into, base + 4, directory_put(into, base, main, count, it->big), 4, it->big);
}

static field field_text(uint16_t tag, const char *text) {
    return (field){.tag = tag, .format = format_ascii, .text = text, .count = (uint32_t)strlen(text) + 1};
}

/// 2024-06-01T18:30:15.25+02:00 on the quay of Bergen, turned.
static photo photo_sample(bool big) {
    return (photo){
        .big = big,
        .main = {
            {.tag = 0x0112, .format = format_short, .count = 1, .numbers = {6}},
            field_text(0x0132, "2024:06:02 00:00:00"),
        },
        .exif = {
            field_text(0x9003, "2024:06:01 18:30:15"),
            field_text(0x9011, "+02:00"),
            field_text(0x9291, "25"),
            {.tag = 0x927c, .format = format_undefined, .text = "a maker's note", .count = 14},
        },
        .gps = {
            field_text(1, "N"),
            {.tag = 2, .format = format_rational, .count = 3, .numbers = {60, 1, 23, 1, 4950, 100}},
            field_text(3, "E"),
            {.tag = 4, .format = format_rational, .count = 3, .numbers = {5, 1, 19, 1, 12, 1}},
        },
    };
}

static const int64_t photo_sample_time = 1717259415250000;

static tide_exif photo_read(const photo *it) {
    buffer block = {0};
    photo_put(&block, it);
    uint8_t *exact = malloc(block.length);
    memcpy(exact, block.bytes, block.length);
    tide_exif exif;
    tide_exif_read(exact, block.length, &exif);
    free(exact);
    buffer_destroy(&block);
    return exif;
}

// Images

typedef struct sample {
    const char *name;
    void (*build)(buffer *);
    tide_media media;
    uint32_t width, height;
    bool exif;
} sample;

static void segment_put(buffer *into, uint8_t marker, const void *bytes, size_t length) {
    put_big(into, 0xff00 | marker, 2);
    put_big(into, length + 2, 2);
    put(into, bytes, length);
}

static void exif_segment_put(buffer *into) {
    buffer exif = {0};
    put(&exif, "Exif\0", 6);
    photo it = photo_sample(false);
    photo_put(&exif, &it);
    segment_put(into, 0xe1, exif.bytes, exif.length);
    buffer_destroy(&exif);
}

static void jpeg_frame_put(buffer *into, uint8_t marker) {
    // What shares the range of the frame markers and is none
    for (uint8_t other = 0xc4; other <= 0xcc; other += 4) segment_put(into, other, "\0\1\0\1\0\0\0\0", 8);
    segment_put(into, marker, "\x08\x02\x58\x03\x20\x01\x01\x11\x00", 9);
    segment_put(into, 0xda, "\x01\x01\x00\x00\x3f\x00", 6);
    put(into, "scan\xff\x00scan\xff\xd0scan", 16);
}

static void jpeg_build(buffer *into) {
    put(into, "\xff\xd8", 2);
    segment_put(into, 0xe0, "JFIF\0\1\2\0\0\1\0\1\0\0", 14);
    jpeg_frame_put(into, 0xc0);
    put(into, "\xff\xd9", 2);
}

static void jpeg_exif_build(buffer *into) {
    put(into, "\xff\xd8", 2);
    segment_put(into, 0xe1, "http://ns.adobe.com/xap/1.0/\0<x/>", 33);
    exif_segment_put(into);
    put(into, "\xff\xff", 2);
    jpeg_frame_put(into, 0xc2);
    put(into, "\xff\xd9", 2);
}

static void chunk_put(buffer *into, const char *type, const void *bytes, size_t length) {
    put_big(into, length, 4);
    put(into, type, 4);
    put(into, bytes, length);
    put_zeros(into, 4);
}

static void png_start(buffer *into) {
    put(into, "\x89PNG\r\n\x1a\n", 8);
    chunk_put(into, "IHDR", "\0\0\x03\x20\0\0\x02\x58\x08\x02\0\0\0", 13);
}

static void png_build(buffer *into) {
    png_start(into);
    chunk_put(into, "IDAT", "0123456789", 10);
    chunk_put(into, "IDAT", NULL, 0);
    chunk_put(into, "IEND", NULL, 0);
}

static void png_exif_build(buffer *into) {
    buffer exif = {0};
    photo it = photo_sample(true);
    photo_put(&exif, &it);
    png_start(into);
    chunk_put(into, "IDAT", "0123456789", 10);
    chunk_put(into, "eXIf", exif.bytes, exif.length);
    chunk_put(into, "IEND", NULL, 0);
    buffer_destroy(&exif);
}

static void gif_build(buffer *into) {
    put(into, "GIF89a\x20\x03\x58\x02\x80\0\0", 13);
    put_zeros(into, 6);
    put(into, "\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0", 19);
    put(into, "\x21\xf9\x04\0\0\0\0\0", 8);
    put(into, "\x2c\0\0\0\0\x20\x03\x58\x02\x81", 10);
    put_zeros(into, 12);
    put(into, "\x02\x03xyz\x01x\0", 8);
    put(into, "\0\x3b", 2);
}

static void gif_bare_build(buffer *into) {
    put(into, "GIF87a\x20\x03\x58\x02\0\0\0", 13);
    put(into, "\x2c\0\0\0\0\x20\x03\x58\x02\0\x02\x02xy\0\x3b", 16);
}

static void riff_chunk_put(buffer *into, const char *type, const void *bytes, size_t length) {
    put(into, type, 4);
    put_little(into, length, 4);
    put(into, bytes, length);
    put_zeros(into, length & 1);
}

static void riff_start(buffer *into) { put(into, "RIFF\0\0\0\0WEBP", 12); }
static void riff_end(buffer *into) { set_number(into, 4, into->length - 8, 4, false); }

static void webp_build(buffer *into) {
    riff_start(into);
    riff_chunk_put(into, "VP8 ", "\x10\0\0\x9d\x01\x2a\x20\x03\x58\x02xyz", 13);
    riff_end(into);
}

static void webp_lossless_build(buffer *into) {
    buffer picture = {0};
    put_little(&picture, 0x2f, 1);
    put_little(&picture, (uint32_t)(800 - 1) | (uint32_t)(600 - 1) << 14, 4);
    put_text(&picture, "xyz");
    riff_start(into);
    riff_chunk_put(into, "VP8L", picture.bytes, picture.length);
    riff_end(into);
    buffer_destroy(&picture);
}

static void webp_exif_put(buffer *into, bool prefixed) {
    buffer exif = {0};
    if (prefixed) put(&exif, "Exif\0", 6);
    photo it = photo_sample(false);
    photo_put(&exif, &it);
    riff_start(into);
    riff_chunk_put(into, "VP8X", "\x08\0\0\0\x1f\x03\0\x57\x02\0", 10);
    riff_chunk_put(into, "VP8 ", "\x10\0\0\x9d\x01\x2a\x20\x03\x58\x02xyz", 13);
    riff_chunk_put(into, "EXIF", exif.bytes, exif.length);
    riff_end(into);
    buffer_destroy(&exif);
}

static void webp_exif_build(buffer *into) { webp_exif_put(into, false); }
static void webp_prefixed_exif_build(buffer *into) { webp_exif_put(into, true); }

static size_t box_start(buffer *into, const char *type) {
    put_zeros(into, 4);
    put(into, type, 4);
    return into->length - 8;
}

static size_t full_box_start(buffer *into, const char *type, uint32_t version, uint32_t flags) {
    size_t start = box_start(into, type);
    put_big(into, version << 24 | flags, 4);
    return start;
}

static void box_end(buffer *into, size_t start) { set_number(into, start, into->length - start, 4, true); }

static void size_property_put(buffer *into, uint32_t width, uint32_t height) {
    size_t ispe = full_box_start(into, "ispe", 0, 0);
    put_big(into, width, 4);
    put_big(into, height, 4);
    box_end(into, ispe);
}

/// How an HEIC file is laid out; its items are 1 (a tile), 2 (the primary grid) and 3 (EXIF).
typedef struct layout {
    const char *brand;
    /// Of iloc, 0...2; with 2 the numbers of all items are 32 bits wide.
    uint32_t version;
    /// Of offsets, lengths and bases in iloc.
    uint32_t width;
    /// 0 for "to the end", 4 or 8 bytes.
    uint32_t data_size_width;
} layout;

static void item_put(buffer *into, const layout *how, uint32_t item, const char *type) {
    bool wide = how->version == 2;
    size_t infe = full_box_start(into, "infe", wide ? 3 : 2, 0);
    put_big(into, item, wide ? 4 : 2);
    put_big(into, 0, 2);
    put(into, type, 4);
    put_big(into, 0, 1);
    box_end(into, infe);
}

/// Returns where the base offset lies.
static size_t location_put(buffer *into, const layout *how, uint32_t item, uint32_t method, uint32_t offset, uint32_t length) {
    put_big(into, item, how->version == 2 ? 4 : 2);
    if (how->version > 0) put_big(into, method, 2);
    put_big(into, 0, 2);
    put_big(into, 0, how->width);
    size_t base = into->length - how->width;
    put_big(into, 1, 2);
    if (how->version > 0) put_big(into, 0, how->width);
    put_big(into, offset, how->width);
    put_big(into, length, how->width);
    return base;
}

static void heic_put(buffer *into, const layout *how) {
    bool wide = how->version == 2;
    size_t id_width = wide ? 4 : 2;
    buffer exif = {0};
    put_big(&exif, 6, 4);
    put(&exif, "Exif\0", 6);
    photo it = photo_sample(true);
    photo_put(&exif, &it);

    size_t ftyp = box_start(into, "ftyp");
    put(into, how->brand, 4);
    put(into, "\0\0\0\0mif1", 8);
    box_end(into, ftyp);
    size_t meta = full_box_start(into, "meta", 0, 0);

    size_t hdlr = full_box_start(into, "hdlr", 0, 0);
    put(into, "\0\0\0\0pict", 8);
    put_zeros(into, 13);
    box_end(into, hdlr);

    size_t pitm = full_box_start(into, "pitm", wide ? 1 : 0, 0);
    put_big(into, 2, id_width);
    box_end(into, pitm);

    size_t iinf = full_box_start(into, "iinf", wide ? 1 : 0, 0);
    put_big(into, 3, id_width);
    item_put(into, how, 1, "hvc1");
    item_put(into, how, 2, "grid");
    item_put(into, how, 3, "Exif");
    box_end(into, iinf);

    size_t iloc = full_box_start(into, "iloc", how->version, 0);
    put_big(into, how->width << 12 | how->width << 8 | how->width << 4 | (how->version > 0 ? how->width : 0), 2);
    put_big(into, 3, id_width);
    size_t tile_base = location_put(into, how, 1, 0, 0, 5);
    // The offset of a grid counts from idat, where there is such a method, and would lie beyond the file.
    if (how->version > 0) location_put(into, how, 2, 1, 1 << 30, 8);
    else location_put(into, how, 2, 0, 0, 0);
    size_t exif_base = location_put(into, how, 3, 0, 5, (uint32_t)exif.length);
    box_end(into, iloc);

    size_t iprp = box_start(into, "iprp"), ipco = box_start(into, "ipco");
    size_t irot = box_start(into, "irot");
    put_big(into, 1, 1);
    box_end(into, irot);
    size_property_put(into, 512, 512);
    size_property_put(into, 800, 600);
    box_end(into, ipco);
    size_t ipma = full_box_start(into, "ipma", wide ? 1 : 0, wide ? 1 : 0);
    put_big(into, 2, 4);
    put_big(into, 1, id_width);
    put_big(into, 1, 1);
    put_big(into, wide ? 0x8002 : 0x82, wide ? 2 : 1);
    put_big(into, 2, id_width);
    put_big(into, 2, 1);
    put_big(into, 1, wide ? 2 : 1);
    put_big(into, wide ? 0x8003 : 0x83, wide ? 2 : 1);
    box_end(into, ipma);
    box_end(into, iprp);
    box_end(into, meta);

    size_t mdat = box_start(into, "mdat");
    if (how->data_size_width == 8) put_zeros(into, 8);
    set_number(into, tile_base, into->length, how->width, true);
    set_number(into, exif_base, into->length, how->width, true);
    put_text(into, "tile.");
    put(into, exif.bytes, exif.length);
    if (how->data_size_width == 4) box_end(into, mdat);
    if (how->data_size_width == 8) {
        set_number(into, mdat, 1, 4, true);
        set_number(into, mdat + 8, into->length - mdat, 8, true);
    }
    buffer_destroy(&exif);
}

static void heic_build(buffer *into) { heic_put(into, &(layout){"heic", .version = 0, .width = 4, .data_size_width = 4}); }
static void heif_build(buffer *into) { heic_put(into, &(layout){"mif1", .version = 1, .width = 8, .data_size_width = 8}); }
static void avif_build(buffer *into) { heic_put(into, &(layout){"avif", .version = 2, .width = 4, .data_size_width = 0}); }

/// A picture of two strips, with its EXIF data in the same directories. The strips come last.
static void tiff_put(buffer *into, bool big) {
    uint32_t offset = 0;
    for (int round = 0; round < 2; round++) {
        photo it = photo_sample(big);
        size_t count = field_count(it.main);
        it.main[count++] = (field){.tag = 0x0100, .format = format_short, .count = 1, .numbers = {800}};
        it.main[count++] = (field){.tag = 0x0101, .format = format_long, .count = 1, .numbers = {600}};
        it.main[count++] = (field){.tag = 0x0111, .format = format_long, .count = 2, .numbers = {offset, offset + 10}};
        it.main[count++] = (field){.tag = 0x0117, .format = format_short, .count = 2, .numbers = {10, 20}};
        into->length = 0;
        photo_put(into, &it);
        offset = (uint32_t)into->length;
    }
    put_zeros(into, 30);
}

static void tiff_intel_build(buffer *into) { tiff_put(into, false); }
static void tiff_motorola_build(buffer *into) { tiff_put(into, true); }

/// Without a single byte after what is needed, so that every cut is one.
static const sample samples[] = {
    {"plain.jpg", jpeg_build, TIDE_MEDIA_JPEG, 800, 600, false},
    {"exif.jpg", jpeg_exif_build, TIDE_MEDIA_JPEG, 800, 600, true},
    {"plain.png", png_build, TIDE_MEDIA_PNG, 800, 600, false},
    {"exif.png", png_exif_build, TIDE_MEDIA_PNG, 800, 600, true},
    {"tables.gif", gif_build, TIDE_MEDIA_GIF, 800, 600, false},
    {"bare.gif", gif_bare_build, TIDE_MEDIA_GIF, 800, 600, false},
    {"lossy.webp", webp_build, TIDE_MEDIA_WEBP, 800, 600, false},
    {"lossless.webp", webp_lossless_build, TIDE_MEDIA_WEBP, 800, 600, false},
    {"exif.webp", webp_exif_build, TIDE_MEDIA_WEBP, 800, 600, true},
    {"prefixed.webp", webp_prefixed_exif_build, TIDE_MEDIA_WEBP, 800, 600, true},
    {"0.heic", heic_build, TIDE_MEDIA_HEIC, 800, 600, true},
    {"1.heif", heif_build, TIDE_MEDIA_HEIC, 800, 600, true},
    {"2.avif", avif_build, TIDE_MEDIA_HEIC, 800, 600, true},
    {"intel.tif", tiff_intel_build, TIDE_MEDIA_TIFF, 800, 600, true},
    {"motorola.tif", tiff_motorola_build, TIDE_MEDIA_TIFF, 800, 600, true},
};

static const size_t sample_count = sizeof samples / sizeof *samples;

static size_t signature_length(tide_media media) {
    switch (media) {
    case TIDE_MEDIA_UNKNOWN: return 0;
    case TIDE_MEDIA_JPEG: return 3;
    case TIDE_MEDIA_PNG: return 8;
    case TIDE_MEDIA_GIF: return 6;
    case TIDE_MEDIA_WEBP: return 12;
    case TIDE_MEDIA_HEIC: return 12;
    case TIDE_MEDIA_TIFF: return 4;
    }
    return 0;
}

// Probing

typedef struct verdict {
    tide_status status;
    tide_image image;
    tide_error error;
} verdict;

/// Probes through both ways, checks what must hold of any bytes, and returns what both say.
static verdict probe(int descriptor, const uint8_t *bytes, size_t length, const char *name) {
    uint8_t *exact = malloc(length ? length : 1);
    check(exact, "no memory");
    if (length) memcpy(exact, bytes, length);
    verdict one = {0}, other = {0};
    one.status = tide_image_probe((tide_bytes){.memory = exact, .descriptor = -1, .size = length}, &one.image, &one.error);

    check(ftruncate(descriptor, 0) == 0, "%s: %s", name, strerror(errno));
    check(pwrite(descriptor, exact, length, 0) == (ssize_t)length, "%s: %s", name, strerror(errno));
    tide_bytes file = {.memory = NULL, .descriptor = descriptor, .size = length};
    other.status = tide_image_probe(file, &other.image, &other.error);
    check(lseek(descriptor, 0, SEEK_CUR) == 0, "%s: the descriptor moved", name);

    check(one.status == other.status, "%s: %d from memory, %d from a file", name, one.status, other.status);
    const char *said = one.error.message, *said_of_file = other.error.message;
    check(memcmp(&one.error, &other.error, sizeof one.error) == 0, "%s: '%s', '%s'", name, said, said_of_file);
    const tide_image *a = &one.image, *b = &other.image;
    check(a->media == b->media && a->width == b->width && a->height == b->height, "%s: images differ", name);
    check(a->exif_offset == b->exif_offset && a->exif_length == b->exif_length, "%s: EXIF differs", name);
    check(one.status == TIDE_OK || one.status == TIDE_REJECTED, "%s: status %d", name, one.status);
    check(one.status == TIDE_OK || one.error.reject == TIDE_REJECT_ASSET_TRUNCATED, "%s: reject %d", name, one.error.reject);
    check(one.status == tide_image_probe((tide_bytes){exact, -1, length}, &one.image, NULL), "%s: without an error", name);
    if (a->exif_length) {
        check(a->exif_length <= length && a->exif_offset <= length - a->exif_length, "%s: EXIF outside the file", name);
        const uint8_t *block = exact + a->exif_offset;
        check(memcmp(block, "II", 2) == 0 || memcmp(block, "MM", 2) == 0, "%s: EXIF of no byte order", name);
        uint8_t *exact_block = malloc(a->exif_length);
        memcpy(exact_block, block, a->exif_length);
        tide_exif exif;
        tide_exif_read(exact_block, a->exif_length, &exif);
        check(exif.orientation >= 1 && exif.orientation <= 8, "%s: orientation %d", name, exif.orientation);
        free(exact_block);
    }
    free(exact);
    return one;
}

static void expect_refused(int descriptor, const buffer *content, const char *format, const char *what, size_t offset) {
    char message[500];
    snprintf(
        message, sizeof message, "the %s file breaks off: %s is expected at byte %zu, and the file has %zu bytes", format, what,
        offset, content->length
    );
    verdict is = probe(descriptor, content->bytes, content->length, message);
    check(is.status == TIDE_REJECTED, "status %d for: %s", is.status, message);
    check(strcmp(is.error.message, message) == 0, "'%s' for: %s", is.error.message, message);
}

static void expect_size(
    int descriptor, const buffer *content, tide_media media, uint32_t width, uint32_t height, const char *name
) {
    verdict is = probe(descriptor, content->bytes, content->length, name);
    check(is.status == TIDE_OK, "%s: %s", name, is.error.message);
    check(is.image.media == media, "%s: media %d", name, is.image.media);
    check(is.image.width == width && is.image.height == height, "%s: %u x %u", name, is.image.width, is.image.height);
}

// Tests

static void test_samples(int descriptor) {
    for (size_t i = 0; i < sample_count; i++) {
        const sample *it = &samples[i];
        buffer content = {0};
        it->build(&content);
        expect_size(descriptor, &content, it->media, it->width, it->height, it->name);
        verdict whole = probe(descriptor, content.bytes, content.length, it->name);
        check((whole.image.exif_length > 0) == it->exif, "%s: EXIF of %u bytes", it->name, whole.image.exif_length);
        if (it->exif) {
            tide_exif exif;
            tide_exif_read(content.bytes + whole.image.exif_offset, whole.image.exif_length, &exif);
            check(exif.has_time && exif.time == photo_sample_time, "%s: time %lld", it->name, (long long)exif.time);
            check(exif.has_position && exif.orientation == 6, "%s: orientation %d", it->name, exif.orientation);
        }
        for (size_t length = 0; length < content.length; length++) {
            verdict cut = probe(descriptor, content.bytes, length, it->name);
            bool told = length >= signature_length(it->media);
            check(cut.status == (told ? TIDE_REJECTED : TIDE_OK), "%s: status %d cut to %zu", it->name, cut.status, length);
            check(cut.image.media == (told ? it->media : TIDE_MEDIA_UNKNOWN), "%s: media cut to %zu", it->name, length);
        }
        for (size_t bit = 0; bit < 8 * content.length; bit++) {
            content.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            probe(descriptor, content.bytes, content.length, it->name);
            content.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (size_t at = 0; at < content.length; at++) {
            uint8_t kept = content.bytes[at];
            content.bytes[at] = 0xff;
            probe(descriptor, content.bytes, content.length, it->name);
            content.bytes[at] = kept;
        }
        buffer_destroy(&content);
    }
}

static void test_trailing_bytes(int descriptor) {
    static const struct { void (*build)(buffer *); tide_media media; } kinds[] = {
        {jpeg_build, TIDE_MEDIA_JPEG}, {png_build, TIDE_MEDIA_PNG}, {gif_build, TIDE_MEDIA_GIF}, {webp_build, TIDE_MEDIA_WEBP},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        buffer content = {0};
        kinds[i].build(&content);
        put_text(&content, "trailing bytes");
        expect_size(descriptor, &content, kinds[i].media, 800, 600, "trailing bytes");
        buffer_destroy(&content);
    }
    // A box cut off between boxes leaves no trace, unless an item lay in it.
    buffer content = {0};
    heic_build(&content);
    size_t length = content.length;
    box_end(&content, box_start(&content, "free"));
    expect_size(descriptor, &content, TIDE_MEDIA_HEIC, 800, 600, "a free box");
    check(probe(descriptor, content.bytes, content.length - 1, "half a box").status == TIDE_REJECTED, "half a box");
    check(probe(descriptor, content.bytes, length, "no free box").status == TIDE_OK, "no free box");
    buffer_destroy(&content);
}

static void test_jpeg_end_anywhere(int descriptor) {
    // Around the sizes of the window and of the tail, so that the marker falls across their edges.
    static const size_t places[] = {0, 16 * 1024, 64 * 1024, 80 * 1024, 300 * 1000};
    buffer head = {0};
    put(&head, "\xff\xd8", 2);
    jpeg_frame_put(&head, 0xc0);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        for (size_t j = 0; j < sizeof places / sizeof *places; j++) {
            for (size_t shift = 0; shift < 24; shift++) {
                // The marker moves against the start of the scan, or against the end of the file.
                size_t before = places[i] > 20 ? places[i] - 20 + shift : shift;
                size_t after = places[j] > 2 ? places[j] - 2 + shift % 4 : shift % 4;
                buffer content = {0};
                put(&content, head.bytes, head.length);
                put_zeros(&content, before);
                put(&content, "\xff\xd9", 2);
                put_zeros(&content, after);
                expect_size(descriptor, &content, TIDE_MEDIA_JPEG, 800, 600, "an end marker");
                content.bytes[head.length + before] = 0;
                check(probe(descriptor, content.bytes, content.length, "none").status == TIDE_REJECTED, "no end marker");
                buffer_destroy(&content);
            }
        }
    }
    // The end of a thumbnail ahead of the scan is not the end of the picture.
    buffer content = {0};
    put(&content, "\xff\xd8", 2);
    segment_put(&content, 0xe2, "\xff\xd8\xff\xd9", 4);
    jpeg_frame_put(&content, 0xc0);
    check(probe(descriptor, content.bytes, content.length, "thumbnail").status == TIDE_REJECTED, "a thumbnail's end");
    buffer_destroy(&content);
    buffer_destroy(&head);
}

static void test_messages(int descriptor) {
    buffer content = {0};
    png_build(&content);
    content.length = 20;
    expect_refused(descriptor, &content, "PNG", "the end of a chunk", 33);
    buffer_destroy(&content);

    jpeg_build(&content);
    content.length -= 2;
    expect_refused(descriptor, &content, "JPEG", "an end-of-image marker", content.length);
    buffer_destroy(&content);

    webp_build(&content);
    content.length--;
    expect_refused(descriptor, &content, "WebP", "the end of RIFF", 34);
    buffer_destroy(&content);

    put(&content, "\0\0\0\020ftypheic\0\0\0\0", 16);
    expect_refused(descriptor, &content, "HEIC", "a meta box", 16);
    buffer_destroy(&content);

    gif_bare_build(&content);
    content.bytes[13] = 'x';
    expect_refused(descriptor, &content, "GIF", "a block", 13);
    buffer_destroy(&content);
}

static void test_other_content(int descriptor) {
    static const char *const contents[] = {
        "", "\xff", "\xff\xd8", "hello", "%PDF-1.7 is no image", "RIFF\4\0\0\0AVI ", "\0\0\0\020ftypisom", "BM a bitmap",
        "GIF88a......",
    };
    static const size_t lengths[] = {0, 1, 2, 5, 20, 12, 12, 11, 12};
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
        verdict is = probe(descriptor, (const uint8_t *)contents[i], lengths[i], contents[i]);
        check(is.status == TIDE_OK && is.image.media == TIDE_MEDIA_UNKNOWN, "%zu: %d", i, is.image.media);
    }
}

static void test_unreadable_files(int descriptor) {
    tide_image image;
    tide_error error;
    tide_status status = tide_image_probe((tide_bytes){.memory = NULL, .descriptor = -1, .size = 100}, &image, &error);
    check(status == TIDE_IO_ERROR && error.system == EBADF, "%d: %s", status, error.message);

    buffer content = {0};
    png_build(&content);
    probe(descriptor, content.bytes, 70, "nine bytes short");
    status = tide_image_probe((tide_bytes){.memory = NULL, .descriptor = descriptor, .size = content.length}, &image, &error);
    check(status == TIDE_REJECTED && error.reject == TIDE_REJECT_ASSET_TRUNCATED, "%d: %s", status, error.message);
    check(strcmp(error.message, "the file ends at byte 70, sooner than at its size of 79") == 0, "%s", error.message);
    buffer_destroy(&content);
}

static void test_hostile_lengths(int descriptor) {
    buffer content = {0};
    png_start(&content);
    for (int i = 0; i < 300 * 1000; i++) chunk_put(&content, "tEXt", NULL, 0);
    chunk_put(&content, "IEND", NULL, 0);
    check(probe(descriptor, content.bytes, content.length, "chunks").status == TIDE_REJECTED, "empty chunks without end");
    buffer_destroy(&content);

    put(&content, "\xff\xd8", 2);
    for (int i = 0; i < 300 * 1000; i++) segment_put(&content, 0xfe, NULL, 0);
    jpeg_frame_put(&content, 0xc0);
    put(&content, "\xff\xd9", 2);
    check(probe(descriptor, content.bytes, content.length, "segments").status == TIDE_REJECTED, "empty segments without end");
    buffer_destroy(&content);

    heic_build(&content);
    for (int i = 0; i < 300 * 1000; i++) box_end(&content, box_start(&content, "free"));
    check(probe(descriptor, content.bytes, content.length, "boxes").status == TIDE_REJECTED, "empty boxes without end");
    buffer_destroy(&content);

    // Size and EXIF of a file whose meta box is absurdly large stay unknown; that it is nonsense within is not even seen.
    put(&content, "\0\0\0\020ftypheic\0\0\0\0", 16);
    size_t meta = full_box_start(&content, "meta", 0, 0);
    put_big(&content, 1, 4);
    put_zeros(&content, 17 * 1024 * 1024);
    box_end(&content, meta);
    expect_size(descriptor, &content, TIDE_MEDIA_HEIC, 0, 0, "a meta box of 17 MiB");
    buffer_destroy(&content);

    // Items of extents that take no room, as many as the largest meta box holds.
    put(&content, "\0\0\0\020ftypheic\0\0\0\0", 16);
    meta = full_box_start(&content, "meta", 0, 0);
    size_t iloc = full_box_start(&content, "iloc", 2, 0);
    put_big(&content, 0, 2);
    put_big(&content, 1600 * 1000, 4);
    for (int i = 0; i < 1600 * 1000; i++) put(&content, "\0\0\0\1\0\0\0\0\xff\xff", 10);
    box_end(&content, iloc);
    box_end(&content, meta);
    expect_size(descriptor, &content, TIDE_MEDIA_HEIC, 0, 0, "extents without fields");
    buffer_destroy(&content);

    // One chunk of 2 GiB in a sparse file, read only at its two ends.
    png_start(&content);
    put_big(&content, INT32_MAX, 4);
    put_text(&content, "IDAT");
    buffer end = {0};
    chunk_put(&end, "IEND", NULL, 0);
    off_t end_offset = (off_t)content.length + INT32_MAX + 4;
    check(ftruncate(descriptor, 0) == 0, "%s", strerror(errno));
    check(pwrite(descriptor, content.bytes, content.length, 0) == (ssize_t)content.length, "%s", strerror(errno));
    check(pwrite(descriptor, end.bytes, end.length, end_offset) == (ssize_t)end.length, "%s", strerror(errno));
    tide_image image;
    tide_bytes file = {.memory = NULL, .descriptor = descriptor, .size = (uint64_t)end_offset + end.length};
    check(tide_image_probe(file, &image, NULL) == TIDE_OK && image.width == 800, "a chunk of 2 GiB");
    check(ftruncate(descriptor, 0) == 0, "%s", strerror(errno));
    buffer_destroy(&end);
    buffer_destroy(&content);
}

/// A directory of a picture's size, with a tag of its own, and the next directory.
static void tiff_directory_put(buffer *into, uint32_t kind, uint32_t width, uint32_t height, uint32_t children, uint32_t next) {
    static const uint16_t tags[] = {254, 256, 257, 330};
    const uint32_t values[] = {kind, width, height, children};
    size_t count = children ? 4 : 3;
    put_little(into, count, 2);
    for (size_t i = 0; i < count; i++) {
        put_little(into, tags[i], 2);
        put_little(into, format_long, 2);
        put_little(into, 1, 4);
        put_little(into, values[i], 4);
    }
    put_little(into, next, 4);
}

static void test_tiff_directories(int descriptor) {
    // As a camera's raw file: a small picture first, the whole one below it; the chain runs in a circle.
    buffer content = {0};
    put(&content, "II*\0\x08\0\0\0", 8);
    uint32_t second = 8 + 2 + 4 * 12 + 4;
    tiff_directory_put(&content, 1, 160, 120, second, 8);
    tiff_directory_put(&content, 0, 800, 600, 0, 8);
    expect_size(descriptor, &content, TIDE_MEDIA_TIFF, 800, 600, "a directory below another");
    buffer_destroy(&content);

    put(&content, "II*\0\x08\0\0\0\xff\xff", 10);
    expect_refused(descriptor, &content, "TIFF", "a directory of a sensible length", 8);
    buffer_destroy(&content);

    put(&content, "MM\0*\0\0\1\0", 8);
    expect_refused(descriptor, &content, "TIFF", "a directory", 256);
    buffer_destroy(&content);
}

static void test_tiff_strips(int descriptor) {
    static const struct { uint32_t places, lengths, place, length; const char *what; size_t at; } cases[] = {
        {38, 46, 40, 14, NULL, 0},
        {38, 46, 40, 15, "the end of a strip", 55},
        // The last of the values lies behind the end, or all do.
        {50, 46, 0, 0, "the place of a strip", 50},
        {38, 50, 0, 0, "the length of a strip", 50},
        {38, 1000, 0, 0, "the length of a strip", 1000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer content = {0};
        put(&content, "II*\0\x08\0\0\0\2\0", 10);
        for (int k = 0; k < 2; k++) {
            put_little(&content, k ? 279 : 273, 2);
            put_little(&content, format_long, 2);
            put_little(&content, 2, 4);
            put_little(&content, k ? cases[i].lengths : cases[i].places, 4);
        }
        put_zeros(&content, 4);
        // Of the two strips the first has no bytes.
        put_zeros(&content, 16);
        check(content.length == 54, "%zu", content.length);
        set_number(&content, 42, cases[i].place, 4, false);
        set_number(&content, 50, cases[i].length, 4, false);
        if (cases[i].what) expect_refused(descriptor, &content, "TIFF", cases[i].what, cases[i].at);
        else expect_size(descriptor, &content, TIDE_MEDIA_TIFF, 0, 0, "a strip up to the end");
        buffer_destroy(&content);
    }
}

/// A file with one item, which lies `offset` bytes behind `base`; 62 bytes in all.
static void heic_item_put(buffer *into, uint32_t base, uint32_t offset, uint32_t length) {
    put(into, "\0\0\0\020ftypheic\0\0\0\0", 16);
    size_t meta = full_box_start(into, "meta", 0, 0), iloc = full_box_start(into, "iloc", 0, 0);
    put_big(into, 0x4440, 2);
    put_big(into, 1, 2);
    put_big(into, 1, 2);
    put_big(into, 0, 2);
    put_big(into, base, 4);
    put_big(into, 1, 2);
    put_big(into, offset, 4);
    put_big(into, length, 4);
    box_end(into, iloc);
    box_end(into, meta);
    check(into->length == 62, "%zu", into->length);
}

static void test_heic_items(int descriptor) {
    static const struct { uint32_t base, offset, length; const char *what; size_t place; } cases[] = {
        {20, 30, 12, NULL, 0},
        {20, 30, 13, "the end of an item", 63},
        {20, 1000, 1, "the data of an item", 1020},
        {100, 7, 1, "the data of an item", 107},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer content = {0};
        heic_item_put(&content, cases[i].base, cases[i].offset, cases[i].length);
        if (cases[i].what) expect_refused(descriptor, &content, "HEIC", cases[i].what, cases[i].place);
        else expect_size(descriptor, &content, TIDE_MEDIA_HEIC, 0, 0, "an item up to the end");
        buffer_destroy(&content);
    }

    // The size is told without a table of locations, whatever the first box is.
    buffer content = {0};
    put(&content, "\0\0\0\020ftypheic\0\0\0\0", 16);
    size_t meta = full_box_start(&content, "meta", 0, 0), pitm = full_box_start(&content, "pitm", 0, 0);
    put_big(&content, 1, 2);
    box_end(&content, pitm);
    size_t iprp = box_start(&content, "iprp"), ipco = box_start(&content, "ipco");
    size_property_put(&content, 800, 600);
    box_end(&content, ipco);
    size_t ipma = full_box_start(&content, "ipma", 0, 0);
    put(&content, "\0\0\0\1\0\1\1\x81", 8);
    box_end(&content, ipma);
    box_end(&content, iprp);
    box_end(&content, meta);
    expect_size(descriptor, &content, TIDE_MEDIA_HEIC, 800, 600, "no locations");
    buffer_destroy(&content);

    // What looks like EXIF data is none where its item is of another type.
    heic_build(&content);
    size_t type = 0;
    while (type + 4 < content.length && memcmp(content.bytes + type, "Exif", 4) != 0) type++;
    memcpy(content.bytes + type, "mime", 4);
    expect_size(descriptor, &content, TIDE_MEDIA_HEIC, 800, 600, "an item of another type");
    verdict is = probe(descriptor, content.bytes, content.length, "an item of another type");
    check(is.image.exif_length == 0, "EXIF of %u bytes", is.image.exif_length);
    buffer_destroy(&content);
}

static void test_names(void) {
    static const char *const claimed[] = {"a.jpg", "a.JPEG", "b.Png", "c.gif", "d.webp", "e.HEIC", "f.heif", "g.avif", "x/y.jpg", "h.TIFF", "i.tif"};
    static const char *const unclaimed[] = {"", "jpg", "a.", "a.jpg.txt", "a.jpgx", "a.jp", "a.png/b", ".", "a.tifff", "a.bmp", "a.mov"};
    for (size_t i = 0; i < sizeof claimed / sizeof *claimed; i++) {
        check(tide_media_claimed(claimed[i], strlen(claimed[i])), "%s", claimed[i]);
        check(tide_media_claimed(unclaimed[i], strlen(unclaimed[i])) == false, "%s", unclaimed[i]);
    }
    static const char *const extensions[] = {"bin", "jpg", "png", "gif", "webp", "heic", "tif"};
    for (int i = 0; i < 7; i++) check(strcmp(tide_media_extension((tide_media)i), extensions[i]) == 0, "%s", extensions[i]);
}

static void test_photo_sample(void) {
    for (int big = 0; big < 2; big++) {
        photo it = photo_sample(big);
        tide_exif exif = photo_read(&it);
        check(exif.has_time && exif.time == photo_sample_time, "%lld", (long long)exif.time);
        check(exif.has_position, "no position");
        check(fabs(exif.latitude - (60 + 23 / 60.0 + 49.5 / 3600)) < 1e-9, "%f", exif.latitude);
        check(fabs(exif.longitude - (5 + 19 / 60.0 + 12 / 3600.0)) < 1e-9, "%f", exif.longitude);
        check(exif.orientation == 6, "%d", exif.orientation);

        buffer block = {0};
        photo_put(&block, &it);
        for (size_t length = 0; length < block.length; length++) {
            uint8_t *exact = malloc(length ? length : 1);
            memcpy(exact, block.bytes, length);
            tide_exif_read(exact, length, &exif);
            free(exact);
        }
        buffer_destroy(&block);
    }
}

static bool date_read(const char *text, int64_t *time) {
    photo it = {.exif = {field_text(0x9003, text)}};
    tide_exif exif = photo_read(&it);
    *time = exif.time;
    return exif.has_time;
}

static void test_dates(void) {
    static const struct { const char *text; int64_t seconds; } dates[] = {
        {"1970:01:01 00:00:00", 0},
        {"1969:12:31 23:59:59", -1},
        {"2000:02:29 00:00:00", 951782400},
        {"2024:02:29 23:59:59", 1709251199},
        {"2038:01:19 03:14:08", 2147483648},
        {"0001:01:01 00:00:00", -62135596800},
        {"9999:12:31 23:59:59", 253402300799},
        {"2024:06:01 12:00:00  ", 1717243200},
    };
    int64_t time;
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        check(date_read(dates[i].text, &time) && time == dates[i].seconds * 1000000, "%s: %lld", dates[i].text, (long long)time);
    }
    static const char *const wrong[] = {
        "0000:00:00 00:00:00", "    :  :     :  :  ", "", "2024:06:01", "2024:06:01 12:00", "2024-06-01 12:00:00",
        "2024:06:01T12:00:00", "2024:00:01 12:00:00", "2024:13:01 12:00:00", "2024:06:00 12:00:00", "2024:06:31 12:00:00",
        "2023:02:29 12:00:00", "1900:02:29 12:00:00", "2024:06:01 24:00:00", "2024:06:01 12:60:00", "2024:06:01 12:00:60",
        "2024:06:01 12:00:0x", "+024:06:01 12:00:00", "2024:06:01 12:00:00x", "0000:01:01 00:00:00",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) check(!date_read(wrong[i], &time), "%s", wrong[i]);

    // Four centuries, counted by hand, a month at a time.
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t days = -135140;
    for (int year = 1600; year < 2004; year++) {
        bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        for (int month = 1; month <= 12; month++) {
            int length = lengths[month - 1] + (leap && month == 2);
            char text[40];
            snprintf(text, sizeof text, "%04d:%02d:01 00:00:00", year, month);
            check(date_read(text, &time) && time == days * 86400 * 1000000, "%s: %lld", text, (long long)time);
            days += length;
            snprintf(text, sizeof text, "%04d:%02d:%02d 23:59:59", year, month, length);
            check(date_read(text, &time) && time == (days * 86400 - 1) * 1000000, "%s: %lld", text, (long long)time);
        }
    }
}

static void test_date_choice(void) {
    static const struct { const char *original, *digitized, *plain; int64_t seconds; } cases[] = {
        {"1970:01:01 00:00:01", "1970:01:01 00:00:02", "1970:01:01 00:00:03", 1},
        {"0000:00:00 00:00:00", "1970:01:01 00:00:02", "1970:01:01 00:00:03", 2},
        {"", "    :  :     :  :  ", "1970:01:01 00:00:03", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        photo it = {
            .main = {field_text(0x0132, cases[i].plain)},
            .exif = {
                field_text(0x9003, cases[i].original), field_text(0x9004, cases[i].digitized),
                field_text(0x9290, "3"), field_text(0x9291, "1"), field_text(0x9292, "2"),
                field_text(0x9010, "+03:00"), field_text(0x9011, "+01:00"), field_text(0x9012, "+02:00"),
            },
        };
        int64_t n = cases[i].seconds, expected = (n - 3600 * n) * 1000000 + n * 100000;
        tide_exif exif = photo_read(&it);
        check(exif.has_time && exif.time == expected, "%zu: %lld", i, (long long)exif.time);
    }
}

static void test_fractions_and_offsets(void) {
    static const struct { const char *fraction, *offset; int64_t time; } cases[] = {
        {"", "", 0}, {"5", "Z", 500000}, {"123", "+00:00", 123000}, {"000001", "-00:00", 1}, {"1234567890", "", 123456},
        {"12  ", "", 120000}, {"1x", "", 0}, {"  ", "", 0}, {"-5", "", 0},
        {"", "+01:30", -5400000000}, {"", "-03:30", 12600000000}, {"", "+14:00", -50400000000}, {"", "+14:01", 0},
        {"", "+01:60", 0}, {"", "01:00", 0}, {"", "+1:00", 0}, {"", "   :  ", 0}, {"", "+0100", 0}, {"", "+01:00x", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        photo it = {
            .exif = {
                field_text(0x9003, "1970:01:01 00:00:00"),
                field_text(0x9291, cases[i].fraction),
                field_text(0x9011, cases[i].offset),
            },
        };
        tide_exif exif = photo_read(&it);
        check(exif.has_time && exif.time == cases[i].time, "'%s' '%s'", cases[i].fraction, cases[i].offset);
    }
}

static void test_positions(void) {
    static const struct {
        const char *north, *east;
        uint32_t latitude[6], longitude[6];
        bool has;
        double degrees_north, degrees_east;
    } cases[] = {
        {"N", "E", {1, 2, 0, 1, 0, 1}, {3, 2, 0, 1, 0, 1}, true, 0.5, 1.5},
        {"S", "W", {1, 2, 30, 1, 0, 1}, {3, 2, 0, 1, 36, 1}, true, -1, -1.51},
        {"N", "E", {0, 1, 0, 1, 0, 1}, {0, 1, 0, 1, 0, 1}, true, 0, 0},
        {"S", "W", {90, 1, 0, 1, 0, 1}, {180, 1, 0, 1, 0, 1}, true, -90, -180},
        {"N", "E", {90, 1, 0, 1, 1, 1}, {0, 1, 0, 1, 0, 1}, false, 0, 0},
        {"N", "E", {0, 1, 0, 1, 0, 1}, {180, 1, 0, 1, 1, 1}, false, 0, 0},
        {"N", "E", {0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}, false, 0, 0},
        {"N", "E", {1, 1, 1, 1, 0, 0}, {1, 1, 1, 1, 1, 1}, false, 0, 0},
        {"N", "E", {1, 1, 61, 1, 0, 1}, {1, 1, 1, 1, 1, 1}, false, 0, 0},
        {"N", "E", {UINT32_MAX, 1, 0, 1, 0, 1}, {1, 1, 1, 1, 1, 1}, false, 0, 0},
        {"X", "E", {1, 1, 0, 1, 0, 1}, {1, 1, 1, 1, 1, 1}, false, 0, 0},
        {"N", "", {1, 1, 0, 1, 0, 1}, {1, 1, 1, 1, 1, 1}, false, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        photo it = {
            .big = i % 2,
            .gps = {
                field_text(1, cases[i].north), {.tag = 2, .format = format_rational, .count = 3},
                field_text(3, cases[i].east), {.tag = 4, .format = format_rational, .count = 3},
            },
        };
        memcpy(it.gps[1].numbers, cases[i].latitude, sizeof cases[i].latitude);
        memcpy(it.gps[3].numbers, cases[i].longitude, sizeof cases[i].longitude);
        tide_exif exif = photo_read(&it);
        check(exif.has_position == cases[i].has, "%zu", i);
        check(fabs(exif.latitude - cases[i].degrees_north) < 1e-9, "%zu: %f", i, exif.latitude);
        check(fabs(exif.longitude - cases[i].degrees_east) < 1e-9, "%zu: %f", i, exif.longitude);
        it.gps[2].format = 0;
        check(!photo_read(&it).has_position, "%zu: a latitude alone", i);
    }
}

static void test_orientations(void) {
    for (uint32_t value = 0; value < 12; value++) {
        photo it = {.big = value % 2, .main = {{.tag = 0x0112, .format = format_short, .count = 1, .numbers = {value}}}};
        tide_exif exif = photo_read(&it);
        check(exif.orientation == (value >= 1 && value <= 8 ? value : 1), "%u: %d", value, exif.orientation);
        it.main[0].format = format_undefined;
        check(photo_read(&it).orientation == 1, "%u: of another type", value);
    }
}

/// Three tables of as many entries as fit, each but the last pointing to the next: followed naively, the work is their product.
static void test_hostile_directories(void) {
    enum { entries = 1800 };
    static const uint16_t tags[] = {0x8769, 0x8825, 0x7777};
    buffer block = {0};
    put(&block, "II\x2a\0\x08\0\0\0", 8);
    for (int table = 0; table < 3; table++) {
        size_t next = block.length + 2 + 12 * entries;
        put_little(&block, entries, 2);
        for (int i = 0; i < entries; i++) {
            put_little(&block, tags[table], 2);
            put_little(&block, 4, 2);
            put_little(&block, 1, 4);
            put_little(&block, next, 4);
        }
    }
    clock_t start = clock();
    tide_exif exif;
    tide_exif_read(block.bytes, block.length, &exif);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    check(seconds < 2, "%f seconds", seconds);
    check(!exif.has_time && !exif.has_position && exif.orientation == 1, "something was read");
    buffer_destroy(&block);
}

static void test_overlapping_directories(void) {
    // A directory that is its own sub-directory, or nearly so
    for (uint32_t offset = 0; offset < 64; offset++) {
        photo it = photo_sample(false);
        buffer block = {0};
        photo_put(&block, &it);
        size_t main = block.bytes[4] | (size_t)block.bytes[5] << 8;
        for (size_t i = 0; i < 2; i++) {
            set_number(&block, main + 2 + 12 * (2 + i) + 8, main + offset - 16 * i, 4, false);
            tide_exif exif;
            tide_exif_read(block.bytes, block.length, &exif);
            check(exif.orientation == 1 || exif.orientation == 6, "%u: orientation %d", offset, exif.orientation);
        }
        buffer_destroy(&block);
    }
    // The number of entries of one directory is an entry of another: of such a block nothing is read.
    static const uint32_t main[][3] = {{0x0112, 3, 6}, {0x8769, 4, 52}, {0x8825, 4, 50}};
    buffer block = {0};
    put(&block, "II\x2a\0\x08\0\0\0\3\0", 10);
    for (size_t i = 0; i < 3; i++) {
        put_little(&block, main[i][0], 2);
        put_little(&block, main[i][1], 2);
        put_little(&block, 1, 4);
        put_little(&block, main[i][2], 4);
    }
    put_zeros(&block, 4);
    check(block.length == 50, "%zu", block.length);
    put_little(&block, 1, 2);
    put_little(&block, 5, 2);
    for (size_t i = 0; i < 10; i++) put(&block, "\x77\x77\3\0\1\0\0\0\0\0\0", 12);
    tide_exif exif;
    tide_exif_read(block.bytes, block.length, &exif);
    check(exif.orientation == 1, "orientation %d", exif.orientation);
    set_number(&block, 10 + 2 * 12, 0x7777, 2, false);
    tide_exif_read(block.bytes, block.length, &exif);
    check(exif.orientation == 6, "orientation %d without the other directory", exif.orientation);
    buffer_destroy(&block);
}

static void samples_write(const char *directory) {
    for (size_t i = 0; i < sample_count; i++) {
        buffer content = {0};
        samples[i].build(&content);
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, samples[i].name);
        FILE *file = fopen(path, "wb");
        check(file && fwrite(content.bytes, 1, content.length, file) == content.length && fclose(file) == 0, "%s", path);
        buffer_destroy(&content);
    }
}

int main(int count, char **arguments) {
    if (count > 1) {
        samples_write(arguments[1]);
        return 0;
    }
    FILE *file = tmpfile();
    check(file, "tmpfile: %s", strerror(errno));
    int descriptor = fileno(file);
    test_samples(descriptor);
    test_trailing_bytes(descriptor);
    test_jpeg_end_anywhere(descriptor);
    test_messages(descriptor);
    test_other_content(descriptor);
    test_unreadable_files(descriptor);
    test_hostile_lengths(descriptor);
    test_tiff_directories(descriptor);
    test_tiff_strips(descriptor);
    test_heic_items(descriptor);
    test_names();
    test_photo_sample();
    test_dates();
    test_date_choice();
    test_fractions_and_offsets();
    test_positions();
    test_orientations();
    test_hostile_directories();
    test_overlapping_directories();
    fclose(file);
    printf("image_test: 19 passed, 0 failed\n");
    return 0;
}
